// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace orrery::scheduler {

struct condition;
class pe;
struct slot;

/// Something that is to hold of an object.
struct predicate {
  bool (*holds)(void*);  ///< may throw
  void* what;
  /// Not 0: two with the same `holds` and equal bytes at `what` are the same condition.
  std::size_t bytes = 0;
  /// Not null: who changes what it depends on says so (conditions::tell, by what is written here
  /// while it waits), and it is looked at only then.
  condition** told_by = nullptr;
};

/// The methods of a PE that wait until something holds of their objects.
///
/// Problem: a method waits for what another method of its process will do. Parked as in a call it
/// would keep that one from running. So its process is idle while the method waits, takes messages,
/// and after each method (of a process that has one parked: depth is not 0) its conditions are
/// looked at, each once, however many wait for it. If one holds, the oldest that waits for it is
/// granted: the process is running again, on behalf of that method, so that nothing comes between.
/// The others wait on, until that one ends or waits again; the condition that was granted is the
/// last to be looked at then. A condition that is told of changes costs the methods in between
/// nothing.
///
/// Part of its PE, used on its thread. Invariant: a process with a granted condition, whose method
/// has not gone on yet, is `running`.
class conditions {
 public:
  explicit conditions(pe& of) noexcept : of_(of) {}
  conditions(const conditions&) = delete;
  conditions& operator=(const conditions&) = delete;

  /// Parks the running method of an object until p, which does not hold now, does; or, if the
  /// deadline is not negative, until then: false if p does not hold then. Throws process_gone if
  /// the object is destroyed meanwhile, stopped, what p throws, usage_error if too many wait.
  bool wait(const predicate& p, std::int64_t deadline_ns = -1);
  /// A method of the process, which is `running`, has ended or waits, and another one is parked: if
  /// a condition can be granted, that is done, and true is returned: the process is not to be
  /// settled.
  bool grant(slot& s) noexcept { return to_look_at_ != 0 && grant_first(s); }
  /// The condition may hold now: it is looked at when a method of its process has ended or waits,
  /// until it does not hold.
  void tell(condition& c) noexcept;
  /// The process is to end when its methods have: those that wait throw process_gone.
  void end(slot& s) noexcept;
  /// The runtime shuts down.
  void cancel() noexcept;
  /// Lines of the report of a dead world.
  [[nodiscard]] std::string explain() const;

 private:
  [[nodiscard]] condition*& youngest_of(const slot& s) const noexcept;
  void add(condition& c);
  [[gnu::noinline]] void grow();
  void add_to(condition*& youngest, condition& c) noexcept;
  void link(condition& c) noexcept;
  void hand_on(condition& c) noexcept;
  void separate(condition& c);
  inline void grant_behind(condition*& youngest, condition* before) noexcept;
  bool grant_first(slot& s) noexcept;

  pe& of_;
  std::size_t to_look_at_ = 0;  // those that nobody tells, and those that were told
  // Chains of the conditions of some processes: circles, of which the youngest is known, whose next
  // is the oldest. As many as a power of two.
  wire::unique_ptr<condition*[]> by_slot_;
  std::size_t places_ = 0;
  std::size_t count_ = 0;  // in the chains, and behind those
};

}  // namespace orrery::scheduler
