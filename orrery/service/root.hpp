// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/service/range_process.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::service {

/// A range, and the least key that belongs to it. The first range of a service has none: all lesser
/// keys belong to it.
struct directory_entry {
  bytes least;
  remote<range_process> owner;
};

/// What who opens a service gets.
struct opening {
  std::vector<directory_entry> directory;  ///< in no order; some of the latest ranges may be missing
  remote<range_process> head;  ///< that takes the requests of sessions whose level is `total`; null: there is none
};

/// The process that a service is known by.
///
/// Problem: a client needs something to begin with, and a service a place that knows all its processes.
///
/// The root knows the kind of the service, the types of its keys and values, its ranges and the PEs
/// that it is on. A client asks it once; later it learns from ranges what has changed. A range that
/// splits asks it for a PE and tells it the new range. The root calls ranges only to end them.
///
/// Made by who makes the service; lives until end() and destroy, or until its node is lost: then
/// ranges go on, but do not split any more, and no further client can open the service.
class service_root {
 public:
  service_root(std::string kind, std::string types, std::vector<std::uint32_t> pes);

  /// Throws usage_error if the service is of another kind or for other types.
  opening open(const std::string& kind, const std::string& types) const;
  bool is_of(const std::string& kind, const std::string& types) const { return kind == kind_ && types == types_; }
  /// The PE of the next range: all PEs of the service in turn.
  std::uint32_t next_pe();
  void add(bytes least, remote<range_process> owner);
  /// All ranges split when they have more than so many items, from now on; also those that are added later.
  void tune(std::uint32_t items);
  void set_head(remote<range_process> head) { head_ = head; }
  /// Destroys all ranges, and the head.
  void end();
  /// What all ranges have done, in the order of open(). Not at one moment. Those that are lost are missing.
  std::vector<range_report> reports() const;

 private:
  std::string kind_;
  std::string types_;
  std::vector<std::uint32_t> pes_;
  std::size_t next_ = 0;
  std::vector<directory_entry> directory_;
  remote<range_process> head_;
  std::uint32_t tuned_ = 0;  // 0: ranges are as they were made
};
ORRERY_PROCESS(service_root, open, is_of, next_pe, add, tune, set_head, end, reports);

}  // namespace orrery::service
