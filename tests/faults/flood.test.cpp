// SPDX-License-Identifier: Apache-2.0
// Every PE of several nodes floods one process that is slow: nothing is lost, and memory stays bounded.
#include "../support/scenario.hpp"

#include <orrery/scheduler/node.hpp>
#include <orrery/transport/shm/world.hpp>

#include <algorithm>
#include <span>

namespace orrery::faults {
namespace flood_tests {

using namespace testing;

// A mailbox of 64 KiB, rings of 32 KiB; see the options of the tests.
constexpr std::uint64_t mailbox = 64 << 10;
constexpr std::uint64_t ring = 32 << 10;

struct slow {
  // Parked every so often, so that what comes meanwhile has to wait in the mailbox.
  void take(int n) {
    sum += n;
    if (++taken % 50 == 0) yield();
  }
  void take_much(std::span<const std::uint64_t> v) {
    sum += v.back();
    if (++taken % 2 == 0) yield();
    sum -= v.front();
  }
  void nap() { sleep_for(std::chrono::milliseconds(100)); }
  std::uint64_t total() const { return sum; }
  std::uint64_t taken = 0;
  std::uint64_t sum = 0;
};
ORRERY_PROCESS(slow, take, take_much, nap, total);

constexpr int messages = slowed_down ? 5'000 : 50'000;
constexpr int large_messages = slowed_down ? 20 : 100;
constexpr std::size_t large = 32'768;  // words

void flood_with_small(remote<slow> to) {
  for (int i = 0; i < messages; ++i) post(to)->take(1);
}
// The bytes that this node has had in use for payloads, at most.
std::uint64_t flood_with_large(remote<slow> to) {
  const auto& arena = scheduler::current_pe->owner().world()->shared()->memory();
  std::vector<std::uint64_t> v(large, 1);
  v.back() = 3;
  std::uint64_t most = 0;
  for (int i = 0; i < large_messages; ++i) {
    post(to)->take_much(v);
    most = std::max(most, arena.stats().in_use);
  }
  return most;
}

// So slowly that the receiver's PE makes room in the ring as fast: the sender never has to wait for that.
void compute() {
  volatile int n = 0;
  for (int i = 0; i < 1000; ++i) n = i;
  (void)n;
}
void drip(remote<slow> to) {
  for (int i = 0; i < messages; ++i) {
    compute();
    post(to)->take(1);
  }
}
std::uint64_t try_drip(remote<slow> to) {
  std::uint64_t sent = 0;
  for (int i = 0; i < messages; ++i) {
    compute();
    if (try_post(to)->take(1)) ++sent;
  }
  return sent;
}
// All of it while the receiver is parked in a method.
void drops() {
  const auto sink = spawn<slow>(pe(0));
  post(sink)->nap();
  std::vector<future<void>> drips;
  for (std::uint32_t p = 1; p < world_pes(); ++p) drips.push_back(start_call<&drip>(pe(p), sink));
  for (auto& f : drips) f.get();
  check(sink->total() == std::uint64_t{messages} * (world_pes() - 1), "a message was lost or came twice");
  const std::uint64_t bound = mailbox + world_pes() * 8 * ring;
  check(stats(0).mailbox_high <= bound, fmt::format("{} bytes were in the mailbox", stats(0).mailbox_high));
}
void tried_drops() {
  const auto sink = spawn<slow>(pe(0));
  post(sink)->nap();
  std::vector<future<std::uint64_t>> drips;
  for (std::uint32_t p = 1; p < world_pes(); ++p) drips.push_back(start_call<&try_drip>(pe(p), sink));
  std::uint64_t sent = 0;
  for (auto& f : drips) sent += f.get();
  check(sink->total() == sent, "a message was lost or came twice");
  const std::uint64_t bound = mailbox + world_pes() * 8 * ring;
  check(stats(0).mailbox_high <= bound, fmt::format("{} bytes were in the mailbox", stats(0).mailbox_high));
}

void small_messages() {
  const auto sink = spawn<slow>(pe(0));
  std::vector<future<void>> floods;
  for (std::uint32_t p = 0; p < world_pes(); ++p) floods.push_back(start_call<&flood_with_small>(pe(p), sink));
  for (auto& f : floods) f.get();
  quiescence();
  check(sink->total() == std::uint64_t{messages} * world_pes(), "a message was lost or came twice");
  // The limit, and what each ring still held when it was reached: four times as much as messages in a mailbox.
  const std::uint64_t bound = mailbox + world_pes() * 4 * ring;
  check(stats(0).mailbox_high <= bound, fmt::format("{} bytes were in the mailbox", stats(0).mailbox_high));
}

void large_ones() {
  const auto sink = spawn<slow>(pe(0));
  std::vector<future<std::uint64_t>> floods;
  for (std::uint32_t p = 1; p < world_pes(); ++p) floods.push_back(start_call<&flood_with_large>(pe(p), sink));
  for (auto& f : floods) {
    // A ring holds eight such payloads at most, and the mailbox asks to hold back after the first.
    const std::uint64_t most = f.get();
    check(most <= 40 * large * 8, fmt::format("{} bytes of payloads were on their way", most));
  }
  quiescence();
  check(sink->total() == std::uint64_t{2 * large_messages} * (world_pes() - 1), "a message was lost or came twice");
}

std::string outcome_with_small_queues(const char* scenario, const char* nodes, const char* pes) {
  return outcome_of({scenario, nodes, pes, "--orrery-mailbox=64K", "--orrery-ring=32K"});
}

TEST(a_flood_from_all_nodes, of_small_messages_is_held_back_and_nothing_is_lost) {
  EXPECT_EQ(outcome_with_small_queues("--scenario=small", "--orrery-nodes=4", "--orrery-pes=1"), "good");
  EXPECT_EQ(outcome_with_small_queues("--scenario=small", "--orrery-nodes=2", "--orrery-pes=2"), "good");
}
TEST(a_slow_flood, is_held_back_before_the_mailbox_of_a_parked_process_grows) {
  EXPECT_EQ(outcome_with_small_queues("--scenario=drops", "--orrery-nodes=1", "--orrery-pes=3"), "good");
  EXPECT_EQ(outcome_with_small_queues("--scenario=drops", "--orrery-nodes=3", "--orrery-pes=1"), "good");
}
TEST(a_slow_flood, of_messages_that_are_tried_does_not_grow_a_parked_process) {
  EXPECT_EQ(outcome_with_small_queues("--scenario=tried", "--orrery-nodes=1", "--orrery-pes=3"), "good");
  EXPECT_EQ(outcome_with_small_queues("--scenario=tried", "--orrery-nodes=3", "--orrery-pes=1"), "good");
}
TEST(a_flood_from_all_nodes, of_large_messages_is_held_back_and_nothing_is_lost) {
  EXPECT_EQ(outcome_with_small_queues("--scenario=large", "--orrery-nodes=4", "--orrery-pes=1"), "good");
}

const orrery::testing::scenarios_of_file of_this(
    {{"small", small_messages}, {"large", large_ones}, {"drops", drops}, {"tried", tried_drops}});

}  // namespace flood_tests
}  // namespace orrery::faults
