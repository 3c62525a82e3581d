// SPDX-License-Identifier: Apache-2.0
// fft3d against FFTW in memory: all types, shapes, operations, numbers of passes, on one node and on four.
#include "support.hpp"

#include <filesystem>

#include <fmt/format.h>

namespace {

using namespace fft3d;
using namespace fft3d::testing;

struct layout {
  index3 shape;
  index3 pages;
};
// Even and odd, pages that divide and that do not, that are larger than the array, that are single elements or lines of them.
const std::vector<layout> layouts{{{8, 8, 8}, {4, 4, 4}},
                                  {{9, 7, 11}, {4, 3, 5}},
                                  {{16, 5, 6}, {3, 8, 4}},
                                  {{10, 12, 1}, {4, 5, 1}},
                                  {{2, 3, 40}, {1, 1, 40}}};

const std::vector<request> requests{
    {.what = operation::forward},
    {.what = operation::inverse},
    {.what = operation::inverse, .real_output = true},
    {.what = operation::filter, .filter = {transfer_function::form::low_pass, 0, 0.3}},
    {.what = operation::filter, .filter = {transfer_function::form::band_pass, 0.2, 0.45}},
    {.what = operation::filter, .filter = {transfer_function::form::gaussian, 0, 0.15}}};

// How far the result is from FFTW's; negative: there is no such transform, and the request was refused.
double try_one(const std::string& folder, request r, const layout& l, element_type type, int passes, bool in_place) {
  namespace fs = std::filesystem;
  for (const auto& e : fs::directory_iterator(folder)) fs::remove_all(e.path());
  const auto x = random_numbers(product(l.shape), !is_complex(type));
  make_set(folder + "/x", {.shape = l.shape, .page_shape = l.pages, .type = type}, x);
  r.input = folder + "/x";
  r.output = in_place ? "" : folder + "/y";
  r.passes = passes;
  try {
    (void)perform(r, nobody);
  } catch (const std::invalid_argument&) {
    return -1;
  }
  auto wanted = expected(r, l.shape, x);
  if (r.real_output || (r.what == operation::filter && !is_complex(type)))
    for (number& v : wanted) v = v.real();
  const double error = difference(read_set(in_place ? r.input : r.output), wanted);
  if (!in_place && read_set(r.input) != x) return INFINITY;  // the input is as it was
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == (in_place ? 1 : 2) ? error
                                                                                                       : INFINITY;
}

bool can_be(const request& r, element_type type, int passes, bool in_place) {
  if (!is_complex(type) && (r.what == operation::inverse || (in_place && r.what == operation::forward))) return false;
  return !(in_place && (passes == 1 || r.real_output));
}

// Empty: all is well.
std::string try_all(const std::string& folder, element_type type, int passes) {
  for (const layout& l : layouts)
    for (const request& r : requests)
      for (const bool in_place : {false, true}) {
        const double error = try_one(folder, r, l, type, passes, in_place);
        const bool good =
            can_be(r, type, passes, in_place) ? error >= 0 && error < (is_single(type) ? 1e-5 : 1e-13) : error == -1;
        if (!good)
          return fmt::format("{} of {} in pages of {}, operation {}, {} passes{}: error {}", to_string(type),
                             storage::to_string(l.shape), storage::to_string(l.pages), static_cast<int>(r.what), passes,
                             in_place ? ", in place" : "", error);
      }
  return {};
}

class values : public ::testing::TestWithParam<std::tuple<element_type, int>> {};

TEST_P(values, are_those_of_fftw_on_threads) {
  const scratch folder;
  const auto [type, passes] = GetParam();
  program([&] { EXPECT_EQ(try_all(folder.path, type, passes), ""); });
}
class values_on_nodes : public values {};  // fewer types: what a type decides is decided in each node as on threads
TEST_P(values_on_nodes, are_those_of_fftw) {
  const scratch folder;
  const auto [type, passes] = GetParam();
  const child c({"--scenario", folder.path, std::to_string(static_cast<int>(type)), std::to_string(passes),
                 "--orrery-nodes=4", "--orrery-pes=1"});
  EXPECT_EQ(c.outcome(), 0);
}

using element_type::complex128, element_type::complex64, element_type::float32, element_type::float64;
const auto name_of = [](const auto& p) {
  return fmt::format("{}_{}_passes", to_string(std::get<0>(p.param)), std::get<1>(p.param));
};
INSTANTIATE_TEST_SUITE_P(fft3d, values,
                         ::testing::Combine(::testing::Values(float32, float64, complex64, complex128),
                                            ::testing::Values(1, 2, 3)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(fft3d, values_on_nodes,
                         ::testing::Combine(::testing::Values(float32, complex128), ::testing::Values(1, 2, 3)),
                         name_of);

TEST(fft3d_drives, may_be_several) {
  const scratch folder;
  program([&] {
    const auto x = random_numbers(20 * 18 * 14, false);
    const std::vector<std::string> drives{folder / "d0", folder / "d1", folder / "d2"};
    make_set(folder / "x", {.shape = {20, 18, 14}, .page_shape = {4, 5, 6}, .folders = drives}, x);
    request r{.input = folder / "x", .output = folder / "y", .passes = 2, .folders = drives};
    (void)perform(r, nobody);
    EXPECT_LT(difference(read_set(r.output), expected(r, {20, 18, 14}, x)), 1e-13);
    r.output = "";
    r.folders = {};
    (void)perform(r, nobody);
    EXPECT_LT(difference(read_set(r.input), expected(r, {20, 18, 14}, x)), 1e-13);
    for (const std::string& d : drives)  // the device and its checksums, of both: nothing else is left
      EXPECT_EQ(std::distance(std::filesystem::directory_iterator(d), std::filesystem::directory_iterator()), 4) << d;
  });
}

}  // namespace

int main(int argc, char** argv) {
  return test_main(argc, argv, [](const std::vector<std::string>& words) {
    const std::string what =
        try_all(words.at(0), static_cast<element_type>(std::stoi(words.at(1))), std::stoi(words.at(2)));
    if (!what.empty()) std::fprintf(stderr, "%s\n", what.c_str());
    return what.empty() ? 0 : 1;
  });
}
