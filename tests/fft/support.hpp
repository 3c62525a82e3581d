// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the tests of fft3d: arrays on disk, what FFTW makes of them in memory, and programs that are this one, started again.

#include <apps/fft3d/job.hpp>
#include <orrery/storage/internal/test_support.hpp>

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fftw3.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fft3d::testing {

using namespace orrery;
using namespace orrery::storage;
using orrery::storage::testing::error_text;
using orrery::storage::testing::program;
using orrery::storage::testing::scratch;
using number = std::complex<double>;

inline const observer nobody{[](const auto&...) {}, [](const sweep_status&) {}};

inline std::vector<number> random_numbers(std::int64_t n, bool real) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::normal_distribution<double> normal;
  std::vector<number> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const double a = static_cast<float>(normal(random));
    const double b = static_cast<float>(normal(random));
    x.emplace_back(a, real ? 0.0 : b);
  }
  return x;
}

template <class F>
void with_type(element_type t, F&& f) {
  if (t == element_type::float32) return f(float{});
  if (t == element_type::float64) return f(double{});
  if (t == element_type::complex64) return f(std::complex<float>{});
  return f(number{});
}

/// A finished data set with these numbers.
inline void make_set(const std::string& path, const data_set_description& what, const std::vector<number>& x) {
  auto set = spawn<data_set>(here(), path, what, data_set_options{});
  const storage::array a = set->contents();
  with_type(what.type, [&]<class T>(T) {
    std::vector<T> v;
    for (const number& n : x) {
      if constexpr (std::is_floating_point_v<T>)
        v.push_back(static_cast<T>(n.real()));
      else
        v.emplace_back(static_cast<typename T::value_type>(n.real()), static_cast<typename T::value_type>(n.imag()));
    }
    a.write(a.whole(), std::span<const T>(v));
  });
  set->finish();
  destroy(set);
}

/// All numbers of a finished data set.
inline std::vector<number> read_set(const std::string& path) {
  auto set = spawn<data_set>(here(), path, data_set_options{});
  const storage::array a = set->contents();
  std::vector<number> x;
  with_type(a.type(), [&]<class T>(T) {
    std::vector<T> v(static_cast<std::size_t>(a.whole().size()));
    a.read(a.whole(), std::span(v));
    for (const T& n : v) x.emplace_back(n);
  });
  set->flush();
  destroy(set);
  return x;
}

/// What FFTW says in memory, as the request wants it.
inline std::vector<number> expected(const request& r, const index3& shape, std::vector<number> x) {
  const auto go = [&](int sign) {
    auto* data = reinterpret_cast<fftw_complex*>(x.data());
    const fftw_plan p = fftw_plan_dft_3d(static_cast<int>(shape[0]), static_cast<int>(shape[1]),
                                         static_cast<int>(shape[2]), data, data, sign, FFTW_ESTIMATE);
    fftw_execute(p);
    fftw_destroy_plan(p);
  };
  if (r.what != operation::inverse) go(FFTW_FORWARD);
  if (r.what == operation::filter) {
    std::size_t n = 0;
    for_each_place(domain::of_shape(shape), [&](const index3& k) {
      double squared = 0;
      for (int d = 0; d < 3; ++d) {
        const double nu = static_cast<double>(std::min(k[d], shape[d] - k[d])) / static_cast<double>(shape[d]);
        squared += nu * nu;
      }
      x[n++] *= r.filter.at(squared);
    });
  }
  if (r.what != operation::forward) {
    go(FFTW_BACKWARD);
    for (number& v : x) v /= static_cast<double>(product(shape));
  }
  return x;
}

/// The largest difference, relative to the largest number.
inline double difference(const std::vector<number>& a, const std::vector<number>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    if (const double d = std::abs(a[i] - b[i]); !(d <= worst)) worst = d;
  }
  return worst / largest;
}

/// This program, started again with these words.
struct child {
  pid_t pid = -1;
  explicit child(std::vector<std::string> words) {
    words.insert(words.begin(), "fft.test");
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), environ), 0);
  }
  /// The exit code; 1000 + the signal.
  [[nodiscard]] int outcome() const {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
};

/// A main function: --scenario runs `scenario` in a world, with the words that follow; else the tests run.
inline int test_main(int argc, char** argv, const std::function<int(std::vector<std::string>)>& scenario) {
  if (std::getenv("ORRERY_INTERNAL_JOIN") != nullptr) return run(argc, argv, [](const args&) { return 0; });
  if (argc > 1 && std::string_view(argv[1]) == "--scenario")
    return run(argc, argv, [&](const args& words) {
      try {
        return scenario({words.begin() + 2, words.end()});
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 2;
      }
    });
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace fft3d::testing
