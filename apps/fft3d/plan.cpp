// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include "tile.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace fft3d {
namespace {

using namespace orrery::storage;

std::string size_text(std::uint64_t bytes) { return fmt::format("{}M", (bytes + (1 << 20) - 1) >> 20); }

void check(const request& r, element_type input) {
  const bool in_place = r.output.empty();
  if (r.what == operation::inverse && !is_complex(input))
    throw std::invalid_argument(
        fmt::format("{} holds {}: an inverse transform is one of complex numbers", r.input, to_string(input)));
  if (in_place && r.what == operation::forward && !is_complex(input))
    throw std::invalid_argument(fmt::format("{} holds {}, and its transform is complex: name an OUTPUT, a new data set",
                                            r.input, to_string(input)));
  if (r.real_output && (r.what != operation::inverse || in_place))
    throw std::invalid_argument("--real is for an inverse transform to a new data set");
  if (r.passes < 0 || r.passes > 3)
    throw std::invalid_argument(fmt::format("{} passes cannot be: 1, 2 or 3", r.passes));
  if (r.passes == 1 && in_place)
    throw std::invalid_argument(
        "one pass in place would lose the array if it were interrupted: 2 or 3, or a new data set");
}

// A filter comes back along the same dimensions, and multiplies where it turns round: no sweep is
// made for it alone.
std::vector<phase> phases_of(operation what, sweep_order& order) {
  std::vector<phase> all(order.size(), {.forward = what != operation::inverse, .inverse = what == operation::inverse});
  if (what != operation::filter) return all;
  all.back() = {.forward = true, .filter = true, .inverse = true};
  for (std::size_t i = order.size() - 1; i-- > 0;) {
    order.push_back(order[i]);
    all.push_back({.inverse = true});
  }
  return all;
}

}  // namespace

double transfer_function::at(double squared_frequency) const noexcept {
  if (what == form::gaussian) return std::exp(-squared_frequency / (2 * high * high));
  return squared_frequency <= high * high && squared_frequency >= (what == form::band_pass ? low * low : 0) ? 1 : 0;
}

sweep_task task_of(const request& r, const data_set_info& input) {
  const bool single = is_single(input.type);
  sweep_task t{.input = input, .output = r.output, .folders = r.folders, .memory = r.memory, .machines = r.machines};
  t.work_type = single ? element_type::complex64 : element_type::complex128;
  t.output_type = r.what == operation::filter ? input.type : t.work_type;
  if (r.real_output) t.output_type = single ? element_type::float32 : element_type::float64;
  return t;
}

plan make_plan(const request& r, const data_set_info& input, std::uint32_t pes, std::uint32_t nodes) {
  check(r, input.type);
  const sweep_task task = task_of(r, input);
  std::uint64_t smallest = ~std::uint64_t{0};
  for (const int passes : {1, 2, 3}) {
    if ((passes == 1 && r.output.empty()) || (r.passes != 0 && r.passes != passes)) continue;
    sweep_order order = each_dimension_once(passes, page_grid{input.shape, input.page_shape}.pages());
    const auto phases = phases_of(r.what, order);
    const auto tile = [&](const page_grid& g, const sweep& s) {
      const index3 shape = tile_shape(g, s);
      return shape[0] * tile_strides(shape)[0] * size_of(task.work_type);
    };
    const auto work = plan_sweeps(task, order, passes == 1, tile, pes, nodes, true);
    if (work) return {*work, phases, r.filter, {}};
    smallest = std::min(smallest, work.error());
  }
  throw std::invalid_argument(fmt::format(
      "{} of memory are too little for {}, {} of {} in pages of {}: at least {} work{}", size_text(r.memory), r.input,
      to_string(input.shape), to_string(input.type), to_string(input.page_shape), size_text(smallest),
      r.passes != 0 ? fmt::format(" with {} passes", r.passes) : ""));
}

}  // namespace fft3d
