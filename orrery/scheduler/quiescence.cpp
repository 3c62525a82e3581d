// SPDX-License-Identifier: Apache-2.0
// When nothing runs, nothing is queued and nothing is on its way in the whole world.
//
// Problem: each PE knows only itself; a message may be between two PEs that are both idle when one looks.
// So each PE that has had nothing to do for a while, or goes to sleep, publishes how much it has sent to others and received from others, and that it is idle: nothing to run,
// no timer, no I/O. Who wants to know adds them up. All idle and as much sent as received, twice in a row with the same sums, proves it: a record
// on its way would be missing from one sum, and a PE that woke in between would have changed them (Mattern 1987, the four counters).
//
// Nodes come and go. What was sent to one that is gone will never be received, so a PE that has learned of the loss counts the rings to and from that
// node no more; and the sums are good only if all PEs know of the same losses. (Counted are the bytes that went through the rings, whose positions
// both ends know anyway.) A node that has just joined is busy until its PEs say otherwise.
//
// Two ask. quiescence() waits for it. And the first PE asks while the main process has not ended: a world where nothing will ever happen again
// is dead, and run ends with an error that says who waits for whom.
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/transport/world.hpp>

#include <cstdio>

#include <fmt/format.h>

namespace orrery::scheduler {

namespace {
constexpr std::int64_t ask_again_ns = 20'000;  // for quiescence()
constexpr std::int64_t look_for_death_ns = 250'000'000;
}  // namespace

// From here until end_rest() the PE does nothing but look whether something has come.
void pe::rest() noexcept {
  if (resting_) return;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (const auto& c : channels_) sent += c->ring.written();
  for (const auto& in : inbound_) received += in->ring.read();
  idleness& mine = node_.idleness_of(id_);
  mine.sent.store(sent, std::memory_order_relaxed);
  mine.received.store(received, std::memory_order_relaxed);
  const std::uint64_t waits = quiescence_waiters_ != nullptr ? idleness::waits_for_quiescence : 0;
  const std::uint64_t word = idleness::is_idle | waits | gone_nodes_ << idleness::gone_shift;
  mine.idle.store(word, std::memory_order_release);  // SYNC: with node::world_if_idle
  resting_ = true;
}

void pe::end_rest() noexcept {
  // SYNC: release; what the PE does now others learn only from the records that it sends, and after this.
  node_.idleness_of(id_).idle.store(0, std::memory_order_release);
  resting_ = false;
}

std::uint64_t node::gone_nodes() const noexcept { return world_ != nullptr ? world_->gone_nodes() : 0; }

std::optional<idle_world> node::world_if_idle() noexcept {
  idle_world w{0, gone_nodes(), false};
  std::uint64_t received = 0;
  const std::uint32_t n = world_pes();
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!reachable(i)) continue;
    const idleness& one = idleness_of(i);
    const std::uint64_t word = one.idle.load(std::memory_order_acquire);  // SYNC: with pe::rest
    if ((word & idleness::is_idle) == 0 || word >> idleness::gone_shift != w.gone) return std::nullopt;
    if ((word & idleness::waits_for_quiescence) != 0) w.someone_waits = true;
    w.sent += one.sent.load(std::memory_order_relaxed);
    received += one.received.load(std::memory_order_relaxed);
  }
  if (w.sent != received) return std::nullopt;
  return w;
}

void pe::wait_for_quiescence() {
  require_process();
  if (refusing_) refuse("quiescence");
  current_->next = quiescence_waiters_;
  quiescence_waiters_ = current_;
  park();
  if (refusing_) refuse("quiescence");
}

// Called by a PE that has nothing to do, after it has published so. When it should look again; -1: no need. Wakes who waited in vain no more.
std::int64_t pe::look_for_quiescence(std::int64_t now) {
  const bool watches = id_ == 0 && node_.ends_when_dead() && !stopping();
  if (quiescence_waiters_ == nullptr && !watches) return -1;
  if (quiescence_waiters_ == nullptr && now < next_look_) return next_look_;
  const auto world = node_.world_if_idle();
  const bool quiet = world && node_.world_if_idle() == world;
  next_look_ = now + (quiescence_waiters_ != nullptr ? ask_again_ns : look_for_death_ns);
  if (!quiet) return next_look_;
  if (quiescence_waiters_ != nullptr) {
    fiber* f = quiescence_waiters_;
    quiescence_waiters_ = nullptr;
    wake_all(f);
    return now;
  }
  if (world->someone_waits) return next_look_;  // it will be woken
  node_.end_dead(describe_waits());
  return now;
}

std::string pe::describe(const slot& s) const {
  for (const auto& a : annexes_)
    if (a != nullptr)
      if (const std::string name = a->name_of(s); !name.empty())
        return fmt::format("{} ({})", name, to_string(address_of(s)));
  return to_string(address_of(s));
}

std::string pe::describe_waits() const {
  std::string text;
  int lines = 0;
  for (std::uint32_t i = 0; i < slot_count_ && lines < 20; ++i) {
    const slot& s = slots_[i];
    if (s.state == process_state::receiving) {
      text += fmt::format("  {} waits in receive\n", describe(s));
      ++lines;
      continue;
    }
    if (s.state != process_state::running || s.active == nullptr || s.active->on == nullptr) continue;
    const handler* h = s.active->method;
    const std::string who = h != nullptr ? fmt::format("{}::{}", h->class_name, h->method) : "a process function";
    const sink* w = s.active->on->waiting_on;
    if (w != nullptr && w->method != nullptr) {
      const std::string at = w->route != nullptr && w->route->call != 0 ? w->route->text()
                             : w->target.generation != 0                ? to_string(w->target)
                                                                        : "";
      text += fmt::format("  {} in {} waits for {}::{}{}{}\n", describe(s), who, w->method->class_name,
                          w->method->method, at.empty() ? "" : " at ", at);
    } else if (const room_wait* r = s.active->on->room; r != nullptr) {
      text += fmt::format("  {} in {} waits for room in the mailbox of {}\n", describe(s), who, to_string(r->at));
    } else {
      const char* in = s.active->on->waits_in;
      text +=
          fmt::format("  {} in {} waits{}{}\n", describe(s), who, in != nullptr ? " in " : "", in != nullptr ? in : "");
    }
    ++lines;
  }
  if (lines == 20) text += "  and more\n";
  for (const wait_watcher* w : watchers_) text += w->explain_waits();
  return text;
}

// A PE hears that the world ends because it is dead: the first one has said so, the others add what they know.
void pe::tell_waits() {
  if (id_ == 0 || told_ || node_.idleness_of(0).dead.load(std::memory_order_relaxed) == 0) return;
  told_ = true;
  if (const std::string waits = describe_waits(); !waits.empty()) {
    const std::string text = fmt::format("orrery: deadlock: on PE {}:\n{}", id_, waits);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
}

void node::end_dead(const std::string& waits) noexcept {
  const std::string line = fmt::format(
      "orrery: deadlock: nothing runs and nothing is on its way in the whole world, but the main function has not returned; on PE 0:\n{}",
      waits.empty() ? "  nothing waits\n" : waits);
  std::fwrite(line.data(), 1, line.size(), stderr);
  idleness_of(0).dead.store(1, std::memory_order_relaxed);
  dead_.store(true, std::memory_order_relaxed);
  stop();
}

}  // namespace orrery::scheduler
