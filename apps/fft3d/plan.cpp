// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include "lines.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace fft3d {
namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t node_bytes = 24 * mib;       // a program that does nothing, FFTW's tables included
constexpr std::uint64_t connected_bytes = 48 * mib;  // more, if it has to send its pages to other nodes
constexpr std::uint32_t transfers = 16;              // pages: keep a drive busy

bool is_complex(element_type t) { return t == element_type::complex64 || t == element_type::complex128; }
bool is_single(element_type t) { return t == element_type::complex64 || t == element_type::float32; }

using dimensions = std::vector<int>;

// Which dimensions are transformed together. In a slab of pages two of them are complete: the third is the one with the most pages, so that the slab is
// the smallest.
std::vector<dimensions> grouped(int passes, const index3& pages) {
  if (passes == 3) return {{2}, {1}, {0}};
  const auto alone = static_cast<int>(std::ranges::max_element(pages) - pages.begin());
  dimensions slab;
  for (const int d : {2, 1, 0})
    if (d != alone) slab.push_back(d);
  return {slab, {alone}};
}

pass pass_over(const dimensions& group, const index3& pages, phase what) {
  pass p{.phases = {}, .unit = {1, 1, 1}};
  for (const int d : group) {
    what.dimension = d;
    p.phases.push_back(what);
    p.unit[d] = pages[d];
  }
  return p;
}

// A filter comes back along the same dimensions, and multiplies where it turns round: no pass is made for it alone.
std::vector<pass> passes_for(operation what, const std::vector<dimensions>& groups, const index3& pages) {
  std::vector<pass> all;
  for (const dimensions& g : groups)
    all.push_back(pass_over(g, pages, {.forward = what != operation::inverse, .inverse = what == operation::inverse}));
  if (what != operation::filter) return all;
  phase& turn = all.back().phases.back();
  turn.filter = turn.inverse = true;
  for (auto g = groups.rbegin() + 1; g != groups.rend(); ++g) all.push_back(pass_over(*g, pages, {.inverse = true}));
  return all;
}

// The last pass comes from the scratch; those before it alternate between that and another place.
void choose_places(plan& p, bool in_place, bool memory) {
  const place other = !in_place && is_complex(p.output_type) ? place::output : place::second_scratch;
  for (std::size_t i = 0; i + 1 < p.passes.size(); ++i) {
    const bool near = (p.passes.size() - i) % 2 == 0;
    p.passes[i].to = p.passes[i + 1].from = memory ? place::memory : near ? place::scratch : other;
  }
  for (const place at : {place::output, place::scratch, place::second_scratch})
    if (!(in_place && at == place::output) && std::ranges::any_of(p.passes, [&](const pass& q) { return q.to == at; }))
      p.created.push_back(at);
  for (const pass& q : p.passes) {
    p.bytes_read += p.bytes_at(q.from);
    p.bytes_written += p.bytes_at(q.to);
  }
}

// Memory for one process (a unit, and a tile of lines), and for all else.
struct needs {
  std::uint64_t fixed;
  std::uint64_t process;
};
needs memory_of(const plan& p, std::uint32_t nodes) {
  const std::uint64_t page = product(p.grid.page_shape) * size_of(p.work_type);
  needs n{nodes * node_bytes, 0};
  if (nodes > 1) n.fixed += nodes * (connected_bytes + p.pool_bytes);
  if (p.input_type != p.work_type || p.output_type != p.work_type) n.fixed += p.pool_bytes;
  for (std::size_t i = 0; i < p.passes.size(); ++i) {
    if (p.passes[i].to == place::memory)
      n.fixed = std::max<std::uint64_t>(n.fixed, nodes * node_bytes + p.grid.page_count() * page);
    std::uint64_t tile = 0;
    for (const phase& q : p.passes[i].phases)
      tile = std::max<std::uint64_t>(tile, tile_elements(p.grid, q.dimension) * size_of(p.work_type));
    n.process = std::max(n.process, product(p.passes[i].unit) * page + tile);
  }
  return n;
}

std::string size_text(std::uint64_t bytes) { return fmt::format("{}M", (bytes + mib - 1) / mib); }

void check(const request& r, element_type input) {
  const bool in_place = r.output.empty();
  if (r.what == operation::inverse && !is_complex(input))
    throw std::invalid_argument(
        fmt::format("{} holds {}: an inverse transform is one of complex numbers", r.input, to_string(input)));
  if (in_place && r.what == operation::forward && !is_complex(input))
    throw std::invalid_argument(
        fmt::format("{} holds {}, and its transform is complex: give a place for a new data set (--output)", r.input,
                    to_string(input)));
  if (r.real_output && (r.what != operation::inverse || in_place))
    throw std::invalid_argument("--real is for an inverse transform to a new data set");
  if (r.passes < 0 || r.passes > 3)
    throw std::invalid_argument(fmt::format("{} passes cannot be: 1, 2 or 3", r.passes));
  if (r.passes == 1 && in_place)
    throw std::invalid_argument(
        "one pass in place would lose the array if it were interrupted: 2 or 3, or a new data set");
}

}  // namespace

double transfer_function::at(double squared_frequency) const noexcept {
  if (what == form::gaussian) return std::exp(-squared_frequency / (2 * high * high));
  return squared_frequency <= high * high && squared_frequency >= (what == form::band_pass ? low * low : 0) ? 1 : 0;
}

std::int64_t plan::units(std::size_t pass) const { return grid.page_count() / product(passes[pass].unit); }
domain plan::unit_pages(std::size_t pass, std::int64_t unit) const {
  const domain d = orrery::storage::page_grid{grid.pages(), passes[pass].unit}.elements_of(
      orrery::storage::page_grid{grid.pages(), passes[pass].unit}.page_at(unit));
  return d;
}
element_type plan::type_at(place p) const {
  return p == place::input ? input_type : p == place::output ? output_type : work_type;
}
std::uint64_t plan::bytes_at(place p) const {
  return p == place::memory ? 0 : grid.page_count() * product(grid.page_shape) * size_of(type_at(p));
}

plan make_plan(const request& r, const orrery::storage::data_set_info& input, std::uint32_t pes, std::uint32_t nodes) {
  check(r, input.type);
  plan base{.grid = {input.shape, input.page_shape}, .input_type = input.type};
  base.work_type = is_single(input.type) ? element_type::complex64 : element_type::complex128;
  base.output_type = r.what == operation::filter ? input.type : base.work_type;
  if (r.real_output) base.output_type = is_single(input.type) ? element_type::float32 : element_type::float64;
  base.filter = r.filter;
  const std::uint64_t page = product(base.grid.page_shape) * size_of(base.work_type);
  std::uint64_t smallest = ~std::uint64_t{0};
  for (const int passes : {1, 2, 3}) {
    if ((passes == 1 && r.output.empty()) || (r.passes != 0 && r.passes != passes)) continue;
    plan p = base;
    p.passes = passes_for(r.what, grouped(passes, p.grid.pages()), p.grid.pages());
    choose_places(p, r.output.empty(), passes == 1);
    p.pool_bytes = 4 * page;
    const needs n = memory_of(p, nodes);
    smallest = std::min(smallest, n.fixed + n.process);
    if (n.fixed + n.process > r.memory) continue;
    // Beyond some units for each PE, and enough of them to keep the drives busy, more would only wait.
    const std::uint64_t enough =
        3 * pes + transfers * std::max<std::size_t>(input.files.size(), r.folders.size()) * page / n.process;
    std::uint64_t units = 0;
    for (std::size_t i = 0; i < p.passes.size(); ++i) units = std::max<std::uint64_t>(units, p.units(i));
    p.processes = static_cast<std::uint32_t>(std::min({(r.memory - n.fixed) / n.process, enough, units}));
    p.peak_bytes = n.fixed + p.processes * n.process;
    // On one node, pages of one size are used again and again; what is on several, or of two sizes, would add up.
    if (nodes == 1 && p.input_type == p.work_type && p.output_type == p.work_type) p.pool_bytes = p.peak_bytes;
    return p;
  }
  throw std::invalid_argument(fmt::format(
      "{} of memory are too little for {}, {} of {} in pages of {}: at least {} work{}", size_text(r.memory), r.input,
      orrery::storage::to_string(input.shape), to_string(input.type), orrery::storage::to_string(input.page_shape),
      size_text(smallest), r.passes != 0 ? fmt::format(" with {} passes", r.passes) : ""));
}

}  // namespace fft3d
