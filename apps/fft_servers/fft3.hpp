// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "log.hpp"
#include "phantom.hpp"

#include <orrery/orrery.hpp>
#include <orrery/storage/array.hpp>

#include <complex>
#include <cstdint>
#include <vector>

namespace fft_servers {

using number = std::complex<double>;

/// Transforms `buffer`, lines of n numbers one after the other.
void call_fftw(std::vector<number>& buffer, std::int64_t n);
/// The number at a place of the array that is transformed.
[[nodiscard]] number input_at(const index3& place);
/// The lines of pages along a dimension, numbered from one end.
[[nodiscard]] std::int64_t page_lines(const orrery::storage::page_grid& grid, int dimension);
[[nodiscard]] domain page_line(const orrery::storage::page_grid& grid, int dimension, std::int64_t n);
/// How many lines the member with the most of them has.
[[nodiscard]] std::int64_t iterations_of(const orrery::storage::page_grid& grid, int dimension, std::size_t members);

/// The data of the array, or none.
struct real_data {
  orrery::storage::array array;
  std::vector<number> buffer = {};

  [[nodiscard]] const orrery::storage::page_grid& grid() const { return array.grid(); }
  void read(const domain& d, int dimension);
  void read_into_cache(const domain& d) const { array.read_into_cache(d); }
  void transform(const domain& d, int dimension) { call_fftw(buffer, d.shape()[dimension]); }
  void write(const domain& d, int dimension);
};
struct phantom_data {
  phantom_array array;
  double fftw_seconds = 0;  ///< that the transform of a line of pages takes

  [[nodiscard]] const orrery::storage::page_grid& grid() const { return array.grid(); }
  void read(const domain& d, int) const { array.read(d); }
  void read_into_cache(const domain& d) const { array.read_into_cache(d); }
  void transform(const domain&, int) const { orrery::compute(std::chrono::duration<double>(fftw_seconds)); }
  void write(const domain& d, int) const { array.write(d); }
};

/// The paper's ComputeTransform (section 4.3), for iterations from `first` to `last` of `all` that
/// will be done: reads a line of pages, has the servers read the next one into their caches while
/// it is transformed, and writes it.
template <class Client, class Data>
std::vector<step> compute_transform(Client& self, Data& data, int dimension, std::int64_t first, std::int64_t last,
                                    std::int64_t all) {
  std::vector<step> steps;
  const std::int64_t lines = page_lines(data.grid(), dimension);
  const std::int64_t each = iterations_of(data.grid(), dimension, self.size());
  // of this member's slab
  const std::int64_t begin = static_cast<std::int64_t>(self.rank()) * each;
  const std::int64_t end = std::min(begin + each, lines);
  const auto timed = [&](step::kind what, std::int64_t i, const domain& d, auto&& f) {
    const double since = seconds();
    f();
    steps.push_back({what, i, d, seconds() - since});
  };
  for (std::int64_t i = first; i < last; ++i) {
    timed(step::kind::iteration, i, {}, [&] {
      if (const std::int64_t n = begin + i; n < end) {
        const domain d = page_line(data.grid(), dimension, n);
        timed(step::kind::read, i, d, [&] { data.read(d, dimension); });
        if (n + 1 < end && i + 1 < all) {
          const domain next = page_line(data.grid(), dimension, n + 1);
          timed(step::kind::ask, i, next, [&] { data.read_into_cache(next); });
        }
        timed(step::kind::transform, i, d, [&] { data.transform(d, dimension); });
        timed(step::kind::write, i, d, [&] { data.write(d, dimension); });
      }
      self.barrier();
    });
  }
  return steps;
}

/// A client: a member of the group that transforms the array.
class FFT3 : public orrery::member<FFT3> {
 public:
  explicit FFT3(const orrery::storage::array& a) : data_{a} {}
  /// Writes the input, each member its slab.
  void fill();
  std::vector<step> compute(int dimension, std::int64_t first, std::int64_t last, std::int64_t all) {
    return compute_transform(*this, data_, dimension, first, last, all);
  }

 private:
  real_data data_;
};
ORRERY_PROCESS(FFT3, fill, compute);

/// The same without data.
class PhantomFFT3 : public orrery::member<PhantomFFT3> {
 public:
  PhantomFFT3(const phantom_array& a, double fftw_seconds) : data_{a, fftw_seconds} {}
  std::vector<step> compute(int dimension, std::int64_t first, std::int64_t last, std::int64_t all) {
    return compute_transform(*this, data_, dimension, first, last, all);
  }

 private:
  phantom_data data_;
};
ORRERY_PROCESS(PhantomFFT3, compute);

}  // namespace fft_servers
