// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/address.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

/// Why a process has ended.
enum class end_cause : std::uint8_t {
  destroyed,  ///< by destroy, or with the program or its group
  returned,  ///< a function that is through
  threw,  ///< a function, or a constructor, that an exception has left
  node_lost,  ///< its node has left the world, or crashed
  gone,  ///< it had ended before it was asked for, or never was
  moved,  ///< an element that lives on another PE now: this pointer to it is good no more
};

/// The end of a process.
struct ending {
  address process;
  end_cause cause = end_cause::destroyed;
  std::string what;  ///< of the exception: threw, node_lost

  /// It did not end by itself, as a function does that returns, and has ended.
  [[nodiscard]] bool failed() const noexcept { return cause != end_cause::returned && cause != end_cause::moved; }
};

namespace scheduler {
class pe;
struct slot;
}  // namespace scheduler

namespace detail {

using scheduler::pe;
using scheduler::slot;

/// One that is to be told of an end. In the table of its PE. `end` ends it, and does not park;
/// without an ending: nobody is told any more.
struct end_watch {
  end_watch* next = nullptr;
  void (*end)(pe&, end_watch*, const ending*) noexcept;
  address process{};
  /// The asker's number; 0: it is not taken back. With the bit `reported_too` the one that is told
  /// looks at no exception of a function, which is reported as if nobody watched.
  std::uint32_t number = 0;
  static constexpr std::uint32_t reported_too = std::uint32_t{1} << 31U;
};

/// The watchers of the ends of processes of one PE.
///
/// Problem: a process that ends has to tell those who want to know, and most are watched by nobody.
/// So the PE has a table of those that are, and their slots are `watched`: the scheduler tells of
/// their ends. The table is chains of watches, so that one costs little more than itself.
///
/// Part of the process layer's state of its PE, used on the PE's thread. Invariant: each process in
/// the table is alive, or has just ended.
class end_watches {
 public:
  explicit end_watches(pe& of) noexcept : of_(of) {}
  end_watches(const end_watches&) = delete;
  end_watches& operator=(const end_watches&) = delete;
  ~end_watches() { drop_all(); }

  /// The process lives on this PE. Throws std::bad_alloc; then the watch is the caller's.
  void add(slot& s, const address& process, end_watch& w);
  /// A process is about to end otherwise than by being destroyed. False: nobody is to be told why.
  bool note(ending e);
  /// It has ended.
  void ended(const address& process) noexcept;
  /// A number for a watch that this PE asks for, here or on another PE; never 0, and without bits.
  [[nodiscard]] std::uint32_t new_number() noexcept {
    if (++numbers_ == end_watch::reported_too) numbers_ = 1;
    return numbers_;
  }
  /// Takes back a watch of the process for which `is` holds: nobody is told. False: there is none.
  template <class F>
  bool take_back(const address& process, F&& is) {
    if (count_ == 0) return false;
    for (end_watch** at = &chains_[place_of(process)]; *at != nullptr; at = &(*at)->next) {
      end_watch* const w = *at;
      if (w->process != process || !is(*w)) continue;
      *at = w->next;
      --count_;
      w->end(of_, w, nullptr);
      return true;
    }
    return false;
  }
  /// Takes back all watches for which `is` holds.
  template <class F>
  void take_back_if(F&& is) {
    end_watch* taken = nullptr;  // what a watch does at its end may change the chains
    for (end_watch*& chain : chains_)
      for (end_watch** at = &chain; *at != nullptr;) {
        end_watch* const w = *at;
        if (is(*w)) {
          *at = w->next;
          w->next = std::exchange(taken, w);
          --count_;
        } else {
          at = &w->next;
        }
      }
    while (taken != nullptr) {
      end_watch* const w = std::exchange(taken, taken->next);
      w->end(of_, w, nullptr);
    }
  }
  void drop_all() noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  [[nodiscard]] std::size_t place_of(const address& process) const noexcept;

  pe& of_;
  std::size_t count_ = 0;
  std::uint32_t numbers_ = 0;
  std::vector<end_watch*> chains_;  // the newest first; as many as a power of two
  std::vector<ending> noted_;
};

/// The process is an element that is about to move: those that watch it are told so.
void note_moved(pe& self, const slot& s) noexcept;
/// Some PEs are not reachable any more: nobody there can be told of an end.
void drop_watches_of_lost(pe& self) noexcept;

}  // namespace detail
}  // namespace orrery
