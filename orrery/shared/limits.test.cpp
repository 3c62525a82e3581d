// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/internal/test_text.hpp>
#include <orrery/shared/shared.hpp>
#include <orrery/transport/shm/arena.hpp>

#include <sys/resource.h>
#include <unistd.h>
#include <cstdint>
#include <fstream>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace limits_tests {

using orrery::distribution;
using orrery::shared_vector;
using orrery::usage_error;
using orrery::testing::in_world;

TEST(shared_data_limits, bounds_without_ends_are_refused) {
  in_world(2, [] {
    EXPECT_THROW(shared_vector<int>(10, distribution::bounds({})), usage_error);
    EXPECT_THROW(shared_vector<int>(0, distribution::bounds(std::vector<std::uint64_t>{})), usage_error);
  });
}

TEST(shared_data_limits, more_memory_than_there_is_is_refused_before_it_is_touched) {
  in_world(2, [] {
    const std::uint64_t bytes = 2 * orrery::transport::arena::machine_memory();
    EXPECT_THROW((shared_vector<char>(bytes)), orrery::world_error);
    // Owners hold these beside the memory that is shared.
    EXPECT_THROW((shared_vector<std::string>(bytes / 10)), orrery::world_error);
    const shared_vector<char> next(100);
    next[99] = 1;
    EXPECT_EQ(next[99], 1);
  });
}

#if !defined(ORRERY_ASAN) && !defined(ORRERY_TSAN)  // which have address space of their own
/// This program can get no more than this while it exists.
class little_address_space {
 public:
  explicit little_address_space(std::uint64_t more) {
    EXPECT_EQ(::getrlimit(RLIMIT_AS, &before_), 0);
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit now{pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + more, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &now), 0);
  }
  little_address_space(const little_address_space&) = delete;
  little_address_space& operator=(const little_address_space&) = delete;
  ~little_address_space() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

void cache_too_much(orrery::team_member& t, orrery::shared_vector<char> v, orrery::shared_matrix<char> m,
                    orrery::shared_vector<std::string> held) {
  if (t.rank() != 0) return;
  const little_address_space limit(64 << 20);
  const auto refused = [](auto behaviour, const std::string& bytes) {
    const std::string text =
        orrery::testing::what_is_thrown<std::bad_alloc>([&] { with(behaviour, [](auto&) { FAIL(); }); });
    EXPECT_TRUE(orrery::testing::holds(text, "made at limits.test.cpp:"));
    EXPECT_TRUE(
        orrery::testing::holds(text, ": a cache of it needs " + bytes + " bytes of memory, which cannot be had"));
  };
  EXPECT_EQ(read_cache(v).bytes(), 1U << 30);  // which could have been asked before
  refused(read_cache(v), "1073741824");
  refused(read_cache(v.part(1 << 20, 1 << 29)), "536870912");
  refused(read_release(v), "1073741824");
  refused(read_cache(m.rows(0, 1 << 14)), "536870912");
  refused(read_cache(held), std::to_string(sizeof(std::string) << 24));
  refused(halo_cache(m, t, 1), std::to_string(((1U << 14) + 1) << 15));
  with(read_cache(v.part(5, 100)), [](auto& c) { EXPECT_EQ(c[7], 1); });  // a part can be had
  with(release(v), [](auto& w) { w[7] = 2; });  // nothing is left open
}
TEST(shared_data_limits, a_cache_that_is_too_large_says_what_it_needs) {
  if (orrery::transport::arena::machine_memory() < 4'000'000'000) GTEST_SKIP() << "refused on so small a machine";
  in_world(2, [] {
    const shared_vector<char> v(1 << 30, distribution::on(orrery::here()));
    v[7] = 1;
    const orrery::shared_matrix<char> m(1 << 15, 1 << 15);
    const shared_vector<std::string> held(1 << 24);
    orrery::spmd<&cache_too_much>(orrery::team(), v, m, held);
    EXPECT_EQ(v[7], 2);
  });
}

// The PE of the member that is asked has a domain of its own: it reads a replica.
void replicate_too_much(orrery::team_member& t, shared_vector<char> v) {
  if (t.rank() != 1) return;
  {
    const little_address_space limit(32 << 20);
    const std::string text =
        orrery::testing::what_is_thrown<std::bad_alloc>([&] { with(read_mostly(v), [](auto&) { FAIL(); }); });
    EXPECT_TRUE(orrery::testing::holds(text, ": a replica of it needs 134217728 bytes of memory, which cannot be had"));
  }
  with(read_mostly(v), [](auto& r) { EXPECT_EQ(r[7], 1); });  // it can be had now
}
TEST(shared_data_limits, a_replica_that_is_too_large_says_what_it_needs) {
  orrery::testing::in_simulation("machines=2", [] {
    const shared_vector<char> v(1 << 27, distribution::on(orrery::here()));
    v[7] = 1;
    orrery::spmd<&replicate_too_much>(orrery::team(), v);
  });
}
#endif

// Memory comes when it is touched: what is not, costs none.
void use_ten_billion() {
  constexpr std::uint64_t n = 10'000'000'000;
  for (const distribution& d : {distribution::block(), distribution::block_cyclic(1 << 20)}) {
    const shared_vector<std::uint8_t> v(n, d);
    EXPECT_EQ(v.size(), n);
    const std::uint32_t pes = orrery::world_pes();
    EXPECT_EQ(v.owner(0), 0U);
    const bool block = v.owner(n / pes - 1) == 0;
    const std::uint64_t last = block ? pes - 1 : (n - 1) / (1 << 20) % pes;
    EXPECT_EQ(v.owner(n - 1), last);
    EXPECT_EQ(v.indices().size(), n);
    EXPECT_EQ(v.local_indices().size(), v.local().size());
    v[n - 1] = 7;
    v[n - 2] += 5;
    v[std::uint64_t{1} << 32] = 3;
    with(release(v.part(n - 4, 2)), [](auto& w) { w[n - 3] = 4; });
    with(read_cache(v.part(n - 4, 4)), [](auto& c) {
      EXPECT_EQ(c.first(), n - 4);
      EXPECT_EQ(c[n - 4] * 1000 + c[n - 3] * 100 + c[n - 2] * 10 + c[n - 1], 457);
    });
    std::vector<std::uint8_t> some(3);
    copy(every(v, 1, n - 3, 3), std::span(some));
    EXPECT_EQ(some, (std::vector<std::uint8_t>{4, 5, 7}));
    EXPECT_EQ(gather(v, std::vector<std::uint64_t>{std::uint64_t{1} << 32, n - 1, 5}),
              (std::vector<std::uint8_t>{3, 7, 0}));
    try {
      v[n] = 1;
      ADD_FAILURE() << "an index that is outside";
    } catch (const std::out_of_range& e) {
      EXPECT_NE(std::string(e.what()).find("index 10000000000 is outside of its 10000000000 elements"),
                std::string::npos)
          << e.what();
    }
    destroy(v);
  }
}
TEST(shared_data_limits, ten_billion_elements_are_found_and_used) {
  if (orrery::transport::arena::machine_memory() < 12'000'000'000) GTEST_SKIP() << "refused on so small a machine";
  in_world(3, use_ten_billion);
  orrery::testing::in_simulation("machines=3,jitter=3us,seed=4", use_ten_billion);
}

TEST(shared_data_limits, a_step_of_0_and_one_that_wraps_around_are_refused) {
  in_world(1, [] {
    const shared_vector<int> v(10);
    EXPECT_THROW((void)every(v, 0, 0, 5), usage_error);
    EXPECT_THROW((void)every(v, std::uint64_t{1} << 63, 1, 3), usage_error);
    EXPECT_EQ(every(v, 0, 3, 1).size(), 1U);
  });
}

}  // namespace limits_tests
