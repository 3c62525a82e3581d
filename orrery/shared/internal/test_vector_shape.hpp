// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/internal/test_values.hpp>
#include <orrery/shared/shared.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace orrery::testing {

/// A vector as a player of the model sees it: each way to write and to read it.
template <class E>
struct vector_shape {
  using value_type = E;
  shared_vector<E> v;

  [[nodiscard]] std::size_t size() const { return v.size(); }
  [[nodiscard]] shared_element<E> at(std::size_t i) const { return v[i]; }
  void write_owned(team_member& t, const std::vector<std::uint64_t>& value) const {
    with(owner_computes(v, t), [&](auto& own) {
      for (const std::uint64_t i : own.indices()) own[i] = value_of<E>(value[i]);
    });
  }
  void write_released(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value,
                      const release_options& o) const {
    const auto write = [&](auto& w) {
      for (const std::size_t i : mine) w[i] = value_of<E>(value[i]);
    };
    if (mine.empty() || o.buffer_bytes % 3 == 1) return with(release(v, o), write);
    const auto [first, last] = std::ranges::minmax(mine);
    with(release(v.part(first, last - first + 1), o), write);
  }
  template <class F>
  void write_updated(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value, F complain) const {
    with(read_release(v), [&](auto& u) {
      for (const std::size_t i : mine) {
        u[i] = value_of<E>(value[i]);
        if (!(static_cast<E>(u[i]) == value_of<E>(value[i]))) complain("a write is not seen by its own process");
      }
    });
  }
  template <class F>
  void write_mostly_read(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value,
                         F complain) const {
    if constexpr (std::is_trivially_copyable_v<E>) {
      with(read_mostly(v), [&](auto& m) {
        for (const std::size_t i : mine) {
          m[i] = value_of<E>(value[i]);
          if (!(m[i].get() == value_of<E>(value[i]))) complain("a write is not in the replica of its own process");
        }
      });
    } else {
      write_updated(mine, value, complain);
    }
  }
  void write_scattered(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value) const {
    if constexpr (std::is_trivially_copyable_v<E>) {
      std::vector<E> values;
      for (const std::size_t i : mine) values.push_back(value_of<E>(value[i]));
      scatter(std::span<const E>(values), v, std::vector<std::uint64_t>(mine.begin(), mine.end()));
    } else {
      write_released(mine, value, {});
    }
  }
  void write_meanwhile(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value) const {
    auto seen = start_with(release(v), [&](auto& w) {
      for (const std::size_t i : mine) w[i] = value_of<E>(value[i]);
    });
    yield();
    seen.wait();
  }
  void copy_in(std::size_t i, const E& x) const { copy(std::span<const E>(&x, 1), v.part(i, 1)); }
  std::uint64_t differences_together(team_member& t, const std::vector<E>& model) const {
    if constexpr (std::is_trivially_copyable_v<E>) {
      return with(read_cache(v, t),
                  [&](auto& c) { return std::ranges::equal(c, model) ? std::uint64_t{0} : model.size(); });
    } else {
      return with(read_cache(v),
                  [&](auto& c) { return std::ranges::equal(c, model) ? std::uint64_t{0} : model.size(); });
    }
  }
  std::uint64_t differences_gathered(const std::vector<E>& model, random& r) const {
    if constexpr (std::is_trivially_copyable_v<E>) {
      std::vector<std::uint64_t> indices(model.empty() ? 0 : below(r, 2 * model.size()));
      for (std::uint64_t& i : indices) i = below(r, model.size());
      const std::vector<E> there = gather(v, indices);
      std::uint64_t wrong = 0;
      for (std::size_t i = 0; i < indices.size(); ++i) wrong += there[i] == model[indices[i]] ? 0 : 1;
      return wrong;
    } else {
      return differences_copied(model, r);
    }
  }
  std::uint64_t differences_cached(const std::vector<E>& model, random& r) const {
    const std::uint64_t first = below(r, size() + 1);
    const std::uint64_t n = below(r, size() - first + 1);
    return with(read_cache(v.part(first, n)), [&](auto& c) {
      std::uint64_t wrong = 0;
      for (std::uint64_t i = first; i < first + n; ++i) wrong += c[i] == model[i] ? 0 : 1;
      return wrong;
    });
  }
  std::uint64_t differences_viewed(const std::vector<E>& model, random& r) const {
    const std::uint64_t first = below(r, size() + 1);
    const std::uint64_t n = below(r, size() - first + 1);
    const bool some = with(read_view(v.part(first, n)),
                           [&](auto& c) { return std::ranges::equal(c, std::span(model).subspan(first, n)); });
    const bool all = with(read_view(v), [&](auto& c) { return std::ranges::equal(c, model); });
    return some && all ? 0U : model.size();
  }
  std::uint64_t differences_copied(const std::vector<E>& model, random& r) const {
    const std::uint64_t first = below(r, size() + 1);
    std::vector<E> there(size() - first);
    copy(v.part(first, there.size()), std::span(there));
    return std::ranges::equal(there, std::span(model).subspan(first)) ? 0U : model.size();
  }
};

}  // namespace orrery::testing
