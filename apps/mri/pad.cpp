// SPDX-License-Identifier: Apache-2.0
#include "pad.hpp"

#include <orrery/orrery.hpp>
#include <orrery/storage/storage.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <span>
#include <stdexcept>
#include <vector>

#include <nlohmann/json.hpp>

namespace mri {

namespace storage = orrery::storage;
using storage::domain;
using storage::index3;

namespace {

// Frequencies that stay side by side: [from, from + count) of the input go to [to, to + count).
struct run_of {
  std::int64_t from, to, count;
};
// Frequencies 0 and above begin at 0; those below it end at the end.
std::array<run_of, 2> runs(std::int64_t n, std::int64_t longer) {
  const std::int64_t positive = (n + 1) / 2;
  return {{{0, 0, positive}, {positive, longer - (n - positive), n - positive}}};
}

template <class T>
void pad(const storage::array& from, const storage::array& to, std::int64_t factor) {
  const index3& shape = to.shape();
  const auto rows = runs(from.shape()[1], shape[1]);
  const auto columns = runs(from.shape()[2], shape[2]);
  // the inverse divides by the elements
  const T scale(static_cast<typename T::value_type>(factor * factor * factor));
  const std::int64_t slab = to.grid().page_shape[0];
  std::vector<T> box;
  std::vector<T> part;
  for (std::int64_t first = 0; first < shape[0]; first += slab) {
    const std::int64_t last = std::min(first + slab, shape[0]);
    box.assign(static_cast<std::size_t>((last - first) * shape[1] * shape[2]), T{});
    for (const run_of& planes : runs(from.shape()[0], shape[0])) {
      const std::int64_t begin = std::max(first, planes.to);
      const std::int64_t end = std::min(last, planes.to + planes.count);
      for (std::int64_t x = begin; x < end; ++x)
        for (const run_of& y : rows)
          for (const run_of& z : columns) {
            if (y.count == 0 || z.count == 0) continue;
            const std::int64_t at = planes.from + x - planes.to;
            part.resize(static_cast<std::size_t>(y.count * z.count));
            from.read(domain{{at, y.from, z.from}, {at + 1, y.from + y.count, z.from + z.count}}, std::span<T>(part));
            for (std::int64_t r = 0; r < y.count; ++r) {
              T* const line = box.data() + ((x - first) * shape[1] + y.to + r) * shape[2] + z.to;
              std::transform(part.begin() + r * z.count, part.begin() + (r + 1) * z.count, line,
                             [&](const T& value) { return value * scale; });
            }
          }
    }
    to.write(domain{{first, 0, 0}, {last, shape[1], shape[2]}}, std::span<const T>(box));
  }
}

// Voxels of the finer grid: their size, and the columns of the affines that are steps from voxel to
// voxel; the first voxel stays where it is.
std::string finer(const std::string& attributes, std::int64_t factor) {
  auto all = nlohmann::ordered_json::parse(attributes.empty() ? "{}" : attributes);
  const auto divide = [&](nlohmann::ordered_json& numbers) {
    for (std::size_t i = 0; i < 3; ++i)
      if (numbers.at(i).is_number()) numbers.at(i) = numbers.at(i).get<double>() / static_cast<double>(factor);
  };
  if (all.contains("voxel_size")) divide(all["voxel_size"]);
  for (const char* affine : {"/affine", "/nifti/srow"})
    if (const nlohmann::ordered_json::json_pointer at(affine); all.contains(at))
      for (auto& row : all[at]) divide(row);
  return all.empty() ? "" : all.dump();
}

}  // namespace

void pad_spectrum(const std::string& input, const std::string& output, std::int64_t factor) {
  if (factor < 1) throw std::invalid_argument("the factor must be 1 or more");
  const auto spectrum = orrery::spawn<storage::data_set>(orrery::here(), input);
  const storage::data_set_info about = spectrum->info();
  if (!is_complex(about.type))
    throw std::invalid_argument(input + " is of " + std::string(to_string(about.type)) + ": a spectrum is complex");
  const auto padded = orrery::spawn<storage::data_set>(
      orrery::here(), output,
      storage::data_set_description{
          .shape = {about.shape[0] * factor, about.shape[1] * factor, about.shape[2] * factor},
          .page_shape = {16, 128, 128},
          .type = about.type,
          .attributes = finer(about.attributes, factor)});
  if (is_single(about.type)) {
    pad<std::complex<float>>(spectrum->contents(), padded->contents(), factor);
  } else {
    pad<std::complex<double>>(spectrum->contents(), padded->contents(), factor);
  }
  padded->finish();
  destroy(padded);
  destroy(spectrum);
}

}  // namespace mri
