// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/spawn.hpp>
#include <orrery/process/when_all.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

// A read-only value on each node (the readonly variables of Charm++).
//
//     const auto table = spread(std::move(big_table));     // on all nodes now
//     post(workers)->begin(table);                         // the handle travels, not the table
//     ... in a worker: (*table)[k]                         // three loads more than a variable
namespace orrery {

namespace detail {

/// Names a spread value: the PE that has made it, and a number there, which no other run gives.
struct spread_name {
  std::uint32_t pe = 0;
  std::uint64_t number = 0;
  friend bool operator==(const spread_name&, const spread_name&) = default;
};

using spread_value = std::shared_ptr<const void>;
/// The value as this PE has it; null: not yet.
[[nodiscard]] spread_value find_spread(pe& self, const spread_name& name);
/// From now on this PE has it. Throws std::bad_alloc.
void keep_spread(pe& self, const spread_name& name, spread_value value);
[[nodiscard]] spread_name new_spread(pe& self);
/// The first PE of each node that can be reached, but for the caller's node.
[[nodiscard]] std::vector<std::uint32_t> other_nodes(pe& self);
/// The PE of this node that fetches values from other nodes.
[[nodiscard]] std::uint32_t first_of_node(pe& self) noexcept;
[[noreturn]] void throw_no_spread(const char* why);
/// Changes when a run ends in this OS process, before its values go.
extern std::atomic<std::uint64_t> spread_epoch;

/// A value that stays in its node, as the argument and the result of a call there.
struct in_this_node {
  using stays_as_it_is = void;
  spread_value value;
  template <class A>
  void serialize(A&) {
    throw_no_spread("a reference left its node");
  }
};

template <class T>
void put_spread(std::uint32_t made_by, std::uint64_t number, T value) {
  keep_spread(here_pe(), {made_by, number}, std::make_shared<const T>(std::move(value)));
}
/// On the PE that has made it.
template <class T>
T give_spread(std::uint64_t number) {
  pe& self = here_pe();
  const spread_value v = find_spread(self, {self.id(), number});
  if (v == nullptr) throw_no_spread("it is not of this run of the program");
  return *static_cast<const T*>(v.get());
}

template <class T>
const T* fetch_spread(const spread_name& name);
/// On the first PE of the node.
template <class T>
in_this_node share_spread(in_this_node, std::uint32_t made_by, std::uint64_t number) {
  (void)fetch_spread<T>({made_by, number});
  return {find_spread(here_pe(), {made_by, number})};
}
/// The value as this PE has it, or gets it now: from the PE that has made it, in another node by
/// way of the first PE there. Parks.
template <class T>
const T* fetch_spread(const spread_name& name) {
  pe& self = here_pe();
  spread_value v = find_spread(self, name);
  if (v == nullptr) {
    if (name.number == 0) throw_no_spread("the handle was default-constructed");
    const bool made_here = on_this_node(self, name.pe);
    if (made_here && self.id() == name.pe) throw_no_spread("it is not of this run of the program");
    if (!made_here && self.id() == first_of_node(self)) {
      v = std::make_shared<const T>(call<&give_spread<T>>(orrery::pe(name.pe), name.number));
    } else {
      const std::uint32_t from = made_here ? name.pe : first_of_node(self);
      v = call<&share_spread<T>>(orrery::pe(from), in_this_node{}, name.pe, name.number).value;
    }
    keep_spread(self, name, v);
    v = find_spread(self, name);  // another process may have been first
  }
  return static_cast<const T*>(v.get());
}

}  // namespace detail

/// A value of which each node has one copy, which nobody changes. This is a small handle, to be
/// copied, stored and sent.
///
/// Made by spread(), on all nodes of the program; a node that joins later gets the value when it is
/// read there first. All PEs of a node read one object, which stays until the program ends. A
/// handle remembers where the object is, and in which run, so that reading costs three loads.
template <class T>
class spread_handle {
 public:
  using value_type = T;

  spread_handle() = default;
  spread_handle(const spread_handle& o) noexcept : name_(o.name_) { know(o.known()); }
  spread_handle& operator=(const spread_handle& o) noexcept {
    name_ = o.name_;
    know(o.known());
    return *this;
  }
  ~spread_handle() = default;

  /// The value. Parks when it is read on a PE for the first time. Throws usage_error (a handle
  /// without a value, or one of an earlier run), node_lost if the node that made it is lost and
  /// this one has not got it yet, stopped.
  [[nodiscard]] const T& operator*() const {
    const T* v = known();
    if (v == nullptr) [[unlikely]] {
      v = detail::fetch_spread<T>(name_);
      know(v);
    }
    return *v;
  }
  [[nodiscard]] const T* operator->() const { return &**this; }
  [[nodiscard]] explicit operator bool() const noexcept { return name_.number != 0; }
  friend bool operator==(const spread_handle& a, const spread_handle& b) noexcept { return a.name_ == b.name_; }
  template <class A>
  void serialize(A& a) {
    a & name_.pe & name_.number;
    if constexpr (A::is_loading::value) know(nullptr);
  }

 private:
  template <class V>
  friend spread_handle<V> spread(V value);
  explicit spread_handle(const detail::spread_name& n) noexcept : name_(n) {}
  // SYNC: PEs of one node may share a handle. Acquire, with know(): a PE that finds the present
  // epoch there finds a pointer of this run, and one that finds a pointer finds its object.
  [[nodiscard]] const T* known() const noexcept {
    if (std::atomic_ref(epoch_).load(std::memory_order_acquire) != detail::spread_epoch.load(std::memory_order_relaxed))
      return nullptr;
    return std::atomic_ref<const T*>(here_).load(std::memory_order_acquire);
  }
  void know(const T* v) const noexcept {
    std::atomic_ref<const T*>(here_).store(v, std::memory_order_release);
    std::atomic_ref(epoch_).store(detail::spread_epoch.load(std::memory_order_relaxed), std::memory_order_release);
  }

  detail::spread_name name_;
  mutable const T* here_ = nullptr;
  mutable std::uint64_t epoch_ = 0;  // in which that was so; a value of an earlier run is gone
};

/// Gives each node a copy of a value, to be read only; returns when they have it. Parks. Throws
/// node_lost, stopped, what serialize() throws.
template <class T>
[[nodiscard]] spread_handle<T> spread(T value) {
  detail::require_parameter<T>();
  (void)&detail::function_handler<&detail::give_spread<T>>::instance;  // for programs that join
  detail::pe& self = detail::here_pe();
  const detail::spread_name name = detail::new_spread(self);
  std::vector<future<void>> sent;
  for (const std::uint32_t to : detail::other_nodes(self))
    sent.push_back(start_call<&detail::put_spread<T>>(pe(to), name.pe, name.number, value));
  detail::keep_spread(self, name, std::make_shared<const T>(std::move(value)));
  spread_handle<T> handle(name);
  when_all(std::move(sent)).get();
  return handle;
}

}  // namespace orrery
