// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/failure_log.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/say.hpp>
#include <orrery/scheduler/wait_report.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdio>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// In the place of a lost node: a process that is gone, by the text that names it. No node has so
// large a number.
constexpr std::uint32_t gone_process = std::uint32_t{1} << 31U;
std::optional<std::uint32_t> number_of_gone(const std::exception_ptr& why) noexcept {
  try {
    if (why != nullptr) std::rethrow_exception(why);
  } catch (const process_gone& e) {
    const std::size_t hash = std::hash<std::string_view>()(e.what());
    return (static_cast<std::uint32_t>(hash) | gone_process) & ~std::uint32_t{1};
  } catch (...) {  // another failure
  }
  return {};
}
bool is_gone_process(std::uint32_t number) noexcept {
  return (number & gone_process) != 0 && number != transport::no_node;
}

constexpr std::size_t most_unsent = 256;  // nodes and processes may come and go for ever

// False: this is the first one, or cannot be remembered, and is to be said.
template <class Unsent>
bool is_another(Unsent& unsent, const handler& method, std::uint32_t number) noexcept {
  try {
    const auto [it, first] = unsent.try_emplace({&method, number}, 0);
    if (!first) ++it->second;
    return !first;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

struct failure_log::kept_posts {
  struct lost_message {
    const handler* method;
    std::uint32_t to;
    std::vector<std::byte> payload;
  };
  // Posts after the first, by method and lost node.
  std::map<std::pair<const handler*, std::uint32_t>, std::uint64_t> unsent;
  std::vector<lost_message> lost;
};

failure_log::failure_log(pe& of) : of_(of), kept_(wire::make_unique<kept_posts>()) {}
failure_log::~failure_log() = default;

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

// If a process is gone, its messages of one method are said as report_unsent says those to a lost
// node: the first one at once, and how many followed when the PE ends.
void failure_log::report_post(const handler* method, std::exception_ptr why) noexcept {
  if (const auto gone = number_of_gone(why); gone && method != nullptr && !is_quiet()) {
    if (kept_->unsent.size() >= most_unsent) report_more_unsent();
    if (is_another(kept_->unsent, *method, *gone)) {
      ++of_.count().failed_posts;
      return;
    }
  }
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
  if (kept_->unsent.size() >= most_unsent) report_more_unsent();
  if (is_another(kept_->unsent, method, of_.owner().node_of(to))) {
    ++of_.count().failed_posts;
    return;
  }
  report_post(&method, std::move(why));
}

void failure_log::report_more_unsent() noexcept {
  const auto say_more = [&](const handler& method, std::uint64_t count, std::string_view why) {
    if (count != 0)
      say(fmt::format("orrery: PE {}: {} more one-way message{} {}::{} failed as the first one did: {}\n", of_.id(),
                      count, plural(count), method.class_name, method.method, why));
  };
  std::map<const handler*, std::uint64_t> gone;  // a line for each process would fill the log, too
  for (const auto& [what, count] : std::exchange(kept_->unsent, {})) {
    const auto& [method, number] = what;
    if (is_gone_process(number)) {
      gone[method] += count;
    } else {
      say_more(*method, count,
               number != transport::no_node ? fmt::format("node {} was lost", number)
                                            : std::string("another node has the place of its node"));
    }
  }
  for (const auto& [method, count] : gone) say_more(*method, count, "its process had ended");
}

// Messages to a lost node that were not known to be taken from its ring.
void failure_log::note_lost(const outbound& c) noexcept {
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
        kept_->lost.push_back({h, c.pe, {payload, payload + (bytes - wire::granule - padding)}});
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
  const auto all = std::exchange(kept_->lost, {});
  std::map<std::uint32_t, std::uint64_t> lost;
  for (const kept_posts::lost_message& m : all)
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
