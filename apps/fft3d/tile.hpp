// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/sweep.hpp>

#include <algorithm>
#include <complex>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <fftw3.h>

namespace fft3d {

using orrery::storage::index3;

/// The boxes in which a unit is transformed: complete along the dimensions of the sweep, and
/// otherwise so small that they stay in the second-level cache, if one can.
[[nodiscard]] index3 tile_shape(const orrery::storage::page_grid& g, const orrery::storage::sweep& s);
/// How its numbers lie in memory. Rows are a little longer than they need be: lines whose numbers
/// are a power of two apart would share a few sets of the cache.
[[nodiscard]] index3 tile_strides(const index3& shape);

/// So many lines of that length, of all of them, that they stay in the cache and are shared out
/// evenly.
[[nodiscard]] std::int64_t share_of(std::int64_t lines, std::int64_t length);
/// FFTW wants lines to begin at multiples of 16 bytes.
[[nodiscard]] constexpr std::int64_t whole_fours(std::int64_t n) { return (n + 3) / 4 * 4; }

/// FFTW's names for one precision.
template <class Real>
struct fftw;
template <>
struct fftw<double> {
  using plan = fftw_plan;
  using number = fftw_complex;
  static constexpr auto many = &fftw_plan_many_dft;
  static constexpr auto execute = &fftw_execute_dft;
  static constexpr auto destroy = &fftw_destroy_plan;
};
template <>
struct fftw<float> {
  using plan = fftwf_plan;
  using number = fftwf_complex;
  static constexpr auto many = &fftwf_plan_many_dft;
  static constexpr auto execute = &fftwf_execute_dft;
  static constexpr auto destroy = &fftwf_destroy_plan;
};

/// Reads (writes) what FFTW has learnt about this processor; the user's cache folder keeps it
/// between runs. Never fails.
void load_wisdom();
void save_wisdom();
/// The same as a text, for both precisions, which another OS process learns from: two that know the
/// same make the same plans, whose results agree bit by bit.
[[nodiscard]] std::string wisdom_text();
void learn(const std::string& wisdom);
/// FFTW plans one at a time in each OS process.
[[nodiscard]] std::mutex& planner();

/// A box of numbers in memory, and FFTW's plans for all its lines along a dimension.
///
/// Lines that are contiguous and lines that are not are transformed alike: FFTW takes neighbours
/// together, so that both are fast within the cache. So numbers are copied here in rows, in the
/// order they have in pages, and need not be transposed.
template <class Real>
class tile {
 public:
  using number = std::complex<Real>;

  explicit tile(const index3& shape)
      : shape_(shape), strides_(tile_strides(shape)), memory_(shape[0] * strides_[0] * sizeof(number)) {}
  tile(const tile&) = delete;
  tile& operator=(const tile&) = delete;
  ~tile() {
    const std::lock_guard lock(planner());
    for (const auto& [what, plan] : plans_) fftw<Real>::destroy(plan);
  }

  [[nodiscard]] const index3& shape() const noexcept { return shape_; }
  [[nodiscard]] const index3& strides() const noexcept { return strides_; }
  [[nodiscard]] number* data() { return reinterpret_cast<number*>(memory_.writable().data()); }

  [[nodiscard]] std::byte* bytes() { return memory_.writable().data(); }
  void clear() { std::fill_n(data(), shape_[0] * strides_[0], number{}); }

  /// Plans, if that was not done yet; what is in the tile is lost.
  void prepare(int dimension, int sign) {
    each_batch(dimension, sign, [](auto...) {});
  }
  /// All lines along the dimension, prepared before; neither sign divides. `between` is called
  /// every now and then.
  void transform(int dimension, int sign, const std::function<void()>& between) {
    each_batch(dimension, sign, [&](auto plan, number* first) {
      auto* at = reinterpret_cast<typename fftw<Real>::number*>(first);
      fftw<Real>::execute(plan, at, at);
      between();
    });
  }

 private:
  // f(plan, first number), for some lines at a time: neighbours in the next dimension.
  template <class F>
  void each_batch(int dimension, int sign, F&& f) {
    const int next = dimension != 2 ? 2 : shape_[1] != 1 ? 1 : 0;
    const int third = 3 - dimension - next;
    const std::int64_t most = whole_fours(share_of(shape_[next], shape_[dimension]));
    for (std::int64_t i = 0; i < shape_[third]; ++i)
      for (std::int64_t j = 0; j < shape_[next]; j += most)
        f(plan_for(dimension, next, std::min(most, shape_[next] - j), sign),
          data() + i * strides_[third] + j * strides_[next]);
  }
  typename fftw<Real>::plan plan_for(int dimension, int next, std::int64_t count, int sign) {
    auto& plan = plans_[{dimension * 2 + (sign > 0), count}];
    if (plan != nullptr) return plan;
    const int n = static_cast<int>(shape_[dimension]);
    const int stride = static_cast<int>(strides_[dimension]);
    const int distance = static_cast<int>(strides_[next]);
    auto* at = reinterpret_cast<typename fftw<Real>::number*>(data());
    const std::lock_guard lock(planner());
    return plan = fftw<Real>::many(1, &n, static_cast<int>(count), at, nullptr, stride, distance, at, nullptr, stride,
                                   distance, sign, FFTW_MEASURE);
  }

  index3 shape_;
  index3 strides_;
  orrery::storage::page memory_;  // aligned
  std::map<std::pair<int, std::int64_t>, typename fftw<Real>::plan> plans_;
};

}  // namespace fft3d
