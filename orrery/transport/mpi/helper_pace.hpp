// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/mpi/socket_watch.hpp>

#include <algorithm>
#include <cstdint>

namespace orrery::transport {

/// How the helper thread of a node sleeps between two looks at the MPI library.
///
/// Problem: while PEs sleep or compute, nobody else looks whether something has come. To look often
/// costs processor time in each idle rank; to look seldom makes messages wait. Sockets wake at
/// once, but a library may use none.
/// While PEs drive the carrier themselves, it would only be in their way.
/// So it leaves them alone then, but for a look now and then whether they still do. While the
/// library has parts of blocks, which it goes on with only when it is called, pauses are short. It
/// sleeps long only where sockets have announced what came before, and where all PEs sleep and
/// nothing is on its way. Frames that come unannounced after a long sleep, twice, take that trust
/// away. Without it pauses grow to `nap`, and after a second without anything to `long_nap`. A node
/// that has never heard of another machine sleeps for `unheard`: the first frame may wait so long,
/// once.
///
/// Owned by the helper thread.
class helper_pace {
 public:
  static constexpr std::int64_t shortest = 50'000;
  static constexpr std::int64_t nap = 400'000;
  static constexpr std::int64_t driven_nap = 1'000'000;
  static constexpr std::int64_t long_nap = 2'000'000;
  static constexpr std::int64_t first_deep = 10'000'000;
  static constexpr std::int64_t unheard = 20'000'000;
  static constexpr std::int64_t deepest = 80'000'000;  ///< a look costs some 20 us

  struct look {
    socket_watch::cause after = socket_watch::cause::time;  ///< what had ended the pause
    bool any = false;  ///< something came or went
    bool from_far = false;  ///< another machine's frame came
    bool calm = false;  ///< all PEs sleep, and nothing is on its way
    bool moves_blocks = false;  ///< the library has parts of blocks
    bool driven = false;  ///< PEs have driven the carrier, and do not all sleep
  };
  struct pause {
    std::int64_t ns = shortest;
    bool wakes = false;  ///< sockets end it, too
    bool is_deep = false;  ///< PEs that wake end it, too
  };

  /// `limit`: no pause is longer.
  explicit helper_pace(std::int64_t limit) noexcept : limit_(std::max(limit, shortest)) {}

  [[nodiscard]] pause next(const look& l) noexcept {
    if (l.driven) {
      empty_ = 0;
      idle_ns_ = 0;
      last_ = {};
      return {std::min(driven_nap, limit_), false, false};
    }
    heard_ = heard_ || l.from_far;
    if (l.from_far && l.after == socket_watch::cause::socket) doubts_ = 0;
    if (l.from_far && l.after == socket_watch::cause::time && last_.is_deep) ++doubts_;
    empty_ = l.any ? 0 : empty_ + 1;
    idle_ns_ = l.any || !l.calm ? 0 : idle_ns_ + last_.ns;
    const bool deep = (doubts_ < most_doubts || !heard_) && l.calm && empty_ >= 2;
    std::int64_t ns = shortest;
    if (deep) {
      ns = !last_.is_deep ? first_deep : std::min(4 * last_.ns, heard_ ? deepest : unheard);
    } else if (!l.any && !l.moves_blocks) {
      ns = std::min(2 * std::min(last_.ns, long_nap), idle_ns_ > 1'000'000'000 ? long_nap : nap);
    }
    return last_ = {std::min(ns, limit_), l.calm, deep};
  }

 private:
  static constexpr int most_doubts = 2;  // one may be chance

  std::int64_t limit_;
  pause last_;
  std::int64_t idle_ns_ = 0;
  bool heard_ = false;  // of another machine
  int empty_ = 0;  // looks in a row
  int doubts_ = most_doubts;
};

}  // namespace orrery::transport
