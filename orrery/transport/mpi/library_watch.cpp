// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/library_watch.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::transport {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds longest_pause = 250ms;
constexpr int starts = 10;  // so many times the time for a start: then there will be none
constexpr std::chrono::nanoseconds least_ending_patience = 20s;
constexpr int looks = 8;  // in the patience

}  // namespace

library_watch::library_watch(std::chrono::nanoseconds patience, std::chrono::nanoseconds start, teller say,
                             teller fatal)
    : patience_(patience),
      start_(start),
      pause_(std::clamp<std::chrono::nanoseconds>(std::min(patience, start) / looks, 1ms, longest_pause)),
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
      return told_ ? starts * start_ : start_;
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
  if (waited_ < limit_of(what)) return;
  const bool ends = told_ || what != kind::starting;
  told_ = true;
  const char* const call = call_.load(std::memory_order_relaxed);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(waited_).count();
  if (what == kind::starting && ends) {
    fatal_(fmt::format("{} has not returned for {} ms, as if a rank were not started, or had ended: this one ends",
                       call, ms));
  } else if (what == kind::starting) {
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
