// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/process/io.hpp>

#include <cstdint>
#include <string>

namespace orrery::storage::internal {

/// Says that a node of a program may still write what belongs to a job.
///
/// Problem: the system gives the lock of the first node back when that node is killed. Its other
/// nodes live on for some moments, and write. Where another node is killed, the first one still has
/// the lock while its program comes to its end. So each node shares the lock of a file in the job's
/// folder, and adds a line with its number and its start to it. The next program waits until nobody
/// shares that lock any more, and knows from the lines whether a program that has the folder is
/// about to end.
///
/// Made by job_folder, one on each node but its own, which has the first line. The lock ends with
/// the object or with its node.
class job_presence {
 public:
  /// May park. Throws std::system_error.
  explicit job_presence(const std::string& file) { take(file); }

  /// Shares the lock of that file, and adds this node's line.
  [[nodiscard]] static io::descriptor share(const std::string& file);

 private:
  void take(const std::string& file) { file_ = share(file); }

  io::descriptor file_;
};
ORRERY_PROCESS(job_presence);

/// The content of the lines of such a file.
struct job_nodes {
  bool complete = false;  ///< each node of the program has its line
  bool ending = false;  ///< one of them has ended, or is ending
  bool own = false;  ///< one of them is this OS process
  std::string text = {};  ///< those that live, for people: "process 12, process 13"
};
/// Looks at a file of lines. Without one nothing is complete. Any thread.
[[nodiscard]] job_nodes look_at_nodes(const std::string& file);
/// The first line, which says how many will follow. May park. Throws std::system_error.
void announce_nodes(int fd, std::uint32_t nodes);

}  // namespace orrery::storage::internal
