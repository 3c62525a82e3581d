// SPDX-License-Identifier: Apache-2.0
// Buffers in worlds of several OS processes, where they are passed on as they lie in shared memory; see support/scenario.hpp.
#include <orrery/orrery.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/task/internal/test_parcels.hpp>
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/shm/world.hpp>

#include "../support/scenario.hpp"

namespace {

using orrery::testing::check;
using orrery::testing::filled;
using orrery::testing::parcel;
using orrery::testing::parcel_type;
using orrery::testing::wrong_in;

// Scenarios run as a task.
template <void (*Body)()>
void as_task() {
  const auto run = [](void*, std::size_t) { Body(); };
  orrery_task t;
  if (orrery_create(run, nullptr, 0, orrery_here(), &t) != ORRERY_OK) check(false, orrery_error());
  check(orrery_join(t, ORRERY_FOREVER) == ORRERY_OK, orrery_error());
}

// Bytes of this node's segment that are in use.
std::uint64_t in_use() { return orrery::detail::here_pe().owner().world()->shared()->memory().stats().in_use; }

orrery_task create(orrery_task_function run, std::uint32_t node) {
  orrery_task t{};
  check(orrery_create(run, nullptr, 0, orrery_node(node), &t) == ORRERY_OK, orrery_error());
  return t;
}
void send(orrery_task to, std::uint64_t tag, std::size_t size) {
  const parcel p{1, 2, filled(1, 2, size)};
  check(orrery_send(to, tag, &parcel_type, &p, ORRERY_WAIT) == ORRERY_OK, orrery_error());
}
orrery_buffer take(orrery_message& m) {
  orrery_buffer mine{};
  if (auto* p = static_cast<parcel*>(orrery_open(&m, &parcel_type)); p != nullptr)
    check(orrery_buffer_take(&p->values, &mine) == ORRERY_OK, orrery_error());
  return mine;
}

void model() {
  for (std::uint64_t seed = 0; seed < (orrery::testing::slowed_down ? 2 : 6); ++seed)
    for (const std::string& wrong : orrery::testing::pass_parcels(seed, 8, 60)) check(false, wrong);
}

// Writes into what it gets, and keeps it until it is told to end.
void writer(void*, std::size_t) {
  orrery_message m;
  if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return;
  const orrery_buffer mine = take(m);
  check(wrong_in(mine, 1, 2).empty(), wrong_in(mine, 1, 2));
  static_cast<char*>(mine.data)[mine.size - 1] = 'w';
  (void)orrery_send_bytes(m.sender, 1, "", 0, ORRERY_WAIT);
  orrery_release(&m);
  if (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) orrery_release(&m);
}

void in_place() {
  const orrery_task there = create(writer, 1);
  const parcel p{1, 2, filled(1, 2, 1 << 20)};
  check(orrery_send(there, 1, &parcel_type, &p, ORRERY_WAIT) == ORRERY_OK, orrery_error());
  orrery_message m;
  check(orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK, orrery_error());
  orrery_release(&m);
#ifdef NDEBUG  // what nobody may do: that sees what was written there
  check(static_cast<volatile char*>(p.values.data)[p.values.size - 1] == 'w', "the other OS process has got a copy");
#endif
  check(orrery_send_bytes(there, 1, "", 0, ORRERY_WAIT) == ORRERY_OK, orrery_error());
  check(orrery_join(there, ORRERY_FOREVER) == ORRERY_OK, orrery_error());
}

// Tells its sender that it has got one, and ends with the second in its hand and the third in its mailbox.
void forgetful(void*, std::size_t) {
  orrery_message m;
  for (int i = 0; i < 2; ++i) {
    if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return;
    if (i == 1) (void)take(m);
    orrery_release(&m);
  }
}

void give_back() {
  std::uint64_t before = 0;
  for (int round = 0; round < 10; ++round) {
    const orrery_task there = create(forgetful, 1);
    for (int k = 0; k < 3; ++k) send(there, 1, 100'000);
    check(orrery_join(there, ORRERY_FOREVER) == ORRERY_OK, orrery_error());
    if (round == 0) before = in_use();
  }
  while (in_use() > before + 3 * 128 * 1024) (void)orrery_yield();  // the watchdog ends it
}

// A task that keeps what it gets is killed with its OS process.
void loss_of_reader() {
  const std::uint32_t lost = orrery_nodes() - 1;
  const orrery_task there = create(writer, lost);
  const std::uint64_t before = in_use();
  send(there, 1, 1 << 20);
  orrery_message m;
  check(orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK, orrery_error());
  orrery_release(&m);
#ifdef NDEBUG  // else buffers have pages of their own, which can be taken away
  const std::uint64_t used = in_use();
  check(used > before + (1 << 20) - 1,
        fmt::format("the buffer is not in this node's segment: {} bytes are in use, {} were before", used, before));
#endif
  orrery::post_call<&orrery::testing::kill_own_node>(orrery::node(lost));
  orrery::testing::await_loss_of(lost);
  while (in_use() > before + (1 << 19)) (void)orrery_yield();
}

void sender(void*, std::size_t) {
  orrery_message m;
  if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return;
  send(m.sender, 1, 1 << 20);
  orrery_release(&m);
  if (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) orrery_release(&m);
}

void loss_of_sender() {
  const std::uint32_t lost = orrery_nodes() - 1;
  const orrery_task there = create(sender, lost);
  check(orrery_send_bytes(there, 1, "", 0, ORRERY_WAIT) == ORRERY_OK, orrery_error());
  orrery_message m;
  check(orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK, orrery_error());
  orrery_buffer mine = take(m);
  orrery_release(&m);
  orrery::post_call<&orrery::testing::kill_own_node>(orrery::node(lost));
  orrery::testing::await_loss_of(lost);
  check(wrong_in(mine, 1, 2).empty(), wrong_in(mine, 1, 2));
  check(orrery_buffer_free(&mine) == ORRERY_OK, orrery_error());
}

struct shape {
  int nodes;
  int pes;
};
class buffers_across_nodes : public ::testing::TestWithParam<shape> {
 protected:
  static std::string wrong_with(std::string_view scenario) {
    const std::string said = orrery::testing::outcome_of({fmt::format("--scenario={}", scenario),
                                                          fmt::format("--orrery-nodes={}", GetParam().nodes),
                                                          fmt::format("--orrery-pes={}", GetParam().pes)});
    return said.ends_with("good") ? "" : said;
  }
};
INSTANTIATE_TEST_SUITE_P(of, buffers_across_nodes, ::testing::Values(shape{3, 1}, shape{2, 2}),
                         [](const auto& i) { return fmt::format("{}_nodes_of_{}_pes", i.param.nodes, i.param.pes); });

TEST_P(buffers_across_nodes, arrive_once_and_as_they_were_sent) { EXPECT_EQ(wrong_with("model"), ""); }
TEST_P(buffers_across_nodes, are_read_where_they_were_written) { EXPECT_EQ(wrong_with("in_place"), ""); }
TEST_P(buffers_across_nodes, are_given_back_by_tasks_that_end) { EXPECT_EQ(wrong_with("give_back"), ""); }
TEST_P(buffers_across_nodes, are_given_back_when_their_reader_is_lost) { EXPECT_EQ(wrong_with("loss_of_reader"), ""); }
TEST_P(buffers_across_nodes, stay_readable_when_their_sender_is_lost) { EXPECT_EQ(wrong_with("loss_of_sender"), ""); }

}  // namespace

int main(int argc, char** argv) {
  return orrery::testing::run_tests_or_scenario(argc, argv,
                                                {{"model", as_task<model>},
                                                 {"in_place", as_task<in_place>},
                                                 {"give_back", as_task<give_back>},
                                                 {"loss_of_reader", as_task<loss_of_reader>},
                                                 {"loss_of_sender", as_task<loss_of_sender>}});
}
