// SPDX-License-Identifier: Apache-2.0
// The steps of the main job on a volume so small that each number can be computed from its definition.
#include "../fft/support.hpp"

#include <apps/mri/pad.hpp>
#include <apps/mri/slice.hpp>

#include <cstdint>
#include <numbers>
#include <stdexcept>

#include <png.h>
#include <nlohmann/json.hpp>

namespace {

using namespace fft3d;
using namespace fft3d::testing;

// The function with these samples and the fewest waves, at a place between them: one wave for each frequency from -n/2 (not n/2) on.
number between(const std::vector<number>& x, const index3& shape, const std::array<double, 3>& at) {
  std::array<std::vector<number>, 3> weight;  // of the samples in each dimension
  for (std::size_t d = 0; d < 3; ++d)
    for (std::int64_t i = 0; i < shape[d]; ++i) {
      number sum;
      for (std::int64_t k = -(shape[d] / 2); k < shape[d] - shape[d] / 2; ++k)
        sum += std::polar(1.0 / static_cast<double>(shape[d]), 2 * std::numbers::pi * static_cast<double>(k) *
                                                                   (at[d] - static_cast<double>(i)) /
                                                                   static_cast<double>(shape[d]));
      weight[d].push_back(sum);
    }
  number sum;
  auto sample = x.begin();
  for_each_place(domain::of_shape(shape),
                 [&](const index3& i) { sum += *sample++ * weight[0][i[0]] * weight[1][i[1]] * weight[2][i[2]]; });
  return sum;
}

struct upsampled {
  index3 shape;
  std::int64_t factor;
  element_type type;
  double error;
};
class mri_pad : public ::testing::TestWithParam<upsampled> {};

TEST_P(mri_pad, makes_the_same_function_on_a_finer_grid) {
  const auto [shape, factor, type, error] = GetParam();
  const scratch folder;
  const auto x = random_numbers(product(shape), !is_complex(type));
  const index3 finer{shape[0] * factor, shape[1] * factor, shape[2] * factor};
  std::vector<number> fine;
  program([&] {
    make_set(folder / "x", {.shape = shape, .page_shape = {2, 4, 3}, .type = type}, x);
    (void)perform({.input = folder / "x", .output = folder / "spectrum"}, nobody);
    mri::pad_spectrum(folder / "spectrum", folder / "padded", factor);
    (void)perform({.input = folder / "padded", .output = folder / "fine", .what = operation::inverse}, nobody);
    fine = read_set(folder / "fine");
  });
  std::vector<number> computed;
  for_each_place(domain::of_shape(finer), [&](const index3& i) {
    std::array<double, 3> at{};
    for (std::size_t d = 0; d < 3; ++d) at[d] = static_cast<double>(i[d]) / static_cast<double>(factor);
    computed.push_back(between(x, shape, at));
  });
  EXPECT_LT(difference(fine, computed), error);
}
INSTANTIATE_TEST_SUITE_P(odd_even_and_unchanged, mri_pad,
                         ::testing::Values(upsampled{{5, 7, 9}, 3, element_type::float32, 1e-5},
                                           upsampled{{6, 4, 5}, 2, element_type::complex128, 1e-13},
                                           upsampled{{1, 8, 3}, 4, element_type::float64, 1e-13},
                                           upsampled{{4, 3, 2}, 1, element_type::complex64, 1e-5}));

TEST(mri, voxels_of_the_finer_grid_are_smaller_and_begin_where_they_did) {
  const scratch folder;
  program([&] {
    make_set(folder / "x",
             {.shape = {3, 3, 3},
              .page_shape = {3, 3, 3},
              .type = element_type::float32,
              .attributes = R"({"voxel_size": [3, 6, null], "affine": [[3, 0, 0, -90], [0, 6, 0, 4], [0, 0, 1.5, 5]],
                                "nifti": {"srow": [[3, 0, 0, -90], [0, 6, 0, 4], [0, 0, 1.5, 5]], "cal": [0, 3]}})"},
             random_numbers(27, true));
    (void)perform({.input = folder / "x", .output = folder / "spectrum"}, nobody);
    mri::pad_spectrum(folder / "spectrum", folder / "padded", 3);
    const request back{
        .input = folder / "padded", .output = folder / "fine", .what = operation::inverse, .real_output = true};
    (void)perform(back, nobody);
    const auto rows = nlohmann::json::parse("[[1.0, 0.0, 0.0, -90], [0.0, 2.0, 0.0, 4], [0.0, 0.0, 0.5, 5]]");
    EXPECT_EQ(
        nlohmann::json::parse(data_set::read_info(folder / "fine").attributes),
        (nlohmann::json{
            {"voxel_size", {1.0, 2.0, nullptr}}, {"affine", rows}, {"nifti", {{"srow", rows}, {"cal", {0, 3}}}}}));
  });
}

TEST(mri, refuses_a_spectrum_of_real_numbers) {
  const scratch folder;
  program([&] {
    make_set(folder / "x", {.shape = {3, 3, 3}, .page_shape = {3, 3, 3}, .type = element_type::float32},
             random_numbers(27, true));
    EXPECT_THROW(mri::pad_spectrum(folder / "x", folder / "y", 2), std::invalid_argument);
    EXPECT_FALSE(std::filesystem::exists(folder / "y"));
  });
}

TEST(mri, a_picture_has_the_later_dimension_upwards) {
  const scratch folder;
  program([&] {
    const index3 shape{3, 4, 5};
    std::vector<number> x(product(shape));
    for_each_place(domain::of_shape(shape), [&](const index3& i) {
      if (i[0] == 1) x[(i[0] * 4 + i[1]) * 5 + i[2]] = static_cast<double>(-10 * i[1] - i[2]);  // the middle plane
    });
    make_set(folder / "x", {.shape = shape, .page_shape = {2, 2, 2}, .type = element_type::float32}, x);
    mri::write_slice(folder / "x", 1, folder / "x.png");
  });
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_file(&image, (folder / "x.png").c_str()), 0) << image.message;
  ASSERT_EQ(image.width, 4U);
  ASSERT_EQ(image.height, 5U);
  image.format = PNG_FORMAT_GRAY;
  std::vector<std::uint8_t> grey(20);
  ASSERT_NE(png_image_finish_read(&image, nullptr, grey.data(), 0, nullptr), 0) << image.message;
  for (int row = 0; row < 5; ++row)
    for (int column = 0; column < 4; ++column)
      EXPECT_EQ(grey[row * 4 + column], std::lround(255 * (10 * column + (4 - row)) / 34.0)) << row << ' ' << column;
}

}  // namespace
