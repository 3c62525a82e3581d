// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/balance_plan.hpp>
#include <orrery/service/detail/load_meter.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace orrery::service {
namespace {

constexpr std::uint64_t least_to_split = 64;  // items
constexpr std::uint32_t sure_votes = load_meter::sure * 3 / 4;
constexpr int moves_at_once = 4;
constexpr double uneven = 1.2;  // times its share: less is noise
constexpr double ns_of_request = 50;  // beside what was measured: its message

class planner {
 public:
  planner(std::span<const range_load> ranges, std::span<const std::uint32_t> pes, std::uint64_t limit)
      : ranges_(ranges), limit_(limit), loads_(ranges.size()), taken_(ranges.size()) {
    for (std::size_t i = 0; i < ranges.size(); ++i)
      loads_[i] = static_cast<double>(ranges[i].busy_ns) + ns_of_request * static_cast<double>(ranges[i].requests);
    total_ = std::accumulate(loads_.begin(), loads_.end(), 0.0);
    for (const std::uint32_t p : pes) of_pe_[p] += 0.0;
    for (std::size_t i = 0; i < ranges.size(); ++i)
      if (const auto at = of_pe_.find(ranges[i].at.pe); at != of_pe_.end()) at->second += loads_[i];
    share_ = of_pe_.empty() ? 0.0 : total_ / static_cast<double>(of_pe_.size());
  }

  std::vector<balance_order> plan() {
    if (total_ == 0) return {};
    if (of_pe_.size() > 1) {
      move_to_clients();
      split_hot();
      even_out();
    }
    merge_small();
    return std::move(orders_);
  }

 private:
  void order(balance_order::kind what, std::size_t range, std::uint32_t pe = 0) {
    orders_.push_back({what, range, pe});
    taken_[range] = true;
  }
  void move(std::size_t i, std::uint32_t to) {
    order(balance_order::kind::move, i, to);
    if (const auto at = of_pe_.find(ranges_[i].at.pe); at != of_pe_.end()) at->second -= loads_[i];
    of_pe_[to] += loads_[i];
  }
  void move_to_clients() {
    std::vector<std::size_t> wish;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const range_load& r = ranges_[i];
      if (r.client_votes >= sure_votes && r.client_pe != r.at.pe && of_pe_.contains(r.client_pe)) wish.push_back(i);
    }
    std::ranges::sort(wish, [&](std::size_t a, std::size_t b) { return loads_[a] > loads_[b]; });
    std::map<std::uint32_t, double> if_all_go = of_pe_;
    for (const std::size_t i : wish) if_all_go[ranges_[i].at.pe] -= loads_[i];
    for (const std::size_t i : wish) {
      double& there = if_all_go[ranges_[i].client_pe];
      if (there + loads_[i] > 1.5 * share_ && loads_[i] <= share_) continue;
      there += loads_[i];
      move(i, ranges_[i].client_pe);
    }
  }
  void split_hot() {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const bool at_its_client = ranges_[i].client_votes >= sure_votes && ranges_[i].client_pe == ranges_[i].at.pe;
      if (!taken_[i] && !at_its_client && loads_[i] > uneven * share_ && ranges_[i].items >= least_to_split)
        order(balance_order::kind::split, i);
    }
  }
  void even_out() {
    for (int n = 0; n < moves_at_once; ++n) {
      const auto by_load = [](const auto& a, const auto& b) { return a.second < b.second; };
      const auto [least, most] = std::ranges::minmax_element(of_pe_, by_load);
      if (most->second < uneven * share_) return;
      const double room = (most->second - least->second) / 2;
      std::size_t best = ranges_.size();
      for (std::size_t i = 0; i < ranges_.size(); ++i)
        if (!taken_[i] && ranges_[i].at.pe == most->first && ranges_[i].client_votes < sure_votes &&
            loads_[i] < 1.8 * room && loads_[i] > 0.05 * share_ &&
            (best == ranges_.size() || std::abs(loads_[i] - room) < std::abs(loads_[best] - room)))
          best = i;
      if (best == ranges_.size()) return;
      move(best, least->first);
    }
  }
  void merge_small() {
    const double little = share_ / 4;
    for (std::size_t i = 0; i + 1 < ranges_.size(); ++i) {
      if (taken_[i] || taken_[i + 1] || ranges_[i].items + ranges_[i + 1].items > limit_ / 2) continue;
      if (loads_[i] + loads_[i + 1] > little) continue;
      order(balance_order::kind::merge, i);
      taken_[++i] = true;
    }
  }

  std::span<const range_load> ranges_;
  std::uint64_t limit_;
  std::vector<double> loads_;
  std::vector<bool> taken_;
  std::map<std::uint32_t, double> of_pe_;
  double total_ = 0;
  double share_ = 0;
  std::vector<balance_order> orders_;
};

}  // namespace

std::vector<balance_order> plan_balance(std::span<const range_load> ranges, std::span<const std::uint32_t> pes,
                                        std::uint64_t limit) {
  return planner(ranges, pes, limit).plan();
}

}  // namespace orrery::service
