// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_maker.hpp>
#include <orrery/process/runtime.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <utility>
#include <vector>

// How arrays begin: their parts on all PEs, down the spanning tree, and their elements.
namespace orrery::detail {

// In worlds of so many PEs nobody goes through all indices to find those that are its own: each
// looks at a share of them, and sends them where they belong.
inline constexpr std::uint32_t many_pes = 16;

template <class Index>
bool index_maker<Index>::knows_share(const range<Index>& all, const placement_map<Index>& map, std::uint32_t pes) {
  return pes < many_pes || map.lists(all);
}

template <class Index>
void index_maker<Index>::check_size(const range<Index>& all) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;  // of slots of all PEs
  if (all.size() > most)
    throw usage_error(
        errc::bad_argument,
        "create_array: the range has more indices than a world has room for; make the array without one, and "
        "insert those that are needed");
}

template <class Index>
void index_maker<Index>::take_step(step what, const bytes& how, const bytes& arguments) {
  const auto& m = static_cast<const maker&>(*here_pe().active()->method);
  if (what == step::make) {
    make(m, how);
  } else if constexpr (has_range<Index>) {
    if (what == step::fill) {
      create_initial(m, how, arguments);
    } else {
      create_each(how, *m.with(arguments));
    }
  }
}

template <class Index>
future<void> index_maker<Index>::start(const maker& m, std::uint32_t pe, step what, const bytes& how,
                                       const bytes& arguments) {
  return start_message_as<messages, void>(m, here_pe(), pe_address(pe), std::move(what), how, arguments);
}

template <class Index>
std::uint32_t index_maker<Index>::make_array(const maker& m, const settings& o, std::uint32_t branching,
                                             const std::string& name, bool shares) {
  pe& self = here_pe();
  const array_core::description s{array_directory::of(self).new_id(), self.id(), array_pes(program_pes()), branching,
                                  name};
  try {
    make(m, pack(0, s, o, shares));
  } catch (...) {
    const std::exception_ptr failed = std::current_exception();
    try {
      unmake(s.id);
    } catch (const error&) {  // what has failed before says more
    }
    std::rethrow_exception(failed);
  }
  return s.id;
}

template <class Index>
std::uint32_t index_maker<Index>::make_array_of(const maker& m, const settings& o, std::uint32_t branching,
                                                const std::string& name, const range<Index>& all,
                                                const std::optional<placement_map<Index>>& where,
                                                const bytes& arguments) {
  check_size(all);
  const std::uint32_t id = make_array(m, o, branching, name, true);
  try {
    const bool each_knows =
        knows_share(all, where ? *where : o.home, index_part_of<Index>(here_pe(), id).about().pes.count());
    create_initial(m, pack(0, id, all, where), arguments);
    if (!each_knows) end_shares(id);
  } catch (...) {
    const std::exception_ptr failed = std::current_exception();
    try {
      destroy(id);
    } catch (const error&) {
      // a node is lost, or the program ends: what has failed before says more
    }
    std::rethrow_exception(failed);
  }
  return id;
}

template <class Index>
element_maker<Index>::element_maker(std::string_view of, std::string_view key, void (*types)(wire::type_description&),
                                    new_part p, read_arguments w) noexcept
    : handler(of, "(creation of an array)", key, &index_maker<Index>::messages::run,
              &index_maker<Index>::messages::relocate, &index_maker<Index>::messages::drop,
              sizeof(typename index_maker<Index>::messages::owned), index_maker<Index>::messages::views, types, {},
              index_maker<Index>::messages::through_wire),
      part(p),
      with(w) {}

template <class Index>
void index_maker<Index>::make(const maker& m, const bytes& how) {
  pe& self = here_pe();
  orrery::reader r(how);
  const auto s = orrery::read<array_core::description>(r);
  auto o = orrery::read<settings>(r);
  const bool shares = orrery::read<bool>(r);
  auto made = m.part(self, s, std::move(o));
  if (shares) made->begin_share();
  array_directory::of(self).add(s.id, std::move(made));  // first: unmake looks below it
  std::vector<future<void>> below;
  finish(below, [&] {
    for (const std::uint32_t c : s.children_of(self.id())) below.push_back(start(m, c, step::make, how, {}));
  });
}

template <class Index>
void index_maker<Index>::create_initial(const maker& m, const bytes& how, const bytes& arguments) {
  orrery::reader r(how);
  const auto id = orrery::read<std::uint32_t>(r);
  const auto all = orrery::read<range<Index>>(r);
  const auto where = orrery::read<std::optional<placement_map<Index>>>(r);
  auto& part = index_part_of<Index>(here_pe(), id);
  std::vector<future<void>> below;
  finish(below, [&] {
    const std::uint32_t here = part.self().id();
    for (const std::uint32_t c : part.about().children_of(here))
      below.push_back(start(m, c, step::fill, how, arguments));
    const auto with = m.with(arguments);
    const bool apart = where.has_value();
    const placement_map<Index>& map = apart ? *where : part.options().home;
    const array_pes& on = part.about().pes;
    const std::uint32_t pes = on.count();
    const std::uint32_t rank = part.rank();
    part.reserve(all.size() / pes + 1);
    if (knows_share(all, map, pes)) {
      create(part, apart, below, [&](const auto& each) { map.for_each_of(all, rank, pes, each); }, *with);
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
    for (auto& [pe, theirs] : belong)
      below.push_back(start(m, pe, step::fill_with, pack(0, id, apart, theirs), arguments));
    create(part, apart, below, [&](const auto& each) { std::ranges::for_each(own, each); }, *with);
  });
}

template <class Index>
void index_maker<Index>::create_each(const bytes& some, const source& with) {
  orrery::reader r(some);
  const auto id = orrery::read<std::uint32_t>(r);
  const bool apart = orrery::read<bool>(r);
  const auto own = orrery::read<std::vector<Index>>(r);
  std::vector<future<void>> telling;
  finish(telling, [&] {
    create(
        index_part_of<Index>(here_pe(), id), apart, telling,
        [&](const auto& each) { std::ranges::for_each(own, each); }, with);
  });
}

// Creates elements on this PE, and tells their homes; `apart`: these may be elsewhere.
template <class Index>
template <class ForEach>
void index_maker<Index>::create(part_type& part, bool apart, std::vector<future<void>>& telling, ForEach for_each,
                                const source& with) {
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
    with.make(part, i);
  });
  for (auto& [home, some] : homes)
    telling.push_back(start_call<&know>(orrery::pe(home), part.id(), here, std::move(some)));
  tell_homes(part.id(), here, at_home, telling);
}

template <class Index>
void index_maker<Index>::end_shares(std::uint32_t id) {
  pe& self = here_pe();
  auto& part = index_part_of<Index>(self, id);
  const array_core::description s = part.about();
  part.end_share();
  std::vector<future<void>> below;
  finish(below, [&] {
    for (const std::uint32_t c : s.children_of(self.id())) below.push_back(start_call<&end_shares>(orrery::pe(c), id));
  });
}

template <class Index>
void index_maker<Index>::know(std::uint32_t id, std::uint32_t pe, std::vector<Index> all) {
  index_part_of<Index>(here_pe(), id).know_bulk(all, pe);
  std::vector<future<void>> told;
  finish(told, [&] { tell_homes(id, pe, all, told); });
}

template <class Index>
void index_maker<Index>::tell_homes(std::uint32_t id, std::uint32_t pe, const std::vector<Index>& all,
                                    std::vector<future<void>>& told) {
  if (all.empty()) return;
  for (const std::uint32_t h : index_part_of<Index>(here_pe(), id).other_homes())
    told.push_back(start_call<&hear>(orrery::pe(h), id, pe, all));
}

template <class Index>
void index_maker<Index>::hear(std::uint32_t id, std::uint32_t pe, std::vector<Index> all) {
  index_part_of<Index>(here_pe(), id).hear_bulk(all, pe);
}

}  // namespace orrery::detail
