// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/mpi/engine.hpp>
#include <orrery/transport/mpi/frame.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace orrery::transport {

/// An engine for tests: what comes is late.
///
/// Problem: messages between ranks of one host arrive at once and nearly in the order in which all
/// ranks have sent them. Faults that depend on how messages of several machines meet hide there.
/// So this one receives for its user, and passes each message on after a random time. Messages of
/// one node and one tag keep their order; others overtake each other.
///
/// Owned by the world, used as any engine. Invariant: the receives of the user for frames are
/// matched in the order in which they were begun.
class late_engine final : public engine {
 public:
  using clock = std::function<std::int64_t()>;
  /// `by` outlives it. Messages are late by up to `jitter_ns`, of `time`.
  late_engine(engine& by, std::int64_t jitter_ns, std::uint64_t seed, clock time)
      : by_(by), jitter_ns_(jitter_ns), time_(std::move(time)), random_(seed) {}

  [[nodiscard]] bool send(std::uint32_t to, int tag, std::span<const std::byte> data, request& begun) override;
  [[nodiscard]] bool receive(std::uint32_t from, int tag, std::span<std::byte> into, request& begun) override;
  [[nodiscard]] outcome test(request& begun, std::uint32_t& from, std::uint64_t& bytes) override;
  void cancel(request& begun) override;
  [[nodiscard]] std::span<const std::uint32_t> failures() override { return by_.failures(); }
  [[nodiscard]] std::string error() const override { return by_.error(); }

 private:
  static constexpr std::size_t receives = 16;
  struct frame_receive {
    request begun = 0;
    frame memory;
  };
  struct late_frame {
    std::int64_t due;
    std::vector<std::byte> bytes;
  };
  /// A part of a block: `by_` writes into the memory of the user.
  struct part {
    request begun = 0;
    std::int64_t due = 0;  // 0: it has not come
    std::uint32_t from = 0;
    std::uint64_t bytes = 0;
  };
  bool collect();
  [[nodiscard]] bool receive_frames();
  [[nodiscard]] outcome test_part(std::map<request, part>::iterator p, std::uint32_t& from, std::uint64_t& bytes);
  [[nodiscard]] std::int64_t due() {
    return time_() + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(jitter_ns_ + 1));
  }
  [[nodiscard]] request next_number() noexcept { return own | ++numbers_; }
  /// Receives of the user have such numbers, which no library gives to requests of sends.
  static constexpr request own = request{1} << 63;

  engine& by_;
  std::int64_t jitter_ns_;
  clock time_;
  std::mt19937_64 random_;
  std::vector<frame_receive> pool_;
  std::size_t oldest_ = 0;
  bool failed_ = false;
  std::deque<std::pair<request, std::span<std::byte>>> posted_;  // for frames, by the user
  std::map<std::uint32_t, std::deque<late_frame>> frames_;       // by node
  std::map<request, part> parts_;
  request numbers_ = 0;
};

}  // namespace orrery::transport
