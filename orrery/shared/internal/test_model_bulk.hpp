// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: what the model of shared data does to many elements at once. The same names for
// vectors and for matrices, whose elements have flat indices.

#include <orrery/shared/internal/test_model_values.hpp>
#include <orrery/shared/shared.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery::testing {

// --- by all owners -------------------------------------------------------------------------------

/// The elements of a round are generated from this.
struct pattern {
  std::uint64_t columns;
  std::uint64_t salt;
};
template <class T>
T vector_pattern(std::uint64_t i, pattern p) {
  return value_of<T>(p.salt + 7 * i);
}
template <class T>
T matrix_pattern(std::uint64_t i, std::uint64_t j, pattern p) {
  return vector_pattern<T>(i * p.columns + j, p);
}
template <class T>
void generate_all(const shared_vector<T>& v, std::uint64_t salt) {
  generate<&vector_pattern<T>>(v, pattern{1, salt});
}
template <class T>
void generate_all(const shared_matrix<T>& m, std::uint64_t salt) {
  generate<&matrix_pattern<T>>(m, pattern{m.column_count(), salt});
}

/// Gives it any other distribution. A halo that does not fit is left away, with nothing changed.
template <class T>
shared_vector<T> deal_out_anew(const shared_vector<T>& v, random& r) {
  return redistribute(v, random_distribution(r, v.size(), false));
}
template <class T>
shared_matrix<T> deal_out_anew(const shared_matrix<T>& m, random& r) {
  const distribution how = random_distribution(r, m.row_count(), true);
  try {
    return redistribute(m, how.with_halo(below(r, 3)));
  } catch (const usage_error&) {
    return redistribute(m, how);
  }
}

// --- changes of one element ----------------------------------------------------------------------

/// The element becomes op(element, x), whatever others do to it meanwhile.
template <class T, class Op>
void combine_into(const shared_element<T>& e, const T& x, Op op, random& r) {
  if (below(r, 2) == 0) {
    (void)e.accumulate(x, op);
    return;
  }
  T before{};
  while (!e.compare_exchange(before, op(std::as_const(before), x))) {
  }
}
/// The same for a sum.
template <class T>
void add_to_element(const shared_element<T>& e, const T& x, random& r) {
  const auto sum = [](T a, T b) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  };
  switch (below(r, 3)) {
    case 0:
      e += x;
      break;
    case 1:
      (void)e.fetch_add(x);
      break;
    default:
      combine_into(e, x, sum, r);
      break;
  }
}

// --- copies --------------------------------------------------------------------------------------

/// Indices in equal distances.
struct progression {
  std::uint64_t first;
  std::uint64_t count;
  std::uint64_t step;
};
/// Indices in ascending order as few progressions; with a step of 1 only, if so asked.
inline std::vector<progression> progressions_of(const std::vector<std::size_t>& ascending, bool runs_only) {
  std::vector<progression> all;
  for (const std::size_t i : ascending) {
    if (!all.empty()) {
      progression& p = all.back();
      const std::uint64_t step = p.count == 1 ? i - p.first : p.step;
      if (i == p.first + p.count * step && (step == 1 || !runs_only)) {
        p.step = step;
        ++p.count;
        continue;
      }
    }
    all.push_back({i, 1, 1});
  }
  return all;
}
template <class T>
std::vector<T> values_at(const progression& p, const std::vector<std::uint64_t>& value) {
  std::vector<T> all;
  for (std::uint64_t k = 0; k < p.count; ++k) all.push_back(value_of<T>(value[p.first + k * p.step]));
  return all;
}

/// All copies are under way at once, and what they are from is overwritten meanwhile.
template <class T>
void write_by_copies(const shared_vector<T>& v, std::vector<std::size_t> mine,
                     const std::vector<std::uint64_t>& value) {
  std::ranges::sort(mine);
  constexpr bool is_bytes = std::is_trivially_copyable_v<T>;
  std::vector<transfer> started;
  for (const progression& p : progressions_of(mine, !is_bytes)) {
    std::vector<T> values = values_at<T>(p, value);
    if constexpr (!is_bytes) {
      copy(std::span<const T>(values), v.part(p.first, p.count));
    } else if (p.step == 1) {
      started.push_back(start_copy(std::span<const T>(values), v.part(p.first, p.count)));
    } else {
      started.push_back(start_copy(std::span<const T>(values), every(v, p.step, p.first, p.count)));
    }
    std::ranges::fill(values, T{});
  }
  for (transfer& t : started) t.wait();
}
template <class T>
void write_by_copies(const shared_matrix<T>& m, std::vector<std::size_t> mine,
                     const std::vector<std::uint64_t>& value) {
  std::ranges::sort(mine);
  const std::uint64_t columns = m.column_count();
  std::vector<transfer> started;
  for (const progression& p : progressions_of(mine, true)) {
    const std::vector<T> values = values_at<T>(p, value);
    for (std::uint64_t done = 0; done < p.count;) {  // row by row
      const std::uint64_t row = (p.first + done) / columns;
      const std::uint64_t column = (p.first + done) % columns;
      const std::uint64_t n = std::min(p.count - done, columns - column);
      started.push_back(start_copy(std::span<const T>(values).subspan(done, n), m.part(row, 1, column, n)));
      done += n;
    }
  }
  for (transfer& t : started) t.wait();
}

/// Reads by copies that are started: to memory with steps, and through another vector.
template <class T>
std::uint64_t differences_in_copies(const shared_vector<T>& v, const std::vector<T>& model, random& r) {
  const std::uint64_t first = below(r, v.size() + 1);
  const std::uint64_t n = below(r, v.size() - first + 1);
  const std::span<const T> expected = std::span(model).subspan(first, n);
  const shared_vector<T> other(n + 3, random_distribution(r, n + 3, false));
  std::vector<T> there(n);
  std::uint64_t wrong = 0;
  if constexpr (std::is_trivially_copyable_v<T>) {
    const std::uint64_t step = 1 + below(r, 4);
    std::vector<T> some((n + step - 1) / step);
    transfer to_other = start_copy(v.part(first, n), other.part(2, n));
    transfer to_some = start_copy(every(v, step, first, some.size()), std::span(some));
    to_some.wait();
    for (std::uint64_t i = 0; i < some.size(); ++i) wrong += some[i] == expected[i * step] ? 0 : 1;
    to_other.wait();
    start_copy(other.part(2, n), std::span(there)).wait();
  } else {
    copy(v.part(first, n), other.part(2, n));
    copy(other.part(2, n), std::span(there));
  }
  destroy(other);
  for (std::uint64_t i = 0; i < n; ++i) wrong += there[i] == expected[i] ? 0 : 1;
  return wrong;
}
template <class T>
std::uint64_t differences_in_copies(const shared_matrix<T>& m, const std::vector<T>& model, random& r) {
  const std::uint64_t row = below(r, m.row_count() + 1);
  const std::uint64_t rows = below(r, m.row_count() - row + 1);
  const std::uint64_t column = below(r, m.column_count() + 1);
  const std::uint64_t columns = below(r, m.column_count() - column + 1);
  const shared_matrix<T> other(rows + 1, columns + 2, random_distribution(r, rows + 1, true));
  start_copy(m.part(row, rows, column, columns), other.part(1, rows, 1, columns)).wait();
  std::vector<T> there(rows * columns);
  start_copy(other.part(1, rows, 1, columns), std::span(there)).wait();
  destroy(other);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < there.size(); ++i)
    wrong += there[i] == model[(row + i / columns) * m.column_count() + column + i % columns] ? 0 : 1;
  return wrong;
}

// --- halos ---------------------------------------------------------------------------------------

/// A vector has none.
template <class T>
std::uint64_t differences_in_halo(const shared_vector<T>&, team_member&, const std::vector<T>&, random&) {
  return 0;
}
template <class T>
std::uint64_t differences_in_halo(const shared_matrix<T>& m, team_member& t, const std::vector<T>& model, random& r) {
  const auto rows = static_cast<std::int64_t>(m.row_count());
  const auto columns = static_cast<std::int64_t>(m.column_count());
  const auto width = static_cast<std::int64_t>(below(r, static_cast<std::uint64_t>(std::min({rows, columns, 3L})) + 1));
  const edges beyond = below(r, 2) == 0 ? edges::open : edges::periodic;
  const auto wraps = [&](std::int64_t i, std::int64_t n) { return (i % n + n) % n; };
  std::uint64_t wrong = 0;
  const auto compare = [&](auto& a) {
    for (const auto i : a.rows())
      for (const auto j : a.columns())
        for (std::int64_t y = i - width; y <= i + width; ++y)
          for (std::int64_t x = j - width; x <= j + width; ++x) {
            if (beyond == edges::open && (y < 0 || x < 0 || y >= rows || x >= columns)) continue;
            wrong += a[y, x] == model[static_cast<std::size_t>(wraps(y, rows) * columns + wraps(x, columns))] ? 0 : 1;
          }
  };
  try {
    with(halo_cache(m, t, static_cast<std::uint64_t>(width), beyond), compare);
  } catch (const usage_error& e) {  // a cyclic one has none
    if (std::string_view(e.what()).find("do not follow each other") == std::string_view::npos) throw;
  }
  return wrong;
}

}  // namespace orrery::testing
