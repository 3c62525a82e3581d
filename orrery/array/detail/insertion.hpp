// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/array_maker.hpp>
#include <orrery/array/detail/guest.hpp>
#include <orrery/array/detail/send_to_element.hpp>
#include <orrery/array/target.hpp>
#include <orrery/process/runtime.hpp>

#include <cstdint>
#include <exception>
#include <utility>

namespace orrery::detail {

/// Creates elements of an array, for array::insert and its kin: on this PE at once, elsewhere by a
/// message to the home of the index.
///
/// An array that another program has made has no part here; then the node of that program is asked
/// (guest.hpp).
template <class T, class Index>
class insertion {
 public:
  explicit insertion(std::uint32_t array) noexcept : id_(array) {}

  template <class... A>
  void insert(const Index& i, A&&... arguments) const {
    pe& self = here_pe();
    if (const auto* part = part_or_guest<T, Index>(self, id_)) {
      insert_on(part->home_of(i), i, std::forward<A>(arguments)...);
    } else {
      start_insert_as_guest(self, i, std::forward<A>(arguments)...).get();
    }
  }
  template <class... A>
  future<void> start_insert(const Index& i, A&&... arguments) const {
    pe& self = here_pe();
    const auto* part = part_or_guest<T, Index>(self, id_);
    if (part == nullptr) return start_insert_as_guest(self, i, std::forward<A>(arguments)...);
    return start_insert_on(part->home_of(i), i, std::forward<A>(arguments)...);
  }
  template <class... A>
  void post(const Index& i, A&&... arguments) const {
    pe& self = here_pe();
    auto* const own = part_or_guest<T, Index>(self, id_);
    if (own == nullptr) {
      (void)may_send_as_guest(self, id_, true);
      ask_as_guest(self, {}, i, std::forward<A>(arguments)...);
      return;
    }
    auto& part = *own;
    const std::uint32_t home = part.home_of(i);
    if (home != self.id() || !self.room_on_stack()) {
      post_ask(self, home, home, i, std::forward<A>(arguments)...);
      return;
    }
    cell<T, Index>* c = nullptr;
    try {
      c = &create_here(part, i);
    } catch (...) {
      answer_error(self, {}, &create_message<T, Index, travels_t<A>...>::instance, std::current_exception());
      return;
    }
    try {
      part.construct_inline(*c, std::forward<A>(arguments)...);
    } catch (...) {
      report_no_creation(self, part.text_of(i), std::current_exception());
    }
  }
  template <class... A>
  void post_on(std::uint32_t there, const Index& i, A&&... arguments) const {
    pe& self = here_pe();
    const auto& part = part_of<T, Index>(self, id_);
    part.require_on(i, there);
    post_ask(self, part.home_of(i), there, i, std::forward<A>(arguments)...);
  }

  template <class... A>
  void insert_on(std::uint32_t where, const Index& i, A&&... arguments) const {
    pe& self = here_pe();
    auto& part = part_of<T, Index>(self, id_);
    part.require_on(i, where);
    const std::uint32_t home = part.home_of(i);
    using message = create_message<T, Index, travels_t<A>...>;
    if (home == self.id() && where == home && self.room_on_stack()) {
      auto& c = create_here(part, i);
      try {
        part.construct_inline(c, std::forward<A>(arguments)...);
      } catch (...) {
        rethrow_as_received(message::instance, self);
      }
      return;
    }
    self.require_process();
    const element_name<T, Index> name{id_, i};
    element_route<T, Index, const element_name<T, Index>&> way(name);
    typed_sink<void> k;
    prepare(k, self, address{}, message::instance);
    k.route = &way;
    (void)wait_for_way<message>(self, home, true);
    expected_answer answer(array_directory::of(self).waits(), k, id_);
    ask(self, home, where, {self.id(), answer.call()}, i, std::forward<A>(arguments)...);
    answer.sent();
    self.wait(k);
    k.take();
  }
  template <class... A>
  future<void> start_insert_on(std::uint32_t where, const Index& i, A&&... arguments) const {
    pe& self = here_pe();
    const auto& part = part_of<T, Index>(self, id_);
    part.require_on(i, where);
    const std::uint32_t home = part.home_of(i);
    using message = create_message<T, Index, travels_t<A>...>;
    using route = element_route<T, Index, element_name<T, Index>>;
    auto state = future_access<void>::make_routed(self, route(element_name<T, Index>{id_, i}), message::instance);
    (void)wait_for_way<message>(self, home, true);
    auto travelling = future_access<void>::make_hold(state);
    expected_answer answer(array_directory::of(self).waits(), *state, id_);
    ask(self, home, where, {self.id(), answer.call()}, i, std::forward<A>(arguments)...);
    answer.sent();
    travelling.release();
    return future_access<void>::wrap(std::move(state));
  }

 private:
  static cell<T, Index>& create_here(array_part<T, Index>& part, const Index& i) {
    return part.create_entry(i, part.admit(i));
  }
  template <class... A>
  future<void> start_insert_as_guest(pe& self, const Index& i, A&&... arguments) const {
    using message = create_message<T, Index, travels_t<A>...>;
    using route = element_route<T, Index, element_name<T, Index>>;
    auto state = future_access<void>::make_routed(self, route(element_name<T, Index>{id_, i}), message::instance);
    (void)may_send_as_guest(self, id_, true);
    auto travelling = future_access<void>::make_hold(state);
    auto& directory = array_directory::of(self);
    expected_answer answer(directory.waits(), directory.waits().expect_as_guest(*state, id_));
    ask_as_guest(self, {self.id(), answer.call()}, i, std::forward<A>(arguments)...);
    answer.sent();
    travelling.release();
    return future_access<void>::wrap(std::move(state));
  }
  // Does not park.
  template <class... A>
  void ask_as_guest(pe& self, caller from, const Index& i, A&&... arguments) const {
    check_spawnable<T, A...>();
    using message = create_message<T, Index, travels_t<A>...>;
    bytes b = pack(0, creation{from, 0, 0, false}, i);
    pack_after(b, travels_t<A>(std::forward<A>(arguments))...);
    send_as_guest(self, id_, guest_request::creation, message::instance, b);
  }
  // Parks while others wait for room on the way to the home; before anything is registered that a
  // lost node would end. Throws node_lost where an answer is expected; else false if the home is
  // lost.
  template <class Message>
  static bool wait_for_way(pe& self, std::uint32_t home, bool answered) {
    if (home == self.id()) return true;
    try {
      scheduler::outbound& c = self.outbound_to(home);
      // waits for its turn
      if (c.slow() && self.active() != nullptr) (void)self.reserve(c, wire::granule * 2);
      return true;
    } catch (const node_lost&) {
      if (answered) throw;
      self.failures().report_unsent(Message::instance, home, std::current_exception());
      return false;
    }
  }
  template <class... A>
  void post_ask(pe& self, std::uint32_t home, std::uint32_t where, const Index& i, A&&... arguments) const {
    if (wait_for_way<create_message<T, Index, travels_t<A>...>>(self, home, false))
      ask(self, home, where, {}, i, std::forward<A>(arguments)...);
  }
  // Does not park.
  template <class... A>
  void ask(pe& self, std::uint32_t home, std::uint32_t where, caller from, const Index& i, A&&... arguments) const {
    check_spawnable<T, A...>();
    using message = create_message<T, Index, travels_t<A>...>;
    auto& part = part_of<T, Index>(self, id_);
    bytes b = pack(0, creation{from, where, 0, false}, i);
    pack_after(b, travels_t<A>(std::forward<A>(arguments))...);
    part.begins();  // now that nothing can throw any more
    tell(self, home, message::instance, id_, 0, b);
    part.follow_creation(i, home);
  }

  std::uint32_t id_;
};

}  // namespace orrery::detail
