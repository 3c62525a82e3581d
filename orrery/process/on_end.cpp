// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/on_end.hpp>

#include <orrery/process/detail/local_waits.hpp>

namespace orrery::detail {

namespace {

struct promised_end final : end_watch {
  promise<ending> p;

  promised_end() {
    end = [](pe&, end_watch* w, const ending* e) noexcept {
      const std::unique_ptr<promised_end> own(static_cast<promised_end*>(w));
      if (e == nullptr) return;
      try {
        own->p.set_value(*e);
      } catch (...) {
        own->p.set_exception(std::current_exception());
      }
    };
  }
};

void nothing() {}

future<ending> ended(ending e) {
  promise<ending> p;
  p.set_value(std::move(e));
  return p.get_future();
}

}  // namespace

bool watch_end(pe& self, const address& process, end_watch& w) {
  slot* const s = self.find(process.slot, process.generation);
  if (s == nullptr) return false;
  local_waits::of(self).ends().add(*s, process, w);
  return true;
}

future<ending> await_end_here(address process) {
  auto w = std::make_unique<promised_end>();
  auto f = w->p.get_future();
  if (!watch_end(here_pe(), process, *w)) {
    w->p.set_value(ending{process, end_cause::gone, {}});
  } else {
    w.release();
  }
  return f;
}

void await_arrival(const address& at) {
  if (at.pe == here_pe().id()) return;
  try {
    call<&nothing>(orrery::pe(at.pe));
  } catch (const node_lost&) {
  }
}

// The loss of the node of what is awaited is its end.
future<ending> or_loss(address process, future<ending> answer) {
  pe& self = here_pe();
  auto next = future_access<ending>::make_local(self);
  next->hold();
  when_done(self, std::move(answer), [process, n = next.get()](pe& at, future_state<ending>& s) {
    resolve<ending>(at, n, [&]() -> ending {
      try {
        return s.take();
      } catch (const node_lost& e) {
        return {process, end_cause::node_lost, e.what()};
      }
    });
  });
  return future_access<ending>::wrap(std::move(next));
}

future<ending> lost(address process, const node_lost& why) {
  return ended({process, end_cause::node_lost, why.what()});
}

future<ending> await_end(address process) {
  pe& self = here_pe();
  self.require_process();
  if (!process) throw usage_error(errc::null_pointer, "end_of");
  if (process.pe == self.id()) return await_end_here(process);
  try {
    return or_loss(process, start_call<&await_end_here>(orrery::pe(process.pe), process));
  } catch (const node_lost& e) {
    return lost(process, e);
  }
}

void note_moved(pe& self, const slot& s) noexcept {
  if (!s.watched) return;
  try {
    (void)local_waits::of(self).ends().note({self.address_of(s), end_cause::moved, {}});
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): as if it had been destroyed
  }
}

}  // namespace orrery::detail
