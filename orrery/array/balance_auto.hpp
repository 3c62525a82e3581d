// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/balance.hpp>
#include <orrery/array/detail/activity.hpp>
#include <orrery/process/function.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

// Balancing that goes by itself: when all elements have come to a point of their work, or every so
// often; and without a central place.
//
//     // elements call at_sync(point), and go on in resume(report)
//     const auto point = balance_at_sync<&Block::resume>(grid, &balance_greedy);
//     const auto every = balance_every(grid, 1s, [] { return balance_refine(); });
//     const auto report = balance_diffusion(grid);

namespace orrery {

namespace detail {

// There is but one report.
struct only_report {
  balance_report operator()(balance_report a, const balance_report&) const { return a; }
};

/// Balances one array again and again. A process on the PE of who has asked for it.
template <class T, class Index, class Make>
class balance_manager {
 public:
  balance_manager(array<T, Index> a, callable<Make> make, reduction_target resume)
      : array_(a), strategy_((*make.f)()), resume_(std::move(resume)) {
    if (strategy_ == nullptr)
      throw usage_error(errc::bad_argument,
                        "balancing: the function that was given to make the strategy has returned null");
  }

  /// All elements are at the point.
  void all_here(std::uint64_t) {
    const late_activity_end round(array_.id());  // it began with the result of the reduction
    typed_accumulator<balance_report, only_report> report;
    try {
      report.value = balance(array_, *strategy_);
    } catch (...) {
      report_failure(std::current_exception());
      report.value.emplace();  // they must go on
      report.value->strategy = strategy_->name();
    }
    deliver_reduction(here_pe(), &report, &resume_, nullptr);
  }
  /// One round of periodic balancing. Only the first of several failures in a row is reported.
  void round() {
    try {
      last_ = balance(array_, *strategy_);
      failure_ = nullptr;
    } catch (...) {
      if (failure_ == nullptr) report_failure(std::current_exception());
      failure_ = std::current_exception();
    }
    ++rounds_;
  }
  std::uint64_t rounds() const { return rounds_; }
  balance_report last() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    return last_;
  }

  ORRERY_PROCESS_MEMBERS(balance_manager, all_here, round, rounds, last)

 private:
  void report_failure(std::exception_ptr why) {
    here_pe().failures().report("balancing by " + std::string(strategy_->name()), std::move(why));
  }

  array<T, Index> array_;
  std::unique_ptr<balance_strategy> strategy_;
  reduction_target resume_;
  balance_report last_;
  std::exception_ptr failure_;  // of the latest round
  std::uint64_t rounds_ = 0;
};

/// A message that nobody sends: the clock of periodic balancing waits for it with a time limit.
struct end_of_balancing {
  template <class A>
  void serialize(A&) {}
};
/// A process function: a round every so often, until it is destroyed.
template <class Manager>
void balance_clock(remote<Manager> manager, std::int64_t every_ns) {
  for (;;) {
    (void)receive_for<end_of_balancing>(std::chrono::nanoseconds(every_ns));
    start(manager)->round().get();  // on the stack of a method
  }
}

/// Diffusion by dimension exchange (Cybenko 1989): PEs whose numbers differ in one bit compare
/// their loads, and the one with more gives elements to the other.
template <class T, class Index>
struct diffuser {
  struct found {
    double most = 0;
    double total = 0;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;  ///< to elements that are not on the sender's PE
    std::uint64_t moved = 0;
    void add(const found& o) {
      most = std::max(most, o.most);
      total += o.total;
      elements += o.elements;
      bytes += o.bytes;
      moved += o.moved;
    }
  };

  static double load_here(std::uint32_t id) {
    double sum = 0;
    for (const cell_base* c : index_part_of<Index>(here_pe(), id).cells()) sum += static_cast<double>(c->load_ns) / 1e9;
    return sum;
  }
  static found look(std::uint32_t id) {
    auto& part = index_part_of<Index>(here_pe(), id);
    found f{load_here(id), load_here(id), part.cells().size(), 0, 0};
    for (const cell_base* b : part.cells())
      for (const auto& [to, sent] : index_part<Index>::traffic_of(static_cast<const index_cell<Index>&>(*b)))
        f.bytes += part.find_local(to) == nullptr ? sent : 0;
    return f;
  }
  // Moves elements of about so much load to another PE; returns how many.
  static std::uint64_t give(std::uint32_t id, std::uint32_t to, double seconds) {
    std::vector<std::pair<double, Index>> all;
    for (const cell_base* b : index_part_of<Index>(here_pe(), id).cells())
      if (b->load_ns != 0)
        all.emplace_back(static_cast<double>(b->load_ns) / 1e9, static_cast<const index_cell<Index>*>(b)->index);
    std::ranges::sort(all, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::pair<Index, std::uint32_t>> chosen;
    for (const auto& [load, i] : all) {
      if (load > seconds) continue;
      seconds -= load;
      chosen.emplace_back(i, to);
    }
    return balancer<T, Index>::move(id, chosen);
  }
  static std::uint64_t exchange(std::uint32_t id, std::uint32_t other) {
    const double here = load_here(id);
    const double there = call<&load_here>(orrery::pe(other), id);
    constexpr double enough = 0.01;  // of what both have: to move less is not worth it
    const double surplus = (here - there) / 2;
    if (std::abs(surplus) <= enough * (here + there)) return 0;
    return surplus > 0 ? give(id, other, surplus) : call<&give>(orrery::pe(other), id, here_pe().id(), -surplus);
  }
  // On this PE and those below it in the tree; each pair of neighbours is the business of the one
  // with the lower number.
  static found run(std::uint32_t id, int what) {
    const auto& about = index_part_of<Index>(here_pe(), id).about();
    const std::uint32_t rank = index_part_of<Index>(here_pe(), id).rank();
    const array_pes pes = about.pes;
    std::vector<future<found>> below;
    for (const std::uint32_t c : about.children_of(here_pe().id()))
      below.push_back(start_call<&run>(orrery::pe(c), id, what));
    found f;
    if (what < 0) {
      f = look(id);
      if (what == forget)
        for (cell_base* c : index_part_of<Index>(here_pe(), id).cells())
          static_cast<index_cell<Index>*>(c)->forget_load();
    } else if (const std::uint32_t other = rank ^ (1U << what); other > rank && other < pes.count()) {
      f.moved = exchange(id, pes.at(other));
    }
    for (auto& b : below) f.add(b.get());
    return f;
  }
  static constexpr int forget = -2;  // and look
};

template <class Make>
consteval void require_strategy_maker() {
  static_assert(
      callable_travels<Make>,
      "orrery: balance_at_sync, balance_every: what makes the strategy must be a function, a lambda without captures, or "
      "an object with serialize()");
  static_assert(
      std::invocable<Make&>,
      "orrery: balance_at_sync, balance_every: what makes the strategy is called without arguments; for a maker that "
      "has some, as balance_rotate, give a lambda: [] { return orrery::balance_rotate(1); }");
}

}  // namespace detail

/// Balances an array whenever all of its elements have called at_sync(point) with the point that
/// this returns: the strategy runs, elements move, and then the method Resume is called of every
/// element, with the report. `make`: a function or captureless lambda that makes the strategy.
/// measure_load begins the measurement. Each at_sync counts as a contribution to a reduction of the
/// array. The point is good as long as the caller's node. Parks. Throws node_lost, std::bad_alloc.
template <auto Resume, class T, class Index, class Make>
[[nodiscard]] result_target balance_at_sync(const array<T, Index>& a, Make make) {
  detail::require_strategy_maker<Make>();
  using manager = detail::balance_manager<T, Index, Make>;
  (void)detail::index_part_of<Index>(detail::here_pe(), a.id());  // else this PE is a guest's
  const auto m = spawn<manager>(here(), a, detail::callable<Make>{make}, result_to<Resume>(a));
  result_target point = result_to<&manager::all_here>(m);
  point.array = a.id();  // which does not rest until its elements have been told to go on
  return point;
}

/// Balancing of one array every so often. A handle: stop() ends it.
template <class T, class Index, class Make>
class periodic_balancing {
 public:
  /// The process that balances.
  using manager = detail::balance_manager<T, Index, Make>;
  periodic_balancing(remote<manager> m, remote<function> clock) : manager_(m), clock_(clock) {}
  /// The report of the latest round; it waits until the one under way is over. Parks. Throws what
  /// that round threw, process_gone if it was stopped.
  [[nodiscard]] balance_report last() const {
    (void)rounds();
    return manager_->last();
  }
  /// Ends it at once, or when the round under way is over; returns how many there were. Parks.
  /// Throws process_gone if it was stopped before.
  std::uint64_t stop() const {
    (void)rounds();
    destroy(clock_);
    const std::uint64_t all = rounds();
    destroy(manager_);
    return all;
  }

 private:
  [[nodiscard]] std::uint64_t rounds() const {
    try {
      return manager_->rounds();
    } catch (const process_gone&) {
      throw process_gone(verbatim, "this periodic balancing was stopped before; balance_every begins another one");
    }
  }
  remote<manager> manager_;
  remote<function> clock_;
};

/// Balances an array every `interval`, while its elements work, until stop() of what it returns; to
/// be called before the array is destroyed, and before waiting for quiescence() of the world.
/// `make` as above. An element leaves when its running method has returned. A round that throws
/// (the strategy, or node_lost) is reported in one line on stderr, and the next is tried after
/// another interval. Parks.
template <class T, class Index, class Make>
[[nodiscard]] periodic_balancing<T, Index, Make> balance_every(const array<T, Index>& a,
                                                               std::chrono::nanoseconds interval, Make make) {
  detail::require_strategy_maker<Make>();
  using manager = detail::balance_manager<T, Index, Make>;
  (void)detail::index_part_of<Index>(detail::here_pe(), a.id());  // else this PE is a guest's
  const auto m = spawn<manager>(here(), a, detail::callable<Make>{make}, result_target{});
  return {m, spawn(here(), &detail::balance_clock<manager>, m, std::int64_t{interval.count()})};
}

/// Balances an array by what was measured since measure_load or the last balancing, without a
/// central place: each PE compares its load with those of PEs whose numbers differ in one bit, one
/// bit after the other, `sweeps` times, and gives elements to those that have less. No PE sees more
/// than its own elements and the sums of its neighbours. Loads that no sum of elements can halve
/// stay as uneven as they are. Not to be called by an element. Parks. Throws node_lost.
template <class T, class Index>
balance_report balance_diffusion(const array<T, Index>& a, int sweeps = 2) {
  using diffuser = detail::diffuser<T, Index>;
  const double begin = detail::seconds_now();
  const std::uint32_t root = detail::index_part_of<Index>(detail::here_pe(), a.id()).about().root;
  const auto everywhere = [&](int what) { return call<&diffuser::run>(pe(root), a.id(), what); };
  const std::uint32_t pes = detail::index_part_of<Index>(detail::here_pe(), a.id()).about().pes.count();
  const auto ratio = [&](const auto& f) { return f.total > 0 ? f.most * pes / f.total : 1; };
  balance_report r;
  r.strategy = "diffusion";
  const auto before = everywhere(-1);
  r.elements = before.elements;
  r.before = {ratio(before), before.bytes};
  for (int s = 0; s < sweeps; ++s)
    for (int bit = 0; bit < static_cast<int>(std::bit_width(pes - 1)); ++bit) r.moved += everywhere(bit).moved;
  const auto after = everywhere(diffuser::forget);
  r.after = {ratio(after), after.bytes};
  r.seconds = detail::seconds_now() - begin;
  return r;
}

}  // namespace orrery
