// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/mpi/cluster_status.hpp>
#include <orrery/transport/shm/unique_fd.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <functional>
#include <thread>

namespace orrery::transport {

/// Tells tools on this machine of all machines of the world.
///
/// Problem: `orrery top` sees the shared memory of its own machine only, and is no member of the
/// world, so that it can ask nobody. Counters of PEs of other machines must come here, but a world
/// at which nobody looks must not pay for it.
///
/// So a thread waits for tools at a socket. Each that comes makes it ask for a status, once, and
/// gets that; it asks again for the next. Nothing travels before somebody asks.
///
/// Owned by the world, in the first node of each machine. A tool that does not read is given up
/// after a second; others wait meanwhile. A tool whose status cannot be made gets none, and the
/// first such failure is one line on stderr.
class status_server {
 public:
  /// Told whether the tool wants names.
  using source = std::function<cluster_status(bool names)>;
  /// `ask` is called by the server's thread. Fails if the system gives no socket.
  [[nodiscard]] static result<wire::unique_ptr<status_server>> start(std::uint64_t nonce, source ask);
  status_server(const status_server&) = delete;
  /// Waits for the answer that is being made.
  ~status_server();

 private:
  status_server(unique_fd socket, source ask);
  void serve();
  void answer(int tool, bool names) noexcept;

  unique_fd socket_;
  source ask_;
  bool has_complained_ = false;  // its thread's
  std::thread thread_;
};

}  // namespace orrery::transport
