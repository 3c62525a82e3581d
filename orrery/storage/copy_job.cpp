// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/copy_job.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/storage/data_set.hpp>
#include <orrery/storage/internal/job_data.hpp>
#include <orrery/storage/internal/job_sets.hpp>
#include <orrery/storage/internal/path_text.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace orrery::storage {
namespace {

namespace fs = std::filesystem;
using detail::throw_errno;

constexpr std::uint64_t mib = 1 << 20;
// a program that does nothing, its libraries' tables included
constexpr std::uint64_t node_bytes = 24 * mib;
constexpr std::uint64_t connected_bytes = 48 * mib;  // more, if it has to send pages to other nodes
constexpr std::int64_t unit_bytes = 16 * mib;        // or one page of the output

std::int64_t bytes_of(const index3& shape, element_type type) {
  return product(shape) * static_cast<std::int64_t>(size_of(type));
}

// First as large as pages of the input, so that few of these are read for several units; then
// longer, along the last dimension first. It does not depend on the memory: a copy goes on with
// more or less of it.
index3 unit_of(const page_grid& from, const page_grid& to, element_type type) {
  const std::int64_t page = bytes_of(to.page_shape, type);
  const index3 all = to.pages();
  index3 unit{1, 1, 1};
  const auto widen = [&](int k, std::int64_t wanted) {
    wanted = std::min(wanted, all[k]);
    const std::int64_t others = product(unit) / unit[k];
    unit[k] = std::max(unit[k], std::min(wanted, unit_bytes / page / others));
  };
  for (int k = 2; k >= 0; --k) widen(k, (from.page_shape[k] + to.page_shape[k] - 1) / to.page_shape[k]);
  for (int k = 2; k >= 0; --k) widen(k, all[k]);
  return unit;
}

}  // namespace

std::expected<copy_plan, std::uint64_t> plan_copy(const copy_task& task, std::uint32_t pes, std::uint32_t nodes) {
  copy_plan p{.from = {task.input.shape, task.input.page_shape}, .from_type = task.input.type, .to_type = task.type};
  p.to = page_grid::checked(task.input.shape, task.page_shape == index3{} ? task.input.page_shape : task.page_shape);
  (void)convert_elements({}, p.from_type, {}, p.to_type);
  if (!task.map.empty() && task.map != "circulant" && task.map != "blocked")
    throw std::invalid_argument(fmt::format("there is no page map '{}': circulant, blocked", task.map));
  p.unit = unit_of(p.from, p.to, p.to_type);
  const auto largest = static_cast<std::uint64_t>(
      std::max(bytes_of(p.from.page_shape, p.from_type), bytes_of(p.to.page_shape, p.to_type)));
  p.window = std::max<std::uint64_t>(2 * largest, 4 * mib);
  p.pool_bytes = 2 * p.window;
  const domain unit = p.unit_elements(0);
  const auto numbers = static_cast<std::uint64_t>(unit.size());
  const bool converts = p.from_type != p.to_type;
  // Pages that go to another node are in memory there, in a message and here.
  const std::uint64_t process =
      numbers * (size_of(p.from_type) + (converts ? size_of(p.to_type) : 0)) + p.window * (task.machines > 1 ? 3 : 1);
  const std::uint64_t fixed = nodes * (node_bytes + p.pool_bytes + (task.machines > 1 ? connected_bytes : 0));
  if (fixed + process > task.memory) return std::unexpected(fixed + process);
  p.processes = static_cast<std::uint32_t>(
      std::min({(task.memory - fixed) / process, std::uint64_t{4} * pes, static_cast<std::uint64_t>(p.units())}));
  p.peak_bytes = fixed + p.processes * process;
  return p;
}

copy_job::copy_job(copy_task task, const copy_plan& plan)
    : task_(std::move(task)),
      plan_(plan),
      folder_(internal::folder_beside(detail::tidy_path(task_.output), "copy", task_.input, task_.folders),
              detail::tidy_path(task_.output)),
      identity_(new internal::job_sets(folder_, task_.input, detail::tidy_path(task_.output))) {
  task_.output = detail::tidy_path(task_.output);
  const bool begun = folder_.begun(description(), identity_->advice());
  held_ = internal::held_input(task_.input.path, false);
  internal::read_again(task_.input);
  resumed_ = begun && identity_->are_as_noted();
  if (!resumed_) check_beginning();
}

copy_job::~copy_job() { end_processes(); }

void copy_job::end_processes() noexcept {
  try {
    if (copiers_.size() != 0) destroy(std::exchange(copiers_, {}));
    if (ledger_) destroy(std::exchange(ledger_, {}));
    if (input_) destroy(std::exchange(input_, {}));
    if (output_) destroy(std::exchange(output_, {}));
  } catch (const std::exception&) {  // the world ends, and they with it
  }
}

std::string copy_job::description() const {
  return nlohmann::ordered_json{{"input", internal::path_text(task_.input.path)},
                                {"id", task_.input.id},
                                {"output", internal::path_text(task_.output)},
                                {"shape", plan_.to.array_shape},
                                {"pages", {plan_.from.page_shape, plan_.to.page_shape}},
                                {"types", {plan_.from_type, plan_.to_type}},
                                {"unit", plan_.unit},
                                {"folders", task_.folders},
                                {"map", task_.map},
                                {"checksums", task_.checksums}}
      .dump(1);
}

void copy_job::check_beginning() {
  internal::require_nothing_at(task_.output);
  folder_.clear();
  if (!task_.input.finished)
    throw_errno(EBADMSG, fmt::format("the data set {} is unfinished: run again what writes it", task_.input.path));
  const auto pages = static_cast<std::uint64_t>(plan_.to.page_count());
  internal::require_room(task_.output, task_.folders.empty() ? std::vector{folder_.path()} : task_.folders,
                         pages * static_cast<std::uint64_t>(bytes_of(plan_.to.page_shape, plan_.to_type)));
}

void copy_job::begin() {
  if (resumed_ && folder_.finished()) return;
  if (!resumed_) identity_->note();
  if (!resumed_) folder_.begin(description());  // from here on what is at the target is ours
  try {
    open();
  } catch (...) {
    end_processes();
    if (!resumed_ && !folder_.passed("made")) job_folder::remove(folder_.path());
    throw;
  }
  ledger_ = spawn<ledger>(here(), folder_ / "progress", std::vector{plan_.units(), plan_.units()});
}

void copy_job::open() {
  data_set_options o{.mode = open_mode::read_only, .cache = {0, 0}};
  o.on_each_node = true;  // a page of the output belongs to one unit, so that one process writes it
  input_ = spawn<data_set>(here(), task_.input.path, o);
  o.mode = open_mode::read_write;
  if (folder_.passed("made")) {
    output_ = spawn<data_set>(here(), task_.output, o);
    return;
  }
  if (resumed_ && identity_->has_own_output()) internal::remove_remains(task_.output);
  const auto devices = static_cast<std::uint32_t>(std::max<std::size_t>(task_.folders.size(), 1));
  const bool blocked = task_.map.empty() ? task_.input.map == "blocked" : task_.map == "blocked";
  output_ = spawn<data_set>(
      here(), task_.output,
      data_set_description{.shape = plan_.to.array_shape,
                           .page_shape = plan_.to.page_shape,
                           .type = plan_.to_type,
                           .folders = task_.folders,
                           .map = make_page_map(blocked ? "blocked" : "circulant", plan_.to.pages(), devices),
                           .checksums = task_.checksums,
                           .attributes = task_.input.attributes,
                           .id = identity_->output_id()},
      o);
  folder_.pass("made");
}

copy_outcome copy_job::run(const std::function<void(const copy_status&)>& progress) {
  using namespace std::chrono_literals;
  copy_outcome result{.resumed = resumed_};
  if (!folder_.finished()) {
    copiers_ = spawn_group<copier>(everywhere(), plan_.processes, plan_, ledger_);
    copy_status now{.units = 2 * plan_.units()};
    const array from = input_->contents();
    const array to = output_->contents();
    const auto watch = [&](auto working) {
      while (!working.wait_for(100ms)) {
        now.units_done = ledger_->units_done();
        progress(now);
      }
      working.get();
    };
    result.units = -ledger_->units_done();
    if (!ledger_->finished(0)) {
      ledger_->begin(0);
      watch(start(copiers_)->copy(from, to));
    }
    // Also what another program has copied, which may have been killed before it could: what is
    // read back now may be in memory only.
    output_->flush();
    ledger_->flush();
    result.units = std::max<std::int64_t>(result.units + ledger_->units_done(), 0);
    now.verifying = true;
    if (!ledger_->finished(1)) {
      ledger_->begin(1);
      watch(start(copiers_)->verify(from, to));
    }
    now.units_done = now.units;
    progress(now);
    output_->finish();
    folder_.finish(std::to_string(ledger_->counted()));
    end_processes();
  }
  std::istringstream(*folder_.finished()) >> result.overflows;  // a former version kept a word
  job_folder::remove(folder_.path());
  return result;
}

}  // namespace orrery::storage
