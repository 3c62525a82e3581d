// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/options.hpp>
#include <orrery/scheduler/trace.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace orrery::transport {
class mpi_world;
}

namespace orrery {

/// The trace of one run of a node, if the options ask for one; see scheduler::tracer. Made when the
/// node has been made and before it runs; used by the main thread only.
class tracing {
 public:
  /// `machines`: the node's world, if there are several machines. Throws world_error if the file
  /// cannot be written.
  tracing(const options& o, scheduler::node& n, const std::string& program, transport::mpi_world* machines);

  /// When the node has run: writes its trace. Says on stderr what became of it. On other machines
  /// than the first node's, the world brings it there when this node leaves it.
  void write();

  /// On the first node of a world of that number, when the others have ended: makes one file of
  /// theirs.
  static void merge(const options& o, std::uint64_t world, std::uint32_t nodes);

 private:
  const options& options_;
  bool alone_;
  transport::mpi_world* machines_;
  std::optional<scheduler::tracer> tracer_;
};

}  // namespace orrery
