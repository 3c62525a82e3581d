// SPDX-License-Identifier: Apache-2.0
#include "nifti_attributes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <nlohmann/json.hpp>

namespace orrery::tool {
namespace {

using nlohmann::ordered_json;
using storage::index3;

using affine = std::array<std::array<double, 4>, 3>;  // (i, j, k, 1) to (x, y, z)

affine rows_of(const nifti_dmat44& m) {
  affine a;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j) a[i][j] = m.m[i][j];
  return a;
}

template <std::size_t N>
std::array<double, N> numbers(const ordered_json& j) {
  std::array<double, N> a{};
  for (std::size_t k = 0; k < N; ++k) a[k] = j.at(k).is_number() ? j.at(k).get<double>() : 0;
  return a;
}

// The place of voxel `first` becomes that of voxel (0, 0, 0): for a part of the array.
void move_origin(std::array<double, 3>& offset, const affine& a, const index3& first) {
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) offset[i] += a[i][j] * static_cast<double>(first[j]);
}

void set_sform(nifti_image& n, const ordered_json& j, const index3& first) {
  affine a{};
  for (std::size_t i = 0; i < 3; ++i) a[i] = numbers<4>(j.at("srow").at(i));
  std::array<double, 3> offset{a[0][3], a[1][3], a[2][3]};
  move_origin(offset, a, first);
  n.sform_code = j.value("sform_code", 0);
  n.sto_xyz = {};
  n.sto_xyz.m[3][3] = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) n.sto_xyz.m[i][k] = a[i][k];
    n.sto_xyz.m[i][3] = offset[i];
  }
}
void set_qform(nifti_image& n, const ordered_json& j, const index3& first) {
  const auto q = numbers<3>(j.at("quatern"));
  auto offset = numbers<3>(j.at("qoffset"));
  n.qform_code = j.value("qform_code", 0);
  n.qfac = j.value("qfac", 1.0);
  move_origin(
      offset,
      rows_of(nifti_quatern_to_dmat44(q[0], q[1], q[2], 0, 0, 0, n.pixdim[1], n.pixdim[2], n.pixdim[3], n.qfac)),
      first);
  n.quatern_b = q[0], n.quatern_c = q[1], n.quatern_d = q[2];
  n.qoffset_x = offset[0], n.qoffset_y = offset[1], n.qoffset_z = offset[2];
  n.qto_xyz = nifti_quatern_to_dmat44(q[0], q[1], q[2], offset[0], offset[1], offset[2], n.pixdim[1], n.pixdim[2],
                                      n.pixdim[3], n.qfac);
}

}  // namespace

std::string attributes_of(const nifti_image& n) {
  const nifti_dmat44& best = n.sform_code > 0 ? n.sto_xyz : n.qto_xyz;
  ordered_json j;
  j["voxel_size"] = {n.dx, n.dy, n.dz};
  j["voxel_unit"] = nifti_units_string(n.xyz_units);
  j["affine"] = rows_of(best);
  j["nifti"] = {{"datatype", nifti_datatype_to_string(n.datatype)},
                {"scl", {n.scl_slope, n.scl_inter}},
                {"xyz_units", n.xyz_units},
                {"qform_code", n.qform_code},
                {"quatern", {n.quatern_b, n.quatern_c, n.quatern_d}},
                {"qoffset", {n.qoffset_x, n.qoffset_y, n.qoffset_z}},
                {"qfac", n.qfac},
                {"sform_code", n.sform_code},
                {"srow", rows_of(n.sto_xyz)},
                {"cal", {n.cal_min, n.cal_max}},
                {"descrip", std::string(n.descrip, strnlen(n.descrip, sizeof n.descrip))}};
  // Text of a header need not be UTF-8; NaN is null.
  return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void restore(nifti_image& n, const std::string& attributes, const index3& first) {
  const ordered_json j = ordered_json::parse(attributes.empty() ? "{}" : attributes);
  if (const auto v = j.find("voxel_size"); v != j.end()) {
    const auto size = numbers<3>(*v);
    n.dx = n.pixdim[1] = size[0], n.dy = n.pixdim[2] = size[1], n.dz = n.pixdim[3] = size[2];
  }
  const auto own = j.find("nifti");
  if (own == j.end()) return;
  n.xyz_units = own->value("xyz_units", 0);
  set_qform(n, *own, first);
  set_sform(n, *own, first);
  const auto cal = numbers<2>(own->at("cal"));
  n.cal_min = cal[0], n.cal_max = cal[1];
  const std::string text = own->value("descrip", "");
  std::ranges::copy(text.substr(0, sizeof n.descrip - 1), n.descrip);
}

}  // namespace orrery::tool
