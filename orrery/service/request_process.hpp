// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/runtime.hpp>
#include <orrery/service/range_process.hpp>

#include <cstdint>
#include <span>

namespace orrery::service {

/// A process of a service that executes its requests one by one, and keeps its share whatever
/// happens.
///
/// A service whose keys never change hands derives its processes from it, and gives execute() and
/// describe().
class request_process : public range_process {
 public:
  bytes serve(const batch_head& head, std::span<const std::byte> packed) final {
    report_.requests += head.count;
    report_.window = head.window;
    show_window(head.window);
    bytes answers;
    unpacker requests(packed);
    for (std::uint32_t i = 0; i < head.count; ++i) execute(requests, answers);
    batch_ended();
    return answers;
  }
  /// Its requests so far, and what describe() adds.
  range_report report() final {
    report_.pe = this_pe();
    describe(report_);
    return report_;
  }

 protected:
  /// Takes one request out of the packed ones, and appends its answer.
  virtual void execute(unpacker& requests, bytes& answers) = 0;
  /// Behind the last request of a batch, before the answers are sent.
  virtual void batch_ended() {}
  /// Says how many items there are, and how many bytes they take.
  virtual void describe(range_report& to) = 0;

 private:
  range_report report_;
};

}  // namespace orrery::service
