// SPDX-License-Identifier: Apache-2.0
// Calls that wait for an array, and what ends them when nobody will answer.
#include <orrery/array/core.hpp>
#include <orrery/array/directory.hpp>
#include <orrery/array/guest.hpp>
#include <orrery/scheduler/node.hpp>

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery::detail {

namespace {
void fail_wait(pe& self, scheduler::sink& s, std::exception_ptr why) noexcept {
  s.error = std::move(why);
  s.state = scheduler::sink::status::error;
  self.complete(s);
}
}  // namespace

std::uint64_t array_directory::expect(scheduler::sink& s, std::uint32_t array) { return expect(s, {array, 0}); }

std::uint64_t array_directory::expect_as_guest(scheduler::sink& s, std::uint32_t array) {
  return expect(s, {array, lost_nodes_of(self_, array) + 1});
}

std::uint64_t array_directory::expect(scheduler::sink& s, const asked& about) {
  asked now = about;
  now.began = ends_;
  const std::uint64_t call = calls_.pend(s, now);
  if (s.route != nullptr) s.route->call = call;
  return call;
}

void array_directory::fail_guests() noexcept {
  calls_.take_if([&](const scheduler::sink&,
                     const asked& a) { return a.guest != 0 && a.guest != lost_nodes_of(self_, a.array) + 1; },
                 [&](scheduler::sink& s, const asked& a) {
                   fail_wait(self_, s,
                             std::make_exception_ptr(node_lost(fmt::format(
                                 "a call to an element of array {}, which another program has made", a.array))));
                 });
}

void array_directory::fail_all(const std::exception_ptr& why) noexcept {
  calls_.take_if([](const scheduler::sink&, const asked&) { return true; },
                 [&](scheduler::sink& s, const asked&) { fail_wait(self_, s, why); });
}

void array_directory::fail_waits(std::uint32_t array, const std::exception_ptr& why) noexcept {
  calls_.take_if([&](const scheduler::sink&, const asked& a) { return a.array == array; },
                 [&](scheduler::sink& s, const asked&) { fail_wait(self_, s, why); });
}

void array_directory::fail_waits_for_ended() noexcept {
  const auto whole = [&](const ended_array& e) {
    for (std::uint32_t r = 0; r < e.pes.count(); ++r)
      if (!self_.owner().reachable(e.pes.at(r))) return false;
    return true;
  };
  const auto hit = std::partition(ended_.begin(), ended_.end(), whole);
  const std::vector<ended_array> lost(std::make_move_iterator(hit), std::make_move_iterator(ended_.end()));
  ended_.erase(hit, ended_.end());
  for (const ended_array& e : lost)
    calls_.take_if([&](const scheduler::sink&, const asked& a) { return e.concerns(a); },
                   [&](scheduler::sink& s, const asked&) {
                     fail_wait(self_, s,
                               std::make_exception_ptr(node_lost("what an array was asked for that has ended since")));
                   });
}

// Arrays that were on the lost PEs. Calls that wait then must not be told again each time that
// anything else about other nodes changes.
void array_directory::pes_lost(pe&) noexcept {
  // there may be many thousand PEs
  if (self_.owner().gone_nodes() == 0 && self_.simulated() != nullptr) return;
  fail_guests();
  fail_waits_for_ended();
  std::erase_if(incomplete_, [&](const auto& p) { return !self_.owner().reachable(p.first); });
  std::vector<array_core*> hit;
  for (const auto& [id, part] : parts_)
    if (part->find_losses()) hit.push_back(part.get());
  if (hit.empty()) return;
  // Fails the calls that wait for an answer: the message may have been there, or on its way through
  // there.
  for (const array_core* part : hit)
    fail_waits(part->id(),
               std::make_exception_ptr(node_lost(fmt::format("a call to an element of {}", part->about().name))));
  fail_waits(0, std::make_exception_ptr(node_lost("a reduction of an array")));
  for (array_core* part : hit) part->pes_lost();
}

void array_directory::cancel_waits(pe& self) noexcept {
  fail_all(self.shutdown().ending("a call to an element of an array"));
}

void array_directory::note_end(const array_core& part) noexcept try {
  std::uint32_t oldest = ++ends_;  // of what waits, and may wait for it
  calls_.take_if(
      [&](const scheduler::sink&, const asked& a) {
        if (a.guest == 0) oldest = std::min(oldest, a.began);
        return false;
      },
      [](scheduler::sink&, const asked&) {});
  std::erase_if(ended_, [&](const ended_array& e) { return e.number <= oldest; });
  if (oldest != ends_) ended_.push_back({part.id(), ends_, part.about().pes});
} catch (const std::bad_alloc&) {  // what waits for it is not told if a node is lost as well
}

}  // namespace orrery::detail
