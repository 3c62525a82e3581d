// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/remote.hpp>
#include <orrery/storage/ledger.hpp>
#include <orrery/storage/page_block.hpp>
#include <orrery/storage/sweep.hpp>

#include <cstdint>
#include <vector>

namespace orrery::storage {

/// The work of a process, and when it was done; seconds of the clock that all processes of a
/// machine share.
struct work_span {
  /// The kind of the work.
  enum class kind : std::uint8_t { read, compute, write };
  kind what = kind::read;
  std::int64_t unit = 0;
  double begin = 0;
  double end = 0;
  double busy = 0;  ///< of computing: without the times in which other processes had the PE
};
/// All work of a process.
struct work_log {
  std::uint32_t pe = 0;
  std::uint32_t node = 0;
  std::vector<work_span> spans = {};
  std::uint64_t counted = 0;    ///< of whatever the class counts
  std::uint64_t node_peak = 0;  ///< resident memory of the node, in bytes, at most so far
};

/// The work of a helper with a unit.
struct helped {
  double busy = 0;
  std::uint64_t counted = 0;
};

/// The clock of work spans.
[[nodiscard]] double seconds_now();

/// A process that takes units of a sweep, one after the other: reads one, computes, writes it.
/// (Givelberg 2014, section 4.2.)
///
/// Problem: drives and processors should be busy at the same time. The paper overlaps them by hints
/// to the drives for the next unit. Here there are more of these processes than PEs, as many as
/// units fit in memory: while some wait for their drives others compute, and each is plain
/// sequential code that owns its memory, so that a page which the drive has filled is worked on
/// where it is, and given back.
///
/// While one unit is written the next is read into the memory that its pages leave. Where memory is
/// short there are fewer units than would keep all PEs busy: a class whose computation falls into
/// boxes (`box_shape`, `compute_box`) has *helpers*, one on each PE, and all those of a node
/// compute with the unit that came first.
///
/// A class derived from it says what is computed (`compute`, or `box_shape` and `compute_box`), and
/// has an ORRERY_PROCESS line of its own; sweep_job makes the processes and runs them.
class sweeper {
 public:
  sweeper(const sweep_plan& plan, const remote<ledger>& units);
  sweeper(const sweeper&) = delete;
  sweeper& operator=(const sweeper&) = delete;
  virtual ~sweeper() = default;
  /// Returns when no unit of the sweep is left. Throws what the devices throw; the others then end,
  /// too.
  work_log run(std::size_t sweep, const array& from, const array& to);

  /// Its number among the processes of the plan: it has no unit in a sweep that fewer share.
  void be_number(std::uint32_t number) { number_ = number; }
  /// From now on `run` leaves the computing to those of its node. `helpers`: of each node.
  void be_helped(const std::vector<std::vector<remote<sweeper>>>& helpers);
  /// For helpers: gets ready for a sweep; computes boxes of a unit until none is left. `unit` is an
  /// address in this node.
  void prepare(std::size_t sweep);
  /// Computes boxes of a unit of others, as prepare says.
  helped help(std::size_t sweep, std::uint64_t unit);
  /// The node that it lives on.
  [[nodiscard]] std::uint32_t node_of() const;

 protected:
  /// Before the first unit.
  virtual void begin(std::size_t sweep);
  /// Changes the elements of a unit. As it stands, box by box.
  virtual void compute(std::size_t sweep, page_block& unit);
  /// The shape of the boxes into which the elements of a unit fall. Several processes, on several
  /// threads, compute with one unit at the same time.
  [[nodiscard]] virtual index3 box_shape(std::size_t sweep) const;
  /// Changes the elements of a box of a unit.
  virtual void compute_box(std::size_t sweep, page_block& unit, const domain& box);

  /// A PE serves drives and other processes only when a process lets it: to be called every now and
  /// then while computing. Parks, at most five thousand times a second.
  void give_way();
  /// Adds to work_log::counted.
  void count(std::uint64_t n) { log_.counted += n; }

 private:
  struct shared_unit;
  void do_units(std::size_t sweep, const array& from, const array& to);
  void compute_shared(std::size_t sweep, page_block& unit);

  sweep_plan plan_;
  std::uint32_t number_ = 0;
  std::vector<remote<sweeper>> helpers_;  // of this node
  std::size_t prepared_ = ~std::size_t{0};  // for which sweep
  remote<ledger> ledger_;
  work_log log_;
  double since_ = 0;  // when it was given the PE
  double busy_ = 0;
};
ORRERY_PROCESS(sweeper, run, be_number, be_helped, prepare, help, node_of);

}  // namespace orrery::storage
