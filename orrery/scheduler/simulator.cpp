// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/simulator.hpp>

#include <orrery/scheduler/fiber_pool.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/overflow.hpp>
#include <orrery/scheduler/pe_parts.hpp>
#include <orrery/scheduler/quiescence_detector.hpp>
#include <orrery/scheduler/terminate.hpp>
#include <orrery/scheduler/wait_report.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace orrery::scheduler {

namespace {

constexpr std::int64_t simulated_nap_ns = 500'000;  // other PEs come to their end without saying so
constexpr std::int64_t look_ns = 1'000;  // a PE that has nothing to do looks at the carrier so soon
constexpr std::size_t mapping_bytes = std::size_t{1} << 30;

bool carries(wire::record_kind kind) noexcept {
  using enum wire::record_kind;
  return wire::is_message(kind) || kind == reply || kind == small_reply;
}

std::int64_t shortest_way(const transport::sim_settings& s) noexcept {
  double way = s.local.latency + s.local.overhead;
  if (s.nodes * s.pes == 1) way = s.net.latency + s.net.overhead;
  if (s.machines > 1) way = std::min(way, s.net.latency + s.net.overhead);
  return static_cast<std::int64_t>(way);
}

}  // namespace

simulator::simulator(const transport::sim_settings& settings, const pe_settings& pes)
    : universe_(settings),
      network_(universe_.settings()),
      order_(settings.jitter_ns != 0, settings.seed),
      lookahead_(shortest_way(settings)),
      pe_settings_(pes),
      fibers_(pes.method_stack, pes.function_stack, &simulator::loop_entry, this),
      states_(settings.all_pes()),
      lost_(settings.all_nodes(), 0) {
  for (simulated_pe& s : states_) s.clock = start_ns;
  // Messages arrive in the order sent.
  universe_.on_end = [this] {
    const auto& u = universe_.settings();
    const double longest = std::max(u.net.latency, u.local.latency) + 1000;
    add_fault({std::max(now_, states_[0].clock) + static_cast<std::int64_t>(longest) + u.jitter_ns, transport::no_node,
               true});
  };
  for (const auto& l : settings.losses) {
    faults_.push_back({start_ns + l.at_ns, l.node, false});
    faults_.push_back({start_ns + l.at_ns + settings.detect_ns, l.node, true});
  }
  if (settings.carriers) make_carriers();
}

simulator::~simulator() {
  for (const auto& [memory, bytes] : mappings_) munmap(memory, bytes);
}

pe_settings simulator::settings_of_pes() noexcept {
  pe_settings s = pe_settings_;
  s.fibers = &fibers_;
  s.yield = false;
  return s;
}

void simulator::add(node& n) {
  for (std::uint32_t i = 0; i < n.pe_count(); ++i) {
    pe& p = n.local(n.first_pe() + i);
    simulated_pe& s = states_[p.id()];
    s.by = this;
    s.node = n.index();
    p.sim_ = &s;
    pes_.push_back(&p);
  }
  n.sim_ = this;
  nodes_.push_back(&n);
}

void simulator::run(const std::function<void(pe&)>& first) {
  const overflow_report report;
  const terminate_report end_report;
  adopt_thread(root_);
  for (node* n : nodes_) n->begin();
  for (std::uint32_t i = 0; i < faults_.size(); ++i) schedule(faults_[i].at_ns, {nullptr, is_fault | i});
  here_ = &root_;
  pe& main = *pes_.front();
  enter(main, start_ns);
  first(main);
  main.switch_to(fibers_.take_loop());  // comes back when all have ended
  for (pe* p : pes_) {
    current_pe = p;
    p->shutdown_.finish();
  }
  current_pe = nullptr;
  transport::use_clock(nullptr);
  fibers_.forget_idle();
  for (node* n : nodes_) n->finish();
}

sim_report simulator::report() const noexcept {
  sim_report r = report_;
  r.time_ns = std::max(now_, latest_) - start_ns;
  for (const pe* p : pes_) {
    r.routed += p->count_.routed;
    r.hops += p->count_.hops;
  }
  return r;
}

// --- who is next ---------------------------------------------------------------------------------

void simulator::loop_entry(fiber&, void* self) {
  auto& s = *static_cast<simulator*>(self);
  s.fibers_.finish();
  s.loop();
}

void simulator::loop() {
  for (;;) {
    if (received_ != nullptr) read(*std::exchange(received_, nullptr));
    if (running_ == nullptr && !next()) leave();
    if (arrived_ != nullptr) {
      simulated_link& l = *std::exchange(arrived_, nullptr);
      received_ = &l;
      wire::envelope* e = l.in->ring.front();
      pe& p = *running_;
      p.sim_->paid = p.count_.executed + 1;  // one is paid for by its arrival
      p.receive_record(*l.in, *e, l.in->ring.front_bytes());  // may come back much later
      p.sim_->paid = std::min(p.sim_->paid, p.count_.executed);
      continue;
    }
    if (pe& p = *running_; p.turn() && !stay(p)) give_back(p);
  }
}

void simulator::leave() noexcept {
  fibers_.finished = here_;
  leave_fiber(*here_, root_);
}

// Chooses who runs. False when all is over.
bool simulator::next() {
  for (;;) {
    if (over_ == pes_.size()) return false;
    if (!with_io_.empty()) await_io();
    if (queue_.empty()) {
      if (!when_nothing_is_due()) return false;
      continue;
    }
    if (pes_.front()->quiescence().settles() && end_settling()) continue;
    const auto [time, order, e] = queue_.take();
    fetch_next();
    now_ = std::max(now_, time);
    if ((e.what & is_fault) != 0) {
      ++report_.events;
      const fault f = faults_[e.what & ~is_fault];
      happen(f);
      continue;
    }
    if ((e.what & is_drive) != 0) {
      const std::uint32_t node = e.what & ~is_drive;
      if (time == far_[node].due) drive(node);
      continue;
    }
    simulated_pe& s = states_[e.what];
    if (time != s.due) continue;  // it became due earlier
    s.due = simulated_pe::never;
    if (s.over || lost_[s.node] != 0) continue;
    enter(*pes_[e.what], time);
    if (s.next_arrival() <= time) {
      (void)take_arrival(s);
    } else {
      ++report_.events;
    }
    return true;
  }
}

// The next record of a PE that runs is to be received. False if it was read when its sender was
// lost.
bool simulator::take_arrival(simulated_pe& s) {
  const auto [time, order, link] = s.arrivals.take();
  if (link->far) link->announced = false;
  if (link->in->lost || link->in->ring.front() == nullptr) return false;
  ++report_.events;
  const auto& cost = network_.between(states_[link->from].node, s.node);
  s.clock = std::max(s.clock, time) +
            network_.on(s.node, cost.overhead + static_cast<double>(universe_.settings().message_ns));
  arrived_ = link;
  return true;
}

// A PE has nothing to do, or others may reach it: true if a record has arrived before they can,
// which it takes next.
bool simulator::stay(const pe& p) {
  simulated_pe& s = *p.sim_;
  for (;;) {
    const std::int64_t time = s.next_arrival();
    if (time == simulated_pe::never || s.over || own_due(p) < time) return false;
    if (!queue_.empty()) {
      const bool exactly = (queue_.next().what.what & is_fault) != 0;
      if (time >= queue_.next().time + (exactly ? 0 : lookahead_)) return false;
    }
    if (take_arrival(s)) return true;
  }
}

void simulator::enter(pe& p, std::int64_t time) noexcept {
  running_ = &p;
  current_pe = &p;
  p.current_ = here_;
  simulated_pe& s = *p.sim_;
  s.clock = std::max(s.clock, time);
  if (universe_.settings().measured) s.began = transport::real_now_ns();
  transport::use_clock(&s.clock);
}

void simulator::give_back(pe& p) {
  simulated_pe& s = *p.sim_;
  charge_real_time(p);
  latest_ = std::max(latest_, s.clock);
  running_ = nullptr;
  if (!far_.empty()) drive_at(s.node, s.clock + look_ns);
  here_ = p.current_;
  transport::use_clock(&now_);
  if (s.over) {
    ++over_;
    return;
  }
  if (p.io_active_ != nullptr && !s.does_io) {
    s.does_io = true;
    if (with_io_.empty()) {
      io_since_ = now_;
      io_since_real_ = transport::real_now_ns();
    }
    with_io_.push_back(&p);
  }
  event e{nullptr, p.id()};
  std::int64_t due = own_due(p);
  if (s.next_arrival() < due) {
    due = s.next_arrival();
    e.link = s.arrivals.next().what;
  }
  if (due < s.due) {
    s.due = due;
    schedule(due, e);
  }
}

// When a PE goes on without anything from outside.
std::int64_t simulator::own_due(const pe& p) const noexcept {
  const simulated_pe& s = *p.sim_;
  if (!p.runnable_.empty() || !p.when_idle_.empty()) return s.clock;
  std::int64_t due = simulated_pe::never;
  if (!p.timers_.empty()) due = std::max(s.clock, p.timers_.begin()->first);
  if (p.stopping()) due = std::min(due, s.clock + simulated_nap_ns);
  return due;
}

void simulator::wake(pe& p) {
  simulated_pe& s = *p.sim_;
  const std::int64_t due = std::max(running_ != nullptr ? running_->sim_->clock : now_, s.clock);
  if (s.over || due >= s.due) return;
  s.due = due;
  schedule(due, {nullptr, p.id()});
}

// Nothing is under way: true if somebody has waited for that.
bool simulator::let_waiters_go() {
  bool waited = false;
  for (pe* p : pes_) {
    if (p->stopping() || lost_[p->sim_->node] != 0 || !p->flow().excess().holds_senders()) continue;
    p->links().run_errand([](void* at) { static_cast<pe*>(at)->flow().excess().raise_all(); }, p);
    waited = true;
  }
  if (waited) return true;
  for (pe* p : pes_)
    if (p->quiescence().someone_waits()) {
      p->quiescence().let_go();
      wake(*p);
      waited = true;
    }
  return waited;
}

// True if something will happen nevertheless.
bool simulator::when_nothing_is_due() {
  if (let_waiters_go()) return true;
  pe& main = *pes_.front();
  if (said_dead_ || lost_[0] != 0 || main.stopping()) {
    for (pe* p : pes_)
      if (!p->stopping() && lost_[p->sim_->node] == 0) p->stop();
    return !queue_.empty();
  }
  said_dead_ = true;
  main.owner().end_dead(describe_waits(main));
  return true;
}

// The main process waits until there is nothing to do before a timer fires. To look at all PEs
// takes long, so this is done only where all that is due is later than what is on its way can be.
bool simulator::end_settling() {
  if (queue_.next().time <= now_ + lookahead_) return false;
  if (std::ranges::any_of(far_, [](const far_node& n) { return n.due != simulated_pe::never; })) return false;
  for (const pe* p : pes_) {
    if (lost_[p->sim_->node] != 0 || p->sim_->over) continue;
    if (!p->runnable_.empty() || !p->when_idle_.empty() || p->io_active_ != nullptr || p->links_.has_busy() ||
        p->sim_->next_arrival() != simulated_pe::never)
      return false;
  }
  pe& main = *pes_.front();
  if (!std::exchange(let_go_at_end_, true) && let_waiters_go()) return true;
  main.quiescence().end_settling();
  wake(main);
  return true;
}

void simulator::add_fault(const fault& f) {
  faults_.push_back(f);
  schedule(f.at_ns, {nullptr, is_fault | static_cast<std::uint32_t>(faults_.size() - 1)});
}

void simulator::happen(const fault& f) {
  if (f.node == transport::no_node) {
    universe_.tell_end();
    return;
  }
  if (!f.noticed) {
    lost_[f.node] = 1;
    if (universe_.carriers) universe_.carriers->kill(f.node);
    for (std::uint32_t i = 0; i < nodes_[f.node]->pe_count(); ++i) {
      simulated_pe& s = states_[nodes_[f.node]->first_pe() + i];
      if (!std::exchange(s.over, true)) ++over_;
    }
    return;
  }
  const std::string how =
      fmt::format("was lost at {} ns of virtual time", f.at_ns - universe_.settings().detect_ns - start_ns);
  if (universe_.carriers) {
    universe_.carriers->notice(f.node, how);
  } else {
    universe_.lose(f.node, how);
  }
}

// --- messages ------------------------------------------------------------------------------------

void* simulator::carve(std::size_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  if (bytes > rings_left_) {
    const std::size_t size = std::max(bytes, mapping_bytes);
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc{};
    madvise(p, size, MADV_NOHUGEPAGE);
    mappings_.emplace_back(p, size);
    rings_ = static_cast<std::byte*>(p);
    rings_left_ = size;
  }
  void* const memory = rings_;
  rings_ += bytes;
  rings_left_ -= bytes;
  return memory;
}

wire::unique_ptr<outbound> simulator::connect(pe& from, std::uint32_t to) {
  pe& receiver = *pes_[to];
  if (!far_.empty() && universe_.carriers->map(from.owner().index()).is_far(receiver.owner().index()))
    return connect_far(from, to);
  const std::uint64_t capacity = pe_settings_.ring_bytes;
  void* const memory = carve(transport::ring_header::bytes_for(capacity));
  transport::ring_header* header = transport::make_ring(memory, capacity, from.id(), to);
  auto c = wire::make_unique<outbound>();
  c->ring = transport::ring_producer(*header);
  c->bell = &receiver.bell();
  c->pe = to;
  c->remote = !from.owner().is_local(to);
  auto in = wire::make_unique<inbound>();
  in->ring = transport::ring_consumer(*header, capacity);
  in->pe = from.id();
  in->remote = c->remote;
  links_.push_back(wire::make_unique<simulated_link>(simulated_link{c.get(), in.get(), from.id(), to}));
  c->link = links_.back().get();
  if (in->remote) receiver.owner().hold(from.id());
  receiver.links().all_inbound().push_back(std::move(in));
  return c;
}

void simulator::sent(pe& from, outbound& c, std::uint32_t bytes) {
  charge_real_time(from);
  simulated_pe& s = *from.sim_;
  simulated_link& l = *c.link;
  s.sends_by(l);
  std::uint64_t payload = bytes;
  wire::envelope& e = *c.ring.latest(bytes);
  if (e.form == wire::payload_form::block && carries(e.kind)) {
    wire::block_ref ref{};
    std::memcpy(&ref, e.payload(), sizeof ref);
    payload += ref.bytes;
  }
  if (s.carried != 0 && carries(e.kind)) payload += std::exchange(s.carried, 0);
  simulated_pe& to = states_[c.pe];
  ++report_.messages;
  report_.bytes += payload;
  const transport::link_cost& cost = network_.between(s.node, to.node);
  if (&cost == &universe_.settings().net) {
    ++report_.net_messages;
    report_.net_bytes += payload;
  }
  s.clock += network_.on(s.node, cost.overhead);
  if (l.far) {  // what other PEs send in this time shares the frame
    drive_at(s.node, s.clock);
    return;
  }
  l.last_ns = std::max(l.last_ns, network_.arrival(s.clock, s.node, to.node, payload));
  to.arrivals.add({l.last_ns, order_.next(), &l});
  if (l.last_ns < to.due) {
    to.due = l.last_ns;
    schedule(l.last_ns, {&l, c.pe});
  }
}

// After a record was taken out of a ring: its space is the sender's again. A ring that is empty
// begins anew, so that it touches no more memory than it needs.
void simulator::read(simulated_link& l) noexcept {
  if (l.in->lost) return;
  if (l.far) {
    (void)l.in->ring.release_space();
    announce(l);
    return;
  }
  if (l.out->lost) return;
  // Not while somebody waits for room: that there is some he sees by a position that has moved
  // (links::serve_busy).
  if (l.in->ring.read() == l.out->ring.written() && l.out->waiters == nullptr) {
    l.in->ring.restart();
    l.out->ring.restart();
  } else {
    (void)l.in->ring.release_space();
  }
  if (l.out->waiters != nullptr || !l.out->deferred.empty()) wake(*pes_[l.from]);
}

// --- time ----------------------------------------------------------------------------------------

void simulator::charge_real_time(pe& p) noexcept {
  if (!universe_.settings().measured) return;
  simulated_pe& s = *p.sim_;
  const std::int64_t now = transport::real_now_ns();
  s.clock += network_.on(s.node, static_cast<double>(now - s.began));
  s.began = now;
}

void simulator::spend(pe& p, std::int64_t ns) noexcept {
  p.sim_->clock += network_.on(p.sim_->node, static_cast<double>(ns));
}

void simulator::charge_messages(pe& p, std::uint64_t count) noexcept {
  spend(p, static_cast<std::int64_t>(count) * universe_.settings().message_ns);
}

// A method that parks leaves its loop in the middle of a turn, and another fiber goes on with it.
// So what was paid for is noted at the PE, and not by the fiber.
void simulator::charge_executed(pe& p) noexcept {
  const std::uint64_t executed = p.count_.executed;
  if (executed > p.sim_->paid) charge_messages(p, executed - std::exchange(p.sim_->paid, executed));
}

}  // namespace orrery::scheduler
