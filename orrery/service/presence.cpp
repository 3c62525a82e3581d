// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/spawn.hpp>
#include <orrery/service/presence.hpp>

namespace orrery::service {

void presence::hold() {
  if (left_) return;
  struct entry {  // the wait may end with an exception, and leave() be called later
    std::vector<event*>& all;
    event left;
    ~entry() { std::erase(all, &left); }
  } mine{held_, {}};
  held_.push_back(&mine.left);
  mine.left.wait();
}

void presence::leave() {
  left_ = true;
  for (event* const e : std::exchange(held_, {})) e->set();
}

own_presence::own_presence() : there_(spawn<presence>(here())) {}

own_presence::~own_presence() {
  try {
    there_->leave();
    destroy(there_);
  } catch (...) {  // the world ends, and the presence with it
  }
}

}  // namespace orrery::service
