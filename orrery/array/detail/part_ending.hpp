// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_maker.hpp>
#include <orrery/scheduler/reach.hpp>

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

// How arrays end.
namespace orrery::detail {

template <class Index>
void index_maker<Index>::destroy(std::uint32_t id) {
  pe& self = here_pe();
  array_core* const part = array_directory::of(self).find(id);
  if (part == nullptr) {
    if (!is_guest_of(self, id)) throw_no_array(id);
    call<&unmake>(orrery::pe(maker_of(self, id)), id);
    return;
  }
  if (part->inside_element()) throw_own_array(part->about().name);
  const std::uint32_t root = part->about().root;
  if (root == self.id()) {
    unmake(id);
  } else {
    call<&unmake>(orrery::pe(root), id);
  }
}

template <class Index>
void index_maker<Index>::unmake(std::uint32_t id) {
  pe& self = here_pe();
  const auto find = [&] { return static_cast<part_type*>(array_directory::of(self).find(id)); };
  while (find() != nullptr && find()->ends()) find()->wait_for_news_of_ends();
  if (find() == nullptr) return;
  auto& part = *find();
  part.begin_end();
  part.fail_early();
  const array_core::description s = part.about();
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
      if (!scheduler::reaches(self, below[k].first)) end_below(below[k].first);
    }
  // that have come meanwhile, as others were not asked to be still; those that come later find no
  // array
  end_here();
  if (part.cells().empty() && !part.has_endings()) {
    part.fail_reductions();
    part.tell_ends();
    waiting = part.take_waiting();
    array_directory::of(self).remove(id);
  } else {
    part.give_up_end();
  }
  // to an array that is gone
  while (waiting != nullptr) dispatch(self, std::exchange(waiting, waiting->next));
  if (failed != nullptr) std::rethrow_exception(failed);
}

template <class Index>
void index_maker<Index>::end_elements(part_type& part) {
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
    } catch (const node_lost&) {
      // it had gone there; or it has ended, and where it was to be said is lost
      lost = std::current_exception();
    }
  }
  if (lost != nullptr) std::rethrow_exception(lost);
}

}  // namespace orrery::detail
