// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/guest.hpp>

#include <orrery/array/detail/core.hpp>
#include <orrery/array/detail/index_part.hpp>
#include <orrery/process/call.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/unknown_handler.hpp>

#include <cstring>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

struct guest_head {
  std::uint32_t handler = 0;
  guest_request what{};
  template <class A>
  void serialize(A& a) {
    a & handler & what;
  }
};

void serve(pe& self, array_core* core, std::uint32_t array, guest_request what, const array_handler& h,
           std::span<const std::byte> payload) {
  switch (what) {
    case guest_request::broadcast:
      if (core == nullptr) throw_no_array(array);
      core->require_whole("a broadcast");
      core->broadcast_now(h, payload);
      return;
    case guest_request::creation:
      if (core == nullptr) break;
      core->create_for_guest(h, payload);
      return;
    case guest_request::message:
      if (core != nullptr) core->begins();
      break;
  }
  dispatch(self, wire_message(self, h, array, 0, payload));  // where there is no array, it says so
}

slot* route_guest(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  try {
    const std::uint32_t from = d.source_pe;
    const auto all = wire_payload(d, e, size);
    orrery::reader r(all);
    const auto head = orrery::read<guest_head>(r);
    const auto payload = after_section(all, r);
    const scheduler::handler* const h = scheduler::find_handler(head.handler);
    if (h == nullptr) {
      scheduler::return_unknown(self, from, head.handler, e.slot, 0, payload);
      d.release();
      return nullptr;
    }
    if (h->route == nullptr || head.what > guest_request::broadcast)
      throw bad_message(errc::message_corrupt, "a request of a guest");
    const auto& method = static_cast<const array_handler&>(*h);
    if ((head.what == guest_request::broadcast) != (method.decode != nullptr))
      throw bad_message(errc::message_corrupt, "a request of a guest");
    const bytes copy(payload.begin(), payload.end());
    const std::uint32_t array = e.slot;
    d.release();  // its sender may write there again
    serve(self, array_directory::of(self).find(array), array, head.what, method, copy);
  } catch (...) {
    d.fail(std::current_exception());
  }
  return nullptr;
}

bool lost_request(pe& self, const scheduler::handler&, std::span<const std::byte> payload, std::uint32_t to,
                  const scheduler::unknown_message* unknown) noexcept {
  try {
    orrery::reader r(payload);
    const auto head = orrery::read<guest_head>(r);
    const scheduler::handler* const h = scheduler::find_handler(head.handler);
    return h != nullptr && h->lost != nullptr && h->lost(self, *h, after_section(payload, r), to, unknown);
  } catch (const error&) {
    return false;
  }
}

struct guest_control : control_handler {
  guest_control() noexcept : control_handler("guest", &route_guest) { lost = &lost_request; }
};
const guest_control guest_handler;

// The node that has started the program which PE `pe` runs; no_node if nobody knows that PE.
std::uint32_t launch_of(const scheduler::node& n, std::uint32_t pe) {
  const std::uint32_t at = n.node_of(pe);
  return at == transport::no_node || n.world() == nullptr ? at : n.world()->launch_of(at);
}

}  // namespace

void require_whole_array(std::uint32_t array) {
  array_core* const core = array_directory::of(here_pe()).find(array);
  if (core == nullptr) throw_no_array(array);
  core->require_whole("a broadcast");
}

bool is_guest_of(pe& self, std::uint32_t array) {
  if (array == 0) return false;
  const scheduler::node& n = self.owner();
  if (n.world() == nullptr || !n.world()->has_other_programs()) return false;
  return launch_of(n, maker_of(self, array)) != launch_of(n, self.id());
}

void throw_guest(std::uint32_t array, const char* what) {
  throw usage_error(
      errc::bad_argument, verbatim,
      fmt::format("{}: array {} was made by another program, on PE {}, and no PE of this one has a part of "
                  "it; call a process of that program which does this",
                  what, array, maker_of(here_pe(), array)));
}

bool may_send_as_guest(pe& self, std::uint32_t array, bool may_wait) {
  if (!is_guest_of(self, array)) throw_no_array(array);
  const std::uint32_t to = maker_of(self, array);
  scheduler::outbound& c = self.outbound_to(to);  // throws node_lost
  if (!may_wait) return !c.slow() && !self.is_stopped({to, wire::no_slot, 0});
  if (self.active() == nullptr) return true;
  if (self.refusing()) self.shutdown().refuse("a message to an array of another program");
  (void)self.wait_while_stopped({to, wire::no_slot, 0});
  if (c.slow()) (void)self.reserve(c, wire::granule * 2);  // waits for its turn
  return true;
}

void send_as_guest(pe& self, std::uint32_t array, guest_request what, const array_handler& h,
                   std::span<const std::byte> payload) noexcept try {
  bytes b = pack(payload.size(), guest_head{h.index, what});
  if (!payload.empty()) std::memcpy(b.data() + b.size() - payload.size(), payload.data(), payload.size());
  tell(self, maker_of(self, array), guest_handler, array, 0, b);
} catch (...) {
  self.failures().report_post(&h, std::current_exception());
}

void broadcast_to(pe& self, std::uint32_t array, const array_handler& method, std::span<const std::byte> arguments) {
  if (array_core* part = array_directory::of(self).find(array)) {
    part->broadcast(method, arguments);
    return;
  }
  (void)may_send_as_guest(self, array, true);
  // A reduction that this begins would never end.
  if (self.active() != nullptr) call<&require_whole_array>(orrery::pe(maker_of(self, array)), array);
  array_directory::of(here_pe()).waits().note_guest(array);
  send_as_guest(here_pe(), array, guest_request::broadcast, method, arguments);
}

std::uint32_t lost_nodes_of(pe& self, std::uint32_t array) {
  const scheduler::node& n = self.owner();
  if (n.world() == nullptr) return 0;
  const std::uint32_t launch = launch_of(n, maker_of(self, array));
  std::uint32_t lost = 0;
  for (std::uint32_t place = 0; place < n.world()->node_limit(); ++place)
    if (const std::uint32_t i = n.world()->node_at(place);
        i != transport::no_node && n.world()->launch_of(i) == launch) {
      // A call that was made while the node was leaving ends, too, when it has left.
      if (n.world()->has_ended(i)) {
        lost += 2;
      } else if (n.world()->state(i) == transport::node_state::leaving) {
        ++lost;
      }
    }
  return lost;
}

}  // namespace orrery::detail
