// SPDX-License-Identifier: Apache-2.0
#include "verify.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <complex>
#include <filesystem>
#include <numbers>
#include <random>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace fft3d {

using namespace orrery;
using namespace orrery::storage;
using number = std::complex<double>;

/// The coefficients at all places (a, b, c) with a, b and c out of these.
using places = std::array<std::vector<std::int64_t>, 3>;

struct sums {
  double energy = 0;
  double largest = 0;
  double difference = 0;
  std::vector<number> direct;   // by summation, for each place
  std::vector<number> present;  // what the array has there
};

// A sum of any number of terms that is as good as one of few (Neumaier). The rounding of equal
// terms goes in one direction: in a plain sum a million of them make an error of 1e-11.
class compensated_sum {
 public:
  void add(double x) {
    const double with = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - with) + x : (x - with) + sum_;
    sum_ = with;
  }
  [[nodiscard]] double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

namespace {

constexpr std::size_t each = 16;  // places in a dimension: 4,096 coefficients

// exp(sign * 2 pi i * k * x / n) for all places k and all x, k fastest.
std::vector<number> waves(const std::vector<std::int64_t>& ks, std::int64_t n, int sign) {
  std::vector<number> w;
  for (std::int64_t x = 0; x < n; ++x)
    for (const std::int64_t k : ks)
      w.push_back(
          std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k * x % n) / static_cast<double>(n)));
  return w;
}

// to += from * w, for all pairs: `to` has the places of `w` outside, those of `from` inside.
void spread(std::vector<number>& to, std::span<const number> w, std::span<const number> from) {
  auto* t = to.data();
  for (const number& a : w)
    for (const number& b : from)
      *t++ += number(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}

// The elements of a page as complex numbers, whatever they are.
std::vector<number> numbers_of(const page& p, element_type t) {
  std::vector<number> all(p.size() / size_of(t));
  const auto copy = [&]<class T>(T) {
    const T* x = reinterpret_cast<const T*>(p.bytes().data());
    std::ranges::copy(x, x + all.size(), all.begin());
  };
  switch (t) {
    case element_type::float32:
      copy(float{});
      break;
    case element_type::float64:
      copy(double{});
      break;
    case element_type::complex64:
      copy(std::complex<float>{});
      break;
    case element_type::complex128:
      copy(number{});
      break;
  }
  return all;
}

}  // namespace

/// Goes over its share of the pages of an array.
class witness : public member<witness> {
 public:
  /// Sums, with that sign in the exponent (0: none), and the energy.
  sums see(const storage::array& a, const places& at, int sign) {
    sums s{.direct = std::vector<number>(sign != 0 ? each * each * each : 0),
           .present = std::vector<number>(each * each * each)};
    compensated_sum energy;
    std::array<std::vector<number>, 3> w;
    for (int d = 0; d < 3 && sign != 0; ++d) w[d] = waves(at[d], a.shape()[d], sign);
    for_my_pages(a, [&](const domain& box, const std::vector<number>& x) {
      std::vector<number> plane(each * each);
      std::vector<number> row(each);
      const index3 stride = {a.grid().page_shape[1] * a.grid().page_shape[2], a.grid().page_shape[2], 1};
      for (std::int64_t i = box.first[0]; i < box.last[0]; ++i) {
        std::ranges::fill(plane, number{});
        for (std::int64_t j = box.first[1]; j < box.last[1]; ++j) {
          const number* line = x.data() + (i - box.first[0]) * stride[0] + (j - box.first[1]) * stride[1];
          std::ranges::fill(row, number{});
          for (std::int64_t k = box.first[2]; k < box.last[2]; ++k) {
            const number& v = line[k - box.first[2]];
            energy.add(std::norm(v));
            s.largest = std::max(s.largest, std::abs(v));
            if (sign != 0) spread(row, {&v, 1}, std::span(w[2]).subspan(k * each, each));
          }
          if (sign != 0) spread(plane, std::span(w[1]).subspan(j * each, each), row);
        }
        if (sign != 0) spread(s.direct, std::span(w[0]).subspan(i * each, each), plane);
      }
      for (std::size_t n = 0; n < s.present.size(); ++n) {
        const index3 p{at[0][n / each / each], at[1][n / each % each], at[2][n % each]};
        if (!box.contains(p)) continue;
        const index3 in = domain{p, p}.relative_to(box.first).first;
        s.present[n] = x[in[0] * stride[0] + in[1] * stride[1] + in[2]];
      }
    });
    s.energy = energy.value();
    return s;
  }
  /// The largest difference, and the largest element of the first.
  sums compare(const storage::array& a, const storage::array& b) {
    sums s;
    for_my_pages(a, [&](const domain& box, const std::vector<number>& x) {
      const auto y = numbers_of(b.start_read_whole(b.grid().page_of(box.first)).get(), b.type());
      for_each_place(box.relative_to(box.first), [&](const index3& p) {
        const std::int64_t n = (p[0] * a.grid().page_shape[1] + p[1]) * a.grid().page_shape[2] + p[2];
        s.largest = std::max(s.largest, std::abs(x[n]));
        if (const double d = std::abs(x[n] - y[n]); !(d <= s.difference))
          s.difference = d;  // also what is not a number
      });
    });
    return s;
  }

 private:
  template <class F>
  void for_my_pages(const storage::array& a, F&& f) {
    for (std::int64_t n = static_cast<std::int64_t>(rank()); n < a.grid().page_count();
         n += static_cast<std::int64_t>(size())) {
      const index3 p = a.grid().page_at(n);
      f(a.grid().elements_of(p), numbers_of(a.start_read_whole(p).get(), a.type()));
      yield();
    }
  }
};
ORRERY_PROCESS(witness, see, compare);

namespace {

sums merged(const std::vector<sums>& parts) {
  sums all = parts.front();
  for (const sums& s : std::span(parts).subspan(1)) {
    all.energy += s.energy;
    all.largest = std::max(all.largest, s.largest);
    if (!(s.difference <= all.difference)) all.difference = s.difference;
    for (std::size_t i = 0; i < all.direct.size(); ++i) all.direct[i] += s.direct[i];
    for (std::size_t i = 0; i < all.present.size(); ++i) all.present[i] += s.present[i];
  }
  return all;
}

// Only zeros are right for zeros.
double relative(double difference, double to) { return difference == 0 ? 0 : difference / to; }

double filter_at(const transfer_function& f, const index3& k, const index3& shape) {
  double squared = 0;
  for (int d = 0; d < 3; ++d) {
    const double nu = static_cast<double>(std::min(k[d], shape[d] - k[d])) / static_cast<double>(shape[d]);
    squared += nu * nu;
  }
  return f.at(squared);
}

// The rest of an interrupted verification of an earlier output goes, and only that.
sweep_outcome perform_anew(const request& r, std::string& folder) {
  const observer nobody{[](const auto&...) {}, [](const sweep_status&) {}};
  const auto is_left_over = [&] {
    return sweep_job::has_made(r.output, job_name) && job_folder::forget(r.output) != 0;
  };
  try {
    return perform(r, nobody, &folder);
  } catch (const std::invalid_argument&) {  // it was interrupted, and its input is another one now
    if (!is_left_over()) throw;
  } catch (const std::system_error& e) {  // it is done
    if (e.code().value() != EEXIST || !is_left_over()) throw;
  }
  if (std::filesystem::exists(r.output)) data_set::remove(r.output);
  return perform(r, nobody, &folder);
}

remote<data_set> open(const std::string& path) {
  return spawn<data_set>(here(), path, data_set_options{.cache = {0, 0}});
}

}  // namespace

std::vector<finding> verify(const request& r, unsigned seed) {
  auto in = open(r.input);
  auto out = open(r.output);
  const storage::array x = in->contents();
  const storage::array y = out->contents();
  const auto n = static_cast<double>(product(x.shape()));
  std::mt19937 random(seed);
  places at;
  for (int d = 0; d < 3; ++d)
    for (std::size_t i = 0; i < each; ++i)
      at[d].push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(x.shape()[d])));
  auto witnesses = spawn_group<witness>(everywhere(), world_pes());
  const sums a = merged(witnesses->see(x, at, r.what == operation::inverse ? 1 : -1));
  const sums b = merged(witnesses->see(y, at, r.what == operation::filter ? -1 : 0));

  if (!std::isfinite(a.energy))
    throw not_verifiable(fmt::format(
        "{} cannot be verified: {} has numbers that are not finite, and so is every sum of them", r.output, r.input));
  const double limit = is_single(x.type()) ? 1e-5 : 1e-12;
  std::vector<finding> found;
  if (r.what != operation::filter && !r.real_output) {
    const double expected = r.what == operation::forward ? a.energy * n : a.energy / n;
    found.push_back({"sum of squares (Parseval)", relative(std::abs(b.energy - expected), expected), limit});
  }
  double worst = 0;
  const double scale = r.what == operation::inverse ? 1 / n : 1;
  const double rms = r.what == operation::inverse ? std::sqrt(a.energy) / n : std::sqrt(a.energy);
  for (std::size_t i = 0; i < a.direct.size(); ++i) {
    const index3 k{at[0][i / each / each], at[1][i / each % each], at[2][i % each]};
    number expected = a.direct[i] * scale;
    if (r.what == operation::filter) expected *= filter_at(r.filter, k, x.shape());
    if (r.real_output) expected = expected.real();
    // One that stands out, as that of frequency 0, is rounded relative to itself.
    const double error = relative(std::abs((r.what == operation::filter ? b.direct : b.present)[i] - expected),
                                  std::max(rms, std::abs(expected)));
    if (!(error <= worst)) worst = error;  // also what is not a number
  }
  found.push_back({fmt::format("{} coefficients by direct summation (seed {})", a.direct.size(), seed), worst, limit});
  destroy(out);
  if (r.what != operation::filter && !r.real_output) {
    request back = r;
    back.input = r.output;
    back.output = r.output + ".verify";
    back.what = r.what == operation::forward ? operation::inverse : operation::forward;
    back.real_output = !is_complex(x.type());
    std::string folder;  // until the output has gone: a program that is killed finds both
    (void)perform_anew(back, folder);
    auto again = open(back.output);
    const sums c = merged(witnesses->compare(x, again->contents()));
    found.push_back({"there and back again", relative(c.difference, c.largest), limit});
    destroy(again);
    data_set::remove(back.output);
    job_folder::remove(folder);
  }
  destroy(in);
  return found;
}

}  // namespace fft3d
