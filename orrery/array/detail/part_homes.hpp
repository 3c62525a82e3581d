// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/part_table.hpp>
#include <orrery/scheduler/reach.hpp>

// Several homes of an index (paper, section 3.1). The first one decides: it admits new elements,
// keeps what is early, knows what is deleted. It tells the others where elements are, in the order
// in which it hears of it itself. Their knowledge may be old; so it is good for the first message
// of a sender only, which asks the nearest home, and from where the element was goes on as all
// messages do. The sender's next messages wait until that one is answered, so they cannot overtake
// it.
namespace orrery::detail {

template <class Index>
std::uint32_t index_part<Index>::first_try(const Index& i) const {
  const std::uint32_t first = home_of(i);
  if (homes_.count() == 1) return first;
  if (homes_.contains(rank_of_home(i), rank())) {
    const auto it = tables_->told.find(i);
    return it != tables_->told.end() && it->second != self_.id() && scheduler::reaches(self_, it->second) ? it->second
                                                                                                          : first;
  }
  const auto [rank_below, rank_above] = homes_.around(rank_of_home(i), rank());
  const std::uint32_t below = about().pes.at(rank_below);
  const std::uint32_t above = about().pes.at(rank_above);
  if (scheduler::shares_node(self_, below)) return below;
  if (scheduler::shares_node(self_, above)) return above;
  if (scheduler::reaches(self_, below)) return below;
  return scheduler::reaches(self_, above) ? above : first;
}

template <class Index>
struct whereabouts_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      const std::uint32_t pe = e.generation;
      orrery::reader r(wire_payload(d, e, size));
      const auto i = orrery::read<Index>(r);
      array_core* part = array_directory::of(self).find(e.slot);
      d.release();
      if (part != nullptr) static_cast<index_part<Index>*>(part)->hear(i, pe);
    } catch (...) {
      d.fail(std::current_exception());
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<whereabouts_message>(), &route, nullptr,
                                               wire::type_key<whereabouts_message>()};
};

template <class Index>
void index_part<Index>::tell_homes(const Index& i, std::uint32_t pe) {
  if (homes_.count() == 1) return;
  const bytes b = pack(0, i);
  for (const std::uint32_t h : other_homes()) tell(self_, h, whereabouts_message<Index>::instance, id(), pe, b);
}

template <class Index>
void index_part<Index>::hear(const Index& i, std::uint32_t pe) {
  if (pe == nowhere) {
    tables_->told.erase(i);
  } else {
    tables_->told.insert_or_assign(i, pe);
  }
}

template <class Index>
void index_part<Index>::hear_bulk(const std::vector<Index>& all, std::uint32_t pe) {
  tables_->told.reserve(tables_->told.size() + all.size());
  for (const Index& i : all) hear(i, pe);
}

}  // namespace orrery::detail
