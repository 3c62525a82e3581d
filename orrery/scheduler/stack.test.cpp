// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/stack.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <new>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::scheduler {
namespace stack_tests {

constexpr std::size_t page = 4096;

/// True if the byte can be read; asks the kernel, which does not die of it.
class reader {
 public:
  reader() { EXPECT_EQ(pipe(ends_), 0); }
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;
  ~reader() {
    close(ends_[0]);
    close(ends_[1]);
  }
  bool can_read(const std::byte* at) const {
    if (syscall(SYS_write, ends_[1], at, 1) != 1) {
      EXPECT_EQ(errno, EFAULT);
      return false;
    }
    char c = 0;
    return ::read(ends_[0], &c, 1) == 1;
  }

 private:
  int ends_[2] = {-1, -1};
};

std::size_t size_of(const stack& s) { return static_cast<std::size_t>(s.top - s.bottom); }
std::size_t resident_pages(const stack& s) {
  unsigned char in[64] = {};
  const std::size_t pages = (size_of(s) + page - 1) / page;
  EXPECT_LE(pages, sizeof in);
  EXPECT_EQ(mincore(s.bottom, pages * page, in), 0);
  return static_cast<std::size_t>(std::count_if(in, in + pages, [](unsigned char c) { return (c & 1) != 0; }));
}

TEST(stack_pool, gives_stacks_of_at_least_the_size_that_was_asked_for) {
  for (const std::size_t bytes : {std::size_t{1}, page, 3 * page + 1, std::size_t{64} << 10, std::size_t{1} << 20}) {
    stack_pool pool(bytes);
    EXPECT_GE(pool.usable_bytes(), bytes);
    for (int i = 0; i < 40; ++i) {
      const stack s = pool.allocate();
      EXPECT_GE(size_of(s), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.bottom) % page, 0U);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.top) % 64, 0U);
      std::memset(s.bottom, 0x5a, size_of(s));
    }
  }
}

// Stacks of 1 MiB, of which the pool would take 1,024 at a time.
TEST(stack_pool, takes_fewer_at_a_time_where_little_address_space_is_left) {
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit most{pages * page + (40U << 20), RLIM_INFINITY};
    if (pages == 0 || setrlimit(RLIMIT_AS, &most) != 0) _exit(2);
    stack_pool pool(1U << 20);
    try {
      for (int i = 0; i < 32; ++i) *(pool.allocate().top - 1) = std::byte{1};
    } catch (const std::bad_alloc&) {
      _exit(1);
    }
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(stack_pool, gives_stacks_that_do_not_overlap) {
  stack_pool pool(4 * page);
  std::vector<stack> all;
  for (int i = 0; i < 2000; ++i) all.push_back(pool.allocate());  // out of several mappings
  std::ranges::sort(all, {}, &stack::bottom);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i].bottom, all[i - 1].top + 4 * page);
}

TEST(stack_pool, puts_a_guard_below_each_stack) {
  const reader r;
  stack_pool pool(4 * page);
  for (int i = 0; i < 100; ++i) {
    const stack s = pool.allocate();
    EXPECT_TRUE(r.can_read(s.bottom));
    EXPECT_TRUE(r.can_read(s.top - 1));
    for (std::size_t below = 1; below <= 4 * page; below += page - 1) EXPECT_FALSE(r.can_read(s.bottom - below));
  }
}

TEST(stack_pool, keeps_the_guard_of_a_stack_that_is_used_again) {
  const reader r;
  stack_pool pool(4 * page);
  std::vector<stack> all;
  for (int i = 0; i < 600; ++i) all.push_back(pool.allocate());
  for (const stack& s : all) pool.release(s);
  for (int i = 0; i < 600; ++i) {
    const stack s = pool.allocate();
    EXPECT_FALSE(r.can_read(s.bottom - 1));
    EXPECT_TRUE(r.can_read(s.bottom));
  }
}

TEST(stack_pool, colours_its_stacks_within_one_page) {
  stack_pool pool(64 << 10);
  std::set<std::uintptr_t> offsets;
  std::set<std::uintptr_t> sets;  // of a cache with 64 sets of 64 bytes
  for (int i = 0; i < 32; ++i) {
    const stack s = pool.allocate();
    const auto hot = reinterpret_cast<std::uintptr_t>(s.top) - 1;
    offsets.insert(hot % page);
    sets.insert(hot / 64 % 64);
    EXPECT_GE(hot % page, page / 2) << "what a blocked process touches would spread over two pages";
  }
  EXPECT_EQ(offsets.size(), 32U);
  EXPECT_EQ(sets.size(), 32U);
}

TEST(stack_pool, gives_the_stack_that_came_back_last) {
  stack_pool pool(4 * page);
  const stack a = pool.allocate();
  const stack b = pool.allocate();
  pool.release(a);
  pool.release(b);
  EXPECT_EQ(pool.allocate().bottom, b.bottom);
  EXPECT_EQ(pool.allocate().bottom, a.bottom);
}

TEST(stack_pool, touches_no_page_before_the_stack_is_used) {
  stack_pool pool(16 * page);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(resident_pages(pool.allocate()), 0U);
}

TEST(stack_pool, gives_back_the_pages_of_most_stacks_that_lie_idle) {
  stack_pool pool(4 * page);
  std::vector<stack> all;
  for (int i = 0; i < 1500; ++i) {
    all.push_back(pool.allocate());
    std::memset(all.back().bottom, 1, size_of(all.back()));
  }
  for (const stack& s : all) pool.release(s);
  std::size_t idle_with_pages = 0;
  for (const stack& s : all) idle_with_pages += resident_pages(s) != 0 ? 1 : 0;
  EXPECT_LE(idle_with_pages, 256U);
  EXPECT_GE(idle_with_pages, 200U) << "those that are used next should not have to be touched anew";
  std::set<const std::byte*> again;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const stack s = pool.allocate();
    EXPECT_TRUE(i >= 200 || resident_pages(s) != 0);
    again.insert(s.bottom);
  }
  EXPECT_EQ(again.size(), all.size()) << "a stack was given twice";
}

TEST(in_stack_guard, knows_guards_from_stacks_and_from_anything_else) {
  stack_pool pool(4 * page);
  stack_pool other(16 * page);
  int on_the_stack = 0;
  const auto on_the_heap = std::make_unique<int>();
  for (int i = 0; i < 1200; ++i) {
    const stack s = i % 3 == 0 ? other.allocate() : pool.allocate();
    EXPECT_TRUE(in_stack_guard(s.bottom - 1));
    EXPECT_TRUE(in_stack_guard(s.bottom - 4 * page));
    EXPECT_FALSE(in_stack_guard(s.bottom));
    EXPECT_FALSE(in_stack_guard(s.top - 1));
  }
  EXPECT_FALSE(in_stack_guard(&on_the_stack));
  EXPECT_FALSE(in_stack_guard(on_the_heap.get()));
  EXPECT_FALSE(in_stack_guard(nullptr));
}

TEST(in_stack_guard, forgets_pools_that_have_ended_and_finds_those_that_came_after) {
  const std::byte* gone = nullptr;
  {
    stack_pool pool(4 * page);
    gone = pool.allocate().bottom - 1;
    EXPECT_TRUE(in_stack_guard(gone));
  }
  EXPECT_FALSE(in_stack_guard(gone));
  for (int i = 0; i < 5000; ++i) {  // more than the table has places
    stack_pool pool(page);
    ASSERT_TRUE(in_stack_guard(pool.allocate().bottom - 1));
  }
}

}  // namespace stack_tests
}  // namespace orrery::scheduler
