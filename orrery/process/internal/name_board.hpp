// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/names_on_board.hpp>
#include <orrery/transport/shm/board.hpp>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include <sched.h>

namespace orrery::transport {
class shm_world;
}

namespace orrery::detail {

// Keeps the names of a node where `orrery ls` finds them.
//
// Problem: names are known inside of the OS processes only, and whoever publishes many of them
// should not pay for a tool that may never look.
//
// So a thread of its own writes all names onto a board after the first of them has changed, at most
// every few milliseconds and for at most a twentieth of the time. Neither thread nor board is made
// before the first name, and none in a world without a name, which no tool finds.
//
// Owned by the records. Thread-safe.
class name_board {
 public:
  /// `list` gives the names, as many as fit into that many bytes; it is called by another thread.
  /// `world` may be null.
  name_board(transport::shm_world* world, std::function<names_on_board(std::size_t room)> list);
  name_board(const name_board&) = delete;
  ~name_board();

  /// The names have changed: they are shown soon. Does not wait. The world is still there.
  void changed() noexcept;

 private:
  void start();
  void run();
  void show();

  transport::shm_world* const world_;  // null: nobody can look
  const std::function<names_on_board(std::size_t)> list_;
  std::mutex mutex_;
  std::condition_variable news_;
  bool changed_ = false;
  bool stop_ = false;
  bool failed_ = false;
  cpu_set_t cores_{};  ///< of the thread that made this: a PE is bound to one
  std::optional<transport::board> board_;  // of the thread, once that runs
  std::thread thread_;
};

}  // namespace orrery::detail
