// SPDX-License-Identifier: Apache-2.0
// A named world whose programs come and go: places of PEs are given out again, numbers of PEs are not. Each test starts this
// program several times (--scenario=NAME and the runtime's options).
#include "../support/scenario.hpp"

#include <orrery/array/array.hpp>

#include <algorithm>
#include <deque>
#include <memory>

namespace orrery::faults {
namespace reuse_tests {

using namespace testing;

struct visitor {
  explicit visitor(int id) : id_(id) {}
  int id() { return id_; }

 private:
  int id_;
};
ORRERY_PROCESS(visitor, id);

struct cell : element<cell, int> {
  explicit cell(int begin) : value_(begin) {}
  void tell(const result_target& to) { contribute(value_ + this_index(), sum, to); }
  int value() const { return value_; }

 private:
  int value_;
};
ORRERY_PROCESS(cell, tell, value);

// Where guests say who they are. It keeps what they leave behind: pointers to processes that are gone.
struct lobby {
  void enter(remote<visitor> v) { seen_.push_back(v); }
  std::vector<remote<visitor>> seen() { return seen_; }
  void lend(const array<cell, int>& cells) { cells_ = cells; }
  array<cell, int> borrow() { return cells_; }
  void close() { is_closed_ = true; }
  bool is_closed() { return is_closed_; }

 private:
  std::vector<remote<visitor>> seen_;
  array<cell, int> cells_;
  bool is_closed_ = false;
};
ORRERY_PROCESS(lobby, enter, seen, lend, borrow, close, is_closed);

struct worker : member<worker> {
  int meet() {
    barrier();
    return static_cast<int>(rank());
  }
};
ORRERY_PROCESS(worker, meet);

// Calls, a broadcast, a reduction.
void use(const array<cell, int>& cells) {
  for (int i = 0; i < 12; ++i) check(cells[i]->value() == 5, "an element gives a wrong answer");
  auto [done, total] = expect_result<int>();
  post(cells)->tell(done);
  check(total.get() == 12 * 5 + 66, "a reduction gives a wrong result");
}

template <class F>
std::string how_it_fails(F&& f) {
  try {
    return fmt::format("answers {}", f());
  } catch (const node_lost&) {
    return "node_lost";
  } catch (const process_gone&) {
    return "process_gone";
  } catch (const std::exception& e) {
    return e.what();
  }
}

void host_of_many() {
  const auto door = spawn<lobby>(pe(1));
  publish("/lobby", door);
  fmt::print(stderr, "up\n");
  while (!door->is_closed()) yield();
  const auto seen = door->seen();
  int current = 0;
  for (const auto& v : seen) {
    const std::string how = how_it_fails([&] { return v->id(); });
    if (how.starts_with("answers"))
      ++current;  // the guest that has closed the lobby
    else
      check(how == "node_lost" || how == "process_gone", how);
  }
  check(current == 1, fmt::format("{} guests answer, of which one is there", current));
  check(std::ranges::any_of(seen, [](const auto& v) { return v.address().pe >= 4096; }), "no place was used again");
  check(world_pes() <= 40, fmt::format("the tables have grown to {} PEs", world_pes()));
  check(reachable_pes().size() == 3, "there are others");
  const auto borrowed = door->borrow();
  use(borrowed);
  publish("/checked", spawn<lobby>(here()));
  while (reachable_pes().size() != 2) yield();
  // A node that is leaving may answer still.
  while (how_it_fails([&] { return borrowed[3]->value(); }) != "node_lost") yield();
  quiescence();
  auto g = spawn_group<worker>(everywhere(), 4);
  g->meet();
  const auto cells = create_array<cell>(range<int>{12}, {}, {}, 5);
  use(cells);
  destroy(cells);
  quiescence();
}

// `enter` is answered, so the lobby has the pointer; what follows is under way when the program ends.
void enter(std::uint32_t pes) {
  const auto door = await_name<lobby>("/lobby", patience);
  const auto v = spawn<visitor>(pe(this_pe() + pes - 1), static_cast<int>(this_node()));
  check(v->id() == static_cast<int>(this_node()), "a guest cannot reach itself");
  door->enter(v);
  for (int i = 0; i < 10; ++i) post(door)->is_closed();
}
void guest_of_one() { enter(1); }
void guest_of_two() { enter(2); }
void guest_that_is_killed() {
  enter(2);
  fmt::print(stderr, "up\n");
  while (true) yield();
}
void last_guest() {
  const auto door = await_name<lobby>("/lobby", patience);
  check(this_pe() >= 4096 && this_node() >= 4096, "the place was not used before");
  const auto cells = create_array<cell>(range<int>{12}, {}, {}, 5);
  use(cells);
  door->lend(cells);
  door->enter(spawn<visitor>(here(), -1));
  door->close();
  (void)await_name<lobby>("/checked", patience);
}

class reuse : public ::testing::Test {};

TEST_F(reuse, of_places_never_brings_a_message_to_who_came_later) {
  program host({"--scenario=host_of_many", own_world(), "--orrery-pes=2"});
  host.hear("up");
  constexpr int joins = slowed_down ? 16 : 60;
  std::deque<std::unique_ptr<program>> there;
  const auto see_off = [&] {
    const std::string said = there.front()->end();
    EXPECT_TRUE(said.ends_with("good")) << said;
    there.pop_front();
  };
  for (int i = 0; i < joins; ++i) {
    if (i % 6 == 5) {
      program killed({"--scenario=guest_that_is_killed", own_world(), "--orrery-pes=2"});
      killed.hear("up");
      ::kill(killed.pid(), SIGKILL);
      EXPECT_TRUE(killed.end().ends_with("killed by signal 9"));
      continue;
    }
    there.push_back(std::make_unique<program>(
        i % 2 == 0 ? std::vector<std::string>{"--scenario=guest_of_one", own_world(), "--orrery-pes=1"}
                   : std::vector<std::string>{"--scenario=guest_of_two", own_world(), "--orrery-pes=2"}));
    if (there.size() == 4) see_off();
  }
  while (!there.empty()) see_off();
  // It may come before anybody has missed the last one that was killed, and says so then.
  const std::string last = outcome_of({"--scenario=last_guest", own_world(), "--orrery-pes=1"});
  EXPECT_TRUE(last.ends_with("good")) << last;
  const std::string said = host.end();
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, ": calls to it fail with node_lost"), joins / 6) << said;
}

const orrery::testing::scenarios_of_file of_this({{"host_of_many", host_of_many},
                                                  {"guest_of_one", guest_of_one},
                                                  {"guest_of_two", guest_of_two},
                                                  {"guest_that_is_killed", guest_that_is_killed},
                                                  {"last_guest", last_guest}});

}  // namespace reuse_tests
}  // namespace orrery::faults
