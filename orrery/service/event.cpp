// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/wait_watcher.hpp>
#include <orrery/service/event.hpp>
#include <orrery/wire/error.hpp>

#include <utility>

namespace orrery::service {

using access = detail::future_access<void>;

/// Ends the wait when the program ends: who is to set the event is not executed any more.
class event::end_with_program final : public scheduler::wait_watcher {
 public:
  end_with_program(event& of, scheduler::pe& self) : of_(of), self_(self) { self.layers().watchers().add(*this); }
  end_with_program(const end_with_program&) = delete;
  end_with_program& operator=(const end_with_program&) = delete;
  ~end_with_program() override { self_.layers().watchers().remove(*this); }

  void pes_lost(scheduler::pe&) noexcept override {}
  void cancel_waits(scheduler::pe& self) noexcept override {
    if (of_.waiting_ != nullptr)
      detail::resolve<void>(self, std::exchange(of_.waiting_, nullptr), [] { throw stopped("a wait in a service"); });
  }

 private:
  event& of_;
  scheduler::pe& self_;
};

event::~event() {
  // the wait ended with an exception
  if (waiting_ != nullptr) std::exchange(waiting_, nullptr)->drop();
}

void event::wait() {
  if (set_) return;
  scheduler::pe& self = detail::here_pe();
  if (self.refusing()) self.shutdown().refuse("a wait in a service");
  auto state = access::make_local(self);
  state->hold();
  waiting_ = state.get();
  const end_with_program watcher(*this, self);
  access::wrap(std::move(state)).get();
}

void event::set() {
  set_ = true;
  if (waiting_ != nullptr) detail::resolve<void>(detail::here_pe(), std::exchange(waiting_, nullptr), [] {});
}

}  // namespace orrery::service
