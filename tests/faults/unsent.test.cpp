// SPDX-License-Identifier: Apache-2.0
// Calls that cannot be sent, since the node that they are for is lost while they wait for room, are registered nowhere.
#include "../support/scenario.hpp"

#include <orrery/process/detail/send.hpp>
#include <orrery/process/detail/typed_handler.hpp>
#include <orrery/scheduler/node.hpp>

#include <list>
#include <vector>

namespace orrery::faults {
namespace unsent_tests {

using namespace testing;

// Kills the OS process as soon as somebody here waits for room in the ring to its PE.
void kill_when_the_ring_is_full(std::uint32_t at, int victim) {
  const scheduler::outbound& c = scheduler::current_pe->outbound_to(at);
  while (c.waiters == nullptr) yield();
  ::kill(victim, SIGKILL);
}

// Counts how often it was completed.
struct counted_sink : detail::typed_sink<std::size_t> {
  int ends = 0;
  counted_sink() {
    on_done = [](scheduler::pe&, scheduler::sink& s) { ++static_cast<counted_sink&>(s).ends; };
  }
};

std::size_t length_of(std::vector<char> v) { return v.size(); }

// Nodes have one PE.
void fill_the_ring_to(std::uint32_t at, std::size_t bytes) {
  using handler = detail::function_handler<&length_of>;
  scheduler::pe& self = *scheduler::current_pe;
  const int victim = call<&own_pid>(node(at));
  ::kill(victim, SIGSTOP);
  (void)spawn(here(), &kill_when_the_ring_is_full, at, victim);
  std::list<counted_sink> sinks;
  const address to{at, wire::no_slot, 0};
  const std::vector<char> payload(bytes, 'x');
  try {
    for (;;) {
      counted_sink& k = sinks.emplace_back();
      detail::prepare(k, self, to, handler::instance);
      detail::send_owned<handler>(self, to, &k, true, payload);
    }
  } catch (const node_lost&) {
  }
  check(sinks.back().entry == 0, "a call that was not sent is in the table of pending calls");
  check(sinks.back().ends == 0, "a call that was not sent was completed");
  sinks.pop_back();
  check(!sinks.empty(), "the ring was full at once");
  for (const counted_sink& k : sinks) check(k.ends == 1, "a call was not completed once");
}

void rings_of_lost_nodes() {
  fill_the_ring_to(1, 100);  // in the ring
  fill_the_ring_to(2, 8'192);  // in blocks
}

TEST(a_call_that_waits_for_room, is_registered_nowhere_when_the_node_is_lost) {
  const std::string said = outcome_of({"--scenario=full", "--orrery-nodes=3", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}

const orrery::testing::scenarios_of_file of_this({{"full", rings_of_lost_nodes}});

}  // namespace unsent_tests
}  // namespace orrery::faults
