// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/page_block.hpp>

#include <orrery/storage/detail/strided_copy.hpp>

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace orrery::storage {
namespace {

// Numbers at a time, by way of memory that stays in a processor's cache: so `to` may begin where
// `from` does.
constexpr std::size_t at_once = 1024;

template <class Real>
void to_complex(const Real* from, Real* to, std::size_t numbers) {
  Real x[at_once];
  for (std::size_t last = numbers; last != 0;) {
    const std::size_t n = std::min(at_once, last);
    last -= n;
    std::copy_n(from + last, n, x);
    for (std::size_t i = 0; i < n; ++i) {
      to[2 * (last + i)] = x[i];
      to[2 * (last + i) + 1] = 0;
    }
  }
}
template <class Real>
void to_real(const Real* from, Real* to, std::size_t numbers) {
  Real x[at_once];
  for (std::size_t first = 0; first < numbers; first += at_once) {
    const std::size_t n = std::min(at_once, numbers - first);
    for (std::size_t i = 0; i < n; ++i) x[i] = from[2 * (first + i)];
    std::copy_n(x, n, to + first);
  }
}
// In its own memory, if that is large enough and nobody else has it.
template <class Real>
page to_complex(page p) {
  const std::size_t numbers = p.size() / sizeof(Real);
  page q;
  if (p.resize_in_place(2 * p.size())) {
    q = std::move(p);
    auto* const both = reinterpret_cast<Real*>(q.writable().data());
    to_complex(both, both, numbers);
  } else {
    q = page::uninitialized(2 * p.size());
    to_complex(reinterpret_cast<const Real*>(p.bytes().data()), reinterpret_cast<Real*>(q.writable().data()), numbers);
  }
  return q;
}
template <class Real>
page to_real(page p) {
  const std::size_t bytes = p.size() / 2;
  page q = p.shared() ? page::uninitialized(bytes) : std::move(p);
  auto* const to = reinterpret_cast<Real*>(q.writable().data());
  to_real(p.empty() ? to : reinterpret_cast<const Real*>(p.bytes().data()), to, bytes / sizeof(Real));
  (void)q.resize_in_place(bytes);
  return q;
}

std::int64_t offset_of(const index3& at, const index3& strides) {
  return at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2];
}

}  // namespace

page converted(page p, element_type from, element_type to) {
  if (from == to) return p;
  if (is_single(from) != is_single(to))
    throw std::invalid_argument(
        fmt::format("{} cannot be converted to {}: the precision is another one", to_string(from), to_string(to)));
  if (is_complex(to)) return is_single(from) ? to_complex<float>(std::move(p)) : to_complex<double>(std::move(p));
  return is_single(from) ? to_real<float>(std::move(p)) : to_real<double>(std::move(p));
}

domain page_block::elements() const noexcept {
  domain all{grid_.elements_of(places_.first).first, {}};
  for (int d = 0; d < 3; ++d) all.last[d] = std::min(places_.last[d] * grid_.page_shape[d], grid_.array_shape[d]);
  return all;
}

void page_block::read(const array& from, std::size_t window) {
  std::deque<future<page>> coming;
  pages_.clear();
  const auto take = [&] {
    pages_.push_back(converted(coming.front().get(), from.type(), type_));
    coming.pop_front();
  };
  for_each_place(places_, [&](const index3& p) {
    if (coming.size() == window) take();
    coming.push_back(from.start_read_whole(p));
  });
  while (!coming.empty()) take();
}

void page_block::write(const array& to, std::size_t window) {
  std::deque<future<void>> going;
  std::vector<page> pages = std::exchange(pages_, {});
  auto next = pages.begin();
  const auto take = [&] {
    going.front().get();
    going.pop_front();
  };
  for_each_place(places_, [&](const index3& p) {
    if (going.size() == window) take();
    going.push_back(to.start_write_whole(converted(std::exchange(*next++, {}), type_, to.type()), p));
  });
  while (!going.empty()) take();
}

// Few at a time: so that memory of a page that was written, or converted, is that of one that is
// read.
void page_block::write_and_read(const array& to, page_block& next, const array& from, std::size_t window) {
  constexpr std::size_t transfers = 16;  // keep a drive busy
  window = std::min(window, transfers);
  std::deque<future<void>> going;
  std::deque<future<page>> coming;
  std::vector<page> pages = std::exchange(pages_, {});
  std::vector<index3> wanted;
  for_each_place(next.places_, [&](const index3& p) { wanted.push_back(p); });
  auto leaving = pages.begin();
  auto asked = wanted.begin();
  next.pages_.clear();
  const auto take = [&] {
    next.pages_.push_back(converted(coming.front().get(), from.type(), next.type_));
    coming.pop_front();
  };
  const auto ask = [&] {
    if (coming.size() == window) take();
    coming.push_back(from.start_read_whole(*asked++));
  };
  const auto one_written = [&] {
    going.front().get();
    going.pop_front();
    if (asked != wanted.end()) ask();
  };
  for_each_place(places_, [&](const index3& p) {
    if (going.size() == window) one_written();
    going.push_back(to.start_write_whole(converted(std::exchange(*leaving++, {}), type_, to.type()), p));
  });
  while (!going.empty()) one_written();
  while (asked != wanted.end()) ask();
  while (!coming.empty()) take();
}

void page_block::make_own() {
  for (page& p : pages_) (void)p.writable();
}

// f(page, place in it of the part's first element, place in the memory of it, shape of the part),
// places in elements.
template <class F>
void page_block::each_part(const domain& box, const index3& strides, F&& f) const {
  const page_grid numbers{places_.shape(), {1, 1, 1}};
  const index3 in_page = strides_of(grid_.page_shape);
  for_each_place(grid_.pages_of(box), [&](const index3& p) {
    const domain whole = grid_.elements_of(p);
    const domain part = whole & box;
    const auto number = static_cast<std::size_t>(numbers.number_of(domain{p, p}.relative_to(places_.first).first));
    f(number, offset_of(part.relative_to(whole.first).first, in_page),
      offset_of(part.relative_to(box.first).first, strides), part.shape());
  });
}
void page_block::copy_out(const domain& box, std::byte* to, const index3& strides) const {
  const auto size = static_cast<std::ptrdiff_t>(size_of(type_));
  each_part(box, strides, [&](std::size_t number, std::int64_t there, std::int64_t here, const index3& shape) {
    copy_box(to + here * size, strides, pages_[number].bytes().data() + there * size, strides_of(grid_.page_shape),
             shape, size_of(type_));
  });
}
void page_block::copy_in(const domain& box, const std::byte* from, const index3& strides) {
  const auto size = static_cast<std::ptrdiff_t>(size_of(type_));
  each_part(box, strides, [&](std::size_t number, std::int64_t there, std::int64_t here, const index3& shape) {
    copy_box(pages_[number].writable().data() + there * size, strides_of(grid_.page_shape), from + here * size, strides,
             shape, size_of(type_));
  });
}

}  // namespace orrery::storage
