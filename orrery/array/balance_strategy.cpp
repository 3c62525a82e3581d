// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/balance_strategy.hpp>

#include <orrery/wire/error.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <random>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <metis.h>

namespace orrery {
namespace {

using pe_load = std::pair<double, std::uint32_t>;
using least_first = std::priority_queue<pe_load, std::vector<pe_load>, std::greater<>>;

std::vector<std::uint32_t> where_they_are(const load_database& d) {
  std::vector<std::uint32_t> pe_of;
  pe_of.reserve(d.elements.size());
  for (const auto& e : d.elements) pe_of.push_back(e.pe);
  return pe_of;
}

std::vector<std::uint32_t> heaviest_first(const load_database& d) {
  std::vector<std::uint32_t> order(d.elements.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(-d.elements[i].load, i); });
  return order;
}

class greedy final : public balance_strategy {
 public:
  std::string_view name() const noexcept override { return "greedy"; }
  std::vector<std::uint32_t> assign(const load_database& d) override {
    std::vector<std::uint32_t> pe_of = where_they_are(d);
    least_first pes;
    for (std::uint32_t p = 0; p < d.pes; ++p) pes.emplace(0.0, p);
    for (const std::uint32_t i : heaviest_first(d)) {
      // nothing is known of it, and all of these would go to one PE
      if (d.elements[i].load <= 0) continue;
      auto [load, p] = pes.top();
      pes.pop();
      pe_of[i] = p;
      pes.emplace(load + d.elements[i].load, p);
    }
    if (summarize(d, pe_of).max_over_average < summarize(d, where_they_are(d)).max_over_average) return pe_of;
    return where_they_are(d);
  }
};

class refine final : public balance_strategy {
 public:
  explicit refine(double tolerance) : tolerance_(tolerance) {
    if (!(tolerance >= 1))
      throw usage_error(
          errc::bad_argument,
          fmt::format("balance_refine: a tolerance of {} times the average; it is at least 1", tolerance));
  }
  std::string_view name() const noexcept override { return "refine"; }
  std::vector<std::uint32_t> assign(const load_database& d) override {
    std::vector<std::uint32_t> pe_of = where_they_are(d);
    std::vector<double> load(d.pes, 0);
    for (const auto& e : d.elements) load[e.pe] += e.load;
    const double limit = tolerance_ * std::accumulate(load.begin(), load.end(), 0.0) / d.pes;
    least_first pes;
    for (std::uint32_t p = 0; p < d.pes; ++p) pes.emplace(load[p], p);
    for (const std::uint32_t i : heaviest_first(d)) {
      const double w = d.elements[i].load;
      const std::uint32_t from = pe_of[i];
      if (load[from] <= limit || w <= 0) continue;
      while (pes.top().first != load[pes.top().second]) pes.pop();  // what was known of it before
      const std::uint32_t to = pes.top().second;
      if (to == from || load[to] + w >= load[from]) continue;  // nothing would be better
      if (load[to] + w > limit) continue;                      // a lighter one may fit
      load[from] -= w;
      load[to] += w;
      pe_of[i] = to;
      pes.emplace(load[to], to);
      pes.emplace(load[from], from);
    }
    return pe_of;
  }

 private:
  double tolerance_;
};

class bisection final : public balance_strategy {
 public:
  std::string_view name() const noexcept override { return "bisection"; }
  std::vector<std::uint32_t> assign(const load_database& d) override {
    if (d.dimensions == 0 && !d.elements.empty())
      throw usage_error(errc::bad_argument,
                        "balance_bisection: the indices of this array have no coordinates; give their class a "
                        "coordinates() that returns a std::array of numbers, or take balance_graph or balance_greedy");
    std::vector<std::uint32_t> pe_of(d.elements.size());
    std::vector<std::uint32_t> all(d.elements.size());
    std::iota(all.begin(), all.end(), 0U);
    halve(d, all, 0, d.pes, pe_of);
    return pe_of;
  }

 private:
  // The elements `all` to the PEs from `first` on, `pes` of them.
  void halve(const load_database& d, std::span<std::uint32_t> all, std::uint32_t first, std::uint32_t pes,
             std::vector<std::uint32_t>& pe_of) {
    if (pes == 1 || all.empty()) {
      for (const std::uint32_t i : all) pe_of[i] = first;
      return;
    }
    const auto at = [&](std::uint32_t i, std::uint32_t k) { return d.coordinates[std::size_t{i} * d.dimensions + k]; };
    std::uint32_t longest = 0;
    double length = -1;
    for (std::uint32_t k = 0; k < d.dimensions; ++k) {
      const auto [low, high] = std::ranges::minmax(all, {}, [&](std::uint32_t i) { return at(i, k); });
      if (at(high, k) - at(low, k) > length) longest = k, length = at(high, k) - at(low, k);
    }
    std::ranges::sort(all, {}, [&](std::uint32_t i) { return std::pair(at(i, longest), i); });
    double total = 0;
    for (const std::uint32_t i : all) total += d.elements[i].load;
    const std::uint32_t left = pes / 2;
    const double share = total * left / pes;
    std::size_t cut = 0;
    for (double sum = 0; cut < all.size(); ++cut) {
      const double next = sum + d.elements[all[cut]].load;
      if (total > 0 ? next - share > share - sum : cut >= all.size() * left / pes) break;
      sum = next;
    }
    halve(d, all.first(cut), first, left, pe_of);
    halve(d, all.subspan(cut), first + left, pes - left, pe_of);
  }
};

class graph final : public balance_strategy {
 public:
  std::string_view name() const noexcept override { return "graph"; }
  std::vector<std::uint32_t> assign(const load_database& d) override {
    const std::size_t n = d.elements.size();
    if (d.pes == 1) return std::vector<std::uint32_t>(n, 0);
    if (n <= d.pes) return greedy().assign(d);  // one for each: METIS does not do that
    const traffic between = traffic_of(d);
    std::vector<idx_t> part = parts_of(d, between);
    level(d, between, part);
    return renamed(d, part);
  }

 private:
  // of each element with each other, in both directions
  using traffic = std::vector<std::map<std::uint32_t, std::uint64_t>>;

  static traffic traffic_of(const load_database& d) {
    traffic between(d.elements.size());
    for (const auto& e : d.edges) {
      if (e.from == e.to) continue;
      between[e.from][e.to] += e.bytes;
      between[e.to][e.from] += e.bytes;
    }
    return between;
  }

  static std::vector<idx_t> parts_of(const load_database& d, const traffic& between) {
    const std::size_t n = d.elements.size();
    std::uint64_t most = 1;
    for (const auto& others : between)
      for (const auto& [other, b] : others) most = std::max(most, b);
    double heaviest = 0;
    for (const auto& e : d.elements) heaviest = std::max(heaviest, e.load);
    // Weights are integers there, whose sums must not overflow.
    const double range = 1e6 / std::max<double>(1, static_cast<double>(n) / 1000);
    const auto scaled = [&](double x, double max) { return static_cast<idx_t>(1 + x / max * range); };
    std::vector<idx_t> begin{0}, to, bytes, load;
    for (std::size_t i = 0; i < n; ++i) {
      for (const auto& [other, b] : between[i]) {
        to.push_back(static_cast<idx_t>(other));
        bytes.push_back(scaled(static_cast<double>(b), static_cast<double>(most)));
      }
      begin.push_back(static_cast<idx_t>(to.size()));
      load.push_back(heaviest > 0 ? scaled(d.elements[i].load, heaviest) : 1);
    }
    idx_t vertices = static_cast<idx_t>(n), constraints = 1, parts = static_cast<idx_t>(d.pes), cut = 0;
    std::vector<idx_t> part(n);
    idx_t options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    // Many ways at once is faster, and leaves parts empty where there are few elements for each.
    const auto partition = n < std::size_t{64} * d.pes ? METIS_PartGraphRecursive : METIS_PartGraphKway;
    const int result = partition(&vertices, &constraints, begin.data(), to.data(), load.data(), nullptr, bytes.data(),
                                 &parts, nullptr, nullptr, options, &cut, part.data());
    if (result != METIS_OK) throw usage_error(errc::bad_argument, "balance_graph: METIS found no partition");
    return part;
  }

  // METIS gives parts up to any load for less traffic where it finds nothing else. Elements go from
  // parts above the average to the lightest, as long as that is better, those first that have the
  // least traffic within their part.
  static void level(const load_database& d, const traffic& between, std::vector<idx_t>& part) {
    constexpr double tolerance = 1.05;
    std::vector<double> load(d.pes, 0);
    std::vector<std::vector<std::uint32_t>> members(d.pes);
    for (std::uint32_t i = 0; i < part.size(); ++i) {
      const auto p = static_cast<std::size_t>(part[i]);
      load[p] += d.elements[i].load;
      members[p].push_back(i);
    }
    const double limit = tolerance * std::accumulate(load.begin(), load.end(), 0.0) / d.pes;
    least_first parts;
    std::vector<pe_load> above;
    for (std::uint32_t p = 0; p < d.pes; ++p) {
      parts.emplace(load[p], p);
      if (load[p] > limit) above.emplace_back(load[p], p);
    }
    std::ranges::sort(above, std::greater<>{});
    for (const auto from : above | std::views::values) {
      std::vector<std::pair<std::uint64_t, std::uint32_t>> order;
      for (const std::uint32_t i : members[from]) {
        std::uint64_t within = 0;
        for (const auto& [other, b] : between[i])
          if (part[other] == part[i]) within += b;
        order.emplace_back(within, i);
      }
      std::ranges::sort(order);
      for (const std::uint32_t i : order | std::views::values) {
        if (load[from] <= limit) break;
        const double w = d.elements[i].load;
        // what was known of it before
        while (parts.top().first != load[parts.top().second]) parts.pop();
        const std::uint32_t to = parts.top().second;
        if (w <= 0 || load[to] + w >= load[from]) continue;
        load[from] -= w;
        load[to] += w;
        part[i] = static_cast<idx_t>(to);
        parts.emplace(load[to], to);
        parts.emplace(load[from], from);
      }
    }
  }

  // Parts have no PE of their own: each gets the one where most of its load lives already, so that
  // less moves.
  static std::vector<std::uint32_t> renamed(const load_database& d, const std::vector<idx_t>& part) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> there;  // part, PE
    for (std::size_t i = 0; i < part.size(); ++i)
      there[{static_cast<std::uint32_t>(part[i]), d.elements[i].pe}] += d.elements[i].load + 1e-12;
    std::vector<std::pair<double, std::pair<std::uint32_t, std::uint32_t>>> best;
    for (const auto& [pair, load] : there) best.emplace_back(load, pair);
    std::ranges::sort(best, std::greater<>{});
    constexpr std::uint32_t none = ~0U;
    std::vector<std::uint32_t> pe_of_part(d.pes, none);
    std::vector<bool> taken(d.pes, false);
    for (const auto& [load, pair] : best) {
      if (pe_of_part[pair.first] != none || taken[pair.second]) continue;
      pe_of_part[pair.first] = pair.second;
      taken[pair.second] = true;
    }
    std::uint32_t free = 0;
    for (auto& p : pe_of_part) {
      if (p != none) continue;
      while (taken[free]) ++free;
      taken[free] = true;
      p = free;
    }
    std::vector<std::uint32_t> pe_of;
    for (const idx_t p : part) pe_of.push_back(pe_of_part[static_cast<std::size_t>(p)]);
    return pe_of;
  }
};

class at_random final : public balance_strategy {
 public:
  explicit at_random(std::uint64_t seed) : random_(seed) {}
  std::string_view name() const noexcept override { return "random"; }
  std::vector<std::uint32_t> assign(const load_database& d) override {
    std::vector<std::uint32_t> pe_of(d.elements.size());
    for (auto& p : pe_of) p = static_cast<std::uint32_t>(random_() % d.pes);
    return pe_of;
  }

 private:
  std::mt19937_64 random_;
};

class rotate final : public balance_strategy {
 public:
  explicit rotate(std::uint32_t by) : by_(by) {}
  std::string_view name() const noexcept override { return "rotate"; }
  std::vector<std::uint32_t> assign(const load_database& d) override {
    std::vector<std::uint32_t> pe_of = where_they_are(d);
    for (auto& p : pe_of) p = static_cast<std::uint32_t>((std::uint64_t{p} + by_) % d.pes);
    return pe_of;
  }

 private:
  std::uint32_t by_;
};

}  // namespace

namespace detail {
void check_assignment(const balance_strategy& strategy, const load_database& loads,
                      std::span<const std::uint32_t> pe_of) {
  if (pe_of.size() != loads.elements.size())
    throw usage_error(errc::bad_argument, fmt::format("balance: the strategy {} has placed {} of {} elements",
                                                      strategy.name(), pe_of.size(), loads.elements.size()));
  for (std::size_t i = 0; i < pe_of.size(); ++i)
    if (pe_of[i] >= loads.pes)
      throw usage_error(
          errc::bad_argument,
          fmt::format("balance: the strategy {} has placed element {} of its list on PE {}, and there are {}",
                      strategy.name(), i, pe_of[i], loads.pes));
}
}  // namespace detail

load_summary summarize(const load_database& d, std::span<const std::uint32_t> pe_of) {
  load_summary s;
  std::vector<double> load(d.pes, 0);
  for (std::size_t i = 0; i < d.elements.size(); ++i) load[pe_of[i]] += d.elements[i].load;
  const double total = std::accumulate(load.begin(), load.end(), 0.0);
  if (total > 0) s.max_over_average = *std::ranges::max_element(load) * d.pes / total;
  for (const auto& e : d.edges)
    if (pe_of[e.from] != pe_of[e.to]) s.bytes_between_pes += e.bytes;
  return s;
}

std::unique_ptr<balance_strategy> balance_greedy() { return std::make_unique<greedy>(); }
std::unique_ptr<balance_strategy> balance_refine(double tolerance) { return std::make_unique<refine>(tolerance); }
std::unique_ptr<balance_strategy> balance_bisection() { return std::make_unique<bisection>(); }
std::unique_ptr<balance_strategy> balance_graph() { return std::make_unique<graph>(); }
std::unique_ptr<balance_strategy> balance_random(std::uint64_t seed) { return std::make_unique<at_random>(seed); }
std::unique_ptr<balance_strategy> balance_rotate(std::uint32_t by) { return std::make_unique<rotate>(by); }

}  // namespace orrery
