// SPDX-License-Identifier: Apache-2.0
#include "lines.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

namespace fft3d {
namespace {

namespace fs = std::filesystem;

// Nowhere, if there is no home.
fs::path wisdom_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return fs::path(cache) / "orrery";
  if (const char* home = std::getenv("HOME")) return fs::path(home) / ".cache/orrery";
  return {};
}
// Written beside and renamed: other programs may be reading.
void save(const fs::path& file, int (*write)(const char*)) {
  const fs::path beside = file.string() + "." + std::to_string(getpid());
  std::error_code ignored;
  if (write(beside.c_str()) != 0) fs::rename(beside, file, ignored);
}

}  // namespace

std::int64_t tile_lines(const orrery::storage::page_grid& g, int dimension) {
  constexpr std::int64_t numbers = 1 << 14;
  const int across = dimension == 2 ? 1 : 2;
  return std::clamp<std::int64_t>(numbers / g.array_shape[dimension], 1, g.page_shape[across]);
}
std::uint64_t tile_elements(const orrery::storage::page_grid& g, int dimension) {
  return tile_lines(g, dimension) * g.array_shape[dimension];
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
  save(folder / "fftw-wisdom", &fftw_export_wisdom_to_filename);
  save(folder / "fftwf-wisdom", &fftwf_export_wisdom_to_filename);
}

}  // namespace fft3d
