// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/names.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/detail/silent_pe.hpp>
#include <orrery/process/internal/name_repository.hpp>
#include <orrery/process/internal/name_shard.hpp>
#include <orrery/process/spawn.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <boost/locale/utf.hpp>

namespace orrery {

namespace detail {
namespace {

using is = name_answer::is;

constexpr std::size_t longest_name = 255;

// The fault of a name, or nothing.
std::optional<std::string> flaw_of(std::string_view name) {
  using utf8 = boost::locale::utf::utf_traits<char>;
  if (name.empty()) return "it is empty";
  if (name.size() > longest_name)
    return fmt::format("it has {} bytes, and a name has at most {}", name.size(), longest_name);
  for (auto at = name.begin(); at != name.end();) {
    const auto place = at - name.begin();
    const auto c = utf8::decode(at, name.end());
    if (c == boost::locale::utf::illegal || c == boost::locale::utf::incomplete)
      return fmt::format("it is not UTF-8 at byte {}", place);
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
      return fmt::format("it has a control character (U+{:04X}) at byte {}", c, place);
  }
  return std::nullopt;
}

// The calling PE, if the name can be one.
pe& check(std::string_view what, std::string_view name) {
  pe& self = here_pe();
  self.require_process();
  if (const auto flaw = flaw_of(name))
    throw usage_error(errc::bad_argument, fmt::format("{}: the name cannot be used: {}", what, *flaw));
  return self;
}

[[noreturn]] void throw_other_class(std::string_view what, std::string_view name, std::string_view wanted,
                                    const name_answer& a) {
  throw bad_remote_cast(
      fmt::format("{}<{}>(\"{}\"): {} is of class {}", what, wanted, name, to_string(a.process), a.class_name));
}

// The time limit passed while the PE that keeps the name's entry did not answer.
[[noreturn]] void throw_silent(const pe& self, std::string_view what, std::string_view name, std::uint32_t keeper) {
  throw timeout_error(verbatim, fmt::format("{} \"{}\": the time limit passed: {} keeps the name's entry and {}", what,
                                            name, pe_in_words(self.owner(), keeper), why_silent(self.owner(), keeper)));
}

constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();

std::chrono::nanoseconds left_until(std::int64_t deadline) {
  return std::chrono::nanoseconds(deadline - transport::now_ns());
}

name_answer ask(pe& self, std::string_view what, std::string_view name, std::string_view cls,
                std::int64_t deadline = no_deadline) {
  shard_calls shards(self, what);
  for (;;) {
    name_answer a = shards.at(name, [&](auto shard, const world_membership& now) {
      const auto find_in_time = [&] {
        auto asked = start(shard)->find(name, cls, now.id);
        if (asked.wait_for(left_until(deadline))) return asked.get();
        future_access<name_answer>::disregard(std::move(asked));
        throw_silent(self, what, name, shard.address().pe);
      };
      name_answer said = deadline == no_deadline ? shard->find(name, cls, now.id) : find_in_time();
      return said.what != is::retry ? std::optional(std::move(said)) : std::nullopt;
    });
    // The shard may not have heard yet what this PE has.
    if (a.what == is::missing || self.owner().reachable(a.process.pe)) return a;
    const membership_ptr now = shards.members();
    if (now->member_of(a.process.pe) != now->members.size()) return a;
  }
}

// Published names that are nearly the same, as a clause of an error's text; best effort.
std::string nearest_names_to(pe& self, std::string_view name, std::int64_t deadline) {
  suggestions best(name);
  try {
    const membership_ptr now = shard_here(self).members(true);
    std::vector<future<nearest_names>> answers;
    for (const member& m : now->keepers)
      for (std::uint32_t i = 0; i < m.pe_count; ++i)
        answers.push_back(start(system_process<name_shard>(m.first_pe + i))->nearest(name, now->id));
    for (auto& answer : answers) {
      if (deadline != no_deadline && !answer.wait_for(left_until(deadline))) {
        future_access<nearest_names>::disregard(std::move(answer));
        continue;
      }
      for (const suggestion& s : answer.get().best) best.consider(s.name);
    }
  } catch (const node_lost&) {  // so be it
  } catch (const process_gone&) {
  }
  if (best.best().empty()) return {};
  std::string text;
  for (const suggestion& s : best.best()) text += fmt::format("{}\"{}\"", text.empty() ? "" : " or ", s.name);
  return fmt::format(" (did you mean {}?)", text);
}

void publish_there(std::string_view name, address process) { publish_here(name, process); }
bool unpublish_there(std::string_view name, address process) { return unpublish_here(name, process); }

}  // namespace

void publish(std::string_view name, const address& process) {
  const pe& self = check("publish", name);
  if (!process) throw usage_error(errc::null_pointer, fmt::format("publish \"{}\"", name));
  if (process.pe == self.id()) {
    publish_here(name, process);
  } else {
    call<&publish_there>(orrery::pe(process.pe), name, process);
  }
}

namespace {

address look_up(std::string_view name, std::string_view class_name, std::int64_t deadline) {
  pe& self = check("lookup", name);
  const name_answer a = ask(self, "lookup", name, class_name, deadline);
  if (a.what == is::here) return a.process;
  if (a.what == is::other_class) throw_other_class("lookup", name, class_name, a);
  throw name_not_found(fmt::format("lookup \"{}\"{}", name, nearest_names_to(self, name, deadline)));
}

}  // namespace

address lookup(std::string_view name, std::string_view class_name) { return look_up(name, class_name, no_deadline); }
address lookup(std::string_view name, std::string_view class_name, time_limit timeout) {
  return look_up(name, class_name, deadline_after(timeout));
}

address await_name(std::string_view name, std::string_view class_name, time_limit timeout) {
  pe& self = check("await_name", name);
  const std::int64_t deadline = deadline_after(timeout);
  const auto left = [deadline] { return left_until(deadline); };
  name_shard& here = shard_here(self);
  name_shard::waiter w;
  here.add(w);
  const std::string waits_in = fmt::format("await_name \"{}\"", name);
  struct guard {
    name_shard& shard;
    name_shard::waiter& w;
    scheduler::fiber& waiter;
    const char* const outer = waiter.waits_in;
    ~guard() {
      shard.remove(w);
      waiter.waits_in = outer;
    }
  } const registered{here, w, *self.running()};
  // A layer above may have said it in its own words.
  if (registered.outer == nullptr) self.running()->waits_in = waits_in.c_str();
  shard_calls shards(self, "await_name");
  for (;;) {
    const membership_ptr now = shards.members();
    const auto shard = system_process<name_shard>(owner_of(hash_of(name), now->keepers));
    w.membership = now->id;
    w.woken = false;
    bool late = false;
    try {
      auto answer = start(shard)->subscribe(name, class_name, now->id, self.id(), w.ticket);
      const bool silent = !answer.wait_for(left());
      late = silent;
      if (!late) {
        const name_answer a = answer.get();
        if (a.what == is::here) return a.process;
        if (a.what == is::other_class) throw_other_class("await_name", name, class_name, a);
        if (a.what == is::retry) {
          shards.pause();
          late = left().count() <= 0;
        } else {
          late = !here.wait(w, deadline);
        }
      }
      if (late)
        // If it is lost, nobody needs to hear of that.
        future_access<void>::disregard(start(shard)->unsubscribe(name, self.id(), w.ticket));
      if (silent) {
        future_access<name_answer>::disregard(std::move(answer));
        throw_silent(self, "await_name", name, shard.address().pe);
      }
    } catch (const node_lost&) {
      if (!shards.has_changed(*now)) throw;
    } catch (const process_gone&) {  // its node is leaving
      shards.pause();
      late = left().count() <= 0;
    }
    if (late) throw timeout_error(fmt::format("await_name \"{}\"", name));
  }
}

}  // namespace detail

bool unpublish(std::string_view name) {
  detail::pe& self = detail::check("unpublish", name);
  const auto a = detail::ask(self, "unpublish", name, {});
  if (a.what == detail::is::missing) return false;
  if (a.process.pe == self.id()) return detail::unpublish_here(name, a.process);
  try {
    return call<&detail::unpublish_there>(pe(a.process.pe), name, a.process);
  } catch (const node_lost&) {  // and its names with it
    return true;
  }
}

std::vector<published_name> names(std::string_view prefix) {
  detail::pe& self = detail::here_pe();
  self.require_process();
  detail::shard_calls shards(self, "names");
  for (;;) {
    const auto now = shards.members();
    std::vector<published_name> all;
    const auto take = [&](detail::name_list& from) {
      for (auto& n : from.names) {
        if (n.cls >= from.classes.size()) throw bad_message(errc::message_corrupt, "a list of names");
        all.push_back({std::move(n.name), n.process, from.classes[n.cls]});
      }
      return !from.retry;
    };
    try {
      std::vector<std::pair<remote<detail::name_shard>, future<detail::name_list>>> first;
      for (const auto& m : now->keepers)
        for (std::uint32_t i = 0; i < m.pe_count; ++i) {
          const auto shard = detail::system_process<detail::name_shard>(m.first_pe + i);
          first.emplace_back(shard, start(shard)->list(prefix, {}, now->id));
        }
      bool complete = true;
      for (auto& [shard, answer] : first) {
        auto list = answer.get();
        complete = take(list) && complete;
        for (std::uint32_t i = 1; complete && i < list.slices; ++i) {
          auto more = shard->list(prefix, {i, list.slices}, now->id);
          complete = take(more);
        }
        if (!complete) break;
      }
      if (complete) {
        std::ranges::sort(all, {}, &published_name::name);
        return all;
      }
    } catch (const node_lost&) {
      if (!shards.has_changed(*now)) throw;
      continue;
    } catch (const process_gone&) {  // its node is leaving
    }
    shards.pause();
  }
}

}  // namespace orrery
