// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace orrery::tool {

/// Shows on a terminal how far something is, how fast it goes and how long it will take; silent where stderr is none.
///
///     import  43 % [################                    ] 1.2 GiB of 2.8 GiB, 812 MiB/s, 2 s left
///
/// One line, written anew at most ten times a second. It ends at the end, also if that is an exception, so that what is said then has a line
/// of its own.
class progress {
 public:
  /// `before`: so many of the bytes had been done by an earlier program.
  progress(std::string what, std::uint64_t bytes, std::uint64_t before = 0);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress();
  /// So many bytes more are done.
  void add(std::uint64_t bytes) { at(done_ + bytes, what_); }
  /// So many are done, and now it is at this.
  void at(std::uint64_t bytes, const std::string& what);

 private:
  using clock = std::chrono::steady_clock;
  void draw(clock::time_point now);

  std::string what_;
  std::uint64_t all_;
  std::uint64_t before_;
  std::uint64_t done_;
  bool shown_;
  clock::time_point begin_ = clock::now();
  clock::time_point next_;
};

}  // namespace orrery::tool
