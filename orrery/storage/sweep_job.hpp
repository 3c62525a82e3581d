// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/group.hpp>
#include <orrery/process/placement.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/storage/job_folder.hpp>
#include <orrery/storage/sweep.hpp>
#include <orrery/storage/sweeper.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace orrery::storage {

namespace internal {
class job_sets;
}

/// Bytes per second of all drives together, while they had something to do; 0: not known.
struct drive_rates {
  double read = 0;
  double write = 0;
};

/// How far a job is.
struct sweep_status {
  std::size_t sweep = 0;
  std::int64_t units_done = 0;  ///< of all sweeps
  std::int64_t units = 0;
  drive_rates rates = {};  ///< so far, of this program
  std::uint64_t bytes_moved = 0;  ///< read and written so far, by this program
};

/// The work that was done, and when.
struct sweep_record {
  double begin = 0;
  double end = 0;
  std::int64_t units = 0;  ///< done now: the others were found done
  std::vector<work_log> logs = {};
  /// Share of the time in which a drive that is read from had something to do; mean of all.
  double read_busy = 0;
  double write_busy = 0;  ///< the same of those that are written to
};
/// The work of this program, when `run` has returned.
struct sweep_outcome {
  double begin = 0;
  double end = 0;
  bool resumed = false;
  std::uint64_t counted = 0;  ///< by all programs that have worked on the job
  std::vector<sweep_record> sweeps = {};
  drive_rates rates = {};
};

/// A computation over an array on drives in several sweeps, from its beginning to its end, or from
/// where a killed program has stopped.
///
/// Problem: an array that is far larger than memory is read, changed and written in units, for
/// minutes or hours. Meanwhile drives get full or fail, programs are killed, somebody starts the
/// same thing twice. The state of the drives must at any moment be one from which a job can go on.
/// So no sweep writes where it reads; what is between two of them, and the account of what is done,
/// is kept in a folder OUTPUT.name beside the output, which is removed at the end; and the same
/// job, begun anew, goes on with the first unit that is not on its drives. Nobody else computes
/// with an input that is replaced.
///
/// Used by one process, in this order: construct, `begin`, `run`. Errors are std::system_error,
/// whose text says what, where and what to do: EBUSY (somebody else is at it), ENOSPC (before it
/// starts, or while it runs), EEXIST (the output), EBADMSG (a damaged or unfinished input), what
/// drives say; and std::invalid_argument: an interrupted job to this output was another one. The
/// work done until then is kept.
///
///     class doubler : public storage::sweeper {
///       void compute(std::size_t, storage::page_block& unit) override; ...
///     };
///     ORRERY_PROCESS(doubler);
///     storage::sweep_job job(task, plan, "double", "times two");
///     job.begin();
///     job.run<doubler>([](const storage::sweep_status&) {}, plan);
class sweep_job {
 public:
  /// Takes the folder. `description`: what else must be the same for another program to go on with
  /// this.
  sweep_job(sweep_task task, sweep_plan plan, const std::string& name, const std::string& description);
  sweep_job(const sweep_job&) = delete;
  sweep_job& operator=(const sweep_job&) = delete;
  /// Ends its processes: then the files are free for whoever comes next.
  ~sweep_job();

  /// True if an earlier program has begun the job.
  [[nodiscard]] bool resumed() const noexcept { return resumed_; }
  /// True if the data set at `output` was made by a job of that name whose folder is still there.
  [[nodiscard]] static bool has_made(const std::string& output, const std::string& name);
  /// After `run`: leaves the folder, which says that the job is done, and returns its path. A
  /// program that has more to do with the result, before anybody should take it for complete, calls
  /// job_folder::remove then; killed before that, the same job finds out that it is done, and `run`
  /// does nothing.
  [[nodiscard]] std::string leave_folder() { return std::exchange(done_, {}); }
  /// Makes or opens the data sets.
  void begin();
  /// Makes the processes, each from the arguments and the ledger, and runs all sweeps. `progress`
  /// is called every now and then.
  template <std::derived_from<sweeper> Worker, class... A>
  sweep_outcome run(const std::function<void(const sweep_status&)>& progress, const A&... arguments) {
    if (folder_.finished()) return end();
    workers_ = spawn_group<Worker>(everywhere(), plan_.processes, arguments..., ledger_);
    if (plan_.helped)
      make_helpers([&](placement at) { return remote<sweeper>(spawn<Worker>(at, arguments..., ledger_)); });
    return run_all(progress);
  }

 private:
  // The work of drives.
  struct drive_use {
    double read_bytes = 0;
    double read_seconds = 0;
    double written_bytes = 0;
    double write_seconds = 0;
    drive_use& operator+=(const drive_use& o) noexcept;
    drive_use& operator-=(const drive_use& o) noexcept;
  };
  [[nodiscard]] static drive_use use_of(const array& from, const array& to);

  void make_helpers(const std::function<remote<sweeper>(placement)>& make);
  void check_beginning();
  void require_space() const;
  void open(sweep_place p, bool made);
  void redo_lost_units();
  void flush(std::size_t sweep);
  sweep_outcome run_all(const std::function<void(const sweep_status&)>& progress);
  sweep_outcome end();
  sweep_record run_one(sweep_status& at, const std::function<void(const sweep_status&)>& progress);
  void look(sweep_status& at, const drive_use& sweep) const;
  [[nodiscard]] std::string description(const std::string& more) const;
  [[nodiscard]] std::string path_of(sweep_place p) const;
  [[nodiscard]] std::vector<std::string> folders() const;
  [[nodiscard]] const remote<data_set>& output() const;
  [[nodiscard]] array at(sweep_place p) const;
  void end_processes() noexcept;

  sweep_task task_;
  sweep_plan plan_;
  std::string target_;  // the output, or the input in place
  job_folder folder_;
  wire::unique_ptr<internal::job_sets> identity_;
  std::string done_;  // the folder, when all is done
  io::descriptor input_;
  std::string description_;
  bool resumed_ = false;
  drive_use used_;  // in the sweeps that are over
  remote<ledger> ledger_;
  group<sweeper> workers_;
  std::vector<remote<sweeper>> helpers_;
  std::map<sweep_place, remote<data_set>> sets_;
  array memory_;
};

}  // namespace orrery::storage
