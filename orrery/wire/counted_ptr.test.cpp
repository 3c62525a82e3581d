// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/counted_ptr.hpp>

#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::wire::counted_ptr_tests {

struct base : counted {
  virtual ~base() = default;
};
struct telling final : base {
  explicit telling(int& ended) : ended_(ended) {}
  telling(const telling&) = default;
  ~telling() override { ++ended_; }

 private:
  int& ended_;
};

TEST(counted_ptr, deletes_when_its_last_owner_ends) {
  int ended = 0;
  {
    counted_ptr<const base> a(new telling(ended));
    counted_ptr<const base> b = a;
    EXPECT_EQ(a, b);
    counted_ptr<const base> c = std::move(a);
    EXPECT_EQ(a, nullptr);
    a = b;
    b = nullptr;
    EXPECT_EQ(ended, 0);
    EXPECT_EQ(a, c);
    c = {};
    EXPECT_EQ(ended, 0);
    a = counted_ptr<const base>(new telling(ended));
    EXPECT_EQ(ended, 1);
  }
  EXPECT_EQ(ended, 2);
}

TEST(counted_ptr, a_copy_of_an_object_has_no_owner_yet) {
  int ended = 0;
  {
    const counted_ptr<telling> a(new telling(ended));
    const counted_ptr<telling> b(new telling(*a));
    EXPECT_NE(a, b);
  }
  EXPECT_EQ(ended, 2);
}

// The last owner sees what the others wrote.
TEST(counted_ptr, has_owners_on_several_threads) {
  struct value : counted {
    int parts[4] = {};
    int* sum = nullptr;
    ~value() { *sum = parts[0] + parts[1] + parts[2] + parts[3]; }
  };
  for (int round = 0; round < 100; ++round) {
    int sum = 0;
    {
      std::vector<std::jthread> threads;
      counted_ptr<value> v(new value);
      v->sum = &sum;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([mine = v, t]() mutable {
          for (int i = 0; i < 100; ++i) {
            const counted_ptr<value> another = mine;
            ++another->parts[t];
          }
          mine = {};
        });
      v = {};
    }
    ASSERT_EQ(sum, 400);
  }
}

}  // namespace orrery::wire::counted_ptr_tests
