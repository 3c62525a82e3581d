// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/unique_ptr.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace orrery {
struct pe_counters;
}

namespace orrery::scheduler {

/// The counters of a PE, for itself: plain words, written by its thread alone. counter_table() says
/// what each means. Add a counter here and there.
struct counters {
  std::uint64_t executed = 0;
  std::uint64_t inline_calls = 0;
  std::uint64_t sent = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t parks = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t idle_ns = 0;
  std::uint64_t queue_high = 0;
  std::uint64_t mailbox_high = 0;
  std::uint64_t queued_bytes = 0;
  std::uint64_t raised_limits = 0;
  std::uint64_t processes = 0;
  std::uint64_t spawned = 0;
  std::uint64_t failed_posts = 0;
  std::uint64_t routed = 0;
  std::uint64_t hops = 0;
  std::uint64_t io_requests = 0;
  std::uint64_t io_bytes = 0;
  std::uint64_t io_enters = 0;
  std::uint64_t service_window = 0;
  std::uint64_t service_granularity = 0;
  std::uint64_t service_forwards = 0;
};

enum class counter_kind : std::uint8_t {
  total,  ///< only grows: differences are rates
  level,  ///< as it is now
  high,   ///< the highest so far
};

/// One counter, for tools and docs.
struct counter_info {
  std::string_view name;  ///< of the member, of the JSON key and in the docs
  std::uint64_t counters::* value;
  counter_kind kind;
  std::string_view meaning;  ///< a clause without a full stop
};

/// All of them, in the order in which they are published.
[[nodiscard]] std::span<const counter_info> counter_table() noexcept;

/// The counters of a PE as others see them: words that its PE stores and anybody may load. In the
/// world's memory a PE has four words more, which are its idleness.
inline constexpr std::size_t published_words = 28;
using published_counters = std::span<std::atomic<std::uint64_t>, published_words>;

/// Shows the counters of a PE to other threads and, through the world's memory, to other nodes and
/// to tools.
///
/// Problem: a counter that others may read while it changes has to be atomic, on lines that others
/// pull away, and messages are counted on a path of 10 ns. So a PE counts for itself in plain
/// words, and copies them to where others look: about once a millisecond while it works, and when
/// it goes to sleep. A PE that sleeps cannot say for how long; it says since when.
///
/// Owned by the PE and used by its thread only; `words` outlives it. Readers are not waited for:
/// each word is right by itself, but they may be of two publications.
class counter_publisher {
 public:
  /// Without `words` (a node without a world) it makes its own.
  explicit counter_publisher(std::atomic<std::uint64_t>* words);
  counter_publisher(const counter_publisher&) = delete;
  counter_publisher& operator=(const counter_publisher&) = delete;

  /// At every poll: costs a decrement, looks at the clock at one in 32. True if it has published.
  bool poll(const counters& now) noexcept {
    if (--polls_left_ <= 0) [[unlikely]]
      return poll_slow(now);
    return false;
  }
  /// The PE is about to sleep and has had nothing to do since `since_ns`, which `idle_ns` does not
  /// contain yet.
  void sleeping(const counters& now, std::int64_t since_ns) noexcept;
  /// The PE has something to do again; `idle_ns` contains the time.
  void awake(const counters& now, std::int64_t now_ns) noexcept {
    if (asleep_ || now_ns >= due_ns_) [[unlikely]]
      awake_slow(now, now_ns);
  }
  /// Writes the words anew.
  void publish(const counters& now, std::int64_t now_ns) noexcept;

  /// The words that readers in other nodes see.
  [[nodiscard]] published_counters words() const noexcept { return published_counters{words_, published_words}; }

 private:
  bool poll_slow(const counters& now) noexcept;
  void awake_slow(const counters& now, std::int64_t now_ns) noexcept;

  std::int32_t polls_left_ = 1;
  bool asleep_ = false;
  std::int64_t due_ns_ = 0;
  std::atomic<std::uint64_t>* words_;
  wire::unique_ptr<std::atomic<std::uint64_t>[]> own_;
};

/// The meaning of the words of a PE at the time `now_ns`. For tools, which load them in rising
/// order.
[[nodiscard]] pe_counters decode_counters(const std::array<std::uint64_t, published_words>& words,
                                          std::int64_t now_ns) noexcept;

}  // namespace orrery::scheduler

namespace orrery {

/// The counters of a PE at one moment. `idle_ns` contains the time for which a sleeping PE has
/// slept so far.
struct pe_counters : scheduler::counters {
  std::int64_t at_ns = 0;  ///< CLOCK_MONOTONIC; 0: that PE has published nothing yet
  bool asleep = false;
};

/// The counters of any PE of the world: of the caller's own PE as they are, of others as they were
/// about a millisecond ago or when it fell asleep, of PEs of nodes that are gone as they were last.
/// Does not park. Throws usage_error if there is no such PE, or outside of the runtime; node_lost
/// if another PE has its place.
///
///     auto before = orrery::stats(3);
///     work();
///     auto messages = orrery::stats(3).executed - before.executed;
[[nodiscard]] pe_counters stats(std::uint32_t pe);

}  // namespace orrery
