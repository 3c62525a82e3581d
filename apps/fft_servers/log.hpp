// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/runtime.hpp>
#include <orrery/storage/domain.hpp>

#include <chrono>
#include <cstdint>

namespace fft_servers {

using orrery::storage::domain;
using orrery::storage::index3;

/// The time that the program measures: virtual in a simulation.
inline double seconds() { return std::chrono::duration<double>(orrery::now()).count(); }

/// The work of a client.
struct step {
  enum class kind : std::uint8_t { read, ask, transform, write, iteration };
  kind what = kind::read;
  std::int64_t iteration = 0;
  domain elements = {};
  double seconds = 0;
};

/// Transfers of one kind, of which several may be under way: their number, and the time in which
/// there was one.
class transfers {
 public:
  void begin() {
    if (under_way_++ == 0) since_ = seconds();
  }
  void end() {
    ++pages_;
    if (--under_way_ == 0) busy_ += seconds() - since_;
  }
  [[nodiscard]] std::uint64_t pages() const { return pages_; }
  [[nodiscard]] double busy() const { return busy_; }
  void clear() {
    pages_ = 0;
    busy_ = 0;
    since_ = seconds();
  }

 private:
  std::uint64_t pages_ = 0;
  std::uint64_t under_way_ = 0;
  double since_ = 0;
  double busy_ = 0;
};

/// The work of a server since it was asked last.
struct server_log {
  std::uint64_t pages_read = 0;  ///< into its cache
  double read_seconds = 0;
  std::uint64_t pages_written = 0;
  double write_seconds = 0;
};

}  // namespace fft_servers
