// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace orrery::transport {

/// The functions of a message library that the carrier needs: sends and receives that are begun,
/// and looked at later.
///
/// Messages from one node to another with one tag arrive in the order in which they were sent. One
/// thread at a time may call. Memory of a request is in use until the request has ended.
class engine {
 public:
  using request = std::uint64_t;
  static constexpr std::uint32_t any_node = 0xffff'ffff;
  enum class outcome : std::uint8_t { pending, done, failed };

  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  virtual ~engine() = default;

  /// False if the library refuses it; then error() says why.
  [[nodiscard]] virtual bool send(std::uint32_t to, int tag, std::span<const std::byte> data, request& begun) = 0;
  [[nodiscard]] virtual bool receive(std::uint32_t from, int tag, std::span<std::byte> into, request& begun) = 0;
  /// `from` and `bytes` are those of a message that was received.
  [[nodiscard]] virtual outcome test(request& begun, std::uint32_t& from, std::uint64_t& bytes) = 0;
  /// A receive that nobody looks at any more. Its memory is free then.
  virtual void cancel(request& begun) = 0;
  /// All failed nodes, if the library has reported one since the last call; else nothing, for a
  /// look at a flag. Until it is called, receives from any node may not get what other nodes send.
  [[nodiscard]] virtual std::span<const std::uint32_t> failures() { return {}; }
  [[nodiscard]] virtual std::string error() const = 0;

 protected:
  engine() = default;
};

}  // namespace orrery::transport
