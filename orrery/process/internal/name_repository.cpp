// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/name_repository.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/function.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace orrery::detail {

// --- asking shards -------------------------------------------------------------------------------

membership_ptr shard_calls::members() {
  membership_ptr now = shard_here(self_).members(sure_);
  sure_ = false;
  if (!now->self_alive || now->members.empty()) throw stopped(what_);
  return now;
}

bool shard_calls::has_changed(const world_membership& m) { return shard_here(self_).members(true)->id != m.id; }

void shard_calls::pause() {
  constexpr std::int64_t longest_ns = 2'000'000;
  sure_ = true;
  (void)self_.park_until(transport::now_ns() + pause_ns_);
  pause_ns_ = std::min(2 * pause_ns_, longest_ns);
}

void open_names(pe& self) {
  const scheduler::node& n = self.owner();
  if (n.world() == nullptr || n.index() != 0 || !n.world()->is_open()) return;
  const membership_ptr now = shard_here(self).members(true);
  for (const member& m : now->keepers)
    for (std::uint32_t i = 0; i < m.pe_count; ++i) try {
        const auto shard = system_process<name_shard>(m.first_pe + i);
        future_access<name_answer>::disregard(start(shard)->find(std::string_view(), std::string_view(), now->id));
      } catch (const node_lost&) {  // those that are left ask each other
      }
}

// --- where the process lives ---------------------------------------------------------------------

namespace {

[[noreturn]] void throw_taken(std::string_view name, const address& by, std::string_view cls) {
  throw name_taken(fmt::format("publish \"{}\", which {} of class {} has", name, to_string(by), cls));
}

void erase_everywhere(pe& self, name_records& records, std::string_view name, address process) {
  shard_calls shards(self, "unpublish");
  for (;;) {
    const std::uint64_t in = shards.at(name, [&](auto shard, const world_membership& now) {
      return shard->erase(name, process, now.id) ? std::optional(now.id) : std::nullopt;
    });
    // A shard that has taken the name over meanwhile had it from the record, before that was
    // dropped.
    if (records.is_current(in)) return;
  }
}

}  // namespace

void publish_here(std::string_view name, address process) {
  pe& self = here_pe();
  slot* s = self.find(process.slot, process.generation);
  if (s == nullptr || s->dying) throw process_gone(fmt::format("publish \"{}\" for {}", name, to_string(process)));
  if (s->cls() == nullptr)
    throw usage_error(errc::bad_argument, fmt::format("publish \"{}\" for {}, which is a remote function that runs and "
                                                      "not a process that stays",
                                                      name, to_string(process)));
  const class_chain classes = chain_of(*s->cls());
  name_records& records = shard_here(self).records();
  s->named = 1;
  const name_records::record r = records.claim(name, process, *s->cls());
  if (r.process != process) throw_taken(name, r.process, r.cls->name);
  if (r.confirmed) return;
  shard_calls shards(self, "publish");
  for (;;) {
    std::uint64_t in = 0;
    name_answer a;
    try {
      a = shards.at(name, [&](auto shard, const world_membership& now) {
        in = now.id;
        name_answer said = shard->put(name, process, classes, now.id);
        return said.what != name_answer::is::retry ? std::optional(std::move(said)) : std::nullopt;
      });
    } catch (...) {
      records.drop(name, process);
      throw;
    }
    if (a.process != process) {
      records.drop(name, process);
      throw_taken(name, a.process, a.class_name);
    }
    switch (records.confirm(name, process, in)) {
      case name_records::outcome::done:
        return;
      case name_records::outcome::moved:
        continue;
      case name_records::outcome::gone:
        // It ended, or somebody took the name back, after the shard had been asked.
        erase_everywhere(self, records, name, process);
        if (self.find(process.slot, process.generation) != nullptr) return;
        throw process_gone(fmt::format("publish \"{}\" for {}", name, to_string(process)));
    }
  }
}

bool unpublish_here(std::string_view name, address process) {
  pe& self = here_pe();
  name_records& records = shard_here(self).records();
  const bool had = records.drop(name, process);
  erase_everywhere(self, records, name, process);
  return had;
}

// --- the node's PEs ------------------------------------------------------------------------------

void name_repository::prepare(pe& at) {
  if (records_ == nullptr) records_ = wire::make_unique<name_records>(at.owner(), cache_);
  make_system_process<name_shard>(at, at, *records_);
}

void name_repository::membership_changed(pe& at) noexcept {
  if (auto* shard = system_object<name_shard>(at)) shard->membership_changed();
}

void name_repository::before_end(pe& at, slot& s) noexcept {
  s.named = 0;
  const address process = at.address_of(s);
  const auto names = records_->take(process);
  for (const std::string& name : names) {
    if (at.stopping()) return;  // the node goes, and all its names with it
    try {
      erase_everywhere(at, *records_, name, process);
    } catch (const std::exception&) {  // stopped, or the shard cannot be reached: nor can others
    }
  }
}

void name_repository::after_end(pe& at, address gone) noexcept {
  if (at.stopping()) return;
  try {
    start_function(at, [this, gone] {
      for (const std::string& name : records_->take(gone)) erase_everywhere(here_pe(), *records_, name, gone);
    });
  } catch (const std::exception& e) {  // no memory for a stack
    at.failures().report("the names of a process that has ended stay", std::current_exception());
  }
}

}  // namespace orrery::detail
