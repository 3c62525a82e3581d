// SPDX-License-Identifier: Apache-2.0
// When nothing runs, nothing is queued and nothing is on its way in the whole world.
//
// Problem: each PE knows only itself; a message may be between two PEs that are both idle when one
// looks. So each PE that has had nothing to do for a while, or goes to sleep, publishes how much it
// has sent to others and received from others, and that it is idle: nothing to run, no timer, no
// I/O. The PE that asks adds them up. All idle and as much sent as received, twice in a row with
// the same sums, proves it: a record on its way would be missing from one sum, and a PE that woke
// in between would have changed them (Mattern 1987, the four counters).
//
// Nodes come and go. Messages to a node that is gone will never be received, so a PE that has
// learned of the loss counts the rings to and from that node no more; and the sums are good only if
// all PEs know of the same losses. (Counted are the bytes that went through the rings, whose
// positions both ends know anyway.) A node that has just joined is busy until its PEs say
// otherwise.
//
// PEs of other machines are seen by copies of what they publish (transport/carrier.hpp). A copy may
// be old; so a look asks for new copies, and the next look waits until all have come.
//
// Senders that wait for room in mailboxes are let go on then (backlog::raise_all): each PE with
// such a mailbox asks, too.
//
// Two more ask. quiescence() waits for it. And the first PE asks while the main process has not
// ended: a world where nothing will ever happen again is dead, and run ends with an error that says
// who waits for whom.
#include <orrery/scheduler/quiescence_detector.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/wait_report.hpp>
#include <orrery/transport/carrier.hpp>
#include <orrery/transport/world.hpp>

#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace orrery::scheduler {

namespace {
constexpr std::int64_t ask_again_ns = 20'000;  // for quiescence()
constexpr std::int64_t ask_again_for_room_ns = 500'000;
constexpr std::int64_t look_for_death_ns = 250'000'000;
}  // namespace

void quiescence_detector::rest(bool for_time) noexcept {
  if (resting_) return;
  const auto [sent, received] = of_.links().traffic();
  idleness& mine = of_.owner().idleness_of(of_.id());
  mine.sent.store(sent, std::memory_order_relaxed);
  mine.received.store(received, std::memory_order_relaxed);
  std::uint64_t word = (for_time ? idleness::waits_for_time : idleness::is_idle) | of_.links().known_losses()
                                                                                       << idleness::gone_shift;
  if (someone_waits()) word |= idleness::waits_for_quiescence;
  if (of_.flow().excess().holds_senders()) word |= idleness::holds_senders;
  mine.idle.store(word, std::memory_order_release);  // SYNC: with node::world_if_idle
  resting_ = true;
}

void quiescence_detector::end_rest() noexcept {
  // SYNC: release; what the PE does now others learn only from the records that it sends, and after
  // this.
  of_.owner().idleness_of(of_.id()).idle.store(0, std::memory_order_release);
  resting_ = false;
}

std::uint64_t node::gone_nodes() const noexcept { return world_ != nullptr ? world_->gone_nodes() : 0; }

std::optional<idle_world> node::world_if_idle() noexcept {
  idle_world w{0, gone_nodes(), false, false, false, false};
  std::uint64_t received = 0;
  const std::uint32_t n = world_pes();
  for (std::uint32_t place = 0; place < n; ++place) {
    const std::uint32_t i = pe_at(place);
    if (!reachable(i)) continue;
    // its node is leaving: what it still does, and has read, is not known
    if (!takes_work(i)) return std::nullopt;
    const idleness& one = idleness_of(i);
    // SYNC: with quiescence_detector::rest
    const std::uint64_t word = one.idle.load(std::memory_order_acquire);
    if ((word & (idleness::is_idle | idleness::waits_for_time)) == 0 || word >> idleness::gone_shift != w.gone)
      return std::nullopt;
    if ((word & idleness::waits_for_time) != 0) w.waits_for_time = true;
    if ((word & idleness::waits_for_quiescence) != 0) w.someone_waits = true;
    if ((word & idleness::holds_senders) != 0) w.someone_holds = true;
    // SYNC: with node::begin_outside; the second look sees what began during the first one
    if (one.marks.load(std::memory_order_acquire) >= idleness::one_outside) w.works_outside = true;
    w.sent += one.sent.load(std::memory_order_relaxed);
    received += one.received.load(std::memory_order_relaxed);
  }
  if (w.sent != received) return std::nullopt;
  return w;
}

void quiescence_detector::wait() {
  of_.require_process();
  if (of_.refusing()) of_.shutdown().refuse("quiescence");
  of_.running()->next = waiters_;
  waiters_ = of_.running();
  of_.park();
  if (of_.refusing()) of_.shutdown().refuse("quiescence");
}

// The timer is needed as the PE may be busy all the time, and does not look then.
void quiescence_detector::settle(std::int64_t limit_ns) {
  of_.require_process();
  if (of_.stopping()) return;
  settle_deadline_ = transport::now_ns() + limit_ns;
  settler_ = of_.running();
  (void)of_.park_until(settle_deadline_);
  settler_ = nullptr;
}

void quiescence_detector::end_settling() noexcept {
  if (fiber* const f = std::exchange(settler_, nullptr)) of_.ready(*f);
}

void quiescence_detector::let_go() { of_.ready_all(std::exchange(waiters_, nullptr)); }

// Where copies stand for the counters of other machines, a look is at copies that were all made
// after the look before it.
std::optional<idle_world> quiescence_detector::look_twice() noexcept {
  node& here = of_.owner();
  transport::carrier* const carrier = here.world() != nullptr ? here.world()->carrier() : nullptr;
  if (carrier == nullptr) {
    const auto world = here.world_if_idle();
    return world && here.world_if_idle() == world ? world : std::nullopt;
  }
  if (round_ != 0 && carrier->counters_round() < round_) return std::nullopt;
  const auto before = std::exchange(first_look_, round_ != 0 ? here.world_if_idle() : std::nullopt);
  const bool quiet = first_look_ && before == first_look_;
  const auto world = first_look_;
  if (quiet) first_look_.reset();
  round_ = carrier->ask_for_counters();
  return quiet ? world : std::nullopt;
}

std::int64_t quiescence_detector::look(std::int64_t now) {
  node& here = of_.owner();
  const bool watches = of_.id() == 0 && here.ends_when_dead() && !of_.stopping() && !settles();
  const bool holds = of_.flow().excess().holds_senders();
  const bool hurries = someone_waits() || settles();
  if (!hurries && !watches && !holds) return -1;
  if (!hurries && !holds && now < next_look_) return next_look_;
  const auto world = look_twice();
  next_look_ = now + (hurries ? ask_again_ns : holds ? ask_again_for_room_ns : look_for_death_ns);
  if (settles() && now >= settle_deadline_) end_settling();
  // Those who wait for quiescence go on first.
  if (settles() && world && !world->someone_holds && (!world->someone_waits || world->waits_for_time)) end_settling();
  if (of_.has_runnable()) return now;
  if (!world || world->waits_for_time) return next_look_;
  if (holds) {
    end_rest();  // what it has published says that it holds some
    of_.flow().excess().raise_all();
  }
  if (world->someone_holds) return holds ? now : next_look_;
  if (someone_waits()) {
    let_go();
    return now;
  }
  // Those that wait for quiescence will be woken, and from outside something will come.
  if (world->someone_waits || world->works_outside) return next_look_;
  here.end_dead(describe_waits(of_));
  return now;
}

void quiescence_detector::tell_waits() {
  if (of_.id() == 0 || told_ || !of_.owner().idleness_of(0).found_dead()) return;
  told_ = true;
  if (const std::string waits = describe_waits(of_); !waits.empty()) {
    const std::string text = fmt::format("orrery: deadlock: on PE {}:\n{}", of_.id(), waits);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
}

void node::end_dead(const std::string& waits) noexcept {
  const std::string line = fmt::format(
      "orrery: deadlock: nothing runs and nothing is on its way in the whole world, but the main function has not returned; on PE 0:\n{}",
      waits.empty() ? "  nothing waits\n" : waits);
  std::fwrite(line.data(), 1, line.size(), stderr);
  idleness_of(0).marks.fetch_or(idleness::is_dead, std::memory_order_relaxed);
  dead_.store(true, std::memory_order_relaxed);
  stop();
}

}  // namespace orrery::scheduler
