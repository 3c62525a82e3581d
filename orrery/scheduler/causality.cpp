// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/causality.hpp>

#include <orrery/scheduler/order_through_nodes.hpp>
#include <orrery/scheduler/pe.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace orrery::scheduler {

namespace {

constexpr std::size_t entries_of_a_record = 1000;  // 16 KB: they fit into the smallest ring
constexpr std::size_t numbers_looked_at = 64;

}  // namespace

// --- what runs -----------------------------------------------------------------------------------

causality::strand* causality::running() {
  const activation* const a = of_.active();
  if (a == nullptr) return nullptr;
  if (a != latest_) {
    latest_strand_ = &strands_[a];
    latest_ = a;
  }
  return latest_strand_;
}

causality::stamp causality::now() {
  if (of_.active() != latest_ || latest_strand_->number == 0 || latest_strand_->told) [[unlikely]]
    renew_stamp();
  const strand& s = *latest_strand_;
  return {s.number, s.time, s.version};
}

void causality::renew_stamp() {
  strand& s = *running();
  if (s.number == 0) {
    give_number(s);
  } else if (s.told) {
    s.clock.raise(s.number, ++s.time);
    s.version = ++last_version_;
  }
  s.told = false;
}

const vector_clock& causality::clock() {
  strand* const s = running();
  return s == nullptr ? nothing_ : s->clock;
}

void causality::tick() noexcept {
  if (strand* const s = running()) s->told = true;
}

// A number whose last strand comes before this one can be used again: so the clocks of a program
// that makes many short strands stay short.
void causality::give_number(strand& s) {
  const std::size_t looked_at = std::min(free_numbers_.size(), numbers_looked_at);
  for (std::size_t i = 0; i < looked_at; ++i) {
    ended& e = free_numbers_[free_numbers_.size() - 1 - i];
    if (s.clock.of(e.number) < e.time) continue;
    s.number = e.number;
    e = free_numbers_.back();
    free_numbers_.pop_back();
    break;
  }
  if (s.number == 0) s.number = std::uint64_t{of_.id()} << 32 | ++last_number_;
  s.time = s.clock.of(s.number) + 1;
  s.clock.raise(s.number, s.time);
  s.version = ++last_version_;
}

void causality::join(strand& s, const vector_clock& c) {
  if (s.clock.join(c)) s.version = ++last_version_;
}

void causality::begin(const activation& a) {
  strand s;
  s.version = ++last_version_;
  if (a.serving != nullptr) {
    if (a.serving->heap != nullptr) {
      if (const auto m = messages_.find(a.serving->heap); m != messages_.end()) s.clock = m->second;
    } else if (arriving_) {
      s.clock = std::exchange(incoming_, {});
      arriving_ = false;
    }
  } else if (a.below != nullptr) {
    strand& caller = strands_[a.below];
    caller.tell();
    s.clock = caller.clock;
  } else if (const auto made = kept_.find(a.process); made != kept_.end()) {  // a process function
    s.clock = std::move(made->second);
    kept_.erase(made);
  }
  if (const auto p = processes_.find(a.process); p != processes_.end() && p->second.generation == a.process->generation)
    s.clock.join(p->second.clock);
  strands_[&a] = std::move(s);
}

void causality::end(const activation& a) {
  const auto at = strands_.find(&a);
  if (at == strands_.end()) return;
  if (&a == latest_) latest_ = nullptr;
  strand s = std::move(at->second);
  strands_.erase(at);
  if (s.number != 0) free_numbers_.push_back({s.number, s.clock.of(s.number)});
  if (a.serving == nullptr && a.below != nullptr) join(strands_[a.below], s.clock);
  if (s.clock.empty()) return;
  process_clock& p = processes_[a.process];
  // others of the process may have ended while this one was parked
  if (p.generation == a.process->generation) s.clock.join(p.clock);
  p = {std::move(s.clock), a.process->generation};
}

void causality::take_process() {
  strand* const s = running();
  if (s == nullptr) return;
  const slot* const process = of_.active()->process;
  if (const auto p = processes_.find(process); p != processes_.end() && p->second.generation == process->generation)
    join(*s, p->second.clock);
}

// --- what goes from one to another ---------------------------------------------------------------

const vector_clock& causality::tell() {
  if (arriving_) return incoming_;
  strand* const s = running();
  if (s == nullptr) return nothing_;
  s->tell();
  return s->clock;
}

void causality::created(const message& m) {
  const vector_clock& c = tell();
  if (!c.empty()) messages_[&m] = c;
  arriving_ = false;
}

void causality::gone(const message& m) {
  const auto at = messages_.find(&m);
  if (at == messages_.end()) return;
  if (strand* const s = running()) join(*s, at->second);
  messages_.erase(at);
}

void causality::give(const void* key) {
  const vector_clock& c = tell();
  if (!c.empty()) kept_[key].join(c);
}

void causality::give_anew(const void* key) {
  const vector_clock& c = tell();
  if (c.empty()) {
    kept_.erase(key);
  } else {
    kept_[key] = c;
  }
}

void causality::take(const void* key) {
  strand* const s = running();
  const auto at = kept_.find(key);
  if (s != nullptr && at != kept_.end()) join(*s, at->second);
}

namespace {

std::uint32_t bytes_for(std::size_t entries) { return wire::record_bytes(entries * sizeof(vector_clock::entry)); }

void fill_annex(wire::envelope& e, std::span<const vector_clock::entry> entries, bool first) {
  const std::size_t payload = entries.size_bytes();
  e.kind = wire::record_kind::annex;
  e.form = wire::payload_form::wire;
  e.padding = static_cast<std::uint16_t>(bytes_for(entries.size()) - wire::granule - payload);
  e.slot = wire::no_slot;
  e.generation = first ? 1 : 0;
  e.handler = 0;
  e.reply = 0;
  std::memcpy(e.payload(), entries.data(), payload);
}

/// Calls f(entries, first) for each record of an annex, until it returns false.
template <class F>
bool for_each_record(const vector_clock& c, F f) {
  for (std::size_t at = 0; at < c.entries().size(); at += entries_of_a_record)
    if (!f(c.entries().subspan(at, std::min(entries_of_a_record, c.entries().size() - at)), at == 0)) return false;
  return true;
}

}  // namespace

bool causality::precede(outbound& c) noexcept {
  return for_each_record(tell(), [&](auto entries, bool first) {
    wire::envelope* const e = c.ring.reserve(bytes_for(entries.size()));
    if (e == nullptr) return false;
    fill_annex(*e, entries, first);
    if (c.remote) order_before_other_nodes();
    of_.commit(c, bytes_for(entries.size()));
    return true;
  });
}

std::vector<std::vector<std::byte>> causality::annex_records(const outbound&) {
  std::vector<std::vector<std::byte>> all;
  for_each_record(tell(), [&](auto entries, bool first) {
    auto& r = all.emplace_back(bytes_for(entries.size()));
    auto* const e = reinterpret_cast<wire::envelope*>(r.data());
    e->size.store(bytes_for(entries.size()), std::memory_order_relaxed);
    fill_annex(*e, entries, first);
    return true;
  });
  return all;
}

void causality::receive_annex(const inbound& in, const std::byte* payload, std::size_t bytes, bool first) {
  vector_clock& c = annexes_[in.pe];
  if (first) c = {};
  for (std::size_t at = 0; at + sizeof(vector_clock::entry) <= bytes; at += sizeof(vector_clock::entry)) {
    vector_clock::entry e;
    std::memcpy(&e, payload + at, sizeof e);
    c.raise(e.strand, e.time);
  }
}

void causality::arrives(const inbound& in) {
  incoming_ = std::exchange(annexes_[in.pe], {});
  arriving_ = true;
}

wire::envelope* outbound::try_reserve_after_annex(std::uint32_t bytes) noexcept {
  if (slow() || order == nullptr || !order->precede(*this)) return nullptr;
  return ring.reserve(bytes);
}

}  // namespace orrery::scheduler
