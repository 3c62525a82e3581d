// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/failure_log.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/say.hpp>

#include <cstdio>
#include <new>
#include <string>

#include <fmt/format.h>

namespace orrery::scheduler {

namespace {

const char* plural(std::uint64_t count) noexcept { return count == 1 ? "" : "s"; }

// Failures because others have come to their end before. The end itself is no failure.
bool is_of_the_end(const std::exception_ptr& why) noexcept {
  if (why == nullptr) return true;
  try {
    std::rethrow_exception(why);
  } catch (const stopped&) {
    return true;
  } catch (const process_gone&) {
    return true;
  } catch (const node_lost&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string text_of(std::exception_ptr why) {
  try {
    std::rethrow_exception(std::move(why));
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace

bool failure_log::is_quiet() const noexcept { return of_.stopping() || !of_.owner().world_runs(); }

void failure_log::report(std::string_view where, std::exception_ptr why) noexcept {
  if (is_quiet() && is_of_the_end(why)) return;
  ++of_.count().failed_posts;
  try {
    say(why == nullptr ? fmt::format("orrery: PE {}: {}\n", of_.id(), where)
                       : fmt::format("orrery: PE {}: {}: {}\n", of_.id(), where, text_of(std::move(why))));
  } catch (const std::bad_alloc&) {  // it was counted
  }
}

void failure_log::report_post(const handler* method, std::exception_ptr why) noexcept {
  const std::string_view of = method != nullptr ? method->class_name : "";
  try {
    report(fmt::format("{}{}{} failed, and nobody waits for its result", of,
                       of.empty() ? "" : "::", method != nullptr ? method->method : "a process function"),
           std::move(why));
  } catch (const std::bad_alloc&) {
    report("a message failed, and nobody waits for its result", std::move(why));
  }
}

void failure_log::report_unsent(const handler& method, std::uint32_t to, std::exception_ptr why) noexcept {
  if (is_quiet()) return;
  constexpr std::size_t most_unsent = 256;  // nodes may come and go for ever
  if (unsent_.size() >= most_unsent) {
    report_more_unsent();
    unsent_.clear();
  }
  try {
    if (const auto [it, first] = unsent_.try_emplace({&method, of_.owner().node_of(to)}, 0); !first) {
      ++of_.count().failed_posts;
      ++it->second;
      return;
    }
  } catch (const std::bad_alloc&) {  // then each is reported
  }
  report_post(&method, std::move(why));
}

void failure_log::report_more_unsent() noexcept {
  for (const auto& [what, count] : unsent_)
    if (count != 0)
      say(fmt::format("orrery: PE {}: {} more one-way message{} {}::{} failed as the first one did: {}\n", of_.id(),
                      count, plural(count), what.first->class_name, what.first->method,
                      what.second != transport::no_node ? fmt::format("node {} was lost", what.second)
                                                        : std::string("another node has the place of its node")));
}

// Messages to a lost node that were not known to be taken from its ring.
void failure_log::note_lost(const channel& c) noexcept {
  if (is_quiet()) return;
  std::uint64_t lost = 0;
  // The lost node could write to the ring, too.
  const auto look_at = [&](const wire::envelope& e, std::uint32_t bytes) {
    if (!wire::is_message(e.kind) || e.reply != 0) return;
    const std::uint64_t index = wire::envelope::read_once(e.handler);
    const std::uint32_t padding = wire::envelope::read_once(e.padding);
    const bool sound =
        c.remote && padding <= bytes - wire::granule && wire::envelope::read_once(e.form) == wire::payload_form::wire;
    if (const handler* const h = sound ? find_handler(index) : nullptr; h != nullptr && h->lost != nullptr) {
      const auto* const payload = const_cast<wire::envelope&>(e).payload();
      try {
        lost_.push_back({h, c.pe, {payload, payload + (bytes - wire::granule - padding)}});
        return;
      } catch (const std::bad_alloc&) {  // then it is counted
      }
    }
    ++lost;
  };
  c.ring.for_each_left(look_at);
  for (const auto& kept : c.deferred)
    look_at(*reinterpret_cast<const wire::envelope*>(kept.data()), static_cast<std::uint32_t>(kept.size()));
  if (lost != 0) count_lost(c.pe, lost);
}

void failure_log::tell_of_lost() noexcept {
  const auto all = std::exchange(lost_, {});
  std::map<std::uint32_t, std::uint64_t> lost;
  for (const lost_message& m : all)
    if (!m.method->lost(of_, *m.method, m.payload, m.to, nullptr)) ++lost[m.to];
  for (const auto& [to, count] : lost) count_lost(to, count);
}

void failure_log::count_lost(std::uint32_t to, std::uint64_t count) noexcept {
  of_.count().failed_posts += count;
  say_lost(to, count);
}

void failure_log::say_lost(std::uint32_t to, std::uint64_t count) const noexcept {
  say(fmt::format("orrery: PE {}: {} one-way message{} to PE {} failed: {} on the way when its node was lost\n",
                  of_.id(), count, plural(count), to, count == 1 ? "it was" : "they were"));
}

}  // namespace orrery::scheduler
