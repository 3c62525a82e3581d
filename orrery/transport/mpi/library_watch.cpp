// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/library_watch.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::transport {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds longest_pause = 250ms;
constexpr std::chrono::nanoseconds starting_patience = 30s;
constexpr std::chrono::nanoseconds least_ending_patience = 20s;
constexpr int looks = 8;  // in the patience

}  // namespace

library_watch::library_watch(std::chrono::nanoseconds patience, teller say, teller fatal)
    : patience_(patience),
      pause_(std::clamp<std::chrono::nanoseconds>(patience / looks, 1ms, longest_pause)),
      say_(std::move(say)),
      fatal_(std::move(fatal)),
      thread_([this] { watch(); }) {}

library_watch::~library_watch() {
  {
    const std::scoped_lock lock{mutex_};
    end_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

std::chrono::nanoseconds library_watch::limit_of(kind what) const noexcept {
  switch (what) {
    case kind::starting:
      return starting_patience;
    case kind::ending:
      return std::max(patience_, least_ending_patience);
    default:
      return 2 * patience_;  // others miss this node before, if it is alone
  }
}

void library_watch::watch() {
  std::unique_lock lock{mutex_};
  while (!ends_.wait_for(lock, pause_, [this] { return end_; })) look();
}

void library_watch::look() {
  const std::uint64_t turn = turn_.load(std::memory_order_acquire);  // SYNC: with next_turn
  if (turn % 2 == 0 || turn != seen_) {
    seen_ = turn;
    waited_ = {};
    told_ = false;
    return;
  }
  waited_ += pause_;
  const kind what = kind_.load(std::memory_order_relaxed);
  if (told_ || waited_ < limit_of(what)) return;
  told_ = true;
  const char* const call = call_.load(std::memory_order_relaxed);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(waited_).count();
  if (what == kind::starting) {
    say_(fmt::format(
        "{} has not returned for {} ms: it waits for other ranks; look whether all hosts have started theirs, and "
        "reach each other",
        call, ms));
  } else {
    fatal_(fmt::format("{} has not returned for {} ms, as if the launcher or the network were gone: this node ends",
                       call, ms));
  }
}

}  // namespace orrery::transport
