// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/element.hpp>
#include <orrery/array/finish.hpp>
#include <orrery/array/send.hpp>
#include <orrery/process/function.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <utility>
#include <vector>

// How arrays begin and end.
namespace orrery {

namespace detail {

/// What makes the parts of an array on all PEs, down the spanning tree.
template <class T, class Index>
struct array_maker {
  using part_type = array_part<T, Index>;
  using settings = typename part_type::settings;

  /// `shares`: elements are to be made at once, and each PE waits for its share of them (array_core::begin_share).
  static void make(array_core::shape s, settings o, bool shares) {
    pe& self = here_pe();
    auto part = std::make_unique<part_type>(self, s, o);
    if (shares) part->begin_share();
    array_directory::of(self).add(s.id, std::move(part));  // first: unmake looks below it
    std::vector<future<void>> below;
    finish(below, [&] {
      for (const std::uint32_t c : s.children_of(self.id()))
        below.push_back(start_call<&make>(orrery::pe(c), s, o, shares));
    });
  }
  /// All elements that were to be made at once are there.
  static void end_shares(std::uint32_t id) {
    pe& self = here_pe();
    auto& part = part_of<T, Index>(self, id);
    const array_core::shape s = part.about();
    part.end_share();
    std::vector<future<void>> below;
    finish(below, [&] {
      for (const std::uint32_t c : s.children_of(self.id()))
        below.push_back(start_call<&end_shares>(orrery::pe(c), id));
    });
  }
  // No PE makes elements for others: each one knows when its share is there.
  static bool knows_share(const range<Index>& all, const placement_map<Index>& map, std::uint32_t pes) {
    return pes < many_pes || map.lists(all);
  }
  // In worlds of so many PEs nobody goes through all indices to find those that are its own: each looks at a share of them, and sends them where they
  // belong.
  static constexpr std::uint32_t many_pes = 16;

  static void check_size(const range<Index>& all) {
    constexpr std::uint64_t most = std::uint64_t{1} << 40;  // of slots of all PEs
    if (all.size() > most)
      throw usage_error(
          errc::bad_argument,
          "create_array: the range has more indices than a world has room for; make the array without one, and "
          "insert those that are needed");
  }
  // Each PE creates what belongs to it.
  template <class... A>
  static void fill(std::uint32_t id, range<Index> all, std::optional<placement_map<Index>> where, A... arguments) {
    pe& self = here_pe();
    auto& part = part_of<T, Index>(self, id);
    std::vector<future<void>> below;
    const array_pes& on = part.about().pes;
    const std::uint32_t pes = on.count();
    const std::uint32_t rank = part.rank();
    const placement_map<Index>& map = where ? *where : part.options().home;
    const bool apart = where.has_value();
    finish(below, [&] {
      for (const std::uint32_t c : part.about().children_of(self.id()))
        below.push_back(start_call<&fill<A...>>(orrery::pe(c), id, all, where, arguments...));
      part.reserve(all.size() / pes + 1);
      if (knows_share(all, map, pes)) {
        create(part, apart, below, [&](auto make) { map.for_each_of(all, rank, pes, make); }, arguments...);
        part.end_share();
        return;
      }
      std::map<std::uint32_t, std::vector<Index>> belong;
      const auto first_of = [&](std::uint64_t r) { return static_cast<std::uint64_t>(wide{all.size()} * r / pes); };
      for (std::uint64_t k = first_of(rank); k < first_of(std::uint64_t{rank} + 1); ++k) {
        const Index i = all.at(k);
        belong[on.at(map(i, pes))].push_back(i);
      }
      const std::vector<Index> own = std::move(belong[self.id()]);
      belong.erase(self.id());
      for (auto& [pe, some] : belong)
        below.push_back(start_call<&fill_with<A...>>(orrery::pe(pe), id, apart, std::move(some), arguments...));
      create(part, apart, below, [&](auto make) { std::ranges::for_each(own, make); }, arguments...);
    });
  }
  // What another PE has found to belong here.
  template <class... A>
  static void fill_with(std::uint32_t id, bool apart, std::vector<Index> some, A... arguments) {
    auto& part = part_of<T, Index>(here_pe(), id);
    std::vector<future<void>> telling;
    finish(telling,
           [&] { create(part, apart, telling, [&](auto make) { std::ranges::for_each(some, make); }, arguments...); });
  }
  // Creates elements on this PE; `apart`: their homes may be elsewhere.
  template <class ForEach, class... A>
  static void create(part_type& part, bool apart, std::vector<future<void>>& telling, ForEach for_each,
                     const A&... arguments) {
    const std::uint32_t here = part.self().id();
    std::map<std::uint32_t, std::vector<Index>> homes;
    std::vector<Index> at_home;
    const bool several = part.options().homes > 1;
    for_each([&](const Index& i) {
      const std::uint32_t home = apart ? part.home_of(i) : here;
      if (home != here) {
        homes[home].push_back(i);
      } else if (several) {
        at_home.push_back(i);
      }
      part.construct_inline(part.conceive(i, 0), arguments...);
    });
    for (auto& [home, some] : homes)
      telling.push_back(start_call<&know>(orrery::pe(home), part.id(), here, std::move(some)));
    tell_homes(part.id(), here, at_home, telling);
  }
  static void know(std::uint32_t id, std::uint32_t pe, std::vector<Index> all) {
    part_of<T, Index>(here_pe(), id).know_bulk(all, pe);
    std::vector<future<void>> told;
    finish(told, [&] { tell_homes(id, pe, all, told); });
  }
  static void tell_homes(std::uint32_t id, std::uint32_t pe, const std::vector<Index>& all,
                         std::vector<future<void>>& told) {
    if (all.empty()) return;
    for (const std::uint32_t h : part_of<T, Index>(here_pe(), id).other_homes())
      told.push_back(start_call<&hear>(orrery::pe(h), id, pe, all));
  }
  static void hear(std::uint32_t id, std::uint32_t pe, std::vector<Index> all) {
    part_of<T, Index>(here_pe(), id).hear_bulk(all, pe);
  }
  /// Ends the array here and below, or what there is of it; or waits while that goes on already. Where a PE is lost, those below it are told from here. What fails, fails last: then it has
  /// ended wherever it could; it stays where an element could not be destroyed.
  static void unmake(std::uint32_t id) {
    pe& self = here_pe();
    const auto find = [&] { return static_cast<part_type*>(array_directory::of(self).find(id)); };
    while (find() != nullptr && find()->ends()) find()->wait_for_news_of_ends();
    if (find() == nullptr) return;
    auto& part = *find();
    part.begin_end();
    part.fail_early();
    const array_core::shape s = part.about();
    std::exception_ptr failed;
    scheduler::message* waiting = nullptr;
    std::vector<std::pair<std::uint32_t, future<void>>> below;
    const auto end_below = [&](std::uint32_t pe) {
      std::vector<std::uint32_t> above{pe};
      while (!above.empty()) {
        const std::vector<std::uint32_t> children = s.children_of(above.back());
        above.pop_back();
        for (const std::uint32_t c : children) try {
            below.emplace_back(c, start_call<&unmake>(orrery::pe(c), id));
          } catch (const node_lost&) {
            failed = std::current_exception();
            above.push_back(c);
          }
      }
    };
    const auto end_here = [&] {
      try {
        end_elements(self, part);
      } catch (...) {
        failed = std::current_exception();
      }
    };
    end_below(self.id());
    end_here();
    for (std::size_t k = 0; k < below.size(); ++k) try {
        below[k].second.get();
      } catch (...) {
        failed = std::current_exception();
        if (!self.owner().reachable(below[k].first)) end_below(below[k].first);
      }
    end_here();  // that have come meanwhile, as others were not asked to be still; those that come later find no array
    if (part.cells().empty() && !part.has_endings()) {
      part.fail_reductions();
      part.tell_ends();
      waiting = part.take_waiting();
      array_directory::of(self).remove(id);
    } else {
      part.give_up_end();
    }
    while (waiting != nullptr) dispatch(self, std::exchange(waiting, waiting->next));  // to an array that is gone
    if (failed != nullptr) std::rethrow_exception(failed);
  }
  // Returns when there is none here, at this moment, and no destructor of one that runs.
  static void end_elements(pe& self, part_type& part) {
    // Many at a time: those that have moved are answered from elsewhere.
    std::exception_ptr lost;
    std::vector<future<void>> ending;
    for (part.wait_for_ends(); !part.cells().empty(); part.wait_for_ends()) {
      std::vector<Index> some;
      for (auto c = part.cells().rbegin(); c != part.cells().rend() && some.size() < 256; ++c)
        some.push_back(static_cast<cell<T, Index>&>(**c).index);
      try {
        finish(ending, [&] {
          for (const Index& i : some)
            ending.push_back(
                start_element<end_with_array_message<T, Index>, void>(self, element_name<T, Index>{part.id(), i}));
        });
      } catch (const process_gone&) {  // somebody else has destroyed it
      } catch (const node_lost&) {  // it had gone there; or it has ended, and where it was to be said is lost
        lost = std::current_exception();
      }
    }
    if (lost != nullptr) std::rethrow_exception(lost);
  }
};

}  // namespace detail

}  // namespace orrery
