// SPDX-License-Identifier: Apache-2.0
// Release scopes that an exception leaves: it arrives as it is, and what was flushed is told.
#include <orrery/shared/release.hpp>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_each_world.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/internal/test_text.hpp>
#include <orrery/shared/shared.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace orrery {
namespace release_tests {

using testing::holds;

class release_scopes : public testing::on_threads_and_machines<3> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(release_scopes);

/// The exception of a user.
struct enough : std::runtime_error {
  enough() : std::runtime_error("enough") {}
};

/// The text that is on stderr when an exception has left a scope of this behaviour, in which four
/// elements were written.
template <class B>
std::string said_by(const B& behaviour, auto value_of, auto before_the_end) {
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(with(behaviour,
                    [&](auto& w) {
                      for (std::uint64_t i = 0; i < 4; ++i) w[i] = value_of(i);
                      before_the_end();
                      throw enough();
                    }),
               enough);
  return ::testing::internal::GetCapturedStderr();
}
int tenfold(std::uint64_t i) { return static_cast<int>(10 * i); }
std::string word(std::uint64_t i) { return "word " + std::to_string(i); }
void nothing() {}

TEST_P(release_scopes, an_exception_leaves_written_what_was_written_and_says_so) {
  in_each([] {
    const bool far = world_nodes() != 1;
    const shared_vector<int> v(4, distribution::on(pe(2)));
    const std::string said = said_by(release(v), tenfold, nothing);
    for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(v[i], tenfold(i));
    if (far) {
      holds(said, "orrery: an exception left the release scope at release.test.cpp:");
      holds(said,
            ": 4 of 4 writes to other machines have come to their owners (shared vector made at release.test.cpp:");
    } else {
      EXPECT_EQ(said, "");  // memory: there was nothing to flush
    }
    const std::string updated = said_by(read_release(v), tenfold, nothing);
    EXPECT_EQ(updated.find("4 of 4 writes") != std::string::npos, far) << updated;
    with(read_view(v), [](auto&) {});  // nothing is left open
    destroy(v);
  });
}

TEST_P(release_scopes, an_exception_tells_an_outcome_what_was_written) {
  in_each([] {
    const std::uint64_t travel = world_nodes() != 1 ? 4 : 0;
    const shared_vector<int> v(4, distribution::on(pe(2)));
    release_outcome outcome;
    EXPECT_EQ(said_by(release(v, {.outcome = &outcome}), tenfold, nothing), "");
    EXPECT_EQ(outcome.writes, travel);
    EXPECT_EQ(outcome.written, travel);
    EXPECT_TRUE(outcome.left_by_exception);
    with(release(v, {.buffer_bytes = 1, .outcome = &outcome}), [](auto& w) { w[3] = 1; });
    EXPECT_EQ(outcome.writes, travel / 4);
    EXPECT_EQ(outcome.written, travel / 4);
    EXPECT_FALSE(outcome.left_by_exception);
    destroy(v);
  });
}

TEST_P(release_scopes, an_exception_says_how_many_objects_were_written) {
  in_each([] {
    const shared_vector<std::string> v(4, distribution::on(pe(1)));
    holds(said_by(release(v), word, nothing), ": 4 of 4 writes to other PEs have come to their owners");
    for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(v[i].get(), word(i));
    release_outcome outcome;
    EXPECT_EQ(said_by(release(v, {.outcome = &outcome}), word, nothing), "");
    EXPECT_EQ(outcome.writes, 4U);
    EXPECT_EQ(outcome.written, 4U);
    destroy(v);
  });
}

TEST(release_scope, what_could_not_be_flushed_is_told) {
  testing::in_simulation("machines=3,jitter=3us,seed=7", [] {
    const shared_vector<int> v(4, distribution::on(pe(2)));
    const std::string said = said_by(release(v), tenfold, [&] { destroy(v); });
    holds(said, ": 0 of 4 writes to other machines have come to their owners");
    holds(said, "orrery: a scope that an exception left could not be ended: shared vector made at release.test.cpp:");
    const shared_vector<int> w(4, distribution::on(pe(2)));
    release_outcome outcome;
    holds(said_by(release(w, {.outcome = &outcome}), tenfold, [&] { destroy(w); }), "could not be ended");
    EXPECT_EQ(outcome.writes, 4U);
    EXPECT_EQ(outcome.written, 0U);
  });
}

}  // namespace release_tests
}  // namespace orrery
