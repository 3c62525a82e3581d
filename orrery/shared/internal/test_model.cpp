// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/runtime.hpp>
#include <orrery/shared/internal/test_model.hpp>
#include <orrery/shared/internal/test_model_bulk.hpp>
#include <orrery/shared/internal/test_model_values.hpp>
#include <orrery/shared/shared.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <fmt/format.h>

namespace orrery::testing {

namespace {

/// The kind of a round.
enum class deed : std::uint8_t {
  owned,  ///< all write what they own
  combined,  ///< all change the elements that they choose, at once
  filled,  ///< one member fills all
  generated,  ///< one member lets the owners generate all
  written,  ///< each element is written by one member at most
};

/// The writers of a round, and what they write: known to all, as they draw the same numbers.
struct plan {
  std::vector<std::size_t> writer;  // of each element; the number of members: nobody
  std::vector<std::uint64_t> value;
  deed what = deed::written;
  bool dealt_out_anew = false;  // before
  std::size_t one = 0;  // the member that does what one does
  std::uint64_t salt = 0;

  plan(random& r, std::size_t n, std::size_t members) : writer(n), value(n) {
    constexpr std::array deeds{deed::owned,     deed::owned,   deed::combined, deed::combined, deed::filled,
                               deed::generated, deed::written, deed::written,  deed::written,  deed::written};
    what = deeds[below(r, deeds.size())];
    dealt_out_anew = below(r, 6) == 0;
    one = below(r, members);
    salt = r();
    for (std::size_t i = 0; i < n; ++i) {
      writer[i] = below(r, members + 1);
      value[i] = r();
    }
  }
  /// A member changes an element by this, where all do.
  [[nodiscard]] std::uint64_t change_by(std::size_t i, std::size_t member) const { return value[i] + member * 1009; }
};

/// How many elements that were read are not as they are to be.
template <class Read, class Model>
std::uint64_t differences_in(const Read& read, const Model& model) {
  if (std::ranges::distance(read) != std::ranges::distance(model)) return std::max<std::uint64_t>(1, model.size());
  std::uint64_t n = 0;
  auto at = std::ranges::begin(model);
  for (const auto& x : read) n += x == *at++ ? 0 : 1;
  return n;
}

/// The common part of the two shapes: elements by a flat index.
template <class Shape>
class player {
 public:
  using T = typename Shape::value_type;

  player(team_member& team, Shape shape, std::uint64_t seed)
      : team_(team),
        shape_(std::move(shape)),
        common_(seed),
        own_(seed + 7919 * (team.rank() + 1)),
        model_(shape_.size()) {}

  std::vector<std::string> play(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const plan p(common_, model_.size(), team_.size());
      if (p.dealt_out_anew) deal_out(p);
      perform(p);
      update_model(p);
      team_.barrier();
      compare(i);
      team_.barrier();
    }
    if (team_.rank() == 0) destroy(shape_.data());
    return std::move(wrong_);
  }

 private:
  void deal_out(const plan& p) {
    auto& all = shape_.data();
    all = team_.broadcast(team_.rank() == p.one ? deal_out_anew(all, own_) : all, p.one);
  }
  void perform(const plan& p) {
    switch (p.what) {
      case deed::owned:
        return shape_.write_owned(team_, p.value);
      case deed::combined:
        return combine(p);
      case deed::filled:
        if (team_.rank() == p.one) shape_.data().fill(value_of<T>(p.salt));
        return;
      case deed::generated:
        if (team_.rank() == p.one) generate_all(shape_.data(), p.salt);
        return;
      case deed::written:
        return write(p);
    }
  }
  static T greatest_of(const T& a, const T& b) { return a < b ? b : a; }
  void combine(const plan& p) {
    for (std::size_t i = 0; i < model_.size(); ++i) {
      if (p.writer[i] % 2 != 0) continue;
      const auto by = value_of<T>(p.change_by(i, team_.rank()));
      if constexpr (detail::number<T>) {
        add_to_element(shape_.at(i), by, own_);
      } else {
        combine_into(shape_.at(i), by, greatest_of, own_);
      }
    }
  }
  [[nodiscard]] T combined(const T& before, std::size_t i, const plan& p) const {
    T x = before;
    for (std::size_t m = 0; m < team_.size(); ++m) {
      const auto by = value_of<T>(p.change_by(i, m));
      if constexpr (detail::number<T>) {
        x = static_cast<T>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(by));
      } else {
        x = greatest_of(x, by);
      }
    }
    return x;
  }
  void write(const plan& p) {
    std::vector<std::size_t> mine;
    for (std::size_t i = 0; i < model_.size(); ++i)
      if (p.writer[i] == team_.rank()) mine.push_back(i);
    std::shuffle(mine.begin(), mine.end(), own_);
    switch (below(own_, 8)) {
      case 0:
        for (const std::size_t i : mine) shape_.at(i) = value_of<T>(p.value[i]);
        break;
      case 4:
        shape_.write_scattered(mine, p.value);
        break;
      case 5:
        shape_.write_meanwhile(mine, p.value);
        break;
      case 6:
        write_by_copies(shape_.data(), mine, p.value);
        break;
      case 1:
        shape_.write_released(mine, p.value, {.buffer_bytes = std::size_t{1} << below(own_, 16)});
        break;
      case 2:
        shape_.write_updated(mine, p.value, [&](const char* what) { complain(0, what); });
        break;
      case 3:
        shape_.write_mostly_read(mine, p.value, [&](const char* what) { complain(0, what); });
        break;
      default:
        for (const std::size_t i : mine) shape_.copy_in(i, value_of<T>(p.value[i]));
        break;
    }
  }
  void update_model(const plan& p) {
    for (std::size_t i = 0; i < model_.size(); ++i) switch (p.what) {
        case deed::owned:
          model_[i] = value_of<T>(p.value[i]);
          break;
        case deed::combined:
          if (p.writer[i] % 2 == 0) model_[i] = combined(model_[i], i, p);
          break;
        case deed::filled:
          model_[i] = value_of<T>(p.salt);
          break;
        case deed::generated:
          model_[i] = vector_pattern<T>(i, {1, p.salt});
          break;
        case deed::written:
          if (p.writer[i] < team_.size()) model_[i] = value_of<T>(p.value[i]);
          break;
      }
  }
  void compare(int round) {
    std::uint64_t mistakes = 0;
    const char* how = "";
    if (below(common_, 5) == 0) {
      how = "through a cache of the team";
      mistakes = shape_.differences_together(team_, model_);
    } else
      switch (below(own_, 7)) {
        case 5:
          how = "in copies that were started";
          mistakes = differences_in_copies(shape_.data(), model_, own_);
          break;
        case 6:
          how = "in a halo cache";
          mistakes = differences_in_halo(shape_.data(), team_, model_, own_);
          break;
        case 0:
          how = "element by element";
          for (std::size_t i = 0; i < model_.size(); ++i) mistakes += shape_.at(i).get() == model_[i] ? 0 : 1;
          break;
        case 1:
          how = "through a read cache";
          mistakes = shape_.differences_cached(model_, own_);
          break;
        case 2:
          how = "through a read view";
          mistakes = shape_.differences_viewed(model_, own_);
          break;
        case 3:
          how = "where they were gathered";
          mistakes = shape_.differences_gathered(model_, own_);
          break;
        default:
          how = "in a copy";
          mistakes = shape_.differences_copied(model_, own_);
          break;
      }
    if (mistakes != 0) complain(round, fmt::format("{} of {} elements are wrong {}", mistakes, model_.size(), how));
  }
  void complain(int round, const std::string& what) {
    wrong_.push_back(fmt::format("round {}, member {} of {}: {}", round, team_.rank(), team_.size(), what));
  }

  team_member& team_;
  Shape shape_;
  random common_;
  random own_;
  std::vector<T> model_;
  std::vector<std::string> wrong_;
};

template <class E>
struct vector_shape {
  using value_type = E;
  shared_vector<E> v;

  [[nodiscard]] shared_vector<E>& data() { return v; }
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
      return with(read_cache(v, t), [&](auto& c) { return differences_in(c, model); });
    } else {
      return with(read_cache(v), [&](auto& c) { return differences_in(c, model); });
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
    return differences_in(there, std::span(model).subspan(first));
  }
};

struct matrix_shape {
  using value_type = long;
  shared_matrix<long> m;

  [[nodiscard]] shared_matrix<long>& data() { return m; }
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
    std::vector<long> values;
    std::vector<matrix_index> places;
    for (const std::size_t i : mine) {
      values.push_back(value_of<long>(value[i]));
      places.push_back({i / m.column_count(), i % m.column_count()});
    }
    scatter(std::span<const long>(values), m, places);
  }
  void write_meanwhile(const std::vector<std::size_t>& mine, const std::vector<std::uint64_t>& value) const {
    auto seen = start_with(release(m), [&](auto& w) {
      for (const std::size_t i : mine) w[i / m.column_count(), i % m.column_count()] = value_of<long>(value[i]);
    });
    yield();
    seen.wait();
  }
  std::uint64_t differences_together(team_member& t, const std::vector<long>& model) const {
    return with(read_cache(m, t), [&](auto& c) { return differences_in(c.span(), model); });
  }
  std::uint64_t differences_gathered(const std::vector<long>& model, random& r) const {
    std::vector<matrix_index> places(model.empty() ? 0 : below(r, 2 * model.size()));
    for (matrix_index& p : places) p = {below(r, m.row_count()), below(r, m.column_count())};
    const std::vector<long> there = gather(m, places);
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < places.size(); ++i)
      wrong += there[i] == model[places[i].row * m.column_count() + places[i].column] ? 0 : 1;
    return wrong;
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

constexpr int rounds = 5;

template <class T>
std::vector<std::string> play_vector(team_member& t, shared_vector<T> v, std::uint64_t seed) {
  return player<vector_shape<T>>(t, {v}, seed).play(rounds);
}
std::vector<std::string> play_matrix(team_member& t, shared_matrix<long> m, std::uint64_t seed) {
  return player<matrix_shape>(t, {m}, seed).play(rounds);
}

template <class T>
std::vector<std::vector<std::string>> compare_vector(random& r, const team& t, std::uint64_t seed) {
  const std::uint64_t n = below(r, 40);
  const shared_vector<T> v(n, random_distribution(r, n, false));
  return spmd<&play_vector<T>>(t, v, seed);
}
std::vector<std::vector<std::string>> compare_matrix(random& r, const team& t, std::uint64_t seed) {
  const std::uint64_t rows = below(r, 9);
  const std::uint64_t columns = below(r, 7);
  const distribution how = random_distribution(r, rows, true);
  const std::uint64_t halo = below(r, 3);
  const auto make = [&]() -> shared_matrix<long> {
    try {
      return {rows, columns, how.with_halo(halo)};
    } catch (const usage_error&) {  // cyclic, or wider than it
      return {rows, columns, how};
    }
  };
  const shared_matrix<long> m = make();
  return spmd<&play_matrix>(t, m, seed);
}

}  // namespace

std::vector<std::string> compare_with_model(std::uint64_t seed) {
  random r(seed);
  const std::size_t pes = world_pes();
  const team t(everywhere(), pes + below(r, 2 * pes + 1));  // some PEs have several members
  std::vector<std::vector<std::string>> wrong;
  switch (below(r, 7)) {
    case 0:
      wrong = compare_vector<std::uint8_t>(r, t, seed);
      break;
    case 1:
      wrong = compare_vector<long>(r, t, seed);
      break;
    case 2:
      wrong = compare_vector<record>(r, t, seed);
      break;
    case 3:
      wrong = compare_vector<small_record>(r, t, seed);
      break;
    case 4:
      wrong = compare_vector<large_record>(r, t, seed);
      break;
    case 5:
      wrong = compare_vector<std::string>(r, t, seed);
      break;
    default:
      wrong = compare_matrix(r, t, seed);
      break;
  }
  std::vector<std::string> all;
  for (const auto& one : wrong)
    for (const std::string& w : one) all.push_back(fmt::format("seed {}: {}", seed, w));
  return all;
}

}  // namespace orrery::testing
