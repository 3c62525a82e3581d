// SPDX-License-Identifier: Apache-2.0
// Scopes: where a view lies, what is left of one that ends early, and which places an error names.
#include <orrery/shared/shared.hpp>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_each_world.hpp>
#include <orrery/process/internal/test_world.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace scopes_tests {

using testing::what_is_thrown;

// Each test runs where elements of other PEs are memory, and where they are messages.
class shared_scopes : public testing::on_threads_and_machines<3> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(shared_scopes);

// --- views ---------------------------------------------------------------------------------------

template <class T>
std::uintptr_t address_of(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}

/// The addresses of the caller's elements, as their owner has them and in a view, which is of all
/// if that is to be memory, and else of the caller's elements.
std::vector<std::uintptr_t> vector_addresses(team_member& t, shared_vector<int> v, bool all) {
  std::vector<std::uintptr_t> own;
  std::vector<std::uint64_t> mine;
  with(owner_computes(v, t), [&](auto& a) {
    for (const std::uint64_t i : a.indices()) {
      mine.push_back(i);
      own.push_back(address_of(&a[i]));
    }
  });
  t.barrier();  // nobody is owner any more, who might write what others view
  with(read_view(all || mine.empty() ? v.part(0, v.size()) : v.part(mine.front(), mine.size())), [&](auto& seen) {
    for (const std::uint64_t i : mine) own.push_back(address_of(&seen[i]));
  });
  t.barrier();
  return own;
}
std::vector<std::uintptr_t> matrix_addresses(team_member& t, shared_matrix<int> m, bool all) {
  std::vector<std::uintptr_t> own;
  index_range rows;
  index_range columns;
  with(owner_computes(m, t), [&](auto& a) {
    rows = a.rows();
    columns = a.columns();
    for (const std::uint64_t i : rows)
      for (const std::uint64_t j : columns) own.push_back(address_of(&a[i, j]));
  });
  t.barrier();
  with(read_view(all || own.empty() ? m.rows(0, m.row_count())
                                    : m.part(rows.front(), rows.size(), columns.front(), columns.size())),
       [&](auto& seen) {
         for (const std::uint64_t i : rows)
           for (const std::uint64_t j : columns) own.push_back(address_of(&seen[i, j]));
       });
  t.barrier();
  return own;
}
void expect_the_same(const std::vector<std::vector<std::uintptr_t>>& of_members, std::size_t elements) {
  std::size_t n = 0;
  for (const auto& own_and_seen : of_members) {
    const std::size_t mine = own_and_seen.size() / 2;
    n += mine;
    for (std::size_t i = 0; i < mine; ++i) EXPECT_EQ(own_and_seen[i], own_and_seen[mine + i]);
  }
  EXPECT_EQ(n, elements);
}
TEST_P(shared_scopes, a_view_is_the_memory_of_the_owner) {
  const bool all = !GetParam();  // of a machine
  in_each([all] {
    for (const distribution& d : {distribution::block(), distribution::bounds({2, 2, 11}), distribution::on(pe(1))}) {
      const shared_vector<int> v(11, d);
      expect_the_same(spmd<&vector_addresses>(team(everywhere(), 3), v, all), v.size());
      const shared_matrix<int> m(11, 5, d);
      expect_the_same(spmd<&matrix_addresses>(team(everywhere(), 3), m, all), m.size());
      destroy(v);
      destroy(m);
    }
    // Elements that do not lie in the order of the indices: part by part.
    for (const distribution& d : {distribution::columns(), distribution::tiles(1, 3), distribution::tiles(3, 1),
                                  distribution::block().with_halo(1)}) {
      const shared_matrix<int> m(11, 5, d);
      expect_the_same(spmd<&matrix_addresses>(team(everywhere(), 3), m, false), m.size());
      destroy(m);
    }
  });
}

// --- blocks --------------------------------------------------------------------------------------

std::uint64_t count_in_block(team_member& t, shared_vector<std::uint64_t> v, shared_matrix<std::uint64_t> m) {
  {
    ORRERY_BEHAVIOUR(v, owner_computes, t);
    ORRERY_BEHAVIOUR(m, owner_computes, t);
    for (const std::uint64_t i : v.indices()) v[i] += 10 + t.rank();
    for (const std::uint64_t i : m.rows())
      for (const std::uint64_t j : m.columns()) m[i, j] += 1;
    if (t.rank() % 2 == 0) return v.span().size() + m.span().size();
  }
  // the names are the objects again
  return with(owner_computes(v, t), [](auto& own) { return own.span().size(); }) +
         with(owner_computes(m, t), [](auto& own) { return own.span().size(); });
}
TEST_P(shared_scopes, a_block_of_a_team_gives_each_member_its_own) {
  in_each([] {
    const shared_vector<std::uint64_t> v(30);
    const shared_matrix<std::uint64_t> m(12, 4, distribution::cyclic());
    std::uint64_t sum = 0;
    for (const std::uint64_t mine : spmd<&count_in_block>(team(in_blocks(), 6), v, m)) {
      EXPECT_EQ(mine, 30U / 6 + 12U * 4 / 6);
      sum += mine;
    }
    EXPECT_EQ(sum, v.size() + m.size());
    for (std::uint64_t i = 0; i < v.size(); ++i) EXPECT_EQ(v[i], 10 + i / 5);
    for (std::uint64_t i = 0; i < 12; ++i)
      for (std::uint64_t j = 0; j < 4; ++j) EXPECT_EQ((m[i, j]), 1U);
    with(read_view(v), read_view(m), [](auto&, auto&) {});  // nothing is left open
  });
}

// --- scopes that end early -----------------------------------------------------------------------

class stuck_in_scope {
 public:
  void own(shared_vector<int> v) {
    with(owner_computes(v), [](auto& mine) {
      mine[4] = 7;
      wait_until([] { return false; });
    });
  }
  void update(shared_vector<int> v) {
    with(read_release(v), [](auto& u) {
      u[4] = 7;
      wait_until([] { return false; });
    });
  }
  void read_mostly_and_write(shared_vector<int> v) {
    with(read_mostly(v), [](auto& m) {
      m[4] = 7;
      wait_until([] { return false; });
    });
  }
};
ORRERY_PROCESS(stuck_in_scope, own, update, read_mostly_and_write);

bool can_be_viewed(const shared_vector<int>& v) {
  try {
    with(read_view(v), [](auto&) {});
  } catch (const usage_error&) {
    return false;
  }
  return true;
}
/// Destroys a process in the scope that `begin` opens; then nobody is kept out any more, and what
/// was written is there.
template <class Begin>
void expect_nothing_is_left(Begin begin) {
  const shared_vector<int> v(9, distribution::on(here()));
  const auto holder = spawn<stuck_in_scope>(here());
  auto held = begin(holder, v);
  while (can_be_viewed(v)) yield();
  destroy(holder);
  EXPECT_THROW(held.get(), process_gone);
  EXPECT_TRUE(can_be_viewed(v));
  EXPECT_EQ(v[4], 7);
  with(owner_computes(v), [](auto& own) { own[5] = 8; });
  with(read_mostly(v), [](auto& m) {
    m[6] = 9;
    EXPECT_EQ(m[5], 8);
  });
  with(read_view(v), [](auto& all) { EXPECT_EQ(all[6], 9); });
  destroy(v);
}
TEST_P(shared_scopes, a_process_that_is_destroyed_in_a_writing_scope_leaves_nothing_behind) {
  in_each([] {
    expect_nothing_is_left([](const auto& p, const auto& v) { return start(p)->own(v); });
    expect_nothing_is_left([](const auto& p, const auto& v) { return start(p)->update(v); });
    expect_nothing_is_left([](const auto& p, const auto& v) { return start(p)->read_mostly_and_write(v); });
  });
}
TEST_P(shared_scopes, writers_do_not_wait_for_a_replica_of_a_destroyed_process) {
  in_each([] {
    const shared_vector<int> v(9, distribution::on(pe(0)));
    const auto reader = spawn<stuck_in_scope>(pe(2));
    auto held = start(reader)->read_mostly_and_write(v);
    while (v[4] != 7) yield();
    destroy(reader);
    EXPECT_THROW(held.get(), process_gone);
    with(read_mostly(v), [](auto& m) {
      m[4] = 8;
      EXPECT_EQ(m[4].fetch_add(1), 8);
    });
    EXPECT_EQ(v[4], 9);
    EXPECT_TRUE(can_be_viewed(v));
    destroy(v);
  });
}

// --- places --------------------------------------------------------------------------------------

std::string place_of(std::uint32_t line) { return fmt::format("scopes.test.cpp:{}", line); }
std::uint32_t line_here(const std::source_location& where = std::source_location::current()) { return where.line(); }

/// The error of a write that opens at the line before while a view is open, with both places.
void expect_both_places(const std::string& text, std::uint32_t write, std::uint32_t view) {
  const std::string both =
      fmt::format("a scope at {} may write it while a view at {} is open", place_of(write), place_of(view));
  EXPECT_NE(text.find(both), std::string::npos) << "'" << text << "' does not say '" << both << "'";
}

TEST_P(shared_scopes, a_write_of_what_is_viewed_names_both_places) {
  in_each([] {
    const shared_vector<int> v(6, distribution::on(here()));
    // clang-format off: each scope opens in the line that is compared
    const std::uint32_t view = line_here() + 1;
    with(read_view(v), [&](auto&) {
      const auto refused = [&](auto scope) { return what_is_thrown<usage_error>([&] { with(scope, [](auto&) {}); }); };
      expect_both_places(refused(release(v)), line_here(), view);
      expect_both_places(refused(owner_computes(v)), line_here(), view);
      expect_both_places(refused(read_release(v)), line_here(), view);
      expect_both_places(refused(read_mostly(v)), line_here(), view);
      expect_both_places(refused(release(v.part(2, 3))), line_here(), view);
      expect_both_places(refused(read_release(v.part(2, 3))), line_here(), view);
    });
    const std::uint32_t part = line_here() + 1;
    with(read_view(v.part(1, 2)), [&](auto&) {
      const auto refused = [&](auto scope) { return what_is_thrown<usage_error>([&] { with(scope, [](auto&) {}); }); };
      expect_both_places(refused(release(v)), line_here(), part);
      expect_both_places(refused(release(v.part(2, 3))), line_here(), part);
    });
    // clang-format on
  });
}

int releases_refused(shared_vector<int> v, int times) {
  int refused = 0;
  for (int i = 0; i < times; ++i) try {
      with(release(v), [](auto&) {});
    } catch (const usage_error&) {
      ++refused;
    }
  return refused;
}
TEST_P(shared_scopes, one_that_is_refused_is_seen_by_no_other) {
  in_each([] {
    const shared_vector<int> v(6, distribution::on(here()));
    with(read_view(v), [&](auto&) {
      auto refused = start_call<&releases_refused>(pe(world_pes() - 1), v, 2000);
      for (int i = 0; i < 2000; ++i) EXPECT_NO_THROW(with(read_view(v), [](auto&) {}));
      (void)refused.get();  // all, where memory is shared
    });
  });
}

TEST_P(shared_scopes, what_a_view_refuses_is_not_done_later) {
  in_each([] {
    const shared_vector<long> v(100, distribution::cyclic());
    const shared_vector<long> ones(100, distribution::block(), 1);
    const shared_vector<long> spaced(300, distribution::cyclic(), 1);
    const auto refused = [&](auto write) {
      with(read_view(v.part(0, 1)), [&](auto&) { EXPECT_THROW(write(), usage_error); });
      with(release(v), [](auto& all) {
        for (std::uint64_t i = 0; i < 100; ++i) all[i] = 7;
      });
    };
    const auto is_as_written = [&] {
      quiescence();
      std::vector<long> now(100);
      copy(v, std::span(now));
      EXPECT_EQ(std::ranges::count(now, 7), 100);
    };
    if (world_nodes() > 1) return;  // on other machines a view is a copy
    refused([&] { v.fill(1); });
    is_as_written();
    refused([&] { copy(ones, v); });
    is_as_written();
    refused([&] { copy(every(spaced, 3, 0, 100), every(v, 1, 0, 100)); });
    is_as_written();
    refused([&] { start_copy(ones, v).wait(); });
    is_as_written();
  });
}

TEST_P(shared_scopes, a_view_of_what_is_written_names_both_places) {
  in_each([] {
    const shared_vector<int> v(6, distribution::on(here()));
    const auto refused_view = [&](std::uint32_t write) {
      const std::uint32_t view = line_here() + 1;
      const std::string text = what_is_thrown<usage_error>([&] { with(read_view(v), [](auto&) {}); });
      const std::string both =
          fmt::format("a view at {} while a scope at {} may write it", place_of(view), place_of(write));
      EXPECT_NE(text.find(both), std::string::npos) << "'" << text << "' does not say '" << both << "'";
    };
    with(release(v), [&, write = line_here()](auto&) { refused_view(write); });
    with(owner_computes(v), [&, write = line_here()](auto&) { refused_view(write); });
    with(read_release(v.part(2, 3)), [&, write = line_here()](auto&) { refused_view(write); });
    with(read_mostly(v), [&, write = line_here()](auto&) { refused_view(write); });
  });
}

}  // namespace scopes_tests
}  // namespace orrery
