// SPDX-License-Identifier: Apache-2.0
// The part of the simulator that waits for I/O, which happens outside of virtual time.
#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/simulator.hpp>

#include <algorithm>
#include <ctime>

namespace orrery::scheduler {

// I/O is done by the kernel in its own time. While there is some, virtual time does not run ahead
// of the real one: returns when some of it is done, or the next event is due in this sense, too.
void simulator::await_io() {
  while (!with_io_.empty()) {
    const std::int64_t real = io_since_ + (transport::real_now_ns() - io_since_real_);
    if (!queue_.empty() && queue_.next().time <= std::max(real, now_)) return;
    if (real > now_) now_ = real;
    if (look_at_io()) return;
    const timespec moment{0, 10'000};
    nanosleep(&moment, nullptr);
  }
}

// True if some of it is done.
bool simulator::look_at_io() {
  bool any = false;
  for (std::size_t i = 0; i < with_io_.size();) {
    pe& p = *with_io_[i];
    if (p.io_active_ == nullptr || p.sim_->over) {
      p.sim_->does_io = false;
      with_io_[i] = with_io_.back();
      with_io_.pop_back();
      continue;
    }
    if (p.io_active_->ready()) {
      wake(p);
      any = true;
    }
    ++i;
  }
  return any;
}

}  // namespace orrery::scheduler
