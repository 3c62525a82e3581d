// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/runtime.hpp>
#include <orrery/shared/internal/test_matrix_shape.hpp>
#include <orrery/shared/internal/test_model.hpp>
#include <orrery/shared/internal/test_vector_shape.hpp>
#include <orrery/shared/shared.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include <fmt/format.h>

namespace orrery::testing {

namespace {

distribution random_distribution(random& r, std::uint64_t n, bool matrix) {
  std::vector<std::uint32_t> pes(world_pes());
  std::iota(pes.begin(), pes.end(), 0U);
  std::shuffle(pes.begin(), pes.end(), r);
  pes.resize(1 + below(r, pes.size()));
  switch (below(r, matrix ? 7 : 5)) {
    case 0:
      return distribution::block().over(pes);
    case 1:
      return distribution::cyclic().over(pes);
    case 2:
      return distribution::block_cyclic(1 + below(r, 5)).over(pes);
    case 3: {
      std::vector<std::uint64_t> ends(pes.size());
      for (auto& e : ends) e = below(r, n + 1);
      std::ranges::sort(ends);
      ends.back() = n;
      return distribution::bounds(std::move(ends)).over(pes);
    }
    case 4:
      return distribution::on(pe(pes[0]));
    case 5:
      return distribution::columns().over(pes);
    default:
      if (pes.size() % 2 != 0) return distribution::tiles(static_cast<std::uint32_t>(pes.size()), 1).over(pes);
      return distribution::tiles(2, static_cast<std::uint32_t>(pes.size() / 2)).over(pes);
  }
}

/// The writers of a round, and what they write: known to all, as they draw the same numbers.
struct plan {
  std::vector<std::size_t> writer;  // of each element; the number of members: nobody
  std::vector<std::uint64_t> value;
  bool owners = false;  // all write what they own
  bool adds = false;  // all add to elements that they choose

  plan(random& r, std::size_t n, std::size_t members) : writer(n), value(n) {
    const std::uint64_t kind = below(r, 4);
    owners = kind == 0;
    adds = kind == 1;
    for (std::size_t i = 0; i < n; ++i) {
      writer[i] = below(r, members + 1);
      value[i] = r();
    }
  }
};

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
      if (p.owners) {
        shape_.write_owned(team_, p.value);
      } else if (p.adds && detail::scalar_of<T> != detail::scalar::none) {
        add(p);
      } else {
        write(p);
      }
      update_model(p);
      team_.barrier();
      compare(i);
      team_.barrier();
    }
    return std::move(wrong_);
  }

 private:
  void add(const plan& p) {
    if constexpr (detail::scalar_of<T> != detail::scalar::none)
      for (std::size_t i = 0; i < model_.size(); ++i)
        if (p.writer[i] % 2 == 0) shape_.at(i) += value_of<T>(p.value[i]);
  }
  void write(const plan& p) {
    std::vector<std::size_t> mine;
    for (std::size_t i = 0; i < model_.size(); ++i)
      if (p.writer[i] == team_.rank()) mine.push_back(i);
    std::shuffle(mine.begin(), mine.end(), own_);
    switch (below(own_, 7)) {
      case 0:
        for (const std::size_t i : mine) shape_.at(i) = value_of<T>(p.value[i]);
        break;
      case 4:
        shape_.write_scattered(mine, p.value);
        break;
      case 5:
        shape_.write_meanwhile(mine, p.value);
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
    for (std::size_t i = 0; i < model_.size(); ++i) {
      if (p.owners) {
        model_[i] = value_of<T>(p.value[i]);
      } else if (p.adds && detail::scalar_of<T> != detail::scalar::none) {
        if constexpr (detail::scalar_of<T> != detail::scalar::none) {
          if (p.writer[i] % 2 == 0)
            for (std::size_t m = 0; m < team_.size(); ++m)
              model_[i] = static_cast<T>(static_cast<std::uint64_t>(model_[i]) +
                                         static_cast<std::uint64_t>(value_of<T>(p.value[i])));
        }
      } else if (p.writer[i] < team_.size()) {
        model_[i] = value_of<T>(p.value[i]);
      }
    }
  }
  void compare(int round) {
    std::uint64_t mistakes = 0;
    const char* how = "";
    if (below(common_, 5) == 0) {
      how = "through a cache of the team";
      mistakes = shape_.differences_together(team_, model_);
    } else
      switch (below(own_, 5)) {
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
  auto wrong = spmd<&play_vector<T>>(t, v, seed);
  destroy(v);
  return wrong;
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
  auto wrong = spmd<&play_matrix>(t, m, seed);
  destroy(m);
  return wrong;
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
