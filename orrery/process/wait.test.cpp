// SPDX-License-Identifier: Apache-2.0
// What a parked process finds when it goes on: its exceptions, its place in a cycle of calls, its
// stack.
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

namespace orrery {
namespace wait_tests {

using testing::in_world;
using testing::what_is_thrown;

// --- exceptions ----------------------------------------------------------------------------------

class Catcher {
 public:
  /// Waits inside a catch block while others do the same; says what it rethrew.
  std::string rethrow(int n, int depth) {
    try {
      throw std::runtime_error("exception " + std::to_string(n));
    } catch (...) {
      for (int i = 0; i < 5; ++i) yield();
      std::string inner;
      if (depth > 0) inner = rethrow(n * 10, depth - 1) + " in ";
      try {
        yield();
        throw;
      } catch (const std::runtime_error& e) {
        yield();
        return inner + e.what();
      }
    }
  }
  /// Waits in a destructor that runs because of an exception.
  int unwinding() {
    struct waits {
      int& seen;
      ~waits() {
        const int before = std::uncaught_exceptions();
        for (int i = 0; i < 5; ++i) yield();
        seen = std::uncaught_exceptions() == before ? before : -100;
      }
    };
    int seen = -1;
    try {
      const waits w{seen};
      throw std::logic_error("unwinding");
    } catch (const std::logic_error&) {
      return seen * 10 + std::uncaught_exceptions();
    }
  }
  int not_unwinding() {
    for (int i = 0; i < 5; ++i) {
      if (std::uncaught_exceptions() != 0 || std::current_exception() != nullptr) return 1;
      yield();
    }
    return 0;
  }
  void fail(int n) { throw std::out_of_range(std::to_string(n)); }
  /// Calls another that throws, while it handles an exception itself.
  std::string call_in_handler(remote<Catcher> other) {
    try {
      throw std::runtime_error("mine");
    } catch (...) {
      std::string said;
      try {
        other->fail(7);
      } catch (const std::out_of_range& e) {
        said = e.what();
      }
      try {
        throw;
      } catch (const std::runtime_error& e) {
        return said + e.what();
      }
    }
  }
  ORRERY_PROCESS_MEMBERS(Catcher, rethrow, unwinding, not_unwinding, fail, call_in_handler)
};

ORRERY_AT_EACH_PLACE(parked);

TEST_P(parked, inside_a_catch_block_a_process_rethrows_its_own_exception) {
  in_world([] {
    std::vector<future<std::string>> all;
    std::vector<future<int>> calm;
    for (int i = 1; i <= 20; ++i) {
      all.push_back(start(spawn<Catcher>(where()))->rethrow(i, 0));
      calm.push_back(start(spawn<Catcher>(where()))->not_unwinding());
    }
    for (int i = 1; i <= 20; ++i) EXPECT_EQ(all[i - 1].get(), "exception " + std::to_string(i));
    for (auto& f : calm) EXPECT_EQ(f.get(), 0);
  });
}

TEST_P(parked, inside_nested_catch_blocks_a_process_finds_them_all_again) {
  in_world([] {
    std::vector<future<std::string>> all;
    for (int i = 1; i <= 10; ++i) all.push_back(start(spawn<Catcher>(where()))->rethrow(i, 2));
    for (int i = 1; i <= 10; ++i) {
      const std::string n = std::to_string(i);
      EXPECT_EQ(all[i - 1].get(), "exception " + n + "00 in exception " + n + "0 in exception " + n);
    }
  });
}

TEST_P(parked, while_its_stack_is_unwound_a_process_counts_only_its_own_exceptions) {
  in_world([] {
    std::vector<future<int>> all;
    for (int i = 0; i < 10; ++i) all.push_back(start(spawn<Catcher>(where()))->unwinding());
    for (auto& f : all) EXPECT_EQ(f.get(), 10);
  });
}

TEST_P(parked, in_a_call_that_throws_a_process_keeps_the_exception_that_it_handles) {
  in_world([] {
    const auto other = spawn<Catcher>(where());
    EXPECT_EQ(spawn<Catcher>(here())->call_in_handler(other), "7mine");
    EXPECT_EQ(spawn<Catcher>(pe(1))->call_in_handler(other), "7mine");
  });
}

// --- deadlocks -----------------------------------------------------------------------------------

class Node {
 public:
  void link(remote<Node> next) { next_ = next; }
  int value() { return 1; }
  int call_self() { return this_process<Node>()->value(); }
  int call_self_by_future() { return start(this_process<Node>())->value().get(); }
  int call_next() { return next_->value(); }
  int call_next_slowly() {
    yield();
    yield();
    return next_->value();
  }
  int call_round(int steps) { return steps == 0 ? value() : next_->call_round(steps - 1) + 1; }
  int start_round(int steps) { return steps == 0 ? value() : start(next_)->start_round(steps - 1).get() + 1; }
  ORRERY_PROCESS_MEMBERS(Node, link, value, call_self, call_self_by_future, call_next, call_next_slowly, call_round,
                         start_round)

 private:
  remote<Node> next_;
};

std::vector<remote<Node>> make_ring(int size, std::uint32_t pes) {
  std::vector<remote<Node>> ring;
  for (int i = 0; i < size; ++i) ring.push_back(spawn<Node>(pe(static_cast<std::uint32_t>(i) % pes)));
  for (int i = 0; i < size; ++i) ring[i]->link(ring[(i + 1) % size]);
  return ring;
}

ORRERY_AT_EACH_PLACE(deadlock);

TEST_P(deadlock, of_a_process_that_calls_itself_is_an_error_that_names_the_cycle) {
  in_world([] {
    const auto n = spawn<Node>(where());
    const std::string said = what_is_thrown<deadlock_error>([&] { (void)n->call_self(); });
    EXPECT_NE(said.find("Node::call_self -> "), std::string::npos) << said;
    EXPECT_NE(said.find("Node::value"), std::string::npos) << said;
    EXPECT_EQ(n->value(), 1);
  });
}

TEST_P(deadlock, of_a_process_that_waits_for_its_own_future_is_an_error) {
  in_world([] {
    const auto n = spawn<Node>(where());
    EXPECT_THROW((void)n->call_self_by_future(), deadlock_error);
    EXPECT_EQ(n->value(), 1);
  });
}

TEST_P(deadlock, of_two_processes_is_an_error_that_names_the_cycle) {
  in_world([] {
    const auto ring = make_ring(2, GetParam() + 1);
    const std::string said = what_is_thrown<deadlock_error>([&] { (void)ring[0]->call_round(2); });
    EXPECT_NE(said.find("Node::call_round -> "), std::string::npos) << said;
    EXPECT_EQ(ring[0]->call_round(1), 2);
  });
}

TEST_P(deadlock, of_many_processes_is_an_error) {
  in_world([] {
    const auto ring = make_ring(10, GetParam() + 1);
    EXPECT_THROW((void)ring[0]->call_round(10), deadlock_error);
    EXPECT_THROW((void)ring[0]->start_round(10), deadlock_error);
    EXPECT_EQ(ring[0]->call_round(9), 10);
    EXPECT_EQ(ring[0]->start_round(9), 10);
  });
}

TEST_P(deadlock, of_processes_that_call_each_other_at_once_is_an_error_for_one_of_them) {
  in_world([] {
    for (int round = 0; round < 20; ++round) {
      const auto ring = make_ring(2 + round % 3, GetParam() + 1);
      std::vector<future<int>> all;
      for (const auto& n : ring) all.push_back(start(n)->call_next_slowly());
      int failed = 0;
      for (auto& f : all) {
        try {
          EXPECT_EQ(f.get(), 1);
        } catch (const deadlock_error&) {
          ++failed;
        }
      }
      EXPECT_EQ(failed, 1);
    }
  });
}

// The callee of a call of which only the PE is known.
struct Asker;
ORRERY_PROCESS(Asker, ask_by_function, ask_by_constructor, value);
struct Asked {
  explicit Asked(remote<Asker> who);
};
ORRERY_PROCESS(Asked);
int ask_back(remote<Asker> who);
struct Asker {
  int value() { return 1; }
  int ask_by_function(remote<Asker> back, std::uint32_t where) { return call<&ask_back>(pe(where), back); }
  void ask_by_constructor(remote<Asker> back, std::uint32_t where) { (void)spawn<Asked>(pe(where), back); }
};
int ask_back(remote<Asker> who) { return who->value(); }
Asked::Asked(remote<Asker> who) { (void)who->value(); }
TEST_P(deadlock, through_a_remote_function_or_a_constructor_is_an_error) {
  in_world([] {
    const auto a = spawn<Asker>(pe(0));
    const auto other = spawn<Asker>(pe(1));
    std::vector<future<int>> more;
    for (int i = 0; i < 10; ++i) more.push_back(start_call<&ask_back>(where(), other));
    const std::string said = what_is_thrown<deadlock_error>([&] { (void)a->ask_by_function(a, GetParam()); });
    EXPECT_NE(said.find("Asker::ask_by_function -> "), std::string::npos) << said;
    EXPECT_NE(said.find("ask_back"), std::string::npos) << said;
    EXPECT_THROW(a->ask_by_constructor(a, GetParam()), deadlock_error);
    EXPECT_EQ(a->ask_by_function(other, GetParam()), 1);
    EXPECT_NO_THROW(a->ask_by_constructor(other, GetParam()));
    for (auto& f : more) EXPECT_EQ(f.get(), 1);
  });
}

TEST_P(deadlock, is_not_seen_where_a_busy_process_will_answer) {
  in_world([] {
    const auto ring = make_ring(3, GetParam() + 1);
    const auto outside = spawn<Node>(pe(1));
    outside->link(ring[0]);
    for (int i = 0; i < 50; ++i) {
      std::vector<future<int>> all;
      all.push_back(start(ring[0])->call_next_slowly());
      all.push_back(start(ring[1])->call_next_slowly());
      all.push_back(start(outside)->call_next_slowly());
      all.push_back(start(outside)->call_next());
      for (auto& f : all) EXPECT_EQ(f.get(), 1);
    }
  });
}

// --- stacks --------------------------------------------------------------------------------------

class Chain {
 public:
  void link(remote<Chain> next) { next_ = next; }
  int depth() { return next_ ? next_->depth() + 1 : 1; }
  int depth_and_back() {
    if (!next_) throw std::runtime_error("the end");
    return next_->depth_and_back() + 1;
  }
  ORRERY_PROCESS_MEMBERS(Chain, link, depth, depth_and_back)

 private:
  remote<Chain> next_;
};

constexpr int chain_length = testing::slowed_down ? 5'000 : 100'000;

TEST(a_chain_of_calls, through_very_many_processes_of_a_pe_goes_on_on_other_stacks) {
  in_world(1, [] {
    std::vector<remote<Chain>> chain;
    for (int i = 0; i < chain_length; ++i) chain.push_back(spawn<Chain>(here()));
    for (int i = 0; i + 1 < chain_length; ++i) chain[i]->link(chain[i + 1]);
    EXPECT_EQ(chain[0]->depth(), chain_length);
    EXPECT_EQ(what_is_thrown<std::runtime_error>([&] { (void)chain[0]->depth_and_back(); }), "the end");
    EXPECT_EQ(start(chain[0])->depth().get(), chain_length);
  });
}

TEST(a_chain_of_calls, to_and_fro_between_two_pes_ends) {
  in_world(2, [] {
    constexpr int length = 1000;
    std::vector<remote<Chain>> chain;
    for (int i = 0; i < length; ++i) chain.push_back(spawn<Chain>(pe(i % 2)));
    for (int i = 0; i + 1 < length; ++i) chain[i]->link(chain[i + 1]);
    EXPECT_EQ(chain[0]->depth(), length);
    EXPECT_THROW((void)chain[0]->depth_and_back(), std::runtime_error);
  });
}

}  // namespace wait_tests
}  // namespace orrery
