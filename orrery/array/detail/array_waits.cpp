// SPDX-License-Identifier: Apache-2.0
// Calls that wait for an array, and what ends them when nobody will answer.
#include <orrery/array/detail/array_waits.hpp>

#include <orrery/array/detail/guest.hpp>
#include <orrery/scheduler/node.hpp>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

void end_wait(pe& self, scheduler::sink& s, std::exception_ptr error) noexcept {
  s.error = std::move(error);
  s.state = s.error != nullptr ? scheduler::sink::status::error : scheduler::sink::status::value;
  self.complete(s);
}

std::uint64_t array_waits::expect(scheduler::sink& s, std::uint32_t array) { return expect(s, {array, 0}); }

std::uint64_t array_waits::expect_as_guest(scheduler::sink& s, std::uint32_t array) {
  return expect(s, {array, lost_nodes_of(self_, array) + 1});
}

std::uint64_t array_waits::expect(scheduler::sink& s, asked about) {
  about.began = ends_;
  const std::uint64_t call = calls_.pend(s, about);
  if (s.route != nullptr) s.route->call = call;
  return call;
}

void array_waits::fail_guests() noexcept {
  calls_.take_if([&](const scheduler::sink&,
                     const asked& a) { return a.guest != 0 && a.guest != lost_nodes_of(self_, a.array) + 1; },
                 [&](scheduler::sink& s, const asked& a) {
                   end_wait(self_, s,
                            std::make_exception_ptr(node_lost(fmt::format(
                                "a call to an element of array {}, which another program has made", a.array))));
                 });
  for (asked& g : guests_) {
    const std::uint32_t lost = lost_nodes_of(self_, g.array);
    if (std::exchange(g.guest, lost) == lost) continue;
    fail_of(0, std::make_exception_ptr(node_lost(
                   fmt::format("a result that array {} was asked for, which another program has made", g.array))));
  }
}

void array_waits::note_guest(std::uint32_t array) noexcept try {
  // One array stands for all of its maker: the list is looked through at each broadcast.
  const auto maker = [&](const asked& g) { return maker_of(self_, g.array); };
  if (std::ranges::find(guests_, maker_of(self_, array), maker) == guests_.end())
    guests_.push_back({array, lost_nodes_of(self_, array)});
} catch (const std::bad_alloc&) {  // what waits for it is not told if a node is lost
}

void array_waits::fail_all(const std::exception_ptr& why) noexcept {
  calls_.take_if([](const scheduler::sink&, const asked&) { return true; },
                 [&](scheduler::sink& s, const asked&) { end_wait(self_, s, why); });
}

void array_waits::fail_of(std::uint32_t array, const std::exception_ptr& why) noexcept {
  calls_.take_if([&](const scheduler::sink&, const asked& a) { return a.array == array; },
                 [&](scheduler::sink& s, const asked&) { end_wait(self_, s, why); });
}

void array_waits::fail_for_ended() noexcept {
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
                     end_wait(self_, s,
                              std::make_exception_ptr(node_lost("what an array was asked for that has ended since")));
                   });
}

void array_waits::note_end(std::uint32_t array, const array_pes& pes) noexcept try {
  std::uint32_t oldest = ++ends_;  // of what waits, and may wait for it
  calls_.take_if(
      [&](const scheduler::sink&, const asked& a) {
        if (a.guest == 0) oldest = std::min(oldest, a.began);
        return false;
      },
      [](scheduler::sink&, const asked&) {});
  std::erase_if(ended_, [&](const ended_array& e) { return e.number <= oldest; });
  if (oldest != ends_) ended_.push_back({array, ends_, pes});
} catch (const std::bad_alloc&) {  // what waits for it is not told if a node is lost as well
}

}  // namespace orrery::detail
