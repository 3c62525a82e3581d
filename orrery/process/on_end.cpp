// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/on_end.hpp>

#include <orrery/process/detail/in_time.hpp>
#include <orrery/process/detail/local_waits.hpp>
#include <orrery/process/detail/tell_part.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

ending lost_with_node(const address& process) {
  return {process, end_cause::node_lost,
          fmt::format("its node, with PE {}, has left the world or was lost", process.pe)};
}

struct promised_end final : end_watch {
  promise<ending> p;
  watch_key key;

  explicit promised_end(const watch_key& k) : key(k) {
    end = &tell;
    number = k.number;
  }
  // A promise that is dropped is broken, which nobody looks at where a watch can be taken back.
  static void tell(pe&, end_watch* w, const ending* e) noexcept {
    const wire::unique_ptr<promised_end> own(static_cast<promised_end*>(w));
    if (e == nullptr) return;
    try {
      own->p.set_value(*e);
    } catch (...) {
      own->p.set_exception(std::current_exception());
    }
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

watch_key new_watch(pe& self) { return {self.id(), local_waits::of(self).ends().new_number()}; }

future<ending> await_end_here(address process, watch_key key) {
  auto w = wire::make_unique<promised_end>(key);
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
      } catch (const node_lost&) {
        return lost_with_node(process);
      }
    });
  });
  return future_access<ending>::wrap(std::move(next));
}

future<ending> lost(address process) { return ended(lost_with_node(process)); }

void require_both(const address& one, const address& other, const char* call) {
  if (!one || !other) throw usage_error(errc::null_pointer, call);
}

future<ending> await_end(address process, watch_key key) {
  pe& self = here_pe();
  self.require_process();
  if (!process) throw usage_error(errc::null_pointer, "end_of");
  key.set_on = self.id();
  if (process.pe == self.id()) return await_end_here(process, key);
  try {
    return or_loss(process, start_call<&await_end_here>(orrery::pe(process.pe), process, key));
  } catch (const node_lost&) {
    return lost(process);
  }
}

namespace {

const promised_end* as_promised(const end_watch& w) noexcept {
  return w.end == &promised_end::tell ? static_cast<const promised_end*>(&w) : nullptr;
}

// A promise that is broken or kept answers from the queue of its PE. The caller's answer must not
// overtake that: if the node were lost in between, an end would be told that was taken back.
void let_answers_go() { yield(); }

// On the PE of the process.
bool drop_watch(pe& self, const address& process, const watch_key& key) {
  return local_waits::of(self).ends().take_back(process, [&](const end_watch& w) {
    const promised_end* const p = as_promised(w);
    return w.number == key.number && (p != nullptr ? p->key.set_on : self.id()) == key.set_on;
  });
}
bool take_back_here(address process, watch_key key) {
  const bool had_it = drop_watch(here_pe(), process, key);
  let_answers_go();
  return had_it;
}

void drop_watch_there(std::uint32_t slot, std::uint32_t generation, std::uint32_t set_on, std::uint32_t number) {
  pe& self = here_pe();
  (void)drop_watch(self, {self.id(), slot, generation}, {.set_on = set_on, .number = number});
}

// On the PE that has asked for the watch, from where nothing overtakes that.
bool take_back(address process, watch_key key) {
  try {
    return call<&take_back_here>(orrery::pe(process.pe), process, key);
  } catch (const node_lost&) {  // that was its end
    return false;
  }
}

// On the PE of the first one.
void end_link_here(address process, address linked) {
  const auto is_link = [&](const end_watch& w) {
    const promised_end* const p = as_promised(w);
    return p != nullptr && p->key.linked == linked;
  };
  while (local_waits::of(here_pe()).ends().take_back(process, is_link)) {
  }
  let_answers_go();
}

}  // namespace

void end_link(const address& a, const address& b) {
  require_both(a, b, "unlink");
  for (const auto& [first, then] : {std::pair{a, b}, std::pair{b, a}}) try {
      call<&end_link_here>(orrery::pe(first.pe), first, then);
    } catch (const node_lost&) {  // it has ended, and the link with it
    }
}

void forget_end(pe& self, const address& process, const watch_key& key) noexcept {
  if (process.pe == self.id()) {
    (void)drop_watch(self, process, key);
  } else if (scheduler::reaches(self, process.pe)) {
    tell_part<&drop_watch_there>(self, process, key.set_on, key.number);
  }
}

void drop_watches_of_lost(pe& self) noexcept {
  local_waits::of(self).ends().take_back_if([&](const end_watch& w) {
    const promised_end* const p = as_promised(w);
    return p != nullptr && p->key.set_on != watch_key::unknown && !scheduler::reaches(self, p->key.set_on);
  });
}

void note_moved(pe& self, const slot& s) noexcept {
  if (!s.watched) return;
  try {
    (void)local_waits::of(self).ends().note({self.address_of(s), end_cause::moved, {}});
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): as if it had been destroyed
  }
}

}  // namespace orrery::detail

namespace orrery {

bool end_monitor::cancel() const {
  if (!process_) throw usage_error(errc::null_pointer, verbatim, "end_monitor: it was default-constructed");
  detail::here_pe().require_process();
  return detail::in_time([this] {
    try {
      return call<&detail::take_back>(pe(set_on_), process_, detail::watch_key{set_on_, number_});
    } catch (const node_lost&) {  // who has set it is gone, and tells nobody
      return true;
    }
  });
}

}  // namespace orrery
