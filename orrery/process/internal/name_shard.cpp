// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/name_shard.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <utility>

namespace orrery::detail {

namespace {

constexpr std::size_t names_compared = 20'000;  // for suggestions: a wrong name is not to cost much

pulled answer_pull(const pull& request) { return shard_here(here_pe()).records().answer(request); }

void wake_waiter(std::uint64_t ticket) {
  if (auto* shard = system_object<name_shard>(here_pe())) shard->wake(ticket);
}

}  // namespace

name_shard& shard_here(pe& self) {
  auto* shard = system_object<name_shard>(self);
  if (shard == nullptr) throw stopped("names");
  return *shard;
}

name_shard::name_shard(pe& home, name_records& records)
    : home_(home), records_(records), members_(records.members(true)) {}

const membership_ptr& name_shard::members(bool sure) {
  if (sure || !seems_current(home_.owner(), *members_)) members_ = records_.members(sure);
  return members_;
}

// --- requests ---

// True if this shard can answer what was asked in that membership.
bool name_shard::is_ready(std::uint64_t in, bool sure) {
  if (members(sure)->id != in && members(true)->id != in) return false;
  if (complete_ == in) return true;
  return complete(members_);
}

name_answer name_shard::tell(const entry& e, std::string_view cls) {
  if (is_kind_of(*e.cls, cls)) return {name_answer::is::here, e.process, {}};
  return {name_answer::is::other_class, e.process, e.cls->front()};
}

name_answer name_shard::find(std::string_view name, std::string_view cls, std::uint64_t in) {
  if (!is_ready(in, false)) return {};
  auto it = entries_.find(name);
  if (it == entries_.end()) {
    // The epoch follows the change: the name may be known to another shard already.
    if (!is_ready(in, true)) return {};
    it = entries_.find(name);
    if (it == entries_.end()) return {name_answer::is::missing, {}, {}};
  }
  return tell(it->second, cls);
}

name_answer name_shard::subscribe(std::string_view name, std::string_view cls, std::uint64_t in, std::uint32_t from,
                                  std::uint64_t ticket) {
  name_answer a = find(name, cls, in);
  if (a.what == name_answer::is::missing) subscribers_[std::string(name)].push_back({from, ticket});
  return a;
}

void name_shard::unsubscribe(std::string_view name, std::uint32_t from, std::uint64_t ticket) {
  const auto it = subscribers_.find(name);
  if (it == subscribers_.end()) return;
  std::erase_if(it->second, [&](const subscriber& s) { return s.pe == from && s.ticket == ticket; });
  if (it->second.empty()) subscribers_.erase(it);
}

name_answer name_shard::put(std::string_view name, address process, const class_chain& classes, std::uint64_t in) {
  if (classes.empty()) throw bad_message(errc::message_corrupt, "a name without a class");
  if (!is_ready(in, true)) return {};
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    entries_.emplace(name, entry{process, intern(classes), hash_of(name), true});
    tell_subscribers(name);
    return {name_answer::is::here, process, {}};
  }
  if (it->second.process == process) return {name_answer::is::here, process, {}};
  return {name_answer::is::other_class, it->second.process, it->second.cls->front()};
}

bool name_shard::erase(std::string_view name, address process, std::uint64_t in) {
  if (!is_ready(in, true)) return false;
  const auto it = entries_.find(name);
  if (it != entries_.end() && it->second.process == process) entries_.erase(it);
  return true;
}

name_list name_shard::list(std::string_view prefix, slice part, std::uint64_t in) {
  name_list a;
  if (!is_ready(in, true)) {
    a.retry = true;
    return a;
  }
  const auto is_wanted = [&](const auto& e) { return e.first.starts_with(prefix); };
  if (part.count == 0) {
    const auto all = static_cast<std::size_t>(std::ranges::count_if(entries_, is_wanted));
    part = {0, static_cast<std::uint32_t>(all / names_per_answer + 1)};
  }
  a.slices = part.count;
  std::unordered_map<const class_chain*, std::uint32_t> classes;
  for (const auto& e : entries_) {
    if (!is_wanted(e) || !part.has(e.second.hash)) continue;
    const auto [cls, fresh] = classes.emplace(e.second.cls, static_cast<std::uint32_t>(classes.size()));
    if (fresh) a.classes.push_back(e.second.cls->front());
    a.names.push_back({e.first, e.second.process, cls->second});
  }
  return a;
}

nearest_names name_shard::nearest(std::string_view name, std::uint64_t in) {
  if (!is_ready(in, true)) return {true, {}};
  suggestions s(name);
  std::size_t left = names_compared;
  for (const auto& e : entries_) {
    if (left-- == 0) break;
    s.consider(e.first);
  }
  return {false, s.best()};
}

const class_chain* name_shard::intern(const class_chain& classes) {
  const auto it = classes_.find(classes.front());
  return it != classes_.end() ? &it->second : &classes_.emplace(classes.front(), classes).first->second;
}

void name_shard::tell_subscribers(std::string_view name) {
  const auto it = subscribers_.find(name);
  if (it == subscribers_.end()) return;
  const std::vector<subscriber> waiting = std::move(it->second);
  subscribers_.erase(it);
  for (const subscriber& s : waiting) try {
      // A call, whose loss is the concern of nobody.
      future_access<void>::disregard(start_call<&wake_waiter>(orrery::pe(s.pe), s.ticket));
    } catch (const error&) {  // who waited there has gone
    }
}

// --- a new membership ---

// Makes the shard complete for the membership. False if it has changed meanwhile: the request comes
// again.
bool name_shard::complete(membership_ptr now) {
  subscribers_.clear();  // all who wait hear of the change and come again
  if (settled_ && now->keepers == base_) {
    std::erase_if(entries_, [&](const auto& e) { return now->member_of(e.second.process.pe) == now->members.size(); });
    complete_ = now->id;
    return true;
  }
  settled_ = false;
  pull request;
  request.membership = now->id;
  request.shard = home_.id();
  request.base = base_;
  const std::vector<digest> kept = keep_own(*now);
  base_ = now->keepers;

  const std::size_t nodes = now->members.size();
  std::vector<future<pulled>> answers(nodes);
  // Those that nobody takes, as the membership has changed meanwhile: that they fail is no news.
  const auto disregard = [](std::vector<future<pulled>>* all) {
    for (future<pulled>& f : *all)
      if (f.valid()) future_access<pulled>::disregard(std::move(f));
  };
  const wire::unique_ptr<std::vector<future<pulled>>, decltype(disregard)> untaken(&answers, disregard);
  for (std::size_t n = 0; n < nodes; ++n) {
    if (home_.owner().is_local(now->members[n].first_pe)) continue;
    request.kept = kept[n];
    try {
      answers[n] = start_call<&answer_pull>(whom_to_ask(now->members[n]), request);
    } catch (const node_lost&) {
    }
  }
  for (std::size_t n = 0; n < nodes; ++n) {
    request.kept = kept[n];
    try {
      if (!take_over(*now, n, request, std::move(answers[n]))) return false;
    } catch (const node_lost&) {
      // A node that only this one does not trust any more stays a member: its names are unknown
      // here.
      if (members(true)->id != now->id) return false;
      forget(*now, n);
    }
  }
  complete_ = now->id;
  settled_ = true;
  return true;
}

// Any PE of the node can answer.
placement name_shard::whom_to_ask(const member& m) const noexcept {
  return orrery::pe(m.first_pe + home_.id() % m.pe_count);
}

// Takes over the names of the processes of one node, which was asked already if it is another one.
bool name_shard::take_over(const world_membership& now, std::size_t node, pull request, future<pulled> asked) {
  const bool local = home_.owner().is_local(now.members[node].first_pe);
  if (!local && !asked.valid()) throw node_lost();
  pulled names = local ? records_.answer(request) : asked.get();
  if (names.retry) return false;
  if (names.whole && request.kept.count != 0) forget(now, node);
  merge(now, node, names);
  request.whole = names.whole;
  request.part.count = names.slices;
  while (++request.part.index < request.part.count) {
    names = local ? records_.answer(request) : call<&answer_pull>(whom_to_ask(now.members[node]), request);
    if (names.retry) return false;
    merge(now, node, names);
  }
  return true;
}

// Drops what is not this shard's any more, or names a process that is gone. Returns what is left of
// each member.
std::vector<digest> name_shard::keep_own(const world_membership& now) {
  std::vector<digest> kept(now.members.size());
  for (auto it = entries_.begin(); it != entries_.end();) {
    entry& e = it->second;
    const std::size_t node = now.member_of(e.process.pe);
    if (node == now.members.size() || owner_of(e.hash, now.keepers) != home_.id()) {
      it = entries_.erase(it);
    } else {
      kept[node].add(e.hash, e.process);
      e.confirmed = false;
      ++it;
    }
  }
  return kept;
}

void name_shard::merge(const world_membership& now, std::size_t node, pulled& from) {
  std::vector<const class_chain*> classes;
  for (const class_chain& c : from.classes) {
    if (c.empty()) throw bad_message(errc::message_corrupt, "a class without a name");
    classes.push_back(intern(c));
  }
  for (pulled_name& n : from.names) {
    if (n.cls >= classes.size() || now.member_of(n.process.pe) != node)
      throw bad_message(errc::message_corrupt, "the names of a node");
    const entry e{n.process, classes[n.cls], hash_of(n.name), n.confirmed};
    const auto [it, fresh] = entries_.try_emplace(std::move(n.name), e);
    if (!fresh && !it->second.confirmed && e.confirmed) it->second = e;  // two claim it, one has it
  }
}

void name_shard::forget(const world_membership& now, std::size_t node) {
  std::erase_if(entries_, [&](const auto& e) { return now.member_of(e.second.process.pe) == node; });
}

// --- those who wait on this PE ---

void name_shard::add(waiter& w) {
  w.ticket = ++tickets_;
  waiters_.emplace(w.ticket, &w);
}

bool name_shard::wait(waiter& w, std::int64_t deadline_ns) {
  while (!w.woken) {
    w.parked = home_.running();
    const bool late = home_.park_until(deadline_ns);
    w.parked = nullptr;
    if (home_.refusing()) home_.shutdown().refuse("await_name");
    if (late && !w.woken) return false;
  }
  return true;
}

void name_shard::wake(std::uint64_t ticket) noexcept {
  const auto it = waiters_.find(ticket);
  if (it == waiters_.end()) return;
  waiter& w = *it->second;
  w.woken = true;
  if (w.parked != nullptr) home_.ready(*std::exchange(w.parked, nullptr));
}

void name_shard::membership_changed() noexcept {
  if (waiters_.empty()) return;
  const std::uint64_t now = members(true)->id;
  for (const auto& [ticket, w] : waiters_)
    if (w->membership != now) wake(ticket);
}

}  // namespace orrery::detail
