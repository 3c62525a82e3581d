// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/promise.hpp>

#include <orrery/scheduler/node.hpp>

#include <fmt/format.h>

namespace orrery::detail {

constinit thread_local state_memory::kept state_memory::kept_[state_memory::classes];

namespace {

std::string maker_of(const scheduler::sink& k) {
  const std::string by = k.method != nullptr ? fmt::format("{}::{}", k.method->class_name, k.method->method)
                                             : std::string("a process function");
  return fmt::format("a promise that {} made at {}", by, to_string(k.target));
}

void complete(pe& self, open_promise& p) noexcept {
  p.open = false;
  p.leave();
  self.complete(*p.state->k);  // drops its hold
}

void fail(pe& self, open_promise& p, std::exception_ptr why) noexcept {
  p.state->k->error = std::move(why);
  p.state->k->state = scheduler::sink::status::error;
  complete(self, p);
}

// The PE's own thread.
void abandon_here(pe& self, open_promise& p) noexcept {
  if (p.open) {
    if (!p.asked || p.state->holders == 2) p.state->taken = true;  // nobody has its future
    fail(self, p, make_error(errc::broken_promise, maker_of(*p.state->k)));
  }
  p.state->drop();
}

}  // namespace

std::string describe_promise(const pe&, const local_wait& w) {
  const auto& p = static_cast<const open_promise&>(w);
  if (!p.asked) return {};
  return fmt::format("  {} was not kept\n", maker_of(*p.state->k));
}

void cancel_promise(pe& self, local_wait& w) noexcept {
  auto& p = static_cast<open_promise&>(w);
  p.state->taken = !p.asked;
  fail(self, p, self.shutdown().ending(maker_of(*p.state->k)));
}

void must_not_keep(const open_promise* p) {
  if (p == nullptr)
    throw usage_error(errc::null_pointer, verbatim, "promise: it was moved from, and has nothing to keep");
  const pe& self = here_pe();
  if (self.id() != p->home)
    throw usage_error(errc::bad_argument,
                      fmt::format("promise: it belongs to PE {} and was used on PE {}", p->home, self.id()));
  if (!self.refusing()) throw usage_error(errc::bad_argument, "promise: it was kept before; its caller has the result");
}

void throw_no_exception() {
  throw usage_error(errc::bad_argument, "promise::set_exception: the pointer holds no exception; give it one");
}

void throw_no_future(const open_promise* p) {
  if (p == nullptr) throw usage_error(errc::null_pointer, verbatim, "promise: it was moved from, and has no future");
  throw usage_error(errc::bad_argument, "promise: its future was given away before; there is only one");
}

void keep(pe& self, open_promise& p) noexcept { complete(self, p); }

void keep_with(pe& self, open_promise& p, std::exception_ptr why) noexcept { fail(self, p, std::move(why)); }

std::string open_promise_of(pe& self, const address& process) {
  const local_wait* const w = local_waits::of(self).find([&](const local_wait& x) {
    return x.describe == &describe_promise && static_cast<const open_promise&>(x).asked &&
           static_cast<const open_promise&>(x).state->k->target == process;
  });
  return w != nullptr ? maker_of(*static_cast<const open_promise*>(w)->state->k) : std::string{};
}

void abandon(open_promise& p) noexcept {
  pe* const here = scheduler::current_pe;
  if (here == nullptr) {  // the world has ended
    if (std::exchange(p.open, false)) p.state->drop();
    p.state->drop();
  } else if (here->id() == p.home) {
    abandon_here(*here, p);
  } else {
    here->owner().local(p.home).links().run_errand(
        [](void* state) { abandon_here(here_pe(), *static_cast<open_promise*>(state)); }, &p);
  }
}

}  // namespace orrery::detail
