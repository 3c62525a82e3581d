// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/group.hpp>
#include <orrery/storage/data_set.hpp>
#include <orrery/storage/detail/copier.hpp>
#include <orrery/storage/job_folder.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <expected>
#include <functional>
#include <string>
#include <vector>

namespace orrery::storage {

namespace internal {
class job_sets;
}

/// The source of a copy, and the form of the result.
struct copy_task {
  data_set_info input = {};
  std::string output = {};
  index3 page_shape = {};  ///< zeros: the input's
  element_type type = element_type::complex128;
  std::vector<std::string> folders =
      {};  ///< one for each drive of the output; empty: its own. They may name their machines
  /// "circulant" or "blocked"; empty: the input's, circulant if that has a table.
  std::string map = {};
  bool checksums = true;
  std::uint64_t memory = std::uint64_t{256} << 20;  ///< bytes, of all nodes together
  std::uint32_t machines = 1;  ///< of the world
};

/// Plans a copy for a world of that size. If it takes more memory than the task has, the answer is
/// how much would do. Throws std::invalid_argument: complex numbers do not become real ones; no
/// such map.
[[nodiscard]] std::expected<copy_plan, std::uint64_t> plan_copy(const copy_task& task, std::uint32_t pes,
                                                                std::uint32_t nodes);

/// How far a copy is.
struct copy_status {
  bool verifying = false;
  std::int64_t units_done = 0;  ///< copied and verified, of all programs
  std::int64_t units = 0;
};
/// The work of this program, when `run` has returned.
struct copy_outcome {
  bool resumed = false;
  std::int64_t units = 0;  ///< copied by this program
  /// Finite numbers that are too large for the copy's type, and are infinite there; of all programs
  /// that have worked on the copy.
  std::uint64_t overflows = 0;
};

/// Copies a data set of any size into a new one with other pages, another page map, other drives or
/// another element type. (Givelberg 2014, section 6: copy and reformat very large data objects.)
///
/// Problem: copying terabytes takes hours. Meanwhile programs are killed and drives fail; the array
/// does not fit into memory; and a copy that differs is worse than none. So the copy is made in
/// units of whole pages of the output, by as many processes as the memory allows. A ledger beside
/// the output keeps what is done; the same job, begun anew, goes on from there. Each page of the
/// input is verified when it is read, by its checksum; and when all is written each page of the
/// output is read again and verified by its own, and copied once more if it is wrong. The copy says
/// `finished` only after that.
///
/// Used by one process, in this order: construct, `begin`, `run`. Throws as sweep_job does; EBADMSG
/// names a damaged page of the input. The work done until then is kept in the folder OUTPUT.copy.
///
///     storage::copy_task task{.input = storage::data_set::read_info("/data/x"),
///                             .output = "/data/y",
///                             .page_shape = {32, 32, 512}};
///     task.type = task.input.type;
///     storage::copy_job job(task, storage::plan_copy(task, world_pes(), world_nodes()).value());
///     job.begin();
///     job.run([](const storage::copy_status&) {});
class copy_job {
 public:
  copy_job(copy_task task, const copy_plan& plan);
  copy_job(const copy_job&) = delete;
  copy_job& operator=(const copy_job&) = delete;
  /// Ends its processes: then the files are free for whoever comes next.
  ~copy_job();

  /// True if an earlier program has begun the copy.
  [[nodiscard]] bool resumed() const noexcept { return resumed_; }
  /// Opens the input and makes or opens the output. If it cannot be made nothing is left behind.
  void begin();
  /// Copies and verifies; removes the folder. `progress` is called every now and then.
  copy_outcome run(const std::function<void(const copy_status&)>& progress);

 private:
  [[nodiscard]] std::string description() const;
  void check_beginning();
  void open();
  void end_processes() noexcept;

  copy_task task_;
  copy_plan plan_;
  job_folder folder_;
  wire::unique_ptr<internal::job_sets> identity_;
  bool resumed_ = false;
  io::descriptor held_;
  remote<data_set> input_;
  remote<data_set> output_;
  remote<ledger> ledger_;
  group<copier> copiers_;
};

}  // namespace orrery::storage
