// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/fiber_pool.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/transport/sim/event_queue.hpp>
#include <orrery/transport/sim/network.hpp>
#include <orrery/transport/sim/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace orrery::scheduler {

class simulator;

/// A ring between two simulated PEs.
struct simulated_link {
  outbound* out;
  inbound* in;
  std::uint32_t from;
  std::uint32_t to;
  /// When the latest record that was sent arrives: the next one comes no earlier.
  std::int64_t last_ns = 0;
  /// Both ends are rings of their own, and carriers lie between them.
  bool far = false;
  bool announced = false;  ///< if far: the arrival of the next record is known to its receiver
};

/// The simulator's state of a PE.
struct alignas(64) simulated_pe {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  simulator* by = nullptr;
  std::int64_t clock = 0;  ///< virtual time up to which the PE has worked, in ns
  std::int64_t due = never;  ///< of its earliest entry in the queue
  transport::time_heap<simulated_link*> arrivals;  ///< records on their way to it
  [[nodiscard]] std::int64_t next_arrival() const noexcept { return arrivals.empty() ? never : arrivals.next().time; }
  std::int64_t began = 0;    ///< real time, where that counts
  std::uint32_t node = 0;
  bool over = false;
  bool does_io = false;
  std::uint64_t paid = 0;  ///< messages that were executed, and paid for
  std::uint64_t carried = 0;  ///< bytes that its next message or reply has beside its own
  static constexpr std::uint8_t remembered = 4;
  std::uint8_t sends = 0;  ///< counts the changes of sent_to
  /// The latest that the PE sent by: mostly it will send by these again.
  simulated_link* sent_to[remembered] = {};
  void sends_by(simulated_link& l) noexcept {
    if (sent_to[(sends + remembered - 1U) % remembered] != &l) sent_to[sends++ % remembered] = &l;
  }
};

/// The summary of a simulation.
struct sim_report {
  std::int64_t time_ns = 0;  ///< virtual
  std::uint64_t events = 0;
  std::uint64_t messages = 0;  ///< records between PEs
  std::uint64_t bytes = 0;
  std::uint64_t net_messages = 0;  ///< of these, between machines
  std::uint64_t net_bytes = 0;
  std::uint64_t routed = 0;  ///< messages to elements of arrays that left their PE
  std::uint64_t hops = 0;  ///< ways from PE to PE that these took until they found their elements
};

/// Runs all PEs of a world on one OS thread, in virtual time.
///
/// Problem: what depends on how messages of many PEs meet cannot be tested by letting them meet,
/// and what a program does on a thousand machines cannot be seen on one. So here each PE has a
/// clock of its own, a message arrives when the network model says so, and who is first by the
/// clock works next. The PEs are those of any other world: the same rings, mailboxes and fibers.
/// Only three things differ: a record is seen by its receiver when its time has come, a PE that has
/// nothing to do gives the thread back instead of sleeping, and `now_ns()` is the clock of the PE
/// that runs. With the same settings and seed, a program whose methods depend on nothing else does
/// the same again, step by step.
///
/// A PE works off what has come, one entry of its run queue after the other, and takes the records
/// that arrive meanwhile, as long as nothing that others do can reach it: until the earliest event
/// of another one and the shortest way of a message. So it is visited once for all that comes in
/// such a time, while its memory is in the cache: a world of many PEs is in no cache. A method
/// costs what the settings and the method itself say (spend), or the time that it really takes.
///
/// Loop fibers belong to all PEs: one that was laid aside by one PE may go on with another. So
/// whatever may lay the running fiber aside is the last that a PE does before it looks again who is
/// running (turn() returns false).
///
/// Owned by run(); outlives the nodes. One OS thread, but for I/O, which happens outside of virtual
/// time.
class simulator {
 public:
  simulator(const transport::sim_settings& settings, const pe_settings& pes);
  simulator(const simulator&) = delete;
  simulator& operator=(const simulator&) = delete;
  ~simulator();

  [[nodiscard]] transport::sim_universe& universe() noexcept { return universe_; }
  /// The settings that nodes are made with.
  [[nodiscard]] pe_settings settings_of_pes() noexcept;
  /// The nodes in the order of their numbers, all of them before run().
  void add(node& n);
  /// Runs until all nodes have ended. `first` is called for the first PE before anything runs.
  void run(const std::function<void(pe&)>& first);
  [[nodiscard]] sim_report report() const noexcept;

  // For nodes and PEs.
  [[nodiscard]] wire::unique_ptr<outbound> connect(pe& from, std::uint32_t to);
  void sent(pe& from, outbound& c, std::uint32_t bytes);
  /// The PE has something to do now that is no message.
  void wake(pe& p);
  /// The PE that runs computes for that long.
  void spend(pe& p, std::int64_t ns) noexcept;
  [[nodiscard]] pe& at(std::uint32_t pe) noexcept { return *pes_[pe]; }
  /// Until then the running PE may work on: the next event of another one, or the next record on
  /// its way to it, and the shortest way of a message. (The record may wait so long, as it waits
  /// for a PE that polls now and then.)
  [[nodiscard]] std::int64_t horizon(const simulated_pe& s) const noexcept {
    const std::int64_t next = queue_.empty() ? s.next_arrival() : std::min(queue_.next().time, s.next_arrival());
    return next == simulated_pe::never ? next : next + lookahead_;
  }
  void charge_messages(pe& p, std::uint64_t count) noexcept;
  /// For those that the PE has executed since the last time.
  void charge_executed(pe& p) noexcept;

 private:
  struct event {
    simulated_link* link;  // of the record that arrives; null: something else
    // the PE; the node and `is_drive`; `is_fault` and the place in the list of faults
    std::uint32_t what;
  };
  struct fault {
    std::int64_t at_ns;
    std::uint32_t node;  // no_node: it is the end of the world that is told
    bool noticed;  // the others learn of it
  };
  static constexpr std::uint32_t is_fault = 0x8000'0000;
  static constexpr std::uint32_t is_drive = 0x4000'0000;  // of the carrier of that node

  static void loop_entry(fiber& self, void* simulator_pointer);
  void loop();
  [[noreturn]] void leave() noexcept;
  bool next();
  void enter(pe& p, std::int64_t time) noexcept;
  void fetch_next() const noexcept;
  template <class F>
  void for_pe_ahead(std::size_t n, F f) const noexcept;
  bool take_arrival(simulated_pe& s);
  bool stay(const pe& p);
  [[nodiscard]] std::int64_t own_due(const pe& p) const noexcept;
  void schedule(std::int64_t time, const event& e) { queue_.add({time, order_.next(), e}); }
  void give_back(pe& p);
  void charge_real_time(pe& p) noexcept;
  void read(simulated_link& l) noexcept;
  void make_carriers();
  [[nodiscard]] std::int64_t time_of_carriers() const noexcept;
  [[nodiscard]] wire::unique_ptr<outbound> connect_far(pe& from, std::uint32_t to);
  void drive_at(std::uint32_t node, std::int64_t time);
  void drive(std::uint32_t node);
  void open(simulated_link& l);
  void announce(simulated_link& l);
  void add_fault(const fault& f);
  void happen(const fault& f);
  bool when_nothing_is_due();
  bool end_settling();
  bool let_waiters_go();
  void await_io();
  bool look_at_io();
  [[nodiscard]] void* carve(std::size_t bytes);

  transport::sim_universe universe_;
  transport::network network_;
  transport::event_order order_;
  transport::time_queue<event> queue_;
  std::int64_t lookahead_;
  pe_settings pe_settings_;
  fiber_pool fibers_;
  std::vector<node*> nodes_;
  std::vector<pe*> pes_;
  std::vector<simulated_pe> states_;
  std::vector<wire::unique_ptr<simulated_link>> links_;
  // by node, if there are carriers
  struct far_node {
    std::int64_t due = simulated_pe::never;  // it is driven then
    std::vector<simulated_link*> from;
    std::vector<simulated_link*> to;
  };
  std::vector<far_node> far_;
  std::vector<fault> faults_;
  std::vector<std::uint8_t> lost_;  // nodes
  std::vector<pe*> with_io_;
  std::int64_t io_since_ = 0;  // virtual and real time since when there is I/O
  std::int64_t io_since_real_ = 0;

  pe* running_ = nullptr;
  fiber* here_ = nullptr;  // the running fiber, while no PE runs
  simulated_link* arrived_ = nullptr;  // its record is to be received next
  simulated_link* received_ = nullptr;  // its record has been, though who received it may be parked
  // a clock that shows 0 has never been set
  static constexpr std::int64_t start_ns = 3'600'000'000'000;
  std::int64_t now_ = start_ns;
  std::int64_t latest_ = start_ns;  // of what has happened: a PE may be ahead of now_
  std::uint32_t over_ = 0;  // PEs
  bool said_dead_ = false;
  bool let_go_at_end_ = false;
  sim_report report_;
  fiber root_;

  std::byte* rings_ = nullptr;  // memory for rings is carved from large mappings
  std::size_t rings_left_ = 0;
  std::vector<std::pair<void*, std::size_t>> mappings_;
};

}  // namespace orrery::scheduler
