// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan.hpp"

#include <complex>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <fftw3.h>

namespace fft3d {

/// How many lines along the dimension are transformed at once: so many that they stay in the second-level cache.
[[nodiscard]] std::int64_t tile_lines(const orrery::storage::page_grid& g, int dimension);
[[nodiscard]] std::uint64_t tile_elements(const orrery::storage::page_grid& g, int dimension);

/// FFTW's names for one precision.
template <class Real>
struct fftw;
template <>
struct fftw<double> {
  using plan = fftw_plan;
  static constexpr auto many = &fftw_plan_many_dft;
  static constexpr auto execute = &fftw_execute;
  static constexpr auto destroy = &fftw_destroy_plan;
};
template <>
struct fftw<float> {
  using plan = fftwf_plan;
  static constexpr auto many = &fftwf_plan_many_dft;
  static constexpr auto execute = &fftwf_execute;
  static constexpr auto destroy = &fftwf_destroy_plan;
};

/// Reads (writes) what FFTW has learnt about this processor; the user's cache folder keeps it between runs. Never fails.
void load_wisdom();
void save_wisdom();
/// FFTW plans one at a time in each OS process.
[[nodiscard]] std::mutex& planner();

/// Some lines of n numbers, one after the other in memory, and FFTW's plans for all of them at once.
template <class Real>
class lines {
 public:
  lines(std::int64_t n, std::int64_t count) : n_(n), memory_(n * count * sizeof(number)) {
    const int length = static_cast<int>(n);
    auto* at = reinterpret_cast<Real(*)[2]>(data());
    const std::lock_guard lock(planner());
    for (const int sign : {FFTW_FORWARD, FFTW_BACKWARD})
      plans_.push_back(fftw<Real>::many(1, &length, static_cast<int>(count), at, nullptr, 1, length, at, nullptr, 1,
                                        length, sign, FFTW_MEASURE));
    std::ranges::fill(numbers(), number{});  // planning has left something there
  }
  lines(const lines&) = delete;
  lines& operator=(const lines&) = delete;
  ~lines() {
    const std::lock_guard lock(planner());
    for (const auto p : plans_) fftw<Real>::destroy(p);
  }

  using number = std::complex<Real>;
  [[nodiscard]] number* data() { return reinterpret_cast<number*>(memory_.writable().data()); }
  [[nodiscard]] std::span<number> numbers() { return {data(), memory_.size() / sizeof(number)}; }
  void forward() { fftw<Real>::execute(plans_[0]); }
  void inverse() {
    fftw<Real>::execute(plans_[1]);
    for (number& x : numbers()) x *= Real(1) / static_cast<Real>(n_);
  }

 private:
  std::int64_t n_;
  orrery::storage::page memory_;  // aligned
  std::vector<typename fftw<Real>::plan> plans_;
};

}  // namespace fft3d
