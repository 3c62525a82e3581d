// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/internal/test_values.hpp>
#include <orrery/shared/shared.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::testing {

/// A matrix as a player of the model sees it, its elements by a flat index.
struct matrix_shape {
  using value_type = long;
  shared_matrix<long> m;

  [[nodiscard]] std::size_t size() const { return m.size(); }
  [[nodiscard]] shared_element<long> at(std::size_t i) const { return m[i / m.column_count(), i % m.column_count()]; }
  void write_owned(team_member& t, const std::vector<std::uint64_t>& value) const {
    with(owner_computes(m, t), [&](auto& own) {
      for (const std::uint64_t i : own.rows())
        for (const std::uint64_t j : own.columns()) own[i, j] = value_of<long>(value[i * m.column_count() + j]);
    });
  }
  void write_released(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value,
                      const release_options& o) const {
    const auto write = [&](auto& w) {
      for (const std::size_t i : mine) w[i / m.column_count(), i % m.column_count()] = value_of<long>(value[i]);
    };
    if (mine.empty() || o.buffer_bytes % 3 == 1) return with(release(m, o), write);
    const auto [first, last] = std::ranges::minmax(mine);
    const std::uint64_t row = first / m.column_count();
    with(release(m.rows(row, last / m.column_count() - row + 1), o), write);
  }
  template <class F>
  void write_updated(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value, F complain) const {
    with(read_release(m), [&](auto& u) {
      for (const std::size_t i : mine) {
        u[i / m.column_count(), i % m.column_count()] = value_of<long>(value[i]);
        if (u[i / m.column_count(), i % m.column_count()] != value_of<long>(value[i]))
          complain("a write is not seen by its own process");
      }
    });
  }
  template <class F>
  void write_mostly_read(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value, F) const {
    write_released(mine, value, {});  // there is no such behaviour of matrices
  }
  void write_scattered(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value) const {
    write_released(mine, value, {});  // there is no such transfer of matrices
  }
  void write_meanwhile(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value) const {
    auto seen = start_with(release(m), [&](auto& w) {
      for (const std::size_t i : mine) w[i / m.column_count(), i % m.column_count()] = value_of<long>(value[i]);
    });
    yield();
    seen.wait();
  }
  std::uint64_t differences_together(team_member& t, const std::vector<long>& model) const {
    return with(read_cache(m, t),
                [&](auto& c) { return std::ranges::equal(c.span(), model) ? std::uint64_t{0} : model.size(); });
  }
  std::uint64_t differences_gathered(const std::vector<long>& model, random& r) const {
    return differences_copied(model, r);
  }
  void copy_in(std::size_t i, long x) const {
    copy(std::span<const long>(&x, 1), m.part(i / m.column_count(), 1, i % m.column_count(), 1));
  }
  struct rectangle {
    std::uint64_t row, rows, column, columns;
  };
  [[nodiscard]] rectangle any_rectangle(random& r) const {
    rectangle a{};
    a.row = below(r, m.row_count() + 1);
    a.rows = below(r, m.row_count() - a.row + 1);
    a.column = below(r, m.column_count() + 1);
    a.columns = below(r, m.column_count() - a.column + 1);
    return a;
  }
  std::uint64_t differences_cached(const std::vector<long>& model, random& r) const {
    const rectangle a = any_rectangle(r);
    return with(read_cache(m.part(a.row, a.rows, a.column, a.columns)),
                [&](auto& c) { return differences(a, c, model); });
  }
  template <class C>
  std::uint64_t differences(const rectangle& a, const C& c, const std::vector<long>& model) const {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = a.row; i < a.row + a.rows; ++i)
      for (std::uint64_t j = a.column; j < a.column + a.columns; ++j)
        wrong += c[i, j] == model[i * m.column_count() + j] ? 0 : 1;
    return wrong;
  }
  std::uint64_t differences_viewed(const std::vector<long>& model, random& r) const {
    const rectangle a = any_rectangle(r);
    std::uint64_t wrong =
        with(read_view(m.part(a.row, a.rows, a.column, a.columns)), [&](auto& c) { return differences(a, c, model); });
    with(read_view(m), [&](auto& c) { wrong += differences({0, m.row_count(), 0, m.column_count()}, c, model); });
    return wrong;
  }
  std::uint64_t differences_copied(const std::vector<long>& model, random& r) const {
    const rectangle a = any_rectangle(r);
    std::vector<long> there(a.rows * a.columns);
    copy(m.part(a.row, a.rows, a.column, a.columns), std::span(there));
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < there.size(); ++i)
      wrong += there[i] == model[(a.row + i / a.columns) * m.column_count() + a.column + i % a.columns] ? 0 : 1;
    return wrong;
  }
};

}  // namespace orrery::testing
