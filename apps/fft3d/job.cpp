// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include "tile.hpp"
#include "transform.hpp"

#include <orrery/orrery.hpp>

#include <fmt/format.h>

namespace fft3d {

sweep_outcome perform(const request& r, const observer& watch, std::string* folder) {
  const auto input = orrery::storage::data_set::read_info(r.input);
  const plan p = make_plan(r, input, orrery::world_pes(), orrery::world_nodes());
  const std::string about = fmt::format("operation {}, filter {} {} {}", static_cast<int>(r.what),
                                        static_cast<int>(r.filter.what), r.filter.low, r.filter.high);
  orrery::storage::sweep_job job(task_of(r, input), p.work, "fft3d", about);
  watch.planned(p, job.resumed());
  job.begin();
  auto outcome = job.run<transformer>(watch.progress, p);
  save_wisdom();
  if (folder != nullptr) *folder = job.leave_folder();
  return outcome;
}

}  // namespace fft3d
