// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/runtime.hpp>
#include <orrery/shared/internal/test_consistency.hpp>
#include <orrery/shared/shared.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>
#include <sched.h>

namespace orrery::testing {

namespace {

using numbers = shared_vector<std::uint64_t>;

/// Lets all members begin a round at about the same time, without a barrier: each says that it is
/// there, and looks at the others.
void meet(const team_member& t, const numbers& rounds, std::uint64_t round) {
  rounds[t.rank()] = round;
  for (std::size_t m = 0; m < t.size(); ++m)
    while (rounds[m] < round) {
      yield();
      ::sched_yield();
    }
}

/// Two elements of each round, of different owners: x of the first PE, y of the last one.
struct pairs {
  numbers all;
  std::uint64_t rounds = 0;
  [[nodiscard]] auto x(std::uint64_t round) const { return all[round]; }
  [[nodiscard]] auto y(std::uint64_t round) const { return all[all.size() - 1 - round]; }
  template <class A>
  void serialize(A& a) {
    a & all & rounds;
  }
};

using seen = std::vector<std::array<std::uint64_t, 2>>;  // in each round

/// Each of two writes its element, and then reads the other's.
seen write_then_read(team_member& t, pairs p, numbers rounds) {
  seen all;
  for (std::uint64_t i = 0; i < p.rounds; ++i) {
    meet(t, rounds, i + 1);
    const bool first = t.rank() == 0;
    (first ? p.x(i) : p.y(i)) = 1;
    all.push_back({(first ? p.y(i) : p.x(i)).get(), 0});
  }
  return all;
}
void expect_no_store_is_late(const team& two, const pairs& p, const numbers& rounds, std::vector<std::string>& wrong) {
  const auto got = spmd<&write_then_read>(two, p, rounds);
  for (std::uint64_t i = 0; i < p.rounds; ++i)
    if (got[0][i][0] == 0 && got[1][i][0] == 0)
      wrong.push_back(fmt::format("store buffering, round {}: neither process saw what the other one wrote before", i));
}

/// The first writes data and then a mark; the second reads the mark and then the data.
seen tell_or_look(team_member& t, pairs p, numbers rounds) {
  seen all;
  for (std::uint64_t i = 0; i < p.rounds; ++i) {
    meet(t, rounds, i + 1);
    if (t.rank() == 0) {
      p.x(i) = 1;
      p.y(i) = 1;
    } else {
      const std::uint64_t mark = p.y(i);
      all.push_back({mark, p.x(i).get()});
    }
  }
  return all;
}
void expect_data_before_marks(const team& two, const pairs& p, const numbers& rounds, std::vector<std::string>& wrong) {
  const auto got = spmd<&tell_or_look>(two, p, rounds);
  for (std::uint64_t i = 0; i < p.rounds; ++i)
    if (got[1][i][0] == 1 && got[1][i][1] == 0)
      wrong.push_back(fmt::format("message passing, round {}: the mark was seen, and not the data before it", i));
}

/// Two write one element each; the others read both, one after the other, in opposite orders.
seen write_one_or_read_both(team_member& t, pairs p, numbers rounds) {
  seen all;
  for (std::uint64_t i = 0; i < p.rounds; ++i) {
    meet(t, rounds, i + 1);
    if (t.rank() < 2) {
      (t.rank() == 0 ? p.x(i) : p.y(i)) = 1;
    } else {
      const bool x_first = t.rank() == 2;
      const std::uint64_t one = x_first ? p.x(i) : p.y(i);
      const std::uint64_t other = x_first ? p.y(i) : p.x(i);
      all.push_back({one, other});
    }
  }
  return all;
}
void expect_one_order_of_writes(const team& four, const pairs& p, const numbers& rounds,
                                std::vector<std::string>& wrong) {
  const auto got = spmd<&write_one_or_read_both>(four, p, rounds);
  constexpr std::array<std::uint64_t, 2> only_its_first{1, 0};
  for (std::uint64_t i = 0; i < p.rounds; ++i)
    if (got[2][i] == only_its_first && got[3][i] == only_its_first)
      wrong.push_back(fmt::format("independent writes, round {}: two readers saw them in opposite orders", i));
}

constexpr std::uint64_t both_halves = 0x1'0000'0001;

/// All write values with equal halves to two elements, and look at them. Returns the torn ones.
std::vector<std::uint64_t> write_equal_halves(team_member& t, numbers two, std::uint64_t rounds) {
  std::vector<std::uint64_t> torn;
  for (std::uint64_t i = 1; i <= rounds; ++i)
    for (std::uint64_t k = 0; k < 2; ++k) {
      two[k] = (i * 100 + t.rank()) * both_halves;
      const std::uint64_t got = two[(k + i) % 2];
      if (got % both_halves != 0) torn.push_back(got);
    }
  return torn;
}

}  // namespace

std::vector<std::string> impossible_outcomes(int rounds) {
  std::vector<std::string> wrong;
  const auto n = static_cast<std::uint64_t>(rounds);
  const std::uint32_t last = world_pes() - 1;
  const auto ends = distribution::block().over({0, last});
  const auto play = [&](auto expect, std::size_t members) {
    const pairs p{numbers(2 * n, ends), n};
    const numbers met(members, distribution::cyclic());
    expect(team(everywhere(), members), p, met, wrong);
    destroy(p.all);
    destroy(met);
  };
  play(expect_no_store_is_late, 2);
  play(expect_data_before_marks, 2);
  play(expect_one_order_of_writes, 4);
  const numbers two(2, ends);
  for (const auto& torn : spmd<&write_equal_halves>(team(), two, n))
    for (const std::uint64_t x : torn) wrong.push_back(fmt::format("an element has the torn value {:#x}", x));
  destroy(two);
  return wrong;
}

}  // namespace orrery::testing
