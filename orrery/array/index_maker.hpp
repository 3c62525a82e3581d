// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/part_order.hpp>
#include <orrery/process/finish.hpp>
#include <orrery/process/function.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

// How arrays begin and end, as far as the class of their elements does not matter.
namespace orrery::detail {

template <class Index>
struct index_maker {
  using part_type = index_part<Index>;

  /// All elements that were to be made at once are there.
  static void end_shares(std::uint32_t id) {
    pe& self = here_pe();
    auto& part = index_part_of<Index>(self, id);
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
  using settings = typename part_type::settings;
  using new_part = std::unique_ptr<part_type> (*)(pe&, array_core::shape, settings);
  /// Lets another PE do the same, or a part of it: what it is told, as bytes.
  using start_there = std::function<future<void>(std::uint32_t pe, bytes)>;
  /// Creates an element here.
  using make_element = std::function<void(part_type&, const Index&)>;

  /// What make() is told. `shares`: elements are to be made at once, and each PE waits for its share of them (array_core::begin_share).
  [[nodiscard]] static bytes how_to_make(const array_core::shape& s, const settings& o, bool shares) {
    return pack(0, s, o, shares);
  }
  static void make(const bytes& how, new_part part, const start_there& start);
  /// What fill() is told.
  [[nodiscard]] static bytes how_to_fill(std::uint32_t id, const range<Index>& all,
                                         const std::optional<placement_map<Index>>& where) {
    return pack(0, id, all, where);
  }
  static void fill(const bytes& how, const make_element& make, const start_there& same, const start_there& some);
  static void fill_with(const bytes& some, const make_element& make);
  static void know(std::uint32_t id, std::uint32_t pe, std::vector<Index> all) {
    index_part_of<Index>(here_pe(), id).know_bulk(all, pe);
    std::vector<future<void>> told;
    finish(told, [&] { tell_homes(id, pe, all, told); });
  }
  static void tell_homes(std::uint32_t id, std::uint32_t pe, const std::vector<Index>& all,
                         std::vector<future<void>>& told) {
    if (all.empty()) return;
    for (const std::uint32_t h : index_part_of<Index>(here_pe(), id).other_homes())
      told.push_back(start_call<&hear>(orrery::pe(h), id, pe, all));
  }
  static void hear(std::uint32_t id, std::uint32_t pe, std::vector<Index> all) {
    index_part_of<Index>(here_pe(), id).hear_bulk(all, pe);
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
        end_elements(part);
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
  static void end_elements(part_type& part) {
    // Many at a time: those that have moved are answered from elsewhere.
    std::exception_ptr lost;
    std::vector<future<void>> ending;
    for (part.wait_for_ends(); !part.cells().empty(); part.wait_for_ends()) {
      std::vector<Index> some;
      for (auto c = part.cells().rbegin(); c != part.cells().rend() && some.size() < 256; ++c)
        some.push_back(static_cast<index_cell<Index>&>(**c).index);
      try {
        finish(ending, [&] {
          for (const Index& i : some) ending.push_back(part.start_end(i));
        });
      } catch (const process_gone&) {  // somebody else has destroyed it
      } catch (const node_lost&) {  // it had gone there; or it has ended, and where it was to be said is lost
        lost = std::current_exception();
      }
    }
    if (lost != nullptr) std::rethrow_exception(lost);
  }

 private:
  template <class ForEach>
  static void create(part_type& part, bool apart, std::vector<future<void>>& telling, ForEach for_each,
                     const make_element& make);
};

template <class Index>
void index_maker<Index>::make(const bytes& how, new_part part, const start_there& start) {
  pe& self = here_pe();
  orrery::reader r(how);
  const auto s = orrery::read<array_core::shape>(r);
  auto o = orrery::read<settings>(r);
  const bool shares = orrery::read<bool>(r);
  auto made = part(self, s, std::move(o));
  if (shares) made->begin_share();
  array_directory::of(self).add(s.id, std::move(made));  // first: unmake looks below it
  std::vector<future<void>> below;
  finish(below, [&] {
    for (const std::uint32_t c : s.children_of(self.id())) below.push_back(start(c, how));
  });
}

template <class Index>
void index_maker<Index>::fill(const bytes& how, const make_element& make, const start_there& same,
                              const start_there& some) {
  orrery::reader r(how);
  const auto id = orrery::read<std::uint32_t>(r);
  const auto all = orrery::read<range<Index>>(r);
  const auto where = orrery::read<std::optional<placement_map<Index>>>(r);
  auto& part = index_part_of<Index>(here_pe(), id);
  std::vector<future<void>> below;
  finish(below, [&] {
    const std::uint32_t here = part.self().id();
    for (const std::uint32_t c : part.about().children_of(here)) below.push_back(same(c, how));
    const bool apart = where.has_value();
    const placement_map<Index>& map = apart ? *where : part.options().home;
    const array_pes& on = part.about().pes;
    const std::uint32_t pes = on.count();
    const std::uint32_t rank = part.rank();
    part.reserve(all.size() / pes + 1);
    if (knows_share(all, map, pes)) {
      create(part, apart, below, [&](const auto& each) { map.for_each_of(all, rank, pes, each); }, make);
      part.end_share();
      return;
    }
    std::map<std::uint32_t, std::vector<Index>> belong;
    const auto first_of = [&](std::uint64_t k) { return static_cast<std::uint64_t>(wide{all.size()} * k / pes); };
    for (std::uint64_t k = first_of(rank); k < first_of(std::uint64_t{rank} + 1); ++k) {
      const Index i = all.at(k);
      belong[on.at(map(i, pes))].push_back(i);
    }
    const std::vector<Index> own = std::move(belong[here]);
    belong.erase(here);
    for (auto& [pe, theirs] : belong) below.push_back(some(pe, pack(0, id, apart, theirs)));
    create(part, apart, below, [&](const auto& each) { std::ranges::for_each(own, each); }, make);
  });
}

template <class Index>
void index_maker<Index>::fill_with(const bytes& some, const make_element& make) {
  orrery::reader r(some);
  const auto id = orrery::read<std::uint32_t>(r);
  const bool apart = orrery::read<bool>(r);
  const auto own = orrery::read<std::vector<Index>>(r);
  std::vector<future<void>> telling;
  finish(telling, [&] {
    create(
        index_part_of<Index>(here_pe(), id), apart, telling,
        [&](const auto& each) { std::ranges::for_each(own, each); }, make);
  });
}

// Creates elements on this PE, and tells their homes; `apart`: these may be elsewhere.
template <class Index>
template <class ForEach>
void index_maker<Index>::create(part_type& part, bool apart, std::vector<future<void>>& telling, ForEach for_each,
                                const make_element& make) {
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
    make(part, i);
  });
  for (auto& [home, some] : homes)
    telling.push_back(start_call<&know>(orrery::pe(home), part.id(), here, std::move(some)));
  tell_homes(part.id(), here, at_home, telling);
}

}  // namespace orrery::detail
