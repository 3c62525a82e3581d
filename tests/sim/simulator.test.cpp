// SPDX-License-Identifier: Apache-2.0
// What only a simulated world has: virtual time, a network model, the same run again, faults on demand.
#include <orrery/orrery.hpp>
#include <orrery/process/detail/simulation.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/simulated_drive.hpp>
#include <orrery/scheduler/simulator.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
namespace orrery {
namespace {

using namespace std::chrono_literals;
using testing::in_simulation;

class Echo {
 public:
  int same(int n) { return n; }
  std::size_t size(std::span<const char> bytes) { return bytes.size(); }
  void work(time_limit d) { compute(d); }
  void note(int n) { seen_.push_back(n); }
  std::vector<int> seen() { return seen_; }
  void hold() { sleep_for(1h); }
  ORRERY_PROCESS_MEMBERS(Echo, same, size, work, note, seen, hold)

 private:
  std::vector<int> seen_;
};

std::int64_t time_of(auto f) {
  const auto begin = now();
  f();
  return (now() - begin).count();
}

TEST(simulation, has_the_machines_nodes_and_pes_that_it_was_asked_for) {
  in_simulation("machines=3,nodes=2,pes=4", [] {
    EXPECT_EQ(world_machines(), 3U);
    EXPECT_EQ(world_nodes(), 6U);
    EXPECT_EQ(world_pes(), 24U);
    const auto far = spawn<Echo>(node(5));
    EXPECT_EQ(far.address().pe / 4, 5U);
    EXPECT_EQ(call<&this_machine>(pe(23)), 2U);
  });
}

TEST(simulation, places_processes_on_all_pes_of_a_machine_in_turn) {
  in_simulation("machines=3,nodes=2,pes=2", [] {
    for (std::uint32_t m = 0; m < 3; ++m) {
      std::set<std::uint32_t> pes;
      for (int i = 0; i < 4; ++i) pes.insert(spawn<Echo>(machine(m)).address().pe);
      EXPECT_EQ(pes, (std::set<std::uint32_t>{4 * m, 4 * m + 1, 4 * m + 2, 4 * m + 3}));
    }
    const std::string said = testing::what_is_thrown<usage_error>([] { (void)spawn<Echo>(machine(3)); });
    EXPECT_NE(said.find("machine(3) in a world of 3 machines: "), std::string::npos) << said;
    EXPECT_NE(said.find("world_machines()"), std::string::npos) << said;
  });
}

TEST(simulation, places_nothing_on_a_lost_node_of_a_machine_that_has_another) {
  const testing::leaks_expected of_the_lost_node;
  in_simulation("machines=2,nodes=2,lose=2@1ms,detect=100us", [] {
    sleep_for(2ms);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(spawn<Echo>(machine(1)).address().pe, 3U);
  });
}

TEST(simulation, says_of_a_machine_whose_nodes_are_lost_that_they_are) {
  const testing::leaks_expected of_the_lost_node;
  in_simulation("machines=2,lose=1@1ms,detect=100us", [] {
    sleep_for(2ms);
    EXPECT_THROW((void)spawn<Echo>(machine(1)), node_lost);
  });
}

TEST(simulation, sleeps_in_virtual_time_only) {
  const auto begin = std::chrono::steady_clock::now();
  in_simulation("machines=2", [] { EXPECT_GE(time_of([] { sleep_for(24h * 365); }), (24h * 365) / 1ns); });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 24h);
}

TEST(simulation, of_a_call_takes_what_the_network_says) {
  in_simulation("machines=2,pes=2,net=1us:100ns:0:1G,local=50ns:10ns:0:1G,message=20ns", [] {
    const auto far = spawn<Echo>(pe(2));
    const auto near = spawn<Echo>(pe(1));
    (void)far->same(1);
    (void)near->same(1);
    // Twice latency and both overheads; the execution of the call and the end of the wait; and 64 bytes at 1 GB/s, each way.
    const std::int64_t there_and_back = time_of([&] { (void)far->same(1); });
    EXPECT_GE(there_and_back, 2 * (1000 + 100 + 100));
    EXPECT_LE(there_and_back, 2 * (1000 + 100 + 100 + 128) + 60);
    const std::int64_t next_door = time_of([&] { (void)near->same(1); });
    EXPECT_GE(next_door, 2 * (50 + 10 + 10));
    EXPECT_LE(next_door, 2 * (50 + 10 + 10 + 128) + 60);
  });
}

TEST(simulation, of_large_messages_takes_the_time_of_their_bytes) {
  in_simulation("machines=2,net=1us:0:0:1G", [] {
    const auto far = spawn<Echo>(pe(1));
    const std::vector<char> bytes(1U << 30 >> 10);  // 1/1024 of what the network carries in a second
    const std::int64_t t = time_of([&] { EXPECT_EQ(far->size(bytes), bytes.size()); });
    EXPECT_GE(t, 1'000'000'000 / 1024);
    EXPECT_LE(t, 1'000'000'000 / 1024 + 30'000);
  });
}

TEST(simulation, of_a_methods_work_takes_what_it_says_and_longer_on_a_slow_node) {
  in_simulation("machines=3,slow=2*2.5", [] {
    const auto fast = spawn<Echo>(pe(1));
    const auto slow = spawn<Echo>(pe(2));
    const std::int64_t one = time_of([&] { fast->work(1ms); });
    EXPECT_GE(one, 1'000'000);
    EXPECT_LE(one, 1'010'000);
    EXPECT_GE(time_of([&] { slow->work(1ms); }), 2'500'000);
    const std::int64_t both = time_of([&] {
      auto a = start(fast)->work(1ms);
      auto b = start(slow)->work(1ms);
      a.get();
      b.get();
    });
    EXPECT_LE(both, 2'520'000) << "two PEs work at the same time";
  });
}

class Waiter {
 public:
  void hold(remote<Echo> far) { far->hold(); }
  ORRERY_PROCESS_MEMBERS(Waiter, hold)
};

TEST(simulation, of_a_method_that_waits_takes_no_time_for_what_others_do_meanwhile) {
  in_simulation("machines=2,message=1us", [] {
    const auto far = spawn<Echo>(pe(1));
    const auto near = spawn<Echo>(here());
    const auto waiter = spawn<Waiter>(here());
    const std::int64_t t = time_of([&] {
      auto held = start(waiter)->hold(far);
      yield();  // it waits now
      EXPECT_GE(time_of([&] {
                  for (int i = 0; i < 1000; ++i) post(near)->note(i);
                  EXPECT_EQ(near->seen().size(), 1000U);
                }),
                1'000'000);
      held.get();
    });
    EXPECT_GE(t, 1h / 1ns);
    EXPECT_LE(t, (1h + 100us) / 1ns);
  });
}

class Drive {
 public:
  static constexpr bool orrery_reentrant = true;
  void transfer(std::uint64_t bytes) { drive_.transfer(bytes); }
  int answer(std::uint64_t bytes) {
    carry(bytes);
    return 1;
  }
  ORRERY_PROCESS_MEMBERS(Drive, transfer, answer)

 private:
  simulated_drive drive_;
};

TEST(simulation, of_drives_has_a_queue_for_each_that_takes_a_seek_and_the_bytes) {
  in_simulation("machines=2,drive=1M:10ms", [] {
    const auto one = spawn<Drive>(pe(1));
    const auto other = spawn<Drive>(pe(1));
    EXPECT_NEAR(static_cast<double>(time_of([&] { one->transfer(1 << 19); })), 0.51e9, 1e5);
    const std::int64_t t = time_of([&] {
      std::vector<future<void>> all;
      for (int i = 0; i < 3; ++i) all.push_back(start(one)->transfer(1 << 20));
      all.push_back(start(other)->transfer(1 << 20));
      EXPECT_NEAR(static_cast<double>(time_of([&] { all.back().get(); })), 1.01e9, 1e5) << "the other drive is free";
      for (int i = 0; i < 3; ++i) all[static_cast<std::size_t>(i)].get();
    });
    EXPECT_NEAR(static_cast<double>(t), 3.03e9, 1e5);
  });
  in_simulation("machines=2", [] {
    const auto one = spawn<Drive>(pe(1));
    EXPECT_LT(time_of([&] { one->transfer(1ULL << 40); }), 100'000) << "without drives they take no time";
  });
}
TEST(simulation, carries_bytes_that_are_not_there_in_the_next_message_or_answer) {
  in_simulation("machines=2,net=1us:0:0:1G", [] {
    const auto far = spawn<Drive>(pe(1));
    EXPECT_NEAR(static_cast<double>(time_of([&] { (void)far->answer(1U << 30); })), 1e9, 1e5);
    EXPECT_LT(time_of([&] { (void)far->answer(0); }), 100'000);
    EXPECT_NEAR(static_cast<double>(time_of([&] {
                  carry(1U << 29);
                  (void)far->answer(0);
                })),
                0.5e9, 1e5);
  });
}
TEST(simulation, says_what_drives_can_be) {
  const std::string said = testing::what_is_thrown<world_error>([] { (void)parse_simulation("drive=100M"); });
  EXPECT_NE(said.find("drive=100M: this value cannot be; allowed is RATE:SEEK like 100M:13ms"), std::string::npos)
      << said;
  EXPECT_EQ(parse_simulation("drive=100M:13ms").drive_seek_ns, 13'000'000);
}

TEST(simulation, may_take_the_time_that_methods_take) {
  in_simulation("machines=2,compute=measured", [] {
    const auto far = spawn<Echo>(pe(1));
    const std::int64_t t = time_of([&] {
      for (int i = 0; i < 100; ++i) (void)far->same(i);
    });
    EXPECT_GT(t, 100 * 2 * 900);
  });
}

// Who met whom, and when: a text that two runs have in common only if they were the same.
std::string history(std::string_view settings) {
  std::string text;
  scheduler::sim_report report;
  in_simulation(
      settings,
      [&] {
        const auto meeting = spawn<Echo>(pe(0));
        std::vector<remote<function>> senders;
        for (std::uint32_t p = 0; p < world_pes(); ++p)
          for (int k = 0; k < 3; ++k)
            senders.push_back(spawn(
                pe(p),
                [](remote<Echo> to, int number, int rhythm) {
                  for (int i = 0; i < 20; ++i) {
                    post(to)->note(number + i);
                    if (i % 5 == rhythm) sleep_for(500ns);
                  }
                },
                meeting, static_cast<int>(p) * 1000 + k * 100, k));
        quiescence();
        for (const int n : meeting->seen()) text += fmt::format("{} ", n);
        text += fmt::format("at {}", now().count());
      },
      &report);
  return text + fmt::format("; {} {} {}", report.time_ns, report.messages, report.events);
}

TEST(simulation, does_the_same_again_with_the_same_seed) {
  const std::string settings = "machines=4,pes=2,jitter=3us,seed=11";
  EXPECT_EQ(history(settings), history(settings));
  EXPECT_NE(history(settings), history("machines=4,pes=2,jitter=3us,seed=12"));
}

TEST(simulation, keeps_the_order_of_each_pair_whatever_the_delays) {
  std::set<std::vector<int>> orders;
  for (int seed = 0; seed < 20; ++seed)
    in_simulation(fmt::format("machines=4,jitter=50us,seed={}", seed), [&orders] {
      const auto meeting = spawn<Echo>(pe(0));
      for (std::uint32_t p = 1; p < world_pes(); ++p)
        (void)spawn(
            pe(p),
            [](remote<Echo> to, int number) {
              for (int i = 0; i < 50; ++i) post(to)->note(number + i);
            },
            meeting, static_cast<int>(p) * 100);
      quiescence();
      const auto seen = meeting->seen();
      ASSERT_EQ(seen.size(), 150U);
      std::vector<int> last(4, -1);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const auto p = static_cast<std::size_t>(seen[i] / 100);
        EXPECT_LT(last[p], seen[i]);
        last[p] = seen[i];
      }
      orders.insert(seen);
    });
  EXPECT_GT(orders.size(), 2U);  // of who comes first
}

void send_many(remote<function> to, int n) {
  for (int i = 0; i < n; ++i) send(to, std::vector<int>(100, i));
}

TEST(simulation, lets_a_sender_go_on_whose_full_ring_was_emptied_before_it_looked) {
  in_simulation("machines=2,pes=2", [] {
    for (std::uint32_t p = 1; p < 4; ++p) spawn(pe(p), send_many, this_process<function>(), 3000);
    const auto begin = now();
    int got = 0;
    while (got < 9000 && now() - begin < 100ms) {  // it never has nothing to do
      while (try_receive<std::vector<int>>()) ++got;
      yield();
    }
    EXPECT_EQ(got, 9000);
  });
}

TEST(simulation, finds_quiescence_when_the_last_message_has_been_executed) {
  in_simulation("machines=8,jitter=10us,seed=5", [] {
    const auto far = spawn<Echo>(pe(7));
    (void)spawn(
        pe(3),
        [](remote<Echo> to) {
          sleep_for(5ms);
          post(to)->note(1);
        },
        far);
    const std::int64_t t = time_of([] { quiescence(); });
    EXPECT_GE(t, 4'900'000);  // it has slept a little before
    EXPECT_EQ(far->seen().size(), 1U);
  });
}

TEST(simulation, loses_a_node_when_it_was_told_to_and_the_others_go_on) {
  const testing::leaks_expected of_the_lost_node;
  ::testing::internal::CaptureStderr();
  in_simulation("machines=4,lose=2@1ms,detect=100us", [] {
    const auto victim = spawn<Echo>(pe(2));
    const auto other = spawn<Echo>(pe(3));
    publish("victim", victim);
    EXPECT_EQ(victim->same(5), 5);
    const std::int64_t t = time_of([&] { EXPECT_THROW(victim->hold(), node_lost); });
    EXPECT_LE(t, 1'110'000);
    EXPECT_THROW((void)victim->same(1), node_lost);
    EXPECT_EQ(other->same(6), 6);
    EXPECT_THROW((void)lookup<Echo>("victim"), name_not_found);
  });
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("node 2 was lost at"), std::string::npos);
}

TEST(simulation, that_loses_its_first_node_ends) {
  const testing::leaks_expected of_the_lost_node;
  ::testing::internal::CaptureStderr();
  in_simulation("machines=3,lose=0@1ms", [] { spawn<Echo>(pe(1))->hold(); });
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("the first node of the world was lost"), std::string::npos);
}

TEST(simulation, that_can_never_go_on_ends_and_says_who_waits) {
  ::testing::internal::CaptureStderr();
  scheduler::sim_report report;
  in_simulation("machines=2", [] { EXPECT_THROW((void)receive<int>(), stopped); }, &report);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("waits in receive"), std::string::npos);
  EXPECT_LT(report.time_ns, 1'000'000'000);
}

class Ring {
 public:
  void pass(int left) {
    if (left > 0) post(next_)->pass(left - 1);
  }
  void to(remote<Ring> next) { next_ = next; }
  ORRERY_PROCESS_MEMBERS(Ring, pass, to)

 private:
  remote<Ring> next_;
};

TEST(simulation, of_thousands_of_pes_counts_every_message) {
  scheduler::sim_report report;
  in_simulation(
      "machines=1000,pes=8",
      [] {
        std::vector<remote<Ring>> ring;
        for (std::uint32_t p = 0; p < world_pes(); ++p) ring.push_back(spawn<Ring>(pe(p)));
        for (std::size_t i = 0; i < ring.size(); ++i) ring[i]->to(ring[(i + 1) % ring.size()]);
        ring[0]->pass(16'000);
        quiescence();
      },
      &report);
  EXPECT_GE(report.messages, 16'000U + 2 * 2 * 7'999U);
}

struct Neighbour : member<Neighbour> {
  void meet() { barrier(); }
  ORRERY_PROCESS_MEMBERS(Neighbour, meet)
};

TEST(simulation, of_a_group_on_many_machines_sends_no_square_of_their_number) {
  scheduler::sim_report report;
  in_simulation(
      "machines=256",
      [] {
        const auto g = spawn_group<Neighbour>(everywhere(), world_pes());
        g->meet();
        destroy(g);
      },
      &report);
  EXPECT_LT(report.messages, 60U * 256);  // the square is 65,536
}

TEST(simulation, of_a_member_that_ends_while_others_wait_tells_all) {
  for (const int machines : {2, 3, 7, 16, 29})
    for (int seed = 1; seed <= 3; ++seed)
      in_simulation(fmt::format("machines={},jitter=20us,seed={}", machines, seed), [&] {
        const auto g = spawn_group<Neighbour>(everywhere(), world_pes());
        const auto ends = static_cast<std::size_t>(seed) % g.size();
        std::vector<future<void>> waiting;
        for (std::size_t i = 0; i < g.size(); ++i)
          if (i != ends) waiting.push_back(start(g[i])->meet());
        destroy(g[ends]);
        for (auto& f : waiting) {
          try {
            f.get();
            ADD_FAILURE() << "met without member " << ends;
          } catch (const process_gone& e) {
            EXPECT_NE(std::string(e.what()).find(fmt::format("member {} of the group", ends)), std::string::npos)
                << e.what();
          }
        }
        destroy(g);
      });
}

struct Partner : member<Partner> {
  int one() { return 1; }
  void note(int n) { seen_ += n; }
  std::int64_t seen() { return seen_; }
  void talk(int partners) {
    std::mt19937_64 random(this_pe());
    const auto all = this_group();
    for (std::size_t i = 0; i < (partners == 0 ? all.size() : static_cast<std::size_t>(partners)); ++i)
      post(all[partners == 0 ? i : random() % all.size()])->note(1);
  }
  ORRERY_PROCESS_MEMBERS(Partner, one, note, seen, talk)

 private:
  std::int64_t seen_ = 0;
};

// A member on each machine: the tree of a collective, and then each posts to `partners` random others; 0: to all.
void talk_on(std::uint32_t machines, int partners) {
  in_simulation(fmt::format("machines={},pes=1,net=10g,seed=3", machines), [&] {
    const auto all = spawn_group<Partner>(in_blocks(), machines);
    EXPECT_EQ(all.reduce<&Partner::one>(std::plus{}), static_cast<int>(machines));
    all->talk(partners);
    quiescence();
    EXPECT_EQ(all.reduce<&Partner::seen>(std::plus{}), std::int64_t{machines} * (partners == 0 ? machines : partners));
  });
}
TEST(simulation, of_many_machines_that_talk_to_64_others_each_loses_nothing) {
  talk_on(testing::slowed_down ? 1024 : 4096, 64);
}
TEST(simulation, of_machines_that_all_talk_to_all_loses_nothing) { talk_on(testing::slowed_down ? 256 : 512, 0); }

// --- what is asked for ------------------------------------------------------------------------------------------

TEST(simulation_settings, are_read_from_a_list) {
  const auto s = parse_simulation("machines=512,pes=8,net=10g,seed=7,jitter=2us,lose=3@2ms,lose=4@3ms,slow=5*1.5");
  EXPECT_EQ(s.machines, 512U);
  EXPECT_EQ(s.all_pes(), 4096U);
  EXPECT_EQ(s.net, transport::links::ethernet_10g);
  EXPECT_EQ(s.seed, 7U);
  EXPECT_EQ(s.jitter_ns, 2000);
  EXPECT_EQ(s.losses, (std::vector<transport::sim_settings::loss>{{3, 2'000'000}, {4, 3'000'000}}));
  EXPECT_EQ(s.slow, (std::vector<transport::sim_settings::slowness>{{5, 1.5}}));
  const transport::link_cost own{900, 150, 10, 1e9 / (25.0 * (1U << 30))};
  EXPECT_EQ(parse_simulation("net=900ns:150ns:10ns:25G").net, own);
}

TEST(simulation_settings, do_not_go_together_with_what_real_worlds_have) {
  for (const char* other :
       {"--orrery-pes=3", "--orrery-nodes=2", "--orrery-world=somewhere", "--orrery-trace=trace.json"}) {
    std::string words[] = {"program", "--orrery-sim=machines=2", other};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run(3, arguments, [](const args&) { return 0; }), 1);
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("does not go together"), std::string::npos);
  }
}

TEST(simulation_settings, that_cannot_be_are_refused_by_name) {
  const auto error = [](std::string_view text) {
    return testing::what_is_thrown<world_error>([&] { (void)parse_simulation(text); });
  };
  EXPECT_NE(error("machine=2").find("did you mean machines?"), std::string::npos);
  EXPECT_NE(error("pes=0").find("a number from 1"), std::string::npos);
  EXPECT_NE(error("net=fast").find("shm, 10g, 200g"), std::string::npos);
  EXPECT_NE(error("jitter=3").find("a time like"), std::string::npos);
  EXPECT_NE(error("machines=4,lose=4@1ms").find("from 0 on"), std::string::npos);
  EXPECT_NE(error("slow=0*0").find("NODE*FACTOR"), std::string::npos);
  EXPECT_NE(error("machines=100000,nodes=100,pes=100").find("more than"), std::string::npos);
  EXPECT_NE(error("machines=16777216,nodes=16777216,pes=65536").find("more than"), std::string::npos);
  EXPECT_NE(error("carriers=on,silence=1000001s").find("to 1000000s"), std::string::npos);
  EXPECT_NE(error("slow=0*1e7").find("from 1e-6 to 1e6"), std::string::npos);
  EXPECT_NE(error("slow=0*nan").find("from 1e-6 to 1e6"), std::string::npos);
  EXPECT_NE(error("pes=2,").find("ends with a comma"), std::string::npos);
  EXPECT_NE(error("").find("there is no"), std::string::npos);
  EXPECT_NE(error("pes=2,seed=1,pes=3").find("pes is given twice"), std::string::npos);
}

}  // namespace
}  // namespace orrery
