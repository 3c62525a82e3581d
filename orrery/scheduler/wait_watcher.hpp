// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace orrery::scheduler {

struct handler;
class pe;
struct sink;

/// The answer to a call whose method has ended, which is given when something else is there.
struct awaited_answer {
  const sink* on = nullptr;  ///< what it waits for; null: there is no such call
  const handler* method = nullptr;
};

/// Something of a PE in which processes wait for others, and that has to know when they will wait
/// in vain. Registered with the PE, which it must not outlive. Called on the PE, between methods;
/// must not park.
class wait_watcher {
 public:
  /// Some PEs are not reachable any more.
  virtual void pes_lost(pe& self) noexcept = 0;
  /// The runtime shuts down: whoever waits is to be woken, and to throw stopped.
  virtual void cancel_waits(pe& self) noexcept = 0;
  /// The facts for a report of a dead world: lines that begin with two blanks.
  [[nodiscard]] virtual std::string explain_waits() const { return {}; }
  /// The answer that is still to be given to a call, by what names the call at its caller (the word
  /// in its envelope, or if `hidden`, in its payload).
  [[nodiscard]] virtual awaited_answer find_answer([[maybe_unused]] std::uint32_t caller_pe,
                                                   [[maybe_unused]] std::uint64_t call,
                                                   [[maybe_unused]] bool hidden) const noexcept {
    return {};
  }

 protected:
  virtual ~wait_watcher() = default;

 private:
  friend class watcher_list;
  std::size_t place_ = 0;
};

/// The watchers of a PE; on its thread. To register one and to take it out again costs the same
/// however many there are.
class watcher_list {
 public:
  watcher_list() = default;
  watcher_list(const watcher_list&) = delete;
  watcher_list& operator=(const watcher_list&) = delete;

  /// From now until remove(w) it hears of lost PEs and of the end.
  void add(wait_watcher& w) {
    w.place_ = all_.size();
    all_.push_back(&w);
  }
  void remove(wait_watcher& w) noexcept {
    all_[w.place_] = all_.back();
    all_[w.place_]->place_ = w.place_;
    all_.pop_back();
  }
  /// Calls f for each; f may add and remove some.
  template <class F>
  void for_each(F f) const {
    for (std::size_t i = 0; i < all_.size(); ++i) f(*all_[i]);
  }

 private:
  std::vector<wait_watcher*> all_;
};

}  // namespace orrery::scheduler
