// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/task.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/process/detail/here_pe.hpp>
#include <orrery/process/detail/outgoing.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/task/internal/mail.hpp>
#include <orrery/task/internal/test_parcels.hpp>

// Buffers in one OS process: on one PE, on two, and on simulated machines, whose nodes have memory
// of their own. tests/task has those of several.
namespace buffer_tests {

using orrery::testing::filled;
using orrery::testing::parcel;
using orrery::testing::parcel_type;
using orrery::testing::wrong_in;

int in_world(std::vector<std::string> options, orrery::testing::test_body body) {
  std::vector<std::string> words{"test", "--orrery-quiet"};
  for (std::string& o : options) words.push_back(std::move(o));
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  return orrery::run(static_cast<int>(argv.size()), argv.data(), [&](const orrery::args&) {
    body();
    return 0;
  });
}

class buffer : public ::testing::TestWithParam<const char*> {
 protected:
  static void in_world(orrery::testing::test_body body) { EXPECT_EQ(buffer_tests::in_world({GetParam()}, body), 0); }
  static bool is_checked() {
#ifdef NDEBUG
    return false;
#else
    return true;
#endif
  }
};
constexpr const char* names_of_worlds[] = {"one_pe", "two_pes", "simulated_machines"};
INSTANTIATE_TEST_SUITE_P(on, buffer,
                         ::testing::Values("--orrery-pes=1", "--orrery-pes=2",
                                           "--orrery-sim=machines=2,jitter=5us,seed=1"),
                         [](const auto& of) { return std::string(names_of_worlds[of.index]); });

// The last PE: another one where there are two.
orrery_task create(orrery_task_function run) {
  orrery_task t{};
  EXPECT_EQ(orrery_create(run, nullptr, 0, orrery_pe(orrery_pes() - 1), &t), ORRERY_OK) << orrery_error();
  return t;
}

void send_back(void*, std::size_t) {
  orrery_message m;
  while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) {
    const auto* p = static_cast<parcel*>(orrery_open(&m, &parcel_type));
    EXPECT_NE(p, nullptr);
    if (p != nullptr) {
      EXPECT_EQ(orrery_send(m.sender, m.tag, &parcel_type, p, ORRERY_WAIT), ORRERY_OK);
    }
    orrery_release(&m);
  }
}

TEST_P(buffer, travels_and_comes_back_with_its_bytes) {
  in_world([] {
    const orrery_task t = create(send_back);
    for (const std::size_t size : {0U, 1U, 63U, 64U, 2047U, 2048U, 4096U, 100'000U, 5'000'000U}) {
      const parcel p{1, 2, filled(1, 2, size)};
      EXPECT_EQ(orrery_send(t, 5, &parcel_type, &p, ORRERY_WAIT), ORRERY_OK) << orrery_error();
      orrery_message m;
      ASSERT_EQ(orrery_receive_tag(5, &m, ORRERY_FOREVER), ORRERY_OK);
      const auto* back = static_cast<parcel*>(orrery_open(&m, &parcel_type));
      ASSERT_NE(back, nullptr) << orrery_error();
      EXPECT_EQ(back->values.size, size);
      EXPECT_EQ(wrong_in(back->values, 1, 2), "");
      orrery_release(&m);
    }
  });
}

TEST_P(buffer, inside_a_node_is_passed_on_as_a_pointer) {
  if (is_checked() || std::string(GetParam()).contains("sim")) return;
  in_world([] {
    const orrery_task t = create(send_back);
    const parcel p{1, 2, filled(1, 2, 100'000)};
    EXPECT_EQ(orrery_send(t, 5, &parcel_type, &p, ORRERY_WAIT), ORRERY_OK);
    orrery_message m;
    ASSERT_EQ(orrery_receive(&m, ORRERY_FOREVER), ORRERY_OK);
    EXPECT_EQ(static_cast<parcel*>(orrery_open(&m, &parcel_type))->values.data, p.values.data);
    orrery_release(&m);
  });
}

TEST_P(buffer, that_was_sent_freed_or_released_is_refused) {
  in_world([] {
    const parcel p{1, 2, filled(1, 2, 5000)};
    EXPECT_EQ(orrery_send(orrery_self(), 1, &parcel_type, &p, ORRERY_WAIT), ORRERY_OK);
    EXPECT_EQ(orrery_send(orrery_self(), 1, &parcel_type, &p, ORRERY_WAIT), ORRERY_USAGE);
    EXPECT_NE(std::string(orrery_error()).find("was sent, given back, or released"), std::string::npos);
    orrery_message m;
    ASSERT_EQ(orrery_receive(&m, ORRERY_NOW), ORRERY_OK);
    parcel got = *static_cast<parcel*>(orrery_open(&m, &parcel_type));
    EXPECT_EQ(wrong_in(got.values, 1, 2), "");
    orrery_release(&m);
    orrery_buffer mine;
    EXPECT_EQ(orrery_buffer_take(&got.values, &mine), ORRERY_USAGE);
    EXPECT_EQ(mine.data, nullptr);
    orrery_buffer b = filled(1, 1, 10);
    orrery_buffer copy = b;
    EXPECT_EQ(orrery_buffer_free(&b), ORRERY_OK);
    EXPECT_EQ(b.data, nullptr);
    EXPECT_EQ(orrery_buffer_free(&b), ORRERY_OK);  // no buffer
    EXPECT_EQ(orrery_buffer_free(&copy), ORRERY_USAGE);
  });
}

TEST_P(buffer, stays_its_senders_if_it_was_not_sent) {
  in_world([] {
    const orrery_task gone = create([](void*, std::size_t) {});
    EXPECT_EQ(orrery_join(gone, ORRERY_FOREVER), ORRERY_OK);
    parcel p{1, 2, filled(1, 2, 5000)};
    EXPECT_EQ(orrery_send({}, 1, &parcel_type, &p, ORRERY_WAIT), ORRERY_USAGE);
    if (gone.pe == orrery_this_pe()) {
      EXPECT_EQ(orrery_send(gone, 1, &parcel_type, &p, ORRERY_WAIT), ORRERY_GONE);
    }
    EXPECT_EQ(orrery_clone(&parcel_type, &p), nullptr);
    EXPECT_NE(std::string(orrery_error()).find("has one owner"), std::string::npos);
    EXPECT_EQ(wrong_in(p.values, 1, 2), "");
    EXPECT_EQ(orrery_buffer_free(&p.values), ORRERY_OK);
  });
}

TEST_P(buffer, that_is_taken_outlives_its_message) {
  in_world([] {
    const orrery_task t = create(send_back);
    const parcel p{3, 4, filled(3, 4, 10'000)};
    EXPECT_EQ(orrery_send(t, 5, &parcel_type, &p, ORRERY_WAIT), ORRERY_OK);
    orrery_message m;
    ASSERT_EQ(orrery_receive(&m, ORRERY_FOREVER), ORRERY_OK);
    auto* const back = static_cast<parcel*>(orrery_open(&m, &parcel_type));
    orrery_buffer mine;
    EXPECT_EQ(orrery_buffer_take(&back->values, &mine), ORRERY_OK);
    orrery_release(&m);
    EXPECT_EQ(wrong_in(mine, 3, 4), "");
    EXPECT_EQ(orrery_buffer_free(&mine), ORRERY_OK);
  });
}

struct several {
  int count;
  orrery_buffer first;
  orrery_buffer* more;
};
constexpr orrery_field several_fields[] = {{"first", ORRERY_BUFFER, offsetof(several, first), 0, 0, 0, 0, nullptr},
                                           {"more", ORRERY_ARRAY, offsetof(several, more), sizeof(orrery_buffer),
                                            offsetof(several, count), sizeof(int), 1, &orrery_buffer_type}};
constexpr orrery_message_type several_type = {"Several", 4712, sizeof(several), 2, several_fields};

TEST_P(buffer, may_be_one_of_several_in_a_message) {
  in_world([] {
    const orrery_task t = create([](void*, std::size_t) {
      orrery_message m;
      while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) {
        const auto* s = static_cast<several*>(orrery_open(&m, &several_type));
        EXPECT_EQ(orrery_send(m.sender, 5, &several_type, s, ORRERY_WAIT), ORRERY_OK) << orrery_error();
        orrery_release(&m);
      }
    });
    orrery_buffer more[3] = {filled(1, 1, 30'000), {}, filled(1, 3, 0)};
    several s{3, filled(1, 0, 7), more};
    EXPECT_EQ(orrery_send(t, 5, &several_type, &s, ORRERY_WAIT), ORRERY_OK) << orrery_error();
    orrery_message m;
    ASSERT_EQ(orrery_receive(&m, ORRERY_FOREVER), ORRERY_OK);
    const auto* back = static_cast<several*>(orrery_open(&m, &several_type));
    ASSERT_NE(back, nullptr) << orrery_error();
    EXPECT_EQ(wrong_in(back->first, 1, 0), "");
    EXPECT_EQ(wrong_in(back->more[0], 1, 1), "");
    EXPECT_EQ(back->more[1].data, nullptr);
    EXPECT_EQ(wrong_in(back->more[2], 1, 3), "");
    orrery_release(&m);
    s = {1, filled(1, 1, 5), more};
    more[0] = s.first;
    EXPECT_EQ(orrery_send(t, 5, &several_type, &s, ORRERY_WAIT), ORRERY_USAGE);
    EXPECT_NE(std::string(orrery_error()).find("twice"), std::string::npos);
  });
}

TEST(buffer_of_a_task, is_given_back_at_its_end_and_lost_with_messages) {
  // AddressSanitizer's build sees that.
  in_world({"--orrery-sim=machines=2,jitter=5us,seed=3"}, [] {
    for (int i = 0; i < 3; ++i) {
      const orrery_task t = create([](void*, std::size_t) {
        (void)filled(1, 1, 3000);
        orrery_message m;
        if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return;
        orrery_buffer mine;
        (void)orrery_buffer_take(&static_cast<parcel*>(orrery_open(&m, &parcel_type))->values, &mine);
        orrery_release(&m);
      });
      for (int k = 0; k < 3; ++k) {
        const parcel p{1, 2, filled(1, 2, 3000)};
        EXPECT_EQ(orrery_send(t, 5, &parcel_type, &p, ORRERY_WAIT), ORRERY_OK);
      }
      EXPECT_EQ(orrery_join(t, ORRERY_FOREVER), ORRERY_OK);
    }
  });
}

TEST(buffers, pass_between_tasks_at_random_and_arrive_once) {
  for (int seed = 1; seed <= 12; ++seed) {
    const std::string world = "--orrery-sim=machines=2,nodes=2,pes=2,jitter=20us,seed=" + std::to_string(seed);
    EXPECT_EQ(in_world({world},
                       [&] {
                         const auto wrong = orrery::testing::pass_parcels(static_cast<std::uint64_t>(seed), 9, 40);
                         EXPECT_EQ(wrong, std::vector<std::string>{}) << "seed " << seed;
                       }),
              0);
  }
}

TEST(buffers, pass_between_threads_at_random) {
  EXPECT_EQ(in_world({"--orrery-pes=2"},
                     [] { EXPECT_EQ(orrery::testing::pass_parcels(7, 6, 200), std::vector<std::string>{}); }),
            0);
}

TEST(buffers_in_checked_worlds, pass_at_random_too) {
  for (const char* world : {"--orrery-pes=2", "--orrery-sim=machines=2,pes=2,jitter=20us,seed=5"})
    EXPECT_EQ(in_world({world, "--orrery-serialize"},
                       [] { EXPECT_EQ(orrery::testing::pass_parcels(5, 6, 40), std::vector<std::string>{}); }),
              0);
}

TEST(buffers_in_checked_worlds_DeathTest, end_who_touches_one_that_was_sent) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char* world : {"--orrery-pes=1", "--orrery-sim=machines=2,jitter=5us,seed=1"})
    EXPECT_DEATH(in_world({world, "--orrery-serialize"},
                          [] {
                            const orrery_task t = create(send_back);
                            const parcel p{1, 2, filled(1, 2, 5000)};
                            (void)orrery_send(t, 5, &parcel_type, &p, ORRERY_WAIT);
                            static_cast<char*>(p.values.data)[4999] = 1;
                          }),
                 "");
}

// A message of another node, as no sender makes it: `places` of buffers in 4,096 bytes.
void send_nonsense(orrery_task to, const std::vector<std::uint64_t>& places) {
  namespace od = orrery::detail;
  orrery::scheduler::pe& self = od::here_pe();
  std::vector<std::byte> payload(4096);
  const orrery::task_detail::mail_head head{1, 0, self.self(), static_cast<std::uint32_t>(places.size() / 2)};
  std::memcpy(payload.data(), &head, sizeof head);
  std::memcpy(payload.data() + sizeof head + sizeof(std::uint64_t), places.data(),
              places.size() * sizeof(std::uint64_t));
  od::outgoing out(self, self.outbound_to(to.pe), payload.size());
  std::memcpy(out.payload().data(), payload.data(), payload.size());
  out.send_message({to.pe, to.slot, to.generation}, orrery::task_detail::mail_handler, nullptr);
}

// Nonsense stays in the mailbox, and is reported when the task ends.
TEST(buffers_of_another_node, lie_behind_each_other_in_their_message) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(in_world({"--orrery-sim=machines=2"},
                     [] {
                       const orrery_task t = create([](void*, std::size_t) {
                         orrery_message m;
                         for (int i = 0; i < 2 && orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK; ++i) {
                           EXPECT_EQ(orrery_send_bytes(m.sender, m.tag, "", 0, ORRERY_WAIT), ORRERY_OK);
                           orrery_release(&m);
                         }
                       });
                       send_nonsense(t, {1024, 2048, 2048, 2048});        // they overlap
                       send_nonsense(t, {2048, 1024, 1024, 1024});        // in another order
                       send_nonsense(t, {0, 1024});                       // before its end
                       send_nonsense(t, {1024, 1024, 2048, 2048});        // as it is to be
                       EXPECT_EQ(orrery_send_bytes(t, 2, "", 0, ORRERY_WAIT), ORRERY_OK);
                       for (const std::uint64_t tag : {1U, 2U}) {
                         orrery_message m;
                         ASSERT_EQ(orrery_receive(&m, ORRERY_FOREVER), ORRERY_OK);
                         EXPECT_EQ(m.tag, tag);
                         orrery_release(&m);
                       }
                       EXPECT_EQ(orrery_join(t, ORRERY_FOREVER), ORRERY_OK);
                     }),
            1);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("destroyed"), std::string::npos);
}

}  // namespace buffer_tests
