// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/backlog.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/quiescence_detector.hpp>
#include <orrery/scheduler/wait_report.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <unistd.h>

namespace orrery::scheduler {

namespace {

constexpr std::int64_t pause_per_cost = 256;  // measuring takes this part of the time at most
constexpr std::uint32_t growth_between_checks = (1 << 20) / charge_unit;  // of one mailbox
constexpr std::size_t flows_shown = 10;

std::string size_text(std::uint64_t bytes) {
  if (bytes < 10 << 20) return fmt::format("{} KiB", (bytes + 1023) >> 10);
  return fmt::format("{} MiB", bytes >> 20);
}

// Messages of one kind, from one PE to one process.
struct flow {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

}  // namespace

void backlog::begin_to_hold(slot& s) {
  slot_extra& x = of_.flow().make_extra(s);
  if (x.listed) return;
  holding_.push_back(of_.address_of(s));
  x.listed = true;
}

bool backlog::holds_senders() {
  std::erase_if(holding_, [&](const address& a) {
    const slot* const s = of_.find(a.slot, a.generation);
    slot_extra* const x = s != nullptr ? of_.flow().extra_of(*s) : nullptr;
    if (x == nullptr) return true;
    x->listed = x->holds_senders();
    return !x->listed;
  });
  return !holding_.empty();
}

void backlog::raise(slot& s) {
  // By more where much waits: the number of times does not grow as what is sent does.
  raise(s, std::max(of_.flow().mailbox_limit(), s.charge / 4));
}

void backlog::raise(slot& s, std::uint32_t growth) {
  of_.quiescence().end_rest();  // what lets senders go are records, which others are to count
  if (of_.flow().is_full(s)) {
    of_.flow().make_extra(s).limit = s.charge + growth;
    ++of_.count().raised_limits;
    took_more(s);
  }
  of_.flow().let_senders_go(s);
}

void backlog::raise_all() {
  (void)holds_senders();
  for (const address& a : std::vector<address>(holding_))
    if (slot* const s = of_.find(a.slot, a.generation)) raise(*s);
}

// In the loop every process in the middle of a method is parked.
void backlog::relieve(std::int64_t now_ns) {
  if (!holds_senders()) return;
  for (const address& a : std::vector<address>(holding_)) {
    slot* const s = of_.find(a.slot, a.generation);
    if (s == nullptr || s->state == process_state::scheduled) continue;
    slot_extra& x = *of_.flow().extra_of(*s);
    if (x.held_charge == s->charge && now_ns - x.held_since_ns < relieve_after_ns) continue;
    const bool stood_still = x.held_charge == s->charge;
    x.held_charge = s->charge;
    x.held_since_ns = now_ns;
    if (stood_still) raise(*s, of_.flow().mailbox_limit());
  }
}

void backlog::took_more(slot& s) {
  slot_extra& x = of_.flow().make_extra(s);
  if (s.charge < x.checked_above) return;
  x.checked_above = s.charge + growth_between_checks;
  measure_if_due();
}

void backlog::measure_if_due() {
  const std::int64_t begin = transport::real_now_ns();
  if (begin < due_ns_) return;
  measure();
  const std::int64_t end = transport::real_now_ns();
  due_ns_ = end + (end - begin) * pause_per_cost;
  check_node();
}

void backlog::measure() {
  std::uint64_t charge = 0;
  for (const slot& s : of_.processes().all())
    if (s.state != process_state::free) charge += s.charge;
  const std::uint64_t bytes = charge * charge_unit;
  of_.count().queued_bytes = bytes;
  bytes_.store(bytes, std::memory_order_relaxed);
}

void backlog::check_node() {
  node& n = of_.owner();
  const std::uint64_t mine = bytes();
  // then another PE has more, and ends the program
  if (mine <= n.queue_limit() / n.pe_count()) return;
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < n.pe_count(); ++i) all += n.local(n.first_pe() + i).flow().excess().bytes();
  if (all > n.queue_limit()) end_program(all);
}

std::string backlog::largest_flows() const {
  // by slot, PE of the sender, method
  std::map<std::tuple<std::uint32_t, std::uint32_t, const handler*>, flow> flows;
  for (slot& s : of_.processes().all()) {
    if (s.state == process_state::free) continue;
    (void)s.search([&](const message*, const message* m) {
      flow& f = flows[{of_.processes().index_of(s), m->source_pe, reinterpret_cast<const handler*>(m->head.handler)}];
      ++f.messages;
      f.bytes += std::uint64_t{m->charge()} * charge_unit;
      return false;
    });
  }
  using entry = decltype(flows)::value_type;
  std::vector<const entry*> all;
  for (const entry& f : flows) all.push_back(&f);
  std::ranges::sort(all, std::greater{}, [](const entry* f) { return f->second.bytes; });
  if (all.size() > flows_shown) all.resize(flows_shown);
  std::string text;
  for (const entry* of : all) {
    const auto& [to, from, method] = of->first;
    const flow& f = of->second;
    const slot& s = of_.processes().all()[to];
    const class_info* const cls = s.cls();
    text += fmt::format("  {} messages, {}: {}::{} from PE {} to {}{}{}\n", f.messages, size_text(f.bytes),
                        method->class_name, method->method, from,
                        cls != nullptr  ? cls->name
                        : s.is_function ? std::string_view("a process function")
                                        : std::string_view(),
                        cls != nullptr || s.is_function ? " " : "", describe(of_, s));
  }
  return text;
}

void backlog::end_program(std::uint64_t all) {
  const node& n = of_.owner();
  const std::string text = fmt::format(
      "orrery: the mailboxes of node {} hold {}, and {} are allowed: the node ends. Senders are faster than receivers, and cannot "
      "be made to wait: they post to themselves, or wait for each other. Let a process post less before it returns, or "
      "raise --orrery-queue-memory. On PE {} wait {}, most of it:\n{}",
      n.index(), size_text(all), size_text(n.queue_limit()), of_.id(), size_text(bytes()), largest_flows());
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  _exit(1);
}

}  // namespace orrery::scheduler
