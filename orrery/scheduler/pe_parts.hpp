// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/deadlock_detector.hpp>
#include <orrery/scheduler/idle_queue.hpp>
#include <orrery/scheduler/quiescence_detector.hpp>
#include <orrery/scheduler/timer.hpp>

namespace orrery::scheduler {

class pe;

/// The parts of a PE that no message touches and no template uses.
///
/// Problem: each program includes pe.hpp, and the compiler would read these and the containers in
/// them for each source of it. So only the sources of the scheduler include them; the PE has a
/// reference to each.
///
/// Owned by the PE, used on its thread, but where a part says otherwise.
struct pe_parts {
  explicit pe_parts(pe& of) noexcept : deadlocks(of), quiescence(of) {}

  idle_queue when_idle;
  timer_queue timers;
  deadlock_detector deadlocks;
  quiescence_detector quiescence;
};

}  // namespace orrery::scheduler
