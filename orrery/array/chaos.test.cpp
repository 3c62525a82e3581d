// SPDX-License-Identifier: Apache-2.0
// Everything at once, at random, and a model that knows what has to come out. Drivers, one on each
// PE, create, destroy, move, post, broadcast and make elements contribute. Between rounds the world
// is quiescent and everything is compared. A failure is seen again with the seed that is printed.
#include <orrery/array/balance_auto.hpp>
#include <orrery/array/own_index.hpp>

#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace chaos_tests {

using testing::in_world;

// The reports of elements, also of those that have ended. Shared by the threads of the test.
struct judge_book {
  std::mutex mutex;
  std::map<std::uint32_t, std::multiset<int>> contributed;  // reduction -> indices
  std::map<std::uint32_t, std::vector<std::pair<int, std::uint32_t>>> results;
  std::vector<std::string> wrong;
  void complain(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (wrong.size() < 20) wrong.push_back(what);
  }
};
judge_book* book = nullptr;

using contribution = std::vector<std::pair<int, std::uint32_t>>;

struct Judge {
  void result(contribution c) const {
    const std::lock_guard lock(book->mutex);
    const std::uint32_t n = c.empty() ? 0 : c.front().second;
    if (book->results.contains(n)) book->wrong.push_back("reduction " + std::to_string(n) + " ended twice");
    book->results[n] = std::move(c);
  }
};
ORRERY_PROCESS(Judge, result);

struct Item;
ORRERY_PROCESS(Item, take, ordered, hop, hear, give, give_until, ask, get, state);
struct report {
  std::map<std::uint32_t, std::uint64_t> counts;
  std::map<std::uint32_t, std::uint64_t> sums;
  std::vector<int> heard;
  template <class A>
  void serialize(A& a) {
    a & counts & sums & heard;
  }
};
// The sender of a message, and the one of the elements with this index that it is for. One that was
// sent while its element moved can be overtaken by the message that ends it, and by the creation of
// the next one, which then gets it.
constexpr std::uint32_t sender(std::uint32_t driver, std::uint32_t life) { return driver | life << 8; }

struct Item : element<Item> {
  void take(std::uint32_t from, std::uint64_t number) {
    ++r.counts[from];
    r.sums[from] += number;
  }
  void ordered(std::uint32_t from, std::uint64_t number, std::uint32_t round) {
    auto& [last_round, last] = last_of[from];
    if (last_round == round && number != last + 1)
      book->complain("element " + std::to_string(this_index()) + " got " + std::to_string(number) + " of driver " +
                     std::to_string(from & 255) + " after " + std::to_string(last));
    last_round = round;
    last = number;
    take(from, number);
  }
  void hop(std::uint32_t to) { migrate_to(to); }
  void hear(int number) { r.heard.push_back(number); }
  void give(const result_target& t) {
    const std::uint32_t n = contributed() + 1;
    {
      const std::lock_guard lock(book->mutex);
      book->contributed[n].insert(this_index());
    }
    contribute(contribution{{this_index(), n}}, concat, t);
  }
  void give_until(std::uint32_t n, const result_target& t) {
    while (contributed() < n) give(t);
  }
  void ask(int other) {
    if (this_array()[other]->get() != other) book->complain("a wrong element was asked");
  }
  int get() const { return this_index(); }
  report state() const { return r; }
  template <class A>
  void serialize(A& a) {
    a & r & last_of;
  }
  report r;
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint64_t>> last_of;
};

constexpr int fixed = 12;  // elements that are there all the time
constexpr int own_range = 1000;

struct plan {
  std::uint64_t seed = 0;
  std::uint32_t driver = 0;
  std::uint32_t round = 0;
  std::uint32_t steps = 0;
  std::uint32_t pes = 0;
  bool calm = false;  // nothing moves: then order is promised
  std::uint32_t reductions = 0;  // elements may contribute up to here
  template <class A>
  void serialize(A& a) {
    a & seed & driver & round & steps & pes & calm & reductions;
  }
};
// The work of a driver: the model.
struct deeds {
  std::set<int> alive;
  std::map<int, std::uint64_t> counts;
  std::map<int, std::uint64_t> sums;
  std::map<int, std::uint32_t> lives;  // elements that an index has had
  std::set<int> freed;  // indices whose last element has ended for sure
  int broadcasts = 0;
  template <class A>
  void serialize(A& a) {
    a & alive & counts & sums & lives & freed & broadcasts;
  }
};

deeds drive(array<Item> a, plan p, deeds d, result_target t) {
  std::mt19937_64 random(p.seed);
  const auto below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
  std::map<int, std::uint64_t> numbers;
  const auto pick = [&] {
    if (d.alive.empty() || below(2) == 0) return below(fixed);
    return *std::next(d.alive.begin(), below(d.alive.size()));
  };
  for (std::uint32_t step = 0; step < p.steps; ++step) {
    const int what = below(100);
    if (what < 55) {
      const int i = pick();
      const std::uint64_t n = p.calm ? ++numbers[i] : random() % 1000;
      if (p.calm) {
        post(a[i])->ordered(sender(p.driver, d.lives[i]), n, p.round);
      } else {
        post(a[i])->take(sender(p.driver, d.lives[i]), n);
      }
      ++d.counts[i];
      d.sums[i] += n;
    } else if (what < 60) {
      (void)a[pick()]->get();
    } else if (p.calm) {
      if (what < 62) yield();
    } else if (what < 75) {
      const auto to = static_cast<std::uint32_t>(below(p.pes));
      if (below(2) == 0) {
        post(a[pick()])->hop(to);
      } else {
        post_migrate(a[pick()], to);
      }
    } else if (what < 80) {
      post(a)->hear(static_cast<int>(p.driver * 100'000 + p.round * 1000) + d.broadcasts++);
    } else if (what < 86) {
      const int i = static_cast<int>(p.driver + 1) * own_range + below(40);
      if (d.alive.contains(i)) {
        d.freed.erase(i);
        switch (below(3)) {
          case 0:
            destroy(a[i]);
            d.freed.insert(i);
            break;
          case 1:
            (void)start_destroy(a[i]);
            break;
          default:
            post_destroy(a[i]);
        }
        d.alive.erase(i);
        d.counts.erase(i);
        d.sums.erase(i);
      } else {
        // If nobody waited for its deletion, that may still be under way: then the home does not
        // admit it yet.
        for (bool made = false; !made;) try {
            if (below(3) == 0) {
              a.insert(i);
            } else {
              a.insert_at(pe(static_cast<std::uint32_t>(below(p.pes))), i);
            }
            made = true;
          } catch (const usage_error&) {
            if (d.freed.contains(i)) book->complain("index " + std::to_string(i) + " was not free");
            yield();
          }
        d.alive.insert(i);
        ++d.lives[i];
      }
    } else if (what < 92) {
      const int i = pick();
      post(a[i])->give_until(static_cast<std::uint32_t>(below(p.reductions + 1)), t);
    } else if (what < 93) {
      switch (below(4)) {
        case 0:
          balance(a, *balance_random(random()));
          break;
        case 1:
          balance(a, *balance_rotate());
          break;
        case 2:
          balance(a, *balance_refine());
          break;
        default:
          balance_diffusion(a, 1);
      }
    } else if (what < 96) {
      post(a[fixed - 1])->ask(below(fixed - 1));
    } else {
      yield();
    }
  }
  return d;
}

struct setting {
  std::uint32_t pes;
  bool packed;
  std::uint32_t cached;
  std::uint32_t branching;
  std::uint32_t homes = 1;
};

void compare(const array<Item>& a, const std::vector<deeds>& all, const std::vector<int>& round_heard) {
  std::set<int> alive;
  for (int i = 0; i < fixed; ++i) alive.insert(i);
  for (const auto& d : all) alive.insert(d.alive.begin(), d.alive.end());
  std::vector<int> order;
  for (const int i : alive) {
    const report r = a[i]->state();
    for (std::uint32_t k = 0; k < all.size(); ++k) {
      const auto get = [&](const auto& map, auto key) { return map.contains(key) ? map.at(key) : 0; };
      const std::uint32_t from = sender(k, get(all[k].lives, i));
      EXPECT_EQ(get(r.counts, from), get(all[k].counts, i)) << "messages of driver " << k << " to element " << i;
      EXPECT_EQ(get(r.sums, from), get(all[k].sums, i)) << "messages of driver " << k << " to element " << i;
    }
    if (i < fixed) {
      if (i == 0) order = r.heard;
      EXPECT_EQ(r.heard, order) << "broadcasts at element " << i;
      EXPECT_EQ(r.heard.size(), round_heard.size());
    } else {  // what came after it was created
      const auto n = std::min(r.heard.size(), order.size());
      EXPECT_TRUE(std::equal(r.heard.begin(), r.heard.end(), order.end() - static_cast<std::ptrdiff_t>(n)))
          << "broadcasts at element " << i;
    }
  }
}

void chaos(setting s, std::uint64_t seed) {
  judge_book pages;
  book = &pages;
  in_world(s.pes, [&] {
    std::mt19937_64 random(seed);
    auto a = create_array<Item>(range<int>{fixed}, {.name = "items",
                                                    .homes = s.homes,
                                                    .branching = s.branching,
                                                    .always_serialize = s.packed,
                                                    .cached = s.cached});
    measure_load(a, true);
    auto judge = spawn<Judge>(here());
    const result_target t = result_to<&Judge::result>(judge);
    std::vector<deeds> all(s.pes);
    std::vector<int> heard;
    std::uint32_t reductions = 0;
    const std::uint32_t rounds = testing::slowed_down ? 4 : 8;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const bool calm = round % 3 == 2;
      if (!calm) reductions += 3;
      std::vector<future<deeds>> running;
      for (std::uint32_t k = 0; k < s.pes; ++k) {
        all[k].broadcasts = 0;
        running.push_back(
            start_call<&drive>(pe(k), a, plan{random(), k, round, 200, s.pes, calm, reductions}, all[k], t));
      }
      for (std::uint32_t k = 0; k < s.pes; ++k) {
        all[k] = running[k].get();
        for (int b = 0; b < all[k].broadcasts; ++b) heard.push_back(b);
      }
      quiescence();
      // Now everybody contributes what is still missing, while some move once more.
      for (int i = 0; i < fixed; ++i) post(a[i])->give_until(reductions, t);
      for (const auto& d : all)
        for (const int i : d.alive) {
          post(a[i])->give_until(reductions, t);
          if (random() % 4 == 0) post(a[i])->hop(static_cast<std::uint32_t>(random() % s.pes));
        }
      quiescence(a);
      compare(a, all, heard);
      quiescence();  // the judge has heard of all results
      const std::lock_guard lock(pages.mutex);
      for (std::uint32_t n = 1; n <= reductions; ++n) {
        EXPECT_TRUE(pages.results.contains(n)) << "reduction " << n << " did not end";
        std::multiset<int> got;
        for (const auto& [i, number] : pages.results[n]) {
          got.insert(i);
          EXPECT_EQ(number, n);
        }
        EXPECT_EQ(got, pages.contributed[n]) << "reduction " << n;
      }
      for (const auto& w : pages.wrong) ADD_FAILURE() << w;
      if (::testing::Test::HasFailure()) return;
    }
    destroy(a);
  });
}

// With each setting in several tests, so that none takes long: 2,100 schedules in all on two cores,
// and 400 of sections. The simulator, which finds more in less time, runs more of each
// (tests/CMakeLists.txt).
class chaos_on : public ::testing::TestWithParam<std::tuple<setting, int>> {};

TEST_P(chaos_on, threads_agrees_with_the_model) {
  std::uint64_t seed = testing::test_seed();
  const setting s = std::get<0>(GetParam());
  // More PEs than cores wait for each other's turns for most of the time.
  const std::uint64_t usual = testing::slowed_down ? 1 : s.pes > std::thread::hardware_concurrency() ? 25 : 100;
  const std::uint64_t runs = testing::number_from("ORRERY_TEST_RUNS", usual);
  for (std::uint64_t i = 0; i < runs && !HasFailure(); ++i, ++seed) {
    SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
    chaos(s, seed);
  }
}

INSTANTIATE_TEST_SUITE_P(array, chaos_on,
                         ::testing::Combine(::testing::Values(setting{1, false, 1000, 4}, setting{2, false, 1000, 4},
                                                              setting{2, true, 4, 2, 2}, setting{3, false, 4, 1},
                                                              setting{4, true, 1000, 2, 3}),
                                            ::testing::Range(0, testing::slowed_down ? 1 : 6)));

}  // namespace chaos_tests
}  // namespace orrery
