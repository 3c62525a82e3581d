// SPDX-License-Identifier: Apache-2.0
#include "transform.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

namespace fft3d {
namespace {

using namespace orrery::storage;

// It is the product of three, one along each dimension.
bool is_gaussian(const plan& p) { return p.filter.what == transfer_function::form::gaussian; }

std::vector<double> squared_frequencies(std::int64_t n) {
  std::vector<double> f;
  for (std::int64_t k = 0; k < n; ++k)
    f.push_back(std::pow(static_cast<double>(std::min(k, n - k)) / static_cast<double>(n), 2));
  return f;
}

// f(row, place of its first number), for all rows of a box.
template <class Real, class F>
void each_row(const domain& box, tile<Real>& t, F&& f) {
  for_each_place({box.first, {box.last[0], box.last[1], box.first[2] + 1}}, [&](const index3& at) {
    const index3 in = domain{at, at}.relative_to(box.first).first;
    f(std::span(t.data() + in[0] * t.strides()[0] + in[1] * t.strides()[1], box.shape()[2]), at);
  });
}

template <class Real>
std::uint64_t count_nan(const domain& box, tile<Real>& t) {
  std::uint64_t n = 0;
  each_row(box, t, [&](auto row, const index3&) {
    for (const auto& x : row) n += (x.real() != x.real()) + (x.imag() != x.imag());
  });
  return n;
}

template <class Real>
void make_plans(const plan& p, std::size_t sweep, tile<Real>& t) {
  for (const int d : p.work.sweeps[sweep].dimensions) {
    if (p.phases[sweep].forward) t.prepare(d, FFTW_FORWARD);
    if (p.phases[sweep].inverse) t.prepare(d, FFTW_BACKWARD);
  }
}

}  // namespace

std::string learn_all(const plan& p) {
  load_wisdom();
  for (std::size_t i = 0; i < p.work.sweeps.size(); ++i) {
    const index3 shape = tile_shape(p.work.grid, p.work.sweeps[i]);
    if (is_single(p.work.work_type)) {
      tile<float> t(shape);
      make_plans(p, i, t);
    } else {
      tile<double> t(shape);
      make_plans(p, i, t);
    }
  }
  return wisdom_text();
}

transformer::transformer(const plan& p, const orrery::remote<ledger>& units) : sweeper(p.work, units), plan_(p) {
  static std::once_flag once;
  std::call_once(once, [&] { p.wisdom.empty() ? load_wisdom() : learn(p.wisdom); });
  for (int d = 0; d < 3; ++d)
    for (const double f : squared_frequencies(p.work.grid.array_shape[d]))
      along_[d].push_back(is_gaussian(p) ? p.filter.at(f) : f);
}

void transformer::begin(std::size_t sweep) {
  const auto begin_with = [&](auto& t) {
    make_plans(plan_, sweep, t);
    t.clear();  // planning has left something
  };
  is_single(plan_.work.work_type) ? begin_with(tile_.emplace<tile<float>>(box_shape(sweep)))
                                  : begin_with(tile_.emplace<tile<double>>(box_shape(sweep)));
}

index3 transformer::box_shape(std::size_t sweep) const { return tile_shape(plan_.work.grid, plan_.work.sweeps[sweep]); }
void transformer::compute_box(std::size_t sweep, page_block& unit, const domain& box) {
  std::visit(
      [&](auto& t) {
        unit.copy_out(box, t.bytes(), t.strides());
        if (sweep == 0) count(count_nan(box, t));  // here, where they are in the cache
        transform(sweep, box, t);
        unit.copy_in(box, t.bytes(), t.strides());
      },
      tile_);
}

template <class Real>
void transformer::transform(std::size_t sweep, const domain& box, tile<Real>& t) {
  const auto& dimensions = plan_.work.sweeps[sweep].dimensions;
  const phase& what = plan_.phases[sweep];
  const auto along_all = [&](int sign) {
    for (const int d : dimensions) t.transform(d, sign, [&] { give_way(); });
  };
  if (what.forward) along_all(FFTW_FORWARD);
  if (what.filter) multiply(box, t);
  if (!what.inverse) return;
  along_all(FFTW_BACKWARD);
  Real scale = 1;
  for (const int d : dimensions) scale /= static_cast<Real>(plan_.work.grid.array_shape[d]);
  each_row(box, t, [&](auto row, const index3&) {
    for (auto& x : row) x *= scale;
  });
}

template <class Real>
void transformer::multiply(const domain& box, tile<Real>& t) const {
  each_row(box, t, [&](auto row, const index3& first) {
    const auto of = [&, x = along_[0][first[0]], y = along_[1][first[1]]](double z) {
      return static_cast<Real>(is_gaussian(plan_) ? x * y * z : plan_.filter.at(x + y + z));
    };
    for (std::size_t k = 0; k < row.size(); ++k) row[k] *= of(along_[2][first[2] + k]);
  });
}

}  // namespace fft3d
