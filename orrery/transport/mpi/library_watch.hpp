// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace orrery::transport {

/// Notices a call of an MPI library that does not return.
///
/// Problem: a library waits for launchers and other ranks in calls that need not wait, as MPICH
/// does in MPI_Test when the launcher tells it of a lost rank, and the launcher does not answer any
/// more. The thread that is in the library then holds up all others of its node, also those that
/// would notice that the node is cut off. So each call is a `visit`, and a thread of its own looks
/// at whether there are always new ones. It counts its own looks, so that a node that was stopped
/// is not taken for one that waits.
///
/// Owned by mpi_library. One thread at a time makes visits; that costs two stores for each.
///
///     const library_watch::visit v(watch, library_watch::kind::starting, "MPI_Init_thread");
class library_watch {
 public:
  enum class kind : std::uint8_t {
    /// Waits for other ranks, and may: after `start` that is said, and after ten times that this
    /// one ends.
    starting,
    working,  ///< does not wait: after twice the patience for a node this one ends
    ending,  ///< waits for other ranks, which are ending, too: after a longer time this one ends
  };
  /// Functions that write a line for people; the first of them returns, the second does not but in
  /// tests.
  using teller = std::function<void(const std::string&)>;

  /// Starts the thread. `patience`: for a node; `start`: for the start of the world.
  library_watch(std::chrono::nanoseconds patience, std::chrono::nanoseconds start, teller say, teller fatal);
  library_watch(const library_watch&) = delete;
  library_watch& operator=(const library_watch&) = delete;
  ~library_watch();

  /// A call of the library, while it lives.
  class visit {
   public:
    visit(library_watch& to, kind what, const char* call) noexcept : to_(to) {
      to_.kind_.store(what, std::memory_order_relaxed);
      to_.call_.store(call, std::memory_order_relaxed);
      to_.next_turn();
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() { to_.next_turn(); }

   private:
    library_watch& to_;
  };

 private:
  // SYNC: release, with look(): who sees an odd number sees the call that it is of, or a later one.
  void next_turn() noexcept { turn_.store(turn_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  void watch();
  void look();
  [[nodiscard]] std::chrono::nanoseconds limit_of(kind what) const noexcept;

  std::chrono::nanoseconds patience_;
  std::chrono::nanoseconds start_;
  std::chrono::nanoseconds pause_;  // between two looks
  teller say_;
  teller fatal_;
  std::atomic<std::uint64_t> turn_{0};  // odd: in the library
  std::atomic<kind> kind_{kind::starting};
  std::atomic<const char*> call_{""};
  std::uint64_t seen_ = 0;  // the turn of the last look
  std::chrono::nanoseconds waited_{0};  // in it
  bool told_ = false;  // of it
  std::mutex mutex_;
  std::condition_variable ends_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace orrery::transport
