// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/sweep_job.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/storage/internal/drive_work.hpp>
#include <orrery/storage/internal/job_data.hpp>
#include <orrery/storage/internal/job_sets.hpp>
#include <orrery/storage/internal/path_text.hpp>
#include <orrery/storage/memory_array.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace orrery::storage {
namespace {

namespace fs = std::filesystem;
using detail::throw_errno;

constexpr sweep_place places[] = {sweep_place::input, sweep_place::output, sweep_place::scratch,
                                  sweep_place::second_scratch};

double page_bytes_of(const array& a) {
  return static_cast<double>(array_page::bytes_of(a.grid().page_shape, a.type()));
}

}  // namespace

sweep_job::sweep_job(sweep_task task, sweep_plan plan, const std::string& name, const std::string& description)
    : task_(std::move(task)),
      plan_(std::move(plan)),
      target_(task_.output.empty() ? task_.input.path : detail::tidy_path(task_.output)),
      folder_(internal::folder_beside(target_, name, task_.input, task_.folders), target_),
      identity_(new internal::job_sets(folder_, task_.input, task_.output.empty() ? "" : target_)),
      description_(this->description(description)),
      resumed_(folder_.begun(description_, identity_->advice())) {
  input_ = internal::held_input(task_.input.path, task_.output.empty());
  internal::read_again(task_.input);
  resumed_ = resumed_ && identity_->are_as_noted();
  if (!resumed_) check_beginning();
}

sweep_job::~sweep_job() {
  end_processes();
  try {
    if (!done_.empty()) job_folder::remove(done_);
  } catch (const std::exception&) {  // the same job will find out that it is done
  }
}

bool sweep_job::has_made(const std::string& output, const std::string& name) {
  const std::string target = detail::tidy_path(output);
  return internal::job_sets::is_noted(target + "." + name, target);
}

void sweep_job::end_processes() noexcept {
  try {
    if (workers_.size() != 0) destroy(std::exchange(workers_, {}));
    for (const auto& h : std::exchange(helpers_, {})) destroy(h);
    if (ledger_) destroy(std::exchange(ledger_, {}));
    for (const auto& [where, set] : std::exchange(sets_, {})) destroy(set);
    const array memory = std::exchange(memory_, {});
    for (const auto& device : memory.devices()) destroy(device);
  } catch (const std::exception&) {  // the world ends, and they with it
  }
}

std::string sweep_job::description(const std::string& more) const {
  nlohmann::ordered_json sweeps;
  for (const sweep& s : plan_.sweeps) sweeps.push_back({{"dimensions", s.dimensions}, {"from", s.from}, {"to", s.to}});
  return nlohmann::ordered_json{{"input", internal::path_text(task_.input.path)},
                                {"output", internal::path_text(target_)},
                                {"shape", task_.input.shape},
                                {"page_shape", task_.input.page_shape},
                                {"types", {plan_.input_type, plan_.output_type}},
                                {"sweeps", sweeps},
                                {"what", more}}
      .dump(1);
}

void sweep_job::check_beginning() {
  if (!task_.output.empty()) internal::require_nothing_at(target_);
  for (const sweep_place p : {sweep_place::scratch, sweep_place::second_scratch}) internal::remove_remains(path_of(p));
  folder_.clear();
  if (!task_.input.finished)
    throw_errno(EBADMSG, fmt::format("the data set {} is unfinished: run again what writes it", task_.input.path));
  require_space();
}

void sweep_job::require_space() const {
  std::uint64_t bytes = 0;
  for (const sweep_place p : plan_.created) bytes += plan_.bytes_at(p);
  auto where = folders();
  if (where.empty()) where.push_back(folder_.path());
  internal::require_room(target_, where, bytes);
}

void sweep_job::begin() {
  if (resumed_ && folder_.finished()) return;
  if (!resumed_) identity_->note();
  if (!resumed_) folder_.begin(description_);  // from here on what is at the target is ours
  const bool made = folder_.passed("made");
  for (const sweep_place p : plan_.created)
    if (!made && (p != sweep_place::output || (resumed_ && identity_->has_own_output())))
      internal::remove_remains(path_of(p));
  for (const sweep_place p : places) open(p, made);
  folder_.pass("made");
  if (plan_.in_memory()) memory_ = make_memory_array(plan_.grid, plan_.work_type);
  std::vector<std::int64_t> units;
  for (std::size_t i = 0; i < plan_.sweeps.size(); ++i) units.push_back(plan_.units(i));
  ledger_ = spawn<ledger>(here(), plan_.in_memory() ? "" : folder_ / "progress", units);
  if (resumed_) redo_lost_units();
}

// A machine that has lost power may have kept the note that a unit is done, and have lost the
// records of its pages, which would read as zeros. That concerns the last sweep that has begun: the
// drives had all of the others when it began.
void sweep_job::redo_lost_units() {
  std::size_t last = plan_.sweeps.size();
  std::vector<std::int64_t> done;
  while (last > 0 && done.empty()) done = ledger_->done_units(--last);
  if (done.empty()) return;
  const array to = at(plan_.sweeps[last].to);
  std::vector<std::vector<std::uint64_t>> unwritten;  // on each device
  for (const auto& device : to.devices()) unwritten.push_back(device->unwritten());
  std::erase_if(done, [&](std::int64_t unit) {
    bool there = true;
    for_each_place(plan_.unit_pages(last, unit), [&](const index3& p) {
      const page_address a = to.map().locate(p);
      there = there && !std::ranges::binary_search(unwritten[a.device], a.index);
    });
    return there;
  });
  if (!done.empty()) ledger_->redo(last, done);
}

void sweep_job::open(sweep_place p, bool made) {
  const bool create = std::ranges::count(plan_.created, p) != 0;
  const bool writes = create || (p == sweep_place::input && task_.output.empty());
  data_set_options o{.mode = writes ? open_mode::read_write : open_mode::read_only, .cache = {0, 0}};
  o.edition = p == sweep_place::input ? identity_->edition() : 0;
  // a page belongs to one unit, so that in each sweep one process reads or writes it
  o.on_each_node = true;
  // Drives that work in the same sweep are served by different PEs.
  for (std::uint32_t i = 0; i < world_pes(); ++i) o.pes.push_back((i + (p == sweep_place::scratch)) % world_pes());
  if (create && !made)
    sets_[p] = spawn<data_set>(here(), path_of(p),
                               data_set_description{.shape = plan_.grid.array_shape,
                                                    .page_shape = plan_.grid.page_shape,
                                                    .type = plan_.type_at(p),
                                                    .folders = folders(),
                                                    .attributes = task_.input.attributes,
                                                    .id = p == sweep_place::output ? identity_->output_id() : 0},
                               o);
  else if (create || p == sweep_place::input)
    sets_[p] = spawn<data_set>(here(), path_of(p), o);
}

std::string sweep_job::path_of(sweep_place p) const {
  if (p == sweep_place::input) return task_.input.path;
  if (p == sweep_place::output) return target_;
  // Device files elsewhere have names by this one: other jobs may have theirs in the same folder.
  return folder_ / (fs::path(target_).filename().string() + (p == sweep_place::scratch ? "-scratch" : "-second"));
}
// In place, and where the input's folders say their machines, what is made lies where the input
// does.
std::vector<std::string> sweep_job::folders() const {
  const bool named = std::ranges::any_of(task_.input.hosts, [](const std::string& h) { return !h.empty(); });
  if (!task_.folders.empty() || !(task_.output.empty() || named)) return task_.folders;
  if (task_.input.files.size() == 1 && !named) return task_.folders;
  return task_.input.folders();
}
const remote<data_set>& sweep_job::output() const {
  return sets_.at(task_.output.empty() ? sweep_place::input : sweep_place::output);
}
array sweep_job::at(sweep_place p) const {
  if (p == sweep_place::memory) return memory_;
  return (p == sweep_place::output ? output() : sets_.at(p))->contents();
}

sweep_job::drive_use& sweep_job::drive_use::operator+=(const drive_use& o) noexcept {
  read_bytes += o.read_bytes;
  read_seconds += o.read_seconds;
  written_bytes += o.written_bytes;
  write_seconds += o.write_seconds;
  return *this;
}
sweep_job::drive_use& sweep_job::drive_use::operator-=(const drive_use& o) noexcept {
  return *this += {-o.read_bytes, -o.read_seconds, -o.written_bytes, -o.write_seconds};
}
sweep_job::drive_use sweep_job::use_of(const array& from, const array& to) {
  const internal::drive_work reading = internal::work_of(from);
  const internal::drive_work writing = internal::work_of(to);
  return {reading.pages_read * page_bytes_of(from), reading.seconds, writing.pages_written * page_bytes_of(to),
          writing.seconds};
}
// Devices in memory count nothing.
void sweep_job::look(sweep_status& at, const drive_use& sweep) const {
  drive_use all = used_;
  all += sweep;
  at.rates = {all.read_seconds > 0 ? all.read_bytes / all.read_seconds : 0,
              all.write_seconds > 0 ? all.written_bytes / all.write_seconds : 0};
  at.bytes_moved = static_cast<std::uint64_t>(all.read_bytes + all.written_bytes);
}

void sweep_job::make_helpers(const std::function<remote<sweeper>(placement)>& make) {
  std::vector<std::vector<remote<sweeper>>> of_node(world_nodes());
  for (std::uint32_t i = 0; i < world_pes(); ++i) {
    helpers_.push_back(make(pe(i)));
    of_node.at(helpers_.back()->node_of()).push_back(helpers_.back());
  }
  workers_->be_helped(of_node);
}

// Before the next sweep begins: `redo_lost_units` relies on it. `finish` does it after the last.
void sweep_job::flush(std::size_t sweep) {
  if (sweep + 1 == plan_.sweeps.size()) return;
  at(plan_.sweeps[sweep].to).flush();
  ledger_->flush();
}

sweep_record sweep_job::run_one(sweep_status& now, const std::function<void(const sweep_status&)>& progress) {
  using namespace std::chrono_literals;
  sweep_record record{.begin = seconds_now(), .units = -ledger_->units_done()};
  if (!ledger_->finished(now.sweep)) {
    ledger_->begin(now.sweep);
    const array from = at(plan_.sweeps[now.sweep].from);
    const array to = at(plan_.sweeps[now.sweep].to);
    const drive_use before = use_of(from, to);
    const auto used = [&] {
      drive_use u = use_of(from, to);
      return u -= before;
    };
    for (const auto& h : helpers_) post(h)->prepare(now.sweep);  // while the first units are read
    auto logs = start(workers_)->run(now.sweep, from, to);
    while (!logs.wait_for(100ms)) {
      now.units_done = ledger_->units_done();
      look(now, used());
      progress(now);
    }
    record.logs = logs.get();
    internal::to_own_clock(record.logs);
    flush(now.sweep);
    const drive_use in_sweep = used();
    const double seconds = seconds_now() - record.begin;
    record.read_busy = in_sweep.read_seconds / seconds;
    record.write_busy = in_sweep.write_seconds / seconds;
    used_ += in_sweep;
    look(now, {});
  } else {
    flush(now.sweep);  // the program that did its last unit may have been killed before it could
  }
  record.end = seconds_now();
  record.units += ledger_->units_done();
  return record;
}

sweep_outcome sweep_job::run_all(const std::function<void(const sweep_status&)>& progress) {
  sweep_outcome result{.begin = seconds_now(), .resumed = resumed_};
  for (std::size_t i = 0; i < workers_.size(); ++i) workers_[i]->be_number(static_cast<std::uint32_t>(i));
  sweep_status now;
  for (std::size_t i = 0; i < plan_.sweeps.size(); ++i) now.units += plan_.units(i);
  for (; now.sweep < plan_.sweeps.size(); ++now.sweep) {
    result.sweeps.push_back(run_one(now, progress));
  }
  result.counted = ledger_->counted();
  now.units_done = now.units;
  progress(now);
  result.rates = now.rates;
  output()->finish();
  folder_.finish(std::to_string(result.counted));
  const double ended = seconds_now();
  end_processes();
  (void)end();
  result.end = ended;
  return result;
}

// The rest of the work when all is computed, by this program or by one that was killed: what is
// between goes.
sweep_outcome sweep_job::end() {
  for (const sweep_place p : plan_.created)
    if (p != sweep_place::output) internal::remove_remains(path_of(p));
  done_ = folder_.path();
  sweep_outcome result{.begin = seconds_now(), .resumed = true, .counted = std::stoull(*folder_.finished())};
  result.end = result.begin;
  result.sweeps.assign(plan_.sweeps.size(), {.begin = result.begin, .end = result.begin});
  return result;
}

}  // namespace orrery::storage
