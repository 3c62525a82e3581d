// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/options.hpp>
#include <orrery/scheduler/trace.hpp>

#include <optional>
#include <string>

namespace orrery::transport {
class shm_world;
}

namespace orrery {

/// The trace of one run of a node, if the options ask for one; see scheduler::tracer. Made when the
/// node has been made and before it runs; used by the main thread only.
class tracing {
 public:
  /// Throws world_error if the file cannot be written.
  tracing(const options& o, scheduler::node& n, const std::string& program);

  /// When the node has run: writes its trace. Says on stderr what became of it.
  void write();

  /// On the first node of a world, when the others have ended: makes one file of theirs.
  static void merge(const options& o, const transport::shm_world& world);

 private:
  const options& options_;
  bool alone_;
  std::optional<scheduler::tracer> tracer_;
};

}  // namespace orrery
