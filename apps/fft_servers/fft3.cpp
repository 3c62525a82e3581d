// SPDX-License-Identifier: Apache-2.0
#include "fft3.hpp"

#include <algorithm>
#include <mutex>
#include <span>

#include <fftw3.h>

namespace fft_servers {

void call_fftw(std::vector<number>& buffer, std::int64_t n) {
  static std::mutex planner;  // FFTW makes one plan at a time
  auto* data = reinterpret_cast<fftw_complex*>(buffer.data());
  const int length = static_cast<int>(n);
  const int count = static_cast<int>(std::ssize(buffer) / n);
  std::unique_lock lock(planner);
  const fftw_plan plan = fftw_plan_many_dft(1, &length, count, data, nullptr, 1, length, data, nullptr, 1, length,
                                            FFTW_FORWARD, FFTW_ESTIMATE);
  lock.unlock();
  fftw_execute(plan);
  lock.lock();
  fftw_destroy_plan(plan);
}

number input_at(const index3& place) {
  auto x = static_cast<std::uint64_t>((place[0] * 1'000'003 + place[1]) * 1'000'003 + place[2]);
  x = (x ^ (x >> 31)) * 0x9e37'79b9'7f4a'7c15;
  return {static_cast<double>(x >> 40) / (1 << 24) - 0.5, static_cast<double>((x >> 16) & 0xff'ffff) / (1 << 24) - 0.5};
}

std::int64_t page_lines(const orrery::storage::page_grid& grid, int dimension) {
  return grid.page_count() / grid.pages()[dimension];
}
domain page_line(const orrery::storage::page_grid& grid, int dimension, std::int64_t n) {
  index3 ends = grid.pages();
  ends[dimension] = 1;
  domain d = grid.elements_of(orrery::storage::page_grid{ends, {1, 1, 1}}.page_at(n));
  d.last[dimension] = grid.array_shape[dimension];
  return d;
}
std::int64_t iterations_of(const orrery::storage::page_grid& grid, int dimension, std::size_t members) {
  const auto n = static_cast<std::int64_t>(members);
  return (page_lines(grid, dimension) + n - 1) / n;
}

// Read so that what is transformed is contiguous.
void real_data::read(const domain& d, int dimension) {
  buffer.resize(static_cast<std::size_t>(d.size()));
  if (dimension == 0) array.read_transpose13(d, std::span(buffer));
  if (dimension == 1) array.read_transpose23(d, std::span(buffer));
  if (dimension == 2) array.read(d, std::span(buffer));
}
void real_data::write(const domain& d, int dimension) {
  const std::span<const number> from(buffer);
  if (dimension == 0) array.write_transpose13(d, from);
  if (dimension == 1) array.write_transpose23(d, from);
  if (dimension == 2) array.write(d, from);
}

void FFT3::fill() {
  const std::int64_t each = iterations_of(data_.grid(), 2, size());
  const std::int64_t begin = static_cast<std::int64_t>(rank()) * each;
  for (std::int64_t n = begin; n < std::min(begin + each, page_lines(data_.grid(), 2)); ++n) {
    const domain d = page_line(data_.grid(), 2, n);
    data_.buffer.clear();
    for_each_place(d, [&](const index3& place) { data_.buffer.push_back(input_at(place)); });
    data_.write(d, 2);
  }
}

}  // namespace fft_servers
