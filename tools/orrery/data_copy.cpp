// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "data.hpp"
#include "progress.hpp"

#include <orrery/orrery.hpp>
#include <orrery/storage/storage.hpp>

#include <optional>
#include <stdexcept>

#include <fmt/format.h>

namespace orrery::tool {
namespace {

using namespace orrery::storage;

copy_task task_for(const data_request& r) {
  copy_task t{.input = data_set::read_info(r.path), .output = r.target, .folders = r.folders, .map = r.map};
  t.type = t.input.type;
  if (!r.type.empty()) {
    const auto type = element_type_named(r.type);
    if (!type)
      throw command_error(fmt::format("there is no type '{}': float32, float64, complex64, complex128", r.type));
    t.type = *type;
  }
  if (!r.copy_pages.empty()) {
    if (std::ranges::any_of(r.copy_pages, [](std::int64_t n) { return n <= 0; }))
      throw command_error("--pages: pages have three sides above 0");
    t.page_shape = {r.copy_pages[0], r.copy_pages[1], r.copy_pages[2]};
  }
  t.checksums = t.input.checksums;
  constexpr std::uint64_t usual = std::uint64_t{256} << 20;
  t.memory = r.memory != 0 ? r.memory : usual;
  t.machines = world_machines();
  return t;
}

}  // namespace

int data_copy(const data_request& r) {
  return in_world([&] {
    copy_task task = task_for(r);
    auto plan = plan_copy(task, world_pes(), world_nodes());
    if (!plan && r.memory == 0) {
      task.memory = plan.error();
      plan = plan_copy(task, world_pes(), world_nodes());
    }
    if (!plan)
      throw std::invalid_argument(
          fmt::format("--memory {}M is too little for {}: at least {}M work, of all {} nodes together",
                      task.memory >> 20, r.path, (plan.error() + (1 << 20) - 1) >> 20, world_nodes()));
    copy_job job(task, *plan);
    if (job.resumed()) fmt::print(stderr, "going on with the copy that was interrupted\n");
    job.begin();
    const auto bytes = static_cast<std::uint64_t>(product(task.input.shape)) * size_of(task.type);
    std::optional<progress> bar;
    const copy_outcome o = job.run([&](const copy_status& now) {
      const auto done = static_cast<std::uint64_t>(
          static_cast<double>(2 * bytes) * static_cast<double>(now.units_done) / static_cast<double>(now.units));
      if (!bar) bar.emplace("copy", 2 * bytes, done);
      bar->at(done, now.verifying ? "verify" : "copy");
    });
    bar.reset();
    if (o.overflows != 0)
      fmt::print(stderr, "warning: {} numbers are too large for {}, and infinite in the copy\n", o.overflows,
                 to_string(task.type));
    return 0;
  });
}

}  // namespace orrery::tool
