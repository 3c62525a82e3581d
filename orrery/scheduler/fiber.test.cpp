// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/fiber.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::scheduler {
namespace fiber_tests {

/// Fibers that run functions and go to and fro between these and the test.
class fibers : public ::testing::Test {
 protected:
  fibers() { adopt_thread(root_); }

  struct one {
    fibers* test = nullptr;
    std::function<void(one&)> body;
    fiber* self = nullptr;
    bool ended = false;

    /// Back to the test, until it calls go again.
    void away() { switch_fiber(*self, test->root_); }
  };

  std::unique_ptr<one> make(std::function<void(one&)> body) {
    auto o = std::make_unique<one>();
    o->test = this;
    o->body = std::move(body);
    o->self = make_fiber(pool_.allocate(), entry, o.get());
    return o;
  }
  /// Runs the fiber until it goes away or ends; true if it did not end.
  bool go(one& o) {
    switch_fiber(root_, *o.self);
    if (!o.ended) return true;
    const stack memory = o.self->memory;
    forget_fiber(*o.self);
    pool_.release(memory);
    return false;
  }

  stack_pool pool_{64 << 10};
  fiber root_;

 private:
  static void entry(fiber& self, void* argument) {
    auto& o = *static_cast<one*>(argument);
    EXPECT_EQ(&self, o.self);
    std::exchange(o.body, nullptr)(o);
    o.ended = true;
    leave_fiber(self, o.test->root_);
  }
};

TEST_F(fibers, a_new_one_does_not_run_before_it_is_switched_to) {
  int runs = 0;
  auto f = make([&](one&) { ++runs; });
  EXPECT_EQ(runs, 0);
  EXPECT_FALSE(go(*f));
  EXPECT_EQ(runs, 1);
}

TEST_F(fibers, what_is_on_a_stack_is_there_again_after_a_switch) {
  std::vector<double> seen;
  auto f = make([&](one& o) {
    double x = 0.5;
    for (int i = 0; i < 5; ++i) {
      seen.push_back(x);
      o.away();
      x *= 2;
    }
  });
  double mine = 1;
  while (go(*f)) mine += 0.25;
  EXPECT_EQ(seen, (std::vector<double>{0.5, 1, 2, 4, 8}));
  EXPECT_EQ(mine, 2.25);
}

TEST_F(fibers, a_stack_is_aligned_as_calls_expect_it) {
  auto f = make([](one&) {
    alignas(16) volatile char aligned[16] = {};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 16, 0U);
    EXPECT_EQ(std::to_string(1.5), "1.500000");  // code that relies on it
  });
  go(*f);
}

TEST_F(fibers, its_frames_lie_on_its_own_stack_above_the_limit) {
  auto f = make([](one& o) {
    const auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
    EXPECT_GT(here, o.self->memory.bottom);
    EXPECT_LT(here, reinterpret_cast<const std::byte*>(o.self));
    EXPECT_GT(here, o.self->limit);
    EXPECT_GT(o.self->limit, o.self->memory.bottom);
  });
  go(*f);
}

TEST_F(fibers, many_run_in_any_order) {
  constexpr std::uint32_t count = 500;
  constexpr std::uint32_t rounds = 20;
  std::vector<std::unique_ptr<one>> all;
  std::vector<std::uint32_t> sums(count);
  for (std::uint32_t i = 0; i < count; ++i)
    all.push_back(make([&sums, i](one& o) {
      std::uint32_t sum = i;
      for (std::uint32_t k = 0; k < rounds; ++k) {
        sum += k;
        o.away();
      }
      sums[i] = sum;
    }));
  for (std::uint32_t k = 0; k <= rounds; ++k)
    for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(go(*all[i * 7 % count]), k < rounds);
  for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(sums[i], i + rounds * (rounds - 1) / 2);
}

TEST_F(fibers, one_may_switch_to_another) {
  std::string order;
  auto last = make([&](one&) { order += "c"; });
  auto first = make([&](one& o) {
    order += "a";
    switch_fiber(*o.self, *last->self);
    order += "never";
  });
  order += "(";
  go(*first);  // comes back from the other one
  EXPECT_EQ(order += ")", "(ac)");
  EXPECT_TRUE(last->ended);
  forget_fiber(*first->self);
  forget_fiber(*last->self);
}

[[noreturn]] void throw_from_below(int depth) {
  std::string frame(100, 'x');  // to be destroyed by the unwinding
  if (depth > 0) throw_from_below(depth - 1);
  throw std::runtime_error(frame.substr(0, 3));
}

TEST_F(fibers, exceptions_unwind_its_stack) {
  std::string caught;
  auto f = make([&](one&) {
    try {
      throw_from_below(50);
    } catch (const std::exception& e) {
      caught = e.what();
    }
  });
  EXPECT_FALSE(go(*f));
  EXPECT_EQ(caught, "xxx");
}

TEST_F(fibers, one_that_leaves_a_catch_block_finds_its_exception_again) {
  std::vector<std::unique_ptr<one>> all;
  std::vector<std::string> caught(5);
  for (std::size_t i = 0; i < caught.size(); ++i)
    all.push_back(make([&caught, i](one& o) {
      try {
        try {
          throw std::runtime_error(std::to_string(i));
        } catch (const std::exception&) {
          o.away();
          throw;
        }
      } catch (const std::exception& e) {
        caught[i] = e.what();
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    }));
  for (auto& f : all) EXPECT_TRUE(go(*f));
  EXPECT_EQ(std::current_exception(), nullptr);
  try {
    throw std::out_of_range("mine");
  } catch (const std::out_of_range&) {
    for (auto& f : all) EXPECT_FALSE(go(*f));
    try {
      throw;
    } catch (const std::exception& e) {
      EXPECT_STREQ(e.what(), "mine");
    }
  }
  EXPECT_EQ(caught, (std::vector<std::string>{"0", "1", "2", "3", "4"}));
}

TEST_F(fibers, one_that_leaves_in_the_middle_of_unwinding_counts_its_own_exceptions) {
  struct leaver {
    one& o;
    int& uncaught;
    ~leaver() {
      o.away();
      uncaught = std::uncaught_exceptions();
    }
  };
  int uncaught = -1;
  auto f = make([&](one& o) {
    try {
      const leaver l{o, uncaught};
      throw 1;
    } catch (int) {
    }
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  });
  EXPECT_TRUE(go(*f));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_FALSE(go(*f));
  EXPECT_EQ(uncaught, 1);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_F(fibers, stacks_of_those_that_have_ended_serve_others) {
  const std::byte* first = nullptr;
  for (int i = 0; i < 1000; ++i) {
    auto f = make([&](one& o) {
      volatile char frame[4096];  // leaves redzones behind where a sanitizer looks
      for (auto& c : frame) c = 'x';
      if (first == nullptr) first = o.self->memory.bottom;
      EXPECT_EQ(o.self->memory.bottom, first);
      o.away();
    });
    EXPECT_TRUE(go(*f));
    EXPECT_FALSE(go(*f));
  }
}

}  // namespace fiber_tests
}  // namespace orrery::scheduler
