// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include "tile.hpp"
#include "transform.hpp"

#include <orrery/orrery.hpp>

#include <fmt/format.h>

namespace fft3d {

sweep_outcome perform(const request& wanted, const observer& watch, std::string* folder) {
  request r = wanted;
  r.machines = orrery::world_machines();
  const auto input = orrery::storage::data_set::read_info(r.input);
  plan p = make_plan(r, input, orrery::world_pes(), orrery::world_nodes());
  const std::string about = fmt::format("operation {}, filter {} {} {}", static_cast<int>(r.what),
                                        static_cast<int>(r.filter.what), r.filter.low, r.filter.high);
  orrery::storage::sweep_job job(task_of(r, input), p.work, job_name, about);
  watch.planned(p, job.resumed());
  job.begin();
  // a unit has the same result wherever it is transformed
  if (r.machines > 1) p.wisdom = learn_all(p);
  auto outcome = job.run<transformer>(watch.progress, p);
  save_wisdom();
  if (folder != nullptr) *folder = job.leave_folder();
  return outcome;
}

}  // namespace fft3d
