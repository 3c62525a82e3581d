// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/walk_rules.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace walk_rules_tests {

using orrery::consistency;
using orrery::service::list_operation;
using orrery::service::make_walk_rule;
using orrery::service::waiting_request;

/// Writes down what a rule sends: "2,3@4" are requests 2 and 3 by the shortcut with the least key
/// 4, "@head" is without one, "~" allows jumps.
struct written final : orrery::service::walk_sender<int> {
  std::vector<int> shortcuts;
  std::string all;

  void send_to_head(std::span<const request> run) override { write(run, {}, false); }
  void send(std::span<const request> run, const std::optional<int>& bound, bool jumps) override {
    write(run, way_of(run, bound), jumps);
  }
  std::optional<int> way_of(std::span<const request> run, const std::optional<int>& bound) const override {
    const int k = std::min(run.front().key, bound.value_or(run.front().key));
    const auto at = std::ranges::upper_bound(shortcuts, k);
    return at == shortcuts.begin() ? std::nullopt : std::optional(*std::prev(at));
  }
  std::string take() { return std::exchange(all, {}); }

 private:
  void write(std::span<const request> run, const std::optional<int>& way, bool jumps) {
    if (!all.empty()) all += ' ';
    for (const request& r : run) all += fmt::format("{}{}", &r == run.data() ? "" : ",", r.number);
    all += way ? fmt::format("@{}", *way) : "@head";
    if (jumps) all += '~';
  }
};

std::vector<waiting_request<int>> requests(std::uint64_t first, const std::vector<int>& keys) {
  std::vector<waiting_request<int>> all;
  for (const int k : keys) all.push_back({first++, k < 0 ? list_operation::size : list_operation::find, k, {}});
  return all;
}

TEST(walk_rules, total_sends_all_to_the_head_together) {
  written to;
  to.shortcuts = {4, 9};
  const auto rule = make_walk_rule<int>(consistency::total, to);
  rule->add(requests(0, {5, 3, 10}));
  EXPECT_EQ(to.take(), "0,1,2@head");
}
TEST(walk_rules, unordered_sends_each_by_its_best_way) {
  written to;
  to.shortcuts = {4, 9};
  const auto rule = make_walk_rule<int>(consistency::unordered, to);
  rule->add(requests(0, {5, 3, 10, 5}));
  EXPECT_EQ(to.take(), "0@4~ 1@head~ 2@9~ 3@4~");
}
TEST(walk_rules, per_key_lets_a_request_wait_for_the_one_before_it) {
  written to;
  to.shortcuts = {4, 9};
  const auto rule = make_walk_rule<int>(consistency::per_key, to);
  rule->add(requests(0, {5, 10, 5, 5}));
  EXPECT_EQ(to.take(), "0@4~ 1@9~");
  rule->ended(0);
  EXPECT_EQ(to.take(), "2@4~");
  rule->add(requests(4, {5}));
  rule->ended(2);
  rule->ended(3);
  EXPECT_EQ(to.take(), "3@4~ 4@4~");
}
TEST(walk_rules, sequential_sends_ascending_runs_one_after_the_other) {
  written to;
  to.shortcuts = {4, 9};
  const auto rule = make_walk_rule<int>(consistency::sequential, to);
  rule->add(requests(0, {5, 5, 10, 9, 20, -1, 1}));
  EXPECT_EQ(to.take(), "0,1,2@4");
  rule->ended(1);
  rule->ended(0);
  EXPECT_EQ(to.take(), "");
  rule->ended(2);
  EXPECT_EQ(to.take(), "3,4@9");
  rule->ended(3);
  rule->ended(4);
  EXPECT_EQ(to.take(), "5@head") << "what looks at all keys goes alone";
  rule->ended(5);
  EXPECT_EQ(to.take(), "6@head");
}
TEST(walk_rules, of_the_paper_uses_no_shortcut_behind_one_in_use) {
  written to;
  to.shortcuts = {4, 9};
  const auto rule = make_walk_rule<int>(consistency::sequential_of_the_paper, to);
  rule->add(requests(0, {10, 5, 10}));
  EXPECT_EQ(to.take(), "0@9 1@4 2@4") << "its second request can overtake its first";
  rule->ended(1);
  rule->ended(2);
  rule->add(requests(3, {10}));
  EXPECT_EQ(to.take(), "3@9");
  rule->went_to_head(3);
  rule->add(requests(4, {10}));
  EXPECT_EQ(to.take(), "4@head");
  rule->ended(3);
  rule->ended(4);
  rule->add(requests(5, {10}));
  EXPECT_EQ(to.take(), "5@9");
}

}  // namespace walk_rules_tests
