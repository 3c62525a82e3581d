// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/sweep.hpp>

#include <algorithm>
#include <thread>

namespace orrery::storage {
namespace {

constexpr std::uint64_t mib = 1 << 20;
// a program that does nothing, its libraries' tables included
constexpr std::uint64_t node_bytes = 24 * mib;
constexpr std::uint64_t connected_bytes = 48 * mib;  // more, if it has to send pages to other nodes
constexpr std::uint32_t transfers = 16;              // pages: keep a drive busy

std::uint64_t page_bytes(const sweep_plan& p) { return product(p.grid.page_shape) * size_of(p.work_type); }
bool converts(const sweep_plan& p) { return p.input_type != p.work_type || p.output_type != p.work_type; }

// The last sweep comes from the scratch; those before it alternate between that and another place.
void choose_places(sweep_plan& p, bool in_place, bool in_memory) {
  using enum sweep_place;
  const sweep_place other = !in_place && p.output_type == p.work_type ? output : second_scratch;
  for (std::size_t i = 0; i + 1 < p.sweeps.size(); ++i) {
    const bool near = (p.sweeps.size() - i) % 2 == 0;
    p.sweeps[i].to = p.sweeps[i + 1].from = in_memory ? memory : near ? scratch : other;
  }
  for (const sweep_place at : {output, scratch, second_scratch})
    if (!(in_place && at == output) && std::ranges::any_of(p.sweeps, [&](const sweep& s) { return s.to == at; }))
      p.created.push_back(at);
  for (const sweep& s : p.sweeps) {
    p.bytes_read += p.bytes_at(s.from);
    p.bytes_written += p.bytes_at(s.to);
  }
}

// Memory for one process in each sweep, and for all else.
struct needs {
  std::uint64_t fixed;
  std::vector<std::uint64_t> process;
};
needs memory_of(const sweep_plan& p, const sweep_extra& extra, std::uint32_t pes, std::uint32_t nodes, bool travels) {
  needs n{nodes * node_bytes, {}};
  if (travels) n.fixed += nodes * (connected_bytes + p.pool_bytes);
  if (travels && converts(p)) n.fixed += nodes * p.pool_bytes;
  std::uint64_t beside = 0;
  for (const sweep& s : p.sweeps) beside = std::max(beside, extra(p.grid, s));
  const std::uint64_t helpers = p.helped ? pes * beside : 0;
  n.fixed += helpers;
  for (std::size_t i = 0; i < p.sweeps.size(); ++i) {
    if (p.sweeps[i].to == sweep_place::memory)
      n.fixed = std::max<std::uint64_t>(n.fixed, nodes * node_bytes + helpers + p.grid.page_count() * page_bytes(p));
    n.process.push_back(product(p.unit_shape(i)) * page_bytes(p) + (p.helped ? 0 : beside));
  }
  return n;
}

}  // namespace

sweep_order each_dimension_once(int sweeps, const index3& pages) {
  if (sweeps == 3) return {{2}, {1}, {0}};
  const auto alone = static_cast<int>(std::ranges::max_element(pages) - pages.begin());
  std::vector<int> slab{2, 1, 0};
  std::erase(slab, alone);
  return {slab, {alone}};
}

index3 sweep_plan::unit_shape(std::size_t sweep) const {
  index3 unit{1, 1, 1};
  for (const int d : sweeps[sweep].dimensions) unit[d] = grid.pages()[d];
  return unit;
}
std::int64_t sweep_plan::units(std::size_t sweep) const { return grid.page_count() / product(unit_shape(sweep)); }
domain sweep_plan::unit_pages(std::size_t sweep, std::int64_t unit) const {
  const page_grid units{grid.pages(), unit_shape(sweep)};
  return units.elements_of(units.page_at(unit));
}
element_type sweep_plan::type_at(sweep_place p) const {
  return p == sweep_place::input ? input_type : p == sweep_place::output ? output_type : work_type;
}
std::uint64_t sweep_plan::bytes_at(sweep_place p) const {
  return p == sweep_place::memory ? 0 : grid.page_count() * product(grid.page_shape) * size_of(type_at(p));
}

std::expected<sweep_plan, std::uint64_t> plan_sweeps(const sweep_task& task, const sweep_order& order, bool in_memory,
                                                     const sweep_extra& extra, std::uint32_t pes, std::uint32_t nodes,
                                                     bool helped) {
  sweep_plan p{.grid = {task.input.shape, task.input.page_shape},
               .input_type = task.input.type,
               .work_type = task.work_type,
               .output_type = task.output_type};
  p.helped = helped;
  for (const std::vector<int>& dimensions : order) p.sweeps.push_back({.dimensions = dimensions});
  choose_places(p, task.output.empty(), in_memory);
  p.pool_bytes = 4 * page_bytes(p);
  // Each node reads and writes the drives of its machine by itself; what is in memory, or on
  // another machine, goes from one to the other.
  const bool travels = task.machines > 1 || (nodes > 1 && in_memory);
  p.window = travels ? 4 : static_cast<std::size_t>(p.grid.page_count());
  const needs n = memory_of(p, extra, pes, nodes, travels);
  const std::uint64_t largest = std::ranges::max(n.process);
  if (n.fixed + largest > task.memory) return std::unexpected(n.fixed + largest);
  const std::uint64_t drives = std::max({task.input.files.size(), task.folders.size(), std::size_t{1}});
  const std::uint64_t processors = std::max(std::thread::hardware_concurrency(), 1U);
  // With helpers each node computes with one unit, while one is read and one is written. One more
  // would be memory that is touched for the first time, and no faster.
  const std::uint64_t least =
      helped ? 3 * std::uint64_t{nodes} : std::max<std::uint64_t>(pes, 2 * std::min<std::uint64_t>(pes, processors));
  p.peak_bytes = n.fixed;
  for (std::size_t i = 0; i < p.sweeps.size(); ++i) {
    const std::uint64_t process = travels ? largest : n.process[i];
    const std::uint64_t enough = least + transfers * drives * page_bytes(p) / process;
    const auto units = static_cast<std::uint64_t>(p.units(i));
    p.at_once.push_back(static_cast<std::uint32_t>(std::min({(task.memory - n.fixed) / process, enough, units})));
    p.peak_bytes = std::max(p.peak_bytes, n.fixed + p.at_once[i] * process);
  }
  p.processes = std::ranges::max(p.at_once);
  // Memory is best used again and again. All pages are of one size, mostly; where they travel the
  // rest of the budget is shared out.
  if (!travels) p.pool_bytes = p.peak_bytes;
  if (travels) {
    const std::uint64_t rest = std::min((task.memory - p.peak_bytes) / nodes, p.processes * largest);
    p.pool_bytes += rest;
    p.peak_bytes += nodes * rest;
  }
  return p;
}

}  // namespace orrery::storage
