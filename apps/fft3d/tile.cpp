// SPDX-License-Identifier: Apache-2.0
#include "tile.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

namespace fft3d {
namespace {

namespace fs = std::filesystem;

constexpr char between_precisions = '\f';

// Nowhere, if there is no home.
fs::path wisdom_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return fs::path(cache) / "orrery";
  if (const char* home = std::getenv("HOME")) return fs::path(home) / ".cache/orrery";
  return {};
}
}  // namespace

std::int64_t share_of(std::int64_t lines, std::int64_t length) {
  constexpr std::int64_t numbers = 1 << 14;
  const std::int64_t parts = std::max<std::int64_t>((lines * length + numbers / 2) / numbers, 1);
  return (lines + parts - 1) / parts;
}

index3 tile_shape(const orrery::storage::page_grid& g, const orrery::storage::sweep& s) {
  index3 shape{1, 1, 1};
  for (const int d : s.dimensions) shape[d] = g.array_shape[d];
  int wide = 2;
  while (std::ranges::find(s.dimensions, wide) != s.dimensions.end()) --wide;
  const std::int64_t share = share_of(g.page_shape[wide], orrery::storage::product(shape));
  // Rows of less than a few cache lines would be slow to copy.
  shape[wide] = wide == 2 ? std::min(std::max<std::int64_t>(whole_fours(share), 16), g.page_shape[wide]) : share;
  return shape;
}
index3 tile_strides(const index3& shape) {
  const std::int64_t row = shape[1] * shape[0] == 1 ? shape[2] : (shape[2] + 3) / 4 * 4 + 8;
  return {shape[1] * row, row, 1};
}

std::mutex& planner() {
  static std::mutex one;
  return one;
}

void load_wisdom() {
  const fs::path folder = wisdom_folder();
  if (folder.empty()) return;
  const std::lock_guard lock(planner());
  (void)fftw_import_wisdom_from_filename((folder / "fftw-wisdom").c_str());
  (void)fftwf_import_wisdom_from_filename((folder / "fftwf-wisdom").c_str());
}
void save_wisdom() {
  const fs::path folder = wisdom_folder();
  std::error_code failed;
  if (folder.empty()) return;
  fs::create_directories(folder, failed);
  const std::lock_guard lock(planner());
  // Written beside and renamed: other programs may be reading.
  const std::string beside = (folder / std::to_string(getpid())).string();
  if (fftw_export_wisdom_to_filename(beside.c_str()) != 0) fs::rename(beside, folder / "fftw-wisdom", failed);
  if (fftwf_export_wisdom_to_filename(beside.c_str()) != 0) fs::rename(beside, folder / "fftwf-wisdom", failed);
}

std::string wisdom_text() {
  const std::lock_guard lock(planner());
  std::string text;
  for (char* const part : {fftw_export_wisdom_to_string(), fftwf_export_wisdom_to_string()}) {
    if (part == nullptr) continue;
    text += part;
    text += between_precisions;
    std::free(part);  // NOLINT: FFTW allocates it so
  }
  return text;
}
void learn(const std::string& wisdom) {
  const std::lock_guard lock(planner());
  const std::size_t end = wisdom.find(between_precisions);
  if (end == std::string::npos) return;
  (void)fftw_import_wisdom_from_string(wisdom.substr(0, end).c_str());
  (void)fftwf_import_wisdom_from_string(wisdom.substr(end + 1, wisdom.size() - end - 2).c_str());
}

}  // namespace fft3d
