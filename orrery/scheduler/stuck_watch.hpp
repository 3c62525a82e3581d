// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace orrery::scheduler {

class node;
class pe;

/// Finds PEs whose thread waits inside a method, and says so on stderr.
///
/// Problem: a method that waits by means that the runtime does not know (a mutex that a parked
/// method holds, a read of a pipe) keeps its whole PE from working. From outside that looks like a
/// program that computes, or like nothing at all. So one thread for each node looks now and then
/// when each PE has last published its counters, and how much processor time its thread has used.
/// Where neither has changed for the limit, and the PE does not sleep, it reads which method runs.
/// A method that computes stays unmentioned, unless the program has ended and waits for it.
///
/// Owned by node::run, and ends before the node's PEs. The PEs pay nothing: what is read of them,
/// they write anyway. The words that a PE keeps for itself are copied by the kernel
/// (process_vm_readv), as they may be gone when they are read.
class stuck_watch {
 public:
  /// `limit_ns` 0: watches nothing, and makes no thread. Where several PEs share a core, the limit
  /// is so many times as long.
  stuck_watch(node& of, std::int64_t limit_ns);
  stuck_watch(const stuck_watch&) = delete;
  stuck_watch& operator=(const stuck_watch&) = delete;
  ~stuck_watch();

  /// Called by the thread of the node's PE of this number, before the PE runs.
  void begin(std::uint32_t i);

 private:
  struct watched {
    bool runs = false;
    clockid_t clock{};
    std::uint64_t published_at = 0;
    std::int64_t cpu_ns = 0;
    std::int64_t since_ns = 0;  // nothing has changed
    bool said = false;
    std::int64_t polled_ns = 0;  // when it last did, or the program still ran
    bool said_end = false;
  };
  void loop();
  void look_at(std::uint32_t i, std::int64_t now, bool was_stopped);
  void say_end(const pe& p) const;
  /// Nothing if no method runs.
  [[nodiscard]] static std::optional<std::string> method_of(const pe& p);

  node& node_;
  std::int64_t limit_ns_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ending_ = false;
  std::vector<watched> pes_;
  std::thread thread_;
};

}  // namespace orrery::scheduler
