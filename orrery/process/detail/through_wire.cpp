// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/through_wire.hpp>

#include <orrery/process/detail/call_errors.hpp>
#include <orrery/wire/error.hpp>

#include <cstring>

#include <fmt/format.h>

namespace orrery::detail {

void go_on_with(pe& self, scheduler::delivery& d, std::span<const std::byte> arguments) {
  if (arguments.size() > wire::largest_payload)
    throw usage_error(errc::bad_argument,
                      fmt::format("{}: {} bytes of arguments: with --orrery-serialize {} are the most",
                                  call_name(*d.method), arguments.size(), wire::largest_payload));
  scheduler::message* m = self.messages().allocate(arguments.size());
  if (!arguments.empty()) std::memcpy(m->payload(), arguments.data(), arguments.size());
  const std::uint32_t record = wire::record_bytes(arguments.size());
  m->source_pe = d.source_pe;
  m->head.form = wire::payload_form::wire;
  m->head.padding = static_cast<std::uint16_t>(record - wire::granule - arguments.size());
  m->head.size.store(record, std::memory_order_relaxed);
  if (d.form == wire::payload_form::owned) d.method->drop(d.payload);
  d.form = wire::payload_form::refs;  // nothing is left there to drop
  d.release();
  d.self = &self;
  d.heap = m;
  d.form = wire::payload_form::wire;
  d.payload = m->payload();
  d.payload_bytes = arguments.size();
}

}  // namespace orrery::detail
