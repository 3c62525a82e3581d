// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/replies.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/order_through_nodes.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/exception.hpp>
#include <orrery/wire/serialize.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery::scheduler {

// --- answers that this PE gives ------------------------------------------------------------------

void reply_in_place(pe& self, std::uint64_t reply, std::uint32_t source_pe) {
  auto* s = reinterpret_cast<sink*>(reply);
  if (source_pe == self.id()) {
    s->state = sink::status::value;
    self.complete(*s);
    return;
  }
  outbound& c = self.outbound_to(source_pe);
  wire::envelope* e = c.try_reserve(wire::granule);
  if (e == nullptr) [[unlikely]] {
    self.links().send_control(c, wire::record_kind::reply, 0, 0, reply);
    return;
  }
  e->kind = wire::record_kind::reply;
  e->form = wire::payload_form::refs;
  e->padding = 0;
  e->reply = reply;
  if (c.remote) order_before_other_nodes();
  self.commit(c, wire::granule);
}

void reply_small(pe& self, std::uint64_t reply, std::uint32_t source_pe,
                 const std::byte (&result)[wire::small_result]) {
  outbound& c = self.outbound_to(source_pe);
  wire::envelope* e = c.try_reserve(wire::granule);
  if (e == nullptr) [[unlikely]] {
    std::uint32_t words[2];
    std::uint64_t rest;
    std::memcpy(words, result, sizeof words);
    std::memcpy(&rest, result + sizeof words, sizeof rest);
    self.links().send_control(c, wire::record_kind::small_reply, words[0], words[1], reply, nullptr, 0, rest);
    return;
  }
  e->kind = wire::record_kind::small_reply;
  e->form = wire::payload_form::refs;
  e->padding = 0;
  std::memcpy(e->result(), result, sizeof result);
  e->reply = reply;
  self.commit(c, wire::granule);
}

namespace {
void shorten(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  const std::size_t cut = text.size() - most;
  text.resize(most);
  text += fmt::format("... ({} more bytes)", cut);
}
}  // namespace

void reply_error(pe& self, std::uint64_t reply, std::uint32_t source_pe, bool remote, const handler* method,
                 std::exception_ptr why) noexcept {
  if (!remote) {
    auto* s = reinterpret_cast<sink*>(reply);
    s->error = as_received(why, where_is(method, self.id()));
    if (source_pe == self.id()) {
      s->state = sink::status::error;
      self.complete(*s);
      return;
    }
    try {
      self.links().send_control(self.outbound_to(source_pe), wire::record_kind::failure, 0, 0, reply);
    } catch (const error&) {  // only while shutting down
    }
    return;
  }
  try {
    wire_exception e = encode_exception(why);
    outbound& c = self.links().control_outbound_to(source_pe);
    if (!c.lost) {  // a record that does not fit into the ring would never leave
      constexpr std::size_t rest = 1024;
      shorten(e.type, rest / 2);
      // it arrives as a remote_error with the text
      if (e.state.size() > c.ring.max_record() / 2) e.state.clear();
      const std::size_t others = orrery::wire_size(e) - e.what.size() + rest;
      const std::size_t most = c.ring.max_record();
      shorten(e.what, most > others ? most - others : 0);
    }
    std::vector<std::byte> bytes(orrery::wire_size(e));
    orrery::writer w(bytes);
    orrery::write(w, e);
    self.links().send_control(c, wire::record_kind::failure, 0, 0, reply, bytes.data(), bytes.size(),
                              method != nullptr ? method->index + std::uint64_t{1} : 0);
  } catch (const error&) {  // the caller's node is gone: nobody waits
  }
}

// --- answers that come to this PE ----------------------------------------------------------------

std::uint32_t replies::expect(sink& s) {
  if (of_.shutdown().stage() > shutdown_stage::finishing) [[unlikely]]
    std::rethrow_exception(of_.shutdown().ending("a call to another node"));
  s.entry = calls_.pend(s);
  return s.entry;
}

sink* replies::take(std::uint32_t entry, std::uint32_t from) noexcept {
  sink* const s = calls_.find(entry);
  if (s == nullptr || s->target.pe != from) return nullptr;
  (void)calls_.take(entry);
  s->entry = 0;
  return s;
}

sink* replies::take_or_report(std::uint32_t entry, const inbound& in) noexcept {
  sink* const s = take(entry, in.pe);
  if (s == nullptr && !of_.stopping()) of_.owner().peer_corrupt(in.pe, "a reply to a call that was never made");
  return s;
}

void replies::fail(sink& s, std::exception_ptr why) {
  s.entry = 0;
  s.error = std::move(why);
  s.state = sink::status::error;
  of_.complete(s);
}

bool replies::end(std::uint32_t entry, const inbound& in, std::exception_ptr why) {
  sink* const s = take_or_report(entry, in);
  if (s != nullptr) fail(*s, std::move(why));
  return s != nullptr;
}

void replies::fail_unreachable() {
  calls_.take_if([&](const sink& s, no_note) { return !of_.owner().reachable(s.target.pe); },
                 [&](sink& s, no_note) {
                   fail(s, std::make_exception_ptr(node_lost(fmt::format("{}::{} at {}", s.method->class_name,
                                                                         s.method->method, to_string(s.target)))));
                 });
}

// The calls to other nodes: they end as well. Their arguments were sent as copies.
void replies::cancel() {
  calls_.take_if([](const sink&, no_note) { return true; },
                 [&](sink& s, no_note) { fail(s, of_.shutdown().refusal(s.method)); });
}

void replies::receive(inbound& in, const wire::envelope& e, std::uint32_t bytes) {
  if (!in.remote) {
    auto* s = reinterpret_cast<sink*>(e.reply);
    s->state = e.kind == wire::record_kind::reply ? sink::status::value : sink::status::error;
    of_.complete(*s);
    return;
  }
  sink* s = take_or_report(static_cast<std::uint32_t>(e.reply), in);
  if (s == nullptr) return;
  delivery d;
  d.self = &of_;
  d.source_pe = in.pe;
  d.form = e.form;
  d.payload = const_cast<wire::envelope&>(e).payload();
  const std::uint32_t padding = wire::envelope::read_once(e.padding);
  d.payload_bytes = bytes - wire::granule - std::min(padding, bytes - wire::granule);
  try {
    if (d.form == wire::payload_form::block) {
      if (bytes - wire::granule < sizeof(wire::block_ref))
        throw bad_message(errc::message_corrupt, "the result of a call is too short");
      d.find_block();
      if (d.payload == nullptr)
        throw bad_message(errc::message_corrupt, "the result of a call lies outside of its sender's memory");
      of_.owner().hold(in.pe);
    }
    if (e.kind == wire::record_kind::reply) {
      if (s->decode != nullptr) s->decode(*s, d.payload, d.payload_bytes);
      s->state = sink::status::value;
    } else {
      orrery::reader r({d.payload, d.payload_bytes});
      const auto what = orrery::read<wire_exception>(r);
      const auto error = decode_exception(what, where_is(s->method, in.pe));
      s->state = sink::status::error;
      if (of_.stopping() || !of_.owner().world_runs()) {
        s->error = error;
      } else {
        try {
          std::rethrow_exception(error);
        } catch (const stopped& ending) {  // only that node: it leaves
          throw node_lost(fmt::format("PE {} leaves the world ({})", in.pe, ending.what()));
        }
      }
    }
  } catch (...) {
    s->error = std::current_exception();
    s->state = sink::status::error;
  }
  d.release();
  of_.complete(*s);
}

}  // namespace orrery::scheduler
