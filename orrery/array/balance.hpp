// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array.hpp>
#include <orrery/array/balance_strategy.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// Load balancing (Lawlor and Kale 2001, section 8): measured time and traffic of elements, a
// strategy that chooses new places, and migration.
//
//     measure_load(grid, true);
//     for (int i = 0; i < 100; ++i) iterate(grid);              // some of the real work
//     // between two iterations, or while they run
//     const auto report = balance(grid, *balance_greedy());
//     std::puts(report.text().c_str());

namespace orrery {

/// The findings and actions of a balancing step.
struct balance_report {
  std::string strategy;
  std::size_t elements = 0;
  std::size_t moved = 0;
  load_summary before;  ///< as measured
  load_summary after;  ///< what the same work would have been on the new places
  double seconds = 0;  ///< that balancing took
  /// The report as one line for people.
  [[nodiscard]] std::string text() const;
};

namespace detail {

/// The measurements of one PE.
template <class Index>
struct measured_loads {
  std::vector<Index> indices;
  std::vector<double> seconds;
  std::vector<std::tuple<std::uint32_t, Index, std::uint64_t>>
      sent;  // from the element with that number here, to, bytes
  template <class A>
  void serialize(A& a) {
    a & indices & seconds & sent;
  }
};

/// Answers where the element is.
template <class T, class Index>
struct presence_operation {
  using object = void;
  using result = void;
  static constexpr bool may_miss = true;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(presence)"; }
  static void run(pe&, slot&, void*) noexcept {}
};

/// Where an element lies, by its index; nowhere if that has no coordinates.
template <class Index>
[[nodiscard]] auto coordinates_of(const Index& i) {
  if constexpr (is_coordinates<Index>) {
    return i;
  } else if constexpr (std::is_integral_v<Index>) {
    return std::array{i};
  } else if constexpr (requires { i.coordinates(); }) {
    return i.coordinates();
  } else {
    return std::array<double, 0>{};
  }
}

template <class T, class Index>
struct balancer {
  static void measure(std::uint32_t id, bool on) {
    auto& part = index_part_of<Index>(here_pe(), id);
    part.measure(on);
    for (cell_base* c : part.cells()) static_cast<index_cell<Index>*>(c)->forget_load();
  }
  static measured_loads<Index> collect(std::uint32_t id) {
    measured_loads<Index> m;
    for (cell_base* b : index_part_of<Index>(here_pe(), id).cells()) {
      auto& c = static_cast<index_cell<Index>&>(*b);
      for (const auto& [to, sent] : index_part<Index>::traffic_of(c))
        m.sent.emplace_back(static_cast<std::uint32_t>(m.indices.size()), to, sent);
      m.indices.push_back(c.index);
      m.seconds.push_back(static_cast<double>(c.load_ns) / 1e9);
      c.forget_load();
    }
    return m;
  }
  // Returns when they have arrived. Those that have moved or ended meanwhile are left alone.
  static std::size_t move(std::uint32_t id, const std::vector<std::pair<Index, std::uint32_t>>& all) {
    struct step {
      const Index* of;
      future<void> done;
    };
    std::vector<step> steps;
    for (const auto& [i, to] : all)
      if (index_part_of<Index>(here_pe(), id).find_local(i) != nullptr)
        steps.push_back({&i, start_migrate(element_ptr<T, Index>({id, i}), to)});
    std::size_t moved = 0;
    for (step& s : steps) moved += ended(id, *s.of, s.done) ? 1 : 0;
    using message = element_message<T, Index, presence_operation<T, Index>>;
    steps.clear();
    for (const auto& [i, to] : all)  // this goes after them
      steps.push_back({&i, start_element<message, void>(here_pe(), element_name<T, Index>{id, i})});
    for (step& s : steps) (void)ended(id, *s.of, s.done);
    return moved;
  }
  static bool ended(std::uint32_t id, const Index& of, future<void>& step) {
    try {
      step.get();
      return true;
    } catch (const process_gone&) {  // it was destroyed meanwhile
    } catch (const node_lost&) {
      throw;
    } catch (const usage_error& e) {
      if (e.code() != errc::method_parked) report(id, of);
    } catch (...) {  // it has no serialize(), or that throws
      report(id, of);
    }
    return false;
  }
  static void report(std::uint32_t id, const Index& of) {
    here_pe().failures().report("balancing: " + index_part_of<Index>(here_pe(), id).text_of(of) + " stays where it is",
                                std::current_exception());
  }
  // All PEs' measurements as one, with the numbers of the elements of each PE from first[pe] on.
  // PEs by rank.
  static load_database join(const std::vector<measured_loads<Index>>& all) {
    load_database d;
    d.pes = static_cast<std::uint32_t>(all.size());
    boost::unordered_flat_map<Index, std::uint32_t, index_hash<Index>, index_equal<Index>> number_of;
    d.dimensions = static_cast<std::uint32_t>(std::tuple_size_v<decltype(coordinates_of(std::declval<Index>()))>);
    for (std::uint32_t p = 0; p < d.pes; ++p)
      for (std::size_t k = 0; k < all[p].indices.size(); ++k) {
        const Index& i = all[p].indices[k];
        number_of.emplace(i, static_cast<std::uint32_t>(d.elements.size()));
        d.elements.push_back({all[p].seconds[k], p});
        for (const auto x : coordinates_of(i)) d.coordinates.push_back(static_cast<double>(x));
      }
    for (const auto& m : all)
      for (const auto& [from, to, sent] : m.sent) {
        const auto it = number_of.find(to);
        if (it != number_of.end()) d.edges.push_back({number_of.at(m.indices[from]), it->second, sent});
      }
    return d;
  }
};

[[nodiscard]] double seconds_now() noexcept;

}  // namespace detail

/// Begins or ends the measuring of an array's elements, from zero: time in their methods, and bytes
/// that they send to each other. Methods that park are not counted: what they wait for is no load.
/// Costs two readings of the clock for each message. Parks. Throws node_lost.
template <class T, class Index>
void measure_load(const array<T, Index>& a, bool on) {
  std::vector<future<void>> all;
  const detail::array_pes pes = detail::index_part_of<Index>(detail::here_pe(), a.id()).about().pes;
  for (std::uint32_t r = 0; r < pes.count(); ++r)
    all.push_back(start_call<&detail::balancer<T, Index>::measure>(pe(pes.at(r)), a.id(), on));
  for (auto& f : all) f.get();
}

/// Balances an array by what was measured since measure_load or the last balancing, which is
/// forgotten: collects it on the caller's PE, lets the strategy choose, and moves the elements;
/// returns when they have arrived. May be called while the elements work (an element leaves when
/// its running method has returned), or between two phases: as the target of a reduction in which
/// all say that they have come so far. Not to be called by an element. Elements that cannot be
/// moved (a method of them parks, their serialize() throws) stay where they are, which is reported.
/// Parks. Throws node_lost, and what the strategy throws.
template <class T, class Index>
balance_report balance(const array<T, Index>& a, balance_strategy& strategy) {
  using balancer = detail::balancer<T, Index>;
  balance_report r;
  r.strategy = strategy.name();
  const double begin = detail::seconds_now();
  std::vector<future<detail::measured_loads<Index>>> collecting;
  const detail::array_pes pes = detail::index_part_of<Index>(detail::here_pe(), a.id()).about().pes;
  for (std::uint32_t rank = 0; rank < pes.count(); ++rank)
    collecting.push_back(start_call<&balancer::collect>(pe(pes.at(rank)), a.id()));
  std::vector<detail::measured_loads<Index>> all;
  for (auto& f : collecting) all.push_back(f.get());

  const load_database loads = balancer::join(all);
  const std::vector<std::uint32_t> pe_of = strategy.assign(loads);
  detail::check_assignment(strategy, loads, pe_of);
  std::vector<std::uint32_t> now;
  for (const auto& e : loads.elements) now.push_back(e.pe);
  r.elements = pe_of.size();
  r.before = summarize(loads, now);
  r.after = summarize(loads, pe_of);

  std::vector<future<std::size_t>> moving;
  std::size_t i = 0;
  for (std::uint32_t p = 0; p < all.size(); ++p) {
    std::vector<std::pair<Index, std::uint32_t>> from_here;
    for (const Index& index : all[p].indices) {
      if (pe_of[i] != p) from_here.emplace_back(index, pes.at(pe_of[i]));
      ++i;
    }
    if (!from_here.empty()) moving.push_back(start_call<&balancer::move>(pe(pes.at(p)), a.id(), std::move(from_here)));
  }
  for (auto& f : moving) r.moved += f.get();
  r.seconds = detail::seconds_now() - begin;
  return r;
}

}  // namespace orrery
