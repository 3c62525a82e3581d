// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/wait_watcher.hpp>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::scheduler {
namespace wait_watcher_tests {

struct watcher final : wait_watcher {
  void pes_lost(pe&) noexcept override {}
  void cancel_waits(pe&) noexcept override {}
};

std::vector<const wait_watcher*> all_of(const watcher_list& l) {
  std::vector<const wait_watcher*> all;
  l.for_each([&](const wait_watcher& w) { all.push_back(&w); });
  std::ranges::sort(all);
  return all;
}

std::vector<const wait_watcher*> sorted(std::vector<const wait_watcher*> all) {
  std::ranges::sort(all);
  return all;
}

TEST(watcher_list, forgets_those_that_are_taken_out_in_any_order) {
  watcher_list l;
  watcher w[4];
  for (watcher& one : w) l.add(one);
  l.remove(w[0]);
  EXPECT_EQ(all_of(l), sorted({&w[1], &w[2], &w[3]}));
  l.remove(w[3]);
  EXPECT_EQ(all_of(l), sorted({&w[1], &w[2]}));
  l.add(w[0]);
  l.remove(w[1]);
  l.remove(w[2]);
  EXPECT_EQ(all_of(l), sorted({&w[0]}));
  l.remove(w[0]);
  EXPECT_TRUE(all_of(l).empty());
}

TEST(watcher_list, calls_those_too_that_are_added_meanwhile) {
  watcher_list l;
  watcher first;
  watcher added;
  l.add(first);
  int calls = 0;
  l.for_each([&](const wait_watcher& w) {
    ++calls;
    if (&w == &first) l.add(added);
  });
  EXPECT_EQ(calls, 2);
}

}  // namespace wait_watcher_tests
}  // namespace orrery::scheduler
