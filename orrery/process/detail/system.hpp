// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/class_info.hpp>
#include <orrery/process/remote.hpp>
#include <orrery/scheduler/pe.hpp>

#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

// Processes of the runtime's own services.
//
// Problem: a service that is spread over the PEs, such as names, is best a process like any other,
// but nobody can be asked where its processes are: that would be a service again.
// So each PE makes them before it runs, in the first slots of its table and always in the same
// order: the address follows from the number of the PE. They end with the PE.
//
//     class name_shard { public: static constexpr auto place = system_slot::names; ... };
//     ORRERY_PROCESS(name_shard, find, ...);
//     system_process<name_shard>(7)->find(...);     // of PE 7, from anywhere
namespace orrery::detail {

/// The system processes of each PE, in the order of their slots.
enum class system_slot : std::uint32_t { names };

/// The system process of a PE.
template <class T>
[[nodiscard]] constexpr remote<T> system_process(std::uint32_t pe) noexcept {
  return remote<T>(address{pe, static_cast<std::uint32_t>(T::place), 1});
}

/// Makes a system process. To be called for all of them in the order of their slots, before the PE
/// runs. Throws what the constructor throws.
template <class T, class... A>
void make_system_process(scheduler::pe& at, A&&... args) {
  scheduler::slot& s = at.allocate_slot();
  assert(at.address_of(s) == system_process<T>(at.id()).address());
  s.set_object(make_object<T>(s, std::forward<A>(args)...));
  s.class_number = class_of<T>::info().number;
  at.settle(s);
  --at.count().processes;  // it is not the program's
}

/// The object of a system process of this PE, for code of the runtime that runs there between its
/// methods; null when the PE has come to its end, or was made without it.
template <class T>
[[nodiscard]] T* system_object(scheduler::pe& at) noexcept {
  scheduler::slot* s = at.find(static_cast<std::uint32_t>(T::place), 1);
  return s != nullptr ? object_in<T>(*s) : nullptr;
}

}  // namespace orrery::detail
