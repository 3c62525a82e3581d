// SPDX-License-Identifier: Apache-2.0
// Messages that the receiver's program has no handler for.
//
// Problem: programs that meet in a world each have handlers that the other has not. A node cannot
// tell what a message is that it does not know, nor who waits for its answer where that stands in
// the payload (hidden_caller). So it sends the beginning of the message back. The sender has the
// handler: it made the message, or its route has passed it on. It ends the call with an error, or
// reports the post: where the author of the call looks.
#include <orrery/scheduler/unknown_handler.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/transport/world.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace orrery::scheduler {

namespace {

constexpr std::size_t most_returned = 4096;  // what handlers look at comes first

std::string program_on(node& n, std::uint32_t pe) {
  const std::uint32_t at = n.node_of(pe);
  const std::string name = n.world() != nullptr && at != transport::no_node ? n.world()->program_of(at) : std::string{};
  return name.empty() ? fmt::format("the program that PE {} runs", pe)
                      : fmt::format("program '{}', which PE {} runs,", name, pe);
}

}  // namespace

void return_unknown(pe& self, std::uint32_t source_pe, std::uint64_t handler, std::uint32_t slot, std::uint64_t reply,
                    std::span<const std::byte> payload) noexcept {
  try {
    outbound& c = self.outbound_to(source_pe);
    const std::size_t bytes = std::min({payload.size(), most_returned, std::size_t{c.ring.max_record()} / 2});
    self.links().send_control(c, wire::record_kind::unknown, slot, 0, reply, payload.data(), bytes, handler);
  } catch (const std::exception&) {  // its node is gone: nobody waits
  }
}

void receive_unknown(pe& self, inbound& in, const wire::envelope& e, std::uint32_t bytes) {
  const handler* const h = find_handler(e.handler);
  const std::uint32_t padding = wire::envelope::read_once(e.padding);
  if (!in.remote || padding > bytes - wire::granule) {
    self.owner().peer_corrupt(in.pe, "a message that was not sent to it");
    return;
  }
  const unknown_message unknown{
      make_error(errc::unknown_handler, verbatim,
                 fmt::format("{}: {} has no such method, or it has other arguments there; use there what both "
                             "programs have",
                             h != nullptr ? fmt::format("{}::{}", h->class_name, h->method) : "a message",
                             program_on(self.owner(), in.pe))),
      e.slot};
  if (e.reply != 0) {
    (void)self.replies().end(static_cast<std::uint32_t>(e.reply), in, unknown.why);
    return;
  }
  const std::span payload(reinterpret_cast<const std::byte*>(&e + 1), bytes - wire::granule - padding);
  if (h == nullptr || h->lost == nullptr || !h->lost(self, *h, payload, in.pe, &unknown))
    self.failures().report_post(h, unknown.why);
}

}  // namespace orrery::scheduler
