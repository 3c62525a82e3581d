// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/archive.hpp>

#include <fmt/core.h>

#include <orrery/wire/error.hpp>

namespace orrery::wire {

void fail_truncated(std::size_t position, std::size_t needed, std::size_t left) {
  throw bad_message(errc::message_truncated,
                    fmt::format("{} bytes needed at byte {}, {} left", needed, position, left));
}

void fail_count(std::size_t position, std::size_t count, std::size_t left) {
  throw bad_message(errc::message_truncated,
                    fmt::format("{} elements announced before byte {}, {} bytes left", count, position, left));
}

void fail_corrupt(std::size_t position, const char* expected) {
  throw bad_message(errc::message_corrupt, fmt::format("{} expected at byte {}", expected, position));
}

void fail_depth(bool reading) {
  const std::string limit = fmt::format("the limit is {}", max_depth);
  if (reading) throw bad_message(errc::message_too_deep, limit);
  throw usage_error(errc::value_too_deep, limit);
}

void fail_alignment() { throw bad_message(errc::message_misaligned); }

void fail_changed(std::size_t size, std::size_t position) {
  throw usage_error(errc::value_changed, fmt::format("sized as {} bytes, writing stopped at byte {}", size, position));
}

void fail_valueless() { throw usage_error(errc::value_without_state); }

}  // namespace orrery::wire
