// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/counters.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace orrery::scheduler {
namespace {

constexpr std::int64_t publish_every_ns = 1'000'000;
constexpr std::int32_t polls_per_look = 32;  // at the clock

// Words before those of the table.
constexpr std::size_t asleep_since_word = 0;  // 0: awake
constexpr std::size_t at_word = 1;
constexpr std::size_t first_word = 2;

using enum counter_kind;

constexpr counter_info table[] = {
    {"executed", &counters::executed, total, "messages that were executed"},
    {"inline_calls", &counters::inline_calls, total,
     "sequential calls that ran at once on their caller's stack, without a message"},
    {"sent", &counters::sent, total, "records sent to other PEs: messages, results, control"},
    {"sent_bytes", &counters::sent_bytes, total,
     "bytes of these; payloads above 4 KiB for other nodes travel in blocks and are not counted"},
    {"received", &counters::received, total, "records received from other PEs"},
    {"received_bytes", &counters::received_bytes, total, "bytes of these"},
    {"parks", &counters::parks, total, "times that a method or function was parked"},
    {"sleeps", &counters::sleeps, total, "times that the PE slept because it had nothing to do"},
    {"idle_ns", &counters::idle_ns, total, "nanoseconds without anything to do, spinning or asleep"},
    {"queue_high", &counters::queue_high, high,
     "the longest run queue: processes and parked methods that were ready to run"},
    {"mailbox_high", &counters::mailbox_high, high, "bytes in the fullest mailbox"},
    {"queued_bytes", &counters::queued_bytes, level, "bytes in all mailboxes, as they were last measured"},
    {"raised_limits", &counters::raised_limits, total,
     "times that a full mailbox took more than its limit, as its senders would have waited for ever"},
    {"processes", &counters::processes, level, "processes that are alive"},
    {"spawned", &counters::spawned, total,
     "processes that have come to life there; an element counts again after a move"},
    {"failed_posts", &counters::failed_posts, total,
     "one-way messages that failed, those on their way to a node that was lost included"},
    {"routed", &counters::routed, total, "messages to elements of arrays that left their PE"},
    {"hops", &counters::hops, total,
     "ways from PE to PE that these took: the first of each that left this PE, and those that this PE sent on"},
    {"io_requests", &counters::io_requests, total, "I/O requests that have ended"},
    {"io_bytes", &counters::io_bytes, total, "bytes that they have read and written"},
    {"io_enters", &counters::io_enters, total, "system calls that handed I/O requests over"},
    {"service_window", &counters::service_window, level,
     "W of services: the window of the session that was served last"},
    {"service_granularity", &counters::service_granularity, level,
     "G of services: the items above which a range or a list process splits"},
    {"service_forwards", &counters::service_forwards, level,
     "K of walking lists: requests passed on between two synchronous sends"},
};
static_assert(std::size(table) * sizeof(std::uint64_t) == sizeof(counters), "a counter is missing in the table");
static_assert(first_word + std::size(table) <= published_words);
static_assert(published_words + 4 == transport::counters_per_pe);

}  // namespace

std::span<const counter_info> counter_table() noexcept { return table; }

counter_publisher::counter_publisher(std::atomic<std::uint64_t>* words) : words_(words) {
  if (words_ != nullptr) return;
  own_ = wire::make_unique<std::atomic<std::uint64_t>[]>(published_words);
  words_ = own_.get();
}

void counter_publisher::publish(const counters& now, std::int64_t now_ns) noexcept {
  for (std::size_t i = 0; i < std::size(table); ++i)
    words_[first_word + i].store(now.*table[i].value, std::memory_order_relaxed);
  words_[at_word].store(static_cast<std::uint64_t>(now_ns), std::memory_order_relaxed);
  due_ns_ = now_ns + publish_every_ns;
}

bool counter_publisher::poll_slow(const counters& now) noexcept {
  polls_left_ = polls_per_look;
  const std::int64_t now_ns = transport::now_ns();
  if (now_ns < due_ns_) return false;
  publish(now, now_ns);
  return true;
}

void counter_publisher::sleeping(const counters& now, std::int64_t since_ns) noexcept {
  publish(now, since_ns);
  words_[asleep_since_word].store(static_cast<std::uint64_t>(since_ns), std::memory_order_relaxed);
  asleep_ = true;
}

void counter_publisher::awake_slow(const counters& now, std::int64_t now_ns) noexcept {
  publish(now, now_ns);
  if (!asleep_) return;
  asleep_ = false;
  // SYNC: release, with stats: whoever sees that the PE is awake sees the idle time that has ended.
  words_[asleep_since_word].store(0, std::memory_order_release);
}

pe_counters decode_counters(const std::array<std::uint64_t, published_words>& words, std::int64_t now_ns) noexcept {
  pe_counters c;
  for (std::size_t i = 0; i < std::size(table); ++i) c.*table[i].value = words[first_word + i];
  c.at_ns = static_cast<std::int64_t>(words[at_word]);
  const auto since = static_cast<std::int64_t>(words[asleep_since_word]);
  c.asleep = since != 0;
  if (c.asleep) {
    c.idle_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ns - since));
    c.at_ns = std::max(c.at_ns, now_ns);
  }
  return c;
}

}  // namespace orrery::scheduler

namespace orrery {

pe_counters stats(std::uint32_t pe) {
  scheduler::pe* const self = scheduler::current_pe;
  if (self == nullptr) throw usage_error(errc::not_running, "stats");
  if (pe == self->id()) {
    pe_counters c;
    static_cast<scheduler::counters&>(c) = self->count();
    c.at_ns = transport::now_ns();
    return c;
  }
  scheduler::node& here = self->owner();
  if (!here.knows(pe)) {
    throw usage_error(errc::no_such_place, fmt::format("stats({}) in a world of {} PEs", pe, here.world_pes()));
  }
  if (self->simulated() != nullptr) {
    pe_counters c;
    static_cast<scheduler::counters&>(c) = self->simulated()->by->at(pe).count();
    c.at_ns = transport::now_ns();
    return c;
  }
  const scheduler::published_counters from =
      here.is_local(pe) ? here.local(pe).published() : here.world()->counters(pe).first<scheduler::published_words>();
  std::array<std::uint64_t, scheduler::published_words> words;
  // SYNC: acquire, with awake_slow; the first word says whether the PE sleeps.
  std::ranges::transform(from, words.begin(), [](const auto& w) { return w.load(std::memory_order_acquire); });
  if (here.world() != nullptr && here.world()->is_past_pe(pe)) throw node_lost(fmt::format("stats({})", pe));
  return scheduler::decode_counters(words, transport::now_ns());
}

}  // namespace orrery
