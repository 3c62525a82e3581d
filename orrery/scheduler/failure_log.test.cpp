// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/failure_log.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/error.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::scheduler {
namespace failure_log_tests {

const handler add{"calc",
                  "add",
                  "failure_log.test add",
                  [](pe&, slot&, delivery& d) { d.fail(make_error(errc::unknown_handler, "never sent")); },
                  [](void*, void*) {},
                  [](void*) {},
                  0,
                  false};

std::exception_ptr lost() { return std::make_exception_ptr(node_lost("node 1")); }

node_settings one_pe() {
  node_settings s;
  s.pes = 1;
  return s;
}

// A PE that does not run, of a node without a world.
class failure_log_test : public ::testing::Test {
 protected:
  template <class F>
  std::string said(F f) {
    ::testing::internal::CaptureStderr();
    f();
    return ::testing::internal::GetCapturedStderr();
  }
  [[nodiscard]] std::uint64_t counted() { return self_.count().failed_posts; }

  node node_{one_pe(), nullptr};
  pe& self_ = node_.local(0);
  failure_log log_{self_};
};

TEST_F(failure_log_test, says_which_post_failed_and_why) {
  const auto why = std::make_exception_ptr(std::runtime_error("no more"));
  EXPECT_EQ(said([&] { log_.report_post(&add, why); }),
            "orrery: PE 0: calc::add failed, and nobody waits for its result: no more\n");
  EXPECT_EQ(said([&] { log_.report_post(nullptr, why); }),
            "orrery: PE 0: a process function failed, and nobody waits for its result: no more\n");
  EXPECT_EQ(counted(), 2u);
}

TEST_F(failure_log_test, says_what_was_thrown_that_is_no_exception) {
  EXPECT_EQ(said([&] { log_.report("here", std::make_exception_ptr(7)); }),
            "orrery: PE 0: here: int was thrown, which is not a std::exception\n");
  EXPECT_EQ(said([&] { log_.report("all there is to say", nullptr); }), "orrery: PE 0: all there is to say\n");
}

TEST_F(failure_log_test, says_the_first_unsent_post_at_once_and_how_many_followed_at_the_end) {
  const std::string first = said([&] { log_.report_unsent(add, 0, lost()); });
  EXPECT_NE(first.find("calc::add failed"), std::string::npos);
  EXPECT_EQ(said([&] {
              for (int i = 0; i < 3; ++i) log_.report_unsent(add, 0, lost());
            }),
            "");
  EXPECT_EQ(counted(), 4u);
  const std::string more = said([&] { log_.report_more_unsent(); });
  EXPECT_NE(more.find("3 more one-way messages calc::add failed as the first one did"), std::string::npos);
}

TEST_F(failure_log_test, says_once_for_each_process_that_its_messages_find_it_gone) {
  const auto gone = [&](const char* process) {
    log_.report_post(&add, std::make_exception_ptr(process_gone(process)));
  };
  const std::string first = said([&] { gone("0.1.1"); });
  EXPECT_NE(first.find("calc::add failed"), std::string::npos) << first;
  EXPECT_NE(said([&] { gone("0.2.1"); }).find("0.2.1"), std::string::npos);
  EXPECT_EQ(said([&] {
              for (int i = 0; i < 200; ++i) gone("0.1.1");
              for (int i = 0; i < 27; ++i) gone("0.2.1");
            }),
            "");
  EXPECT_EQ(counted(), 229u);
  EXPECT_EQ(said([&] { log_.report_more_unsent(); }),
            "orrery: PE 0: 227 more one-way messages calc::add failed as the first one did: its process had ended\n");
}

TEST_F(failure_log_test, what_fails_because_the_program_ends_is_no_failure) {
  node_.stop();
  EXPECT_EQ(said([&] {
              log_.report_post(&add, make_error(errc::stopped, "x"));
              log_.report("x", lost());
              log_.report_unsent(add, 0, lost());
            }),
            "");
  EXPECT_EQ(counted(), 0u);
  EXPECT_NE(said([&] { log_.report_post(&add, std::make_exception_ptr(std::logic_error("a bug"))); }), "");
}

TEST_F(failure_log_test, counts_the_posts_that_were_in_a_ring_to_a_lost_node) {
  constexpr std::uint64_t capacity = 4096;
  const std::size_t bytes = transport::ring_header::bytes_for(capacity);
  const std::vector<std::max_align_t> memory(bytes / sizeof(std::max_align_t) + 8);
  void* at = const_cast<std::max_align_t*>(memory.data());
  std::size_t room = memory.size() * sizeof(std::max_align_t);
  outbound c;
  c.ring = transport::ring_producer(*transport::make_ring(std::align(64, bytes, at, room), capacity, 0, 1));
  c.pe = 1;
  for (const std::uint64_t reply : {0, 5, 0}) {  // two posts and a call
    wire::envelope* const e = c.try_reserve(wire::granule);
    ASSERT_NE(e, nullptr);
    e->kind = wire::record_kind::message;
    e->form = wire::payload_form::refs;
    e->padding = 0;
    e->reply = reply;
    c.ring.commit(wire::granule);
  }
  EXPECT_EQ(said([&] { log_.note_lost(c); }),
            "orrery: PE 0: 2 one-way messages to PE 1 failed: they were on the way when its node was lost\n");
  EXPECT_EQ(counted(), 2u);
  EXPECT_EQ(said([&] { log_.tell_of_lost(); }), "");
}

}  // namespace failure_log_tests
}  // namespace orrery::scheduler
