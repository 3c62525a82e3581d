// SPDX-License-Identifier: Apache-2.0
// Shared data in worlds of several OS processes: nodes, which map one memory, and ranks of an mpirun, each or each two
// of which are taken for a machine of their own; see support/scenario.hpp.
#include <orrery/files/shared_data_set.hpp>
#include <orrery/orrery.hpp>
#include <orrery/shared/internal/test_consistency.hpp>
#include <orrery/shared/internal/test_model.hpp>
#include <orrery/shared/internal/test_sharing.hpp>
#include <orrery/shared/shared.hpp>
#include <orrery/storage/internal/test_support.hpp>
#include <orrery/storage/storage.hpp>

#include "../machines/launch.hpp"

namespace {

using namespace orrery;
using orrery::testing::check;
using orrery::testing::check_contains;
using orrery::testing::thrown;

void model_to(std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    for (const std::string& wrong : orrery::testing::compare_with_model(seed)) check(false, wrong);
}

void model() { model_to(12); }
/// Each access by default is a message there and back, through an MPI library that looks for it now and then.
void short_model() { model_to(3); }

std::uintptr_t where_it_lies(shared_vector<long> v) {
  v.local()[0] = 5 + this_pe();
  return reinterpret_cast<std::uintptr_t>(v.local().data()) == 0 ? 0 : 1;
}

// Nodes of one machine read and write each other's elements while the owner listens to nobody.
void memory() {
  const shared_vector<long> v(world_pes());
  const std::uint32_t last = world_pes() - 1;
  (void)call<&where_it_lies>(pe(last), v);
  check(v[last] == 5 + static_cast<long>(last), "an element of the last PE is not seen");
  const auto sent = stats(this_pe()).sent;
  for (int i = 0; i < 1000; ++i) v[last] += 1;
  check(v[last] == 1005 + static_cast<long>(last), "an element of the last PE was not changed");
  check(stats(this_pe()).sent - sent < 100, "accesses on one machine took messages");
}

// An element that is not the member's own, in a scope of what is.
void touch_the_last(team_member& t, shared_vector<long> v) {
  if (t.rank() == 0) with(owner_computes(v, t), [](auto& mine) { mine[mine.size() - 1] = 1; });
  t.barrier();
}
void not_mine() {
  const shared_vector<long> v(2 * world_pes());
  spmd<&touch_the_last>(team(), v);
}

// Scalars are changed by all nodes at once, and nothing is lost.
void change_scalars(team_member& t, shared<long> sum, shared<unsigned> bits, shared<int> lock, shared<int> plain) {
  for (int i = 0; i < 1000; ++i) ++sum;
  bits |= 1U << t.rank();
  for (int i = 0; i < 100; ++i) {
    for (int expected = 0; !lock.compare_exchange(expected, 1); expected = 0) yield();
    plain = plain + 1;
    lock = 0;
  }
}
void scalars() {
  const std::uint32_t last = world_pes() - 1;
  const shared<long> sum(0, pe(last));
  const shared<unsigned> bits(0);
  const shared<int> lock(0, pe(last));
  const shared<int> plain(0);
  spmd<&change_scalars>(team(), sum, bits, lock, plain);
  check(sum == 1000 * static_cast<long>(world_pes()), "an addition was lost");
  check(bits == (1U << world_pes()) - 1, "a bit was lost");
  check(plain == 100 * static_cast<int>(world_pes()), "a lock of compare_exchange did not hold");
}

// Elements that no machine changes at once: all nodes do, side by side, and nothing is lost or torn.
struct triple {
  long a = 0, b = 0, c = 0;
  bool operator==(const triple&) const = default;
  template <class A>
  void serialize(A& x) {
    x & a & b & c;
  }
};
const int changes = orrery::testing::slowed_down ? 300 : 3000;  // of each member
triple next_of(const triple& t, const triple& by) { return {t.a + by.a, t.b + 2 * by.b, t.c + 3 * by.c}; }
void change_triples(team_member& t, shared_vector<triple> v) {
  t.barrier();
  for (int i = 0; i < changes; ++i) {
    (void)v[0].accumulate(triple{1, 1, 1}, next_of);
    triple seen = v[1];
    check(seen.b == 2 * seen.a && seen.c == 3 * seen.a, "an element is torn");
    while (!v[1].compare_exchange(seen, next_of(seen, {1, 1, 1}))) {
    }
  }
}
void triples() {
  const shared_vector<triple> v(2, distribution::block().over({world_pes() - 1}));
  spmd<&change_triples>(team(), v);
  const long n = changes * static_cast<long>(world_pes());
  for (int i = 0; i < 2; ++i) check(v[i] == triple{n, 2 * n, 3 * n}, "a change of a large element was lost");
}

// Elements stay readable when their owner is lost; scopes say so; the object can be destroyed, and
// others made.
void loss() {
  const std::uint32_t lost = world_nodes() - 1;
  const shared_vector<long> v(4 * world_pes());
  const std::uint64_t last = v.size() - 1;
  v[last] = 7;
  const shared_vector<long> there(3, distribution::on(node(lost)));
  post_call<&orrery::testing::kill_own_node>(node(lost));
  orrery::testing::await_loss_of(lost);
  check(v[last] == 7, "memory of this machine went with its owner");
  check_contains(thrown<node_lost>("a read cache", [&] { with(read_cache(v), [](auto&) {}); }), "owns a part of it");
  (void)thrown<node_lost>("a release scope", [&] { with(release(v), [&](auto& V) { V[last] = 8; }); });
  (void)thrown<node_lost>("a write", [&] { v[last] = 8; });
  (void)thrown<node_lost>("a change", [&] { v[last] += 8; });
  check(v[last] == 7, "what was refused was written");
  v[0] = 9;
  with(release(v), [](auto& V) { V[1] = 10; });
  with(read_cache(v.part(0, 2)), [](auto& V) { check(V[0] + V[1] == 19, "what is there cannot be used"); });
  destroy(v);
  check_contains(thrown<usage_error>("a destroyed vector", [&] { v[0] = 1; }), "destroyed");
  destroy(there);
  const shared_vector<long> next(4, distribution::block().over({0}));
  next[3] = 1;
  check(next[3] == 1, "a new vector does not work");
}

void view_and_end(shared_vector<int> v) {
  with(read_view(v), [](auto&) { orrery::testing::kill_own_node(); });
}
void write_and_end(shared_vector<int> v) {
  with(release(v), [](auto&) { orrery::testing::kill_own_node(); });
}
// A node that is killed inside of a scope keeps nobody out of the other kind.
void inside() {
  const std::uint32_t lost = world_nodes() - 1;
  const shared_vector<int> viewed(4, distribution::on(pe(0)));
  post_call<&view_and_end>(node(lost), viewed);
  orrery::testing::await_loss_of(lost);
  with(release(viewed), [](auto& w) { w[3] = 2; });
  with(read_view(viewed), [](auto& r) { check(r[3] == 2, "a write is not seen"); });
  if (lost < 2) return;
  const shared_vector<int> written(4, distribution::on(pe(0)));
  post_call<&write_and_end>(node(lost - 1), written);
  orrery::testing::await_loss_of(lost - 1);
  with(read_view(written), [](auto&) {});
}

// The checker between OS processes: --orrery-check-sharing reaches all nodes.
void planted() {
  const std::vector<std::string> missed = orrery::testing::planted_mistakes_missed();
  for (const std::string& wrong : missed) check(false, wrong);
  if (missed.empty()) fmt::print(stderr, "all mistakes were found\n");
}
void ordered() {
  for (const std::string& alarm : orrery::testing::false_alarms()) check(false, alarm);
}

// Bulk transfer of teams: what members cache at once, exchange, gather and copy.
std::uint64_t transfer_as_member(team_member& t, shared_vector<long> v, shared_vector<long> w) {
  std::uint64_t wrong = 0;
  with(owner_computes(v, t), [](auto& mine) {
    for (const auto i : mine.indices()) mine[i] = static_cast<long>(i);
  });
  with(read_cache(v, t), [&](auto& all) {
    for (std::uint64_t i = 0; i < v.size(); ++i) wrong += all[i] == static_cast<long>(i) ? 0 : 1;
  });
  std::vector<std::vector<long>> mine;
  for (std::size_t to = 0; to < t.size(); ++to) mine.emplace_back(1000 * to, static_cast<long>(t.rank()));
  const auto got = t.all_to_all(mine);
  for (std::size_t from = 0; from < t.size(); ++from)
    wrong += got[from] == std::vector<long>(1000 * t.rank(), static_cast<long>(from)) ? 0 : 1;
  if (t.rank() == 0) start_copy(v.part(0, 5000), w.part(500, 5000)).wait();
  t.barrier();
  const std::vector<std::uint64_t> indices{500, 5499, 700};
  wrong += gather(w, indices) == std::vector<long>{0, 4999, 200} ? 0 : 1;
  return wrong;
}
void bulk() {
  const shared_vector<long> v(20'000, distribution::block_cyclic(7));
  const shared_vector<long> w(6'000);
  for (const std::uint64_t wrong : spmd<&transfer_as_member>(team(), v, w)) check(wrong == 0, "wrong elements");
}

std::string cache_with_lost(team_member& t, shared_vector<long> v) {
  if (t.rank() + 1 == t.size()) orrery::testing::kill_own_node();
  try {
    with(read_cache(v, t), [](auto&) {});
  } catch (const node_lost&) {
    return "lost";
  } catch (const process_gone&) {
    return "gone";
  }
  return "nothing";
}
// A cache of a team one of whose nodes is killed ends for the others.
void bulk_loss() {
  const shared_vector<long> v(20'000);
  (void)thrown<node_lost>("a team with a lost node", [&] { (void)spmd<&cache_with_lost>(team(), v); });
}

void consistency() {
  for (const std::string& wrong : orrery::testing::impossible_outcomes(100)) check(false, wrong);
}

/// Members of nodes that stay.
std::uint32_t staying() { return world_pes() - world_pes() / world_nodes(); }
void meet_with_lost(team_member& t, shared_vector<int> state) {
  if (t.rank() + 1 == t.size()) {
    for (std::uint32_t i = 0; i < staying(); ++i)
      while (state[i] != 1) yield();
    orrery::testing::kill_own_node();
  }
  state[t.rank()] = 1;
  try {
    t.barrier();
    state[t.rank()] = 2;
  } catch (const node_lost&) {
    state[t.rank()] = 3;
    throw;
  }
}
// The barrier of a team one of whose nodes is killed ends for all others, and says so.
void barrier_loss() {
  const shared_vector<int> state(world_pes(), distribution::on(pe(0)));
  const std::uint32_t others = staying();
  (void)thrown<node_lost>("a barrier with a lost node", [&] { spmd<&meet_with_lost>(team(), state); });
  for (std::uint32_t i = 0; i < others; ++i)
    check(state[i] == 3, fmt::format("the barrier of member {} ended as {}", i, state[i].get()));
}

void read_far() {
  const shared_vector<long> v(10, distribution::on(node(world_nodes() - 1)));
  long sum = 0;
  for (std::uint64_t i = 0; i < 10; ++i) sum += v[i];
  check(sum == 0, "not zero");
}

// A matrix goes to a data set and back while each node has devices of its own for the file.
void files() {
  const storage::testing::scratch folder;
  const shared_matrix<double> m(70, 30, distribution::cyclic());
  const auto all = storage::testing::elements<double>(70 * 30);
  copy(std::span<const double>(all), m.rows(0, 70));
  auto set = spawn<storage::data_set>(
      here(), folder / "x",
      storage::data_set_description{
          .shape = {1, 70, 30}, .page_shape = {1, 8, 8}, .type = storage::element_type::float64},
      storage::data_set_options{.on_each_node = true});
  check(store(m, set->contents(), {.memory = 20'000}).memory <= 20'000, "more memory than it may have");
  const shared_matrix<double> n(70, 30, distribution::columns());
  load(set->contents(), n);
  std::vector<double> back(all.size());
  copy(n.rows(0, 70), std::span(back));
  check(back == all, "other elements than were stored");
  destroy(set);
}

struct shape {
  int nodes;
  int pes;
};
class shared_across_nodes : public ::testing::TestWithParam<shape> {
 protected:
  static std::string outcome_of(std::string_view scenario, std::vector<std::string> options = {}) {
    options.push_back(fmt::format("--scenario={}", scenario));
    options.push_back(fmt::format("--orrery-nodes={}", GetParam().nodes));
    options.push_back(fmt::format("--orrery-pes={}", GetParam().pes));
    return orrery::testing::outcome_of(std::move(options));
  }
  static std::string wrong_in(std::string_view scenario, std::vector<std::string> options = {}) {
    const std::string said = outcome_of(scenario, std::move(options));
    return said.ends_with("good") ? "" : said;
  }
};
INSTANTIATE_TEST_SUITE_P(of, shared_across_nodes, ::testing::Values(shape{3, 1}, shape{2, 2}),
                         [](const auto& i) { return fmt::format("{}_nodes_of_{}_pes", i.param.nodes, i.param.pes); });

TEST_P(shared_across_nodes, members_read_and_write_as_a_plain_vector) { EXPECT_EQ(wrong_in("model"), ""); }
TEST_P(shared_across_nodes, elements_of_the_same_machine_are_memory) { EXPECT_EQ(wrong_in("memory"), ""); }
TEST_P(shared_across_nodes, scalars_are_changed_by_all_at_once) { EXPECT_EQ(wrong_in("scalars"), ""); }
TEST_P(shared_across_nodes, large_elements_are_changed_by_all_at_once) { EXPECT_EQ(wrong_in("triples"), ""); }
TEST_P(shared_across_nodes, scopes_of_a_killed_node_keep_nobody_out) { EXPECT_EQ(wrong_in("inside"), ""); }
TEST_P(shared_across_nodes, what_a_lost_node_owned_stays_readable) { EXPECT_EQ(wrong_in("loss"), ""); }

#if !defined(NDEBUG)
TEST_P(shared_across_nodes, asserts_see_who_touches_what_is_not_its_own) {
  const std::string said = outcome_of("not_mine");
  EXPECT_NE(said.find("is_mine"), std::string::npos) << said;
}
#endif

TEST_P(shared_across_nodes, members_transfer_in_bulk) {
  EXPECT_EQ(wrong_in("bulk"), "");
  EXPECT_EQ(wrong_in("bulk", {"--orrery-check-sharing"}), "");
}
TEST_P(shared_across_nodes, matrices_go_to_files_and_back) {
  EXPECT_EQ(wrong_in("files"), "");
  EXPECT_EQ(wrong_in("files", {"--orrery-check-sharing"}), "");
}
TEST_P(shared_across_nodes, a_cache_of_a_team_ends_with_a_lost_node) { EXPECT_EQ(wrong_in("bulk_loss"), ""); }

TEST_P(shared_across_nodes, a_barrier_of_a_team_ends_with_a_lost_node) { EXPECT_EQ(wrong_in("barrier_loss"), ""); }
TEST_P(shared_across_nodes, accesses_are_seen_in_one_order) { EXPECT_EQ(wrong_in("consistency"), ""); }

TEST_P(shared_across_nodes, advice_is_given_at_the_end) {
  const std::string said = outcome_of("read_far", {"--orrery-advise", "--orrery-advise-net=200g"});
  EXPECT_NE(said.find("10 remote reads: read_cache(v) takes"), std::string::npos) << said;
  EXPECT_EQ(outcome_of("read_far").find("advice"), std::string::npos);
}

#if !defined(ORRERY_TSAN)  // which finds the mistakes itself
TEST_P(shared_across_nodes, planted_mistakes_of_sharing_are_found) {
  const std::string said = outcome_of("planted", {"--orrery-check-sharing"});
  EXPECT_NE(said.find("all mistakes were found"), std::string::npos) << said;
  EXPECT_FALSE(said.ends_with("good")) << "the exit code does not tell of mistakes";
}
#endif
TEST_P(shared_across_nodes, ordered_accesses_raise_no_alarm) {
  EXPECT_EQ(wrong_in("ordered", {"--orrery-check-sharing"}), "");
}

// --- over machines -------------------------------------------------------------------------------

using orrery::testing::ranks;

// What tests/machines/suites.test.cpp does not run: elements of others are messages.
class shared_across_machines : public orrery::testing::under_mpi {
 protected:
  static std::string wrong_among(ranks r, std::string_view scenario, std::vector<std::string> options = {}) {
    return orrery::testing::wrong_in(outcome(scenario, r, std::move(options)));
  }
};
INSTANTIATE_TEST_SUITE_P(of, shared_across_machines, ::testing::Values("openmpi", "mpich"),
                         [](const auto& i) { return i.param; });
class shared_across_open_mpi : public shared_across_machines {};
INSTANTIATE_TEST_SUITE_P(of, shared_across_open_mpi, ::testing::Values("openmpi"),
                         [](const auto& i) { return i.param; });

TEST_P(shared_across_machines, members_read_and_write_as_a_plain_vector) {
  EXPECT_EQ(wrong_among({3, 1, 1}, "short model"), "");
}
TEST_P(shared_across_open_mpi, machines_of_two_nodes_share_memory_inside) {
  EXPECT_EQ(wrong_among({4, 1, 2}, "short model"), "");
}
TEST_P(shared_across_open_mpi, matrices_go_to_files_and_back) { EXPECT_EQ(wrong_among({2, 1, 1}, "files"), ""); }
TEST_P(shared_across_open_mpi, mistakes_of_sharing_are_found) {
  const std::string said = outcome("planted", {2, 1, 1}, {"--orrery-check-sharing"});
  EXPECT_NE(said.find("all mistakes were found"), std::string::npos) << said;
}

}  // namespace

int main(int argc, char** argv) {
  orrery::testing::prepare_for_launchers();
  return orrery::testing::run_tests_or_scenario(argc, argv,
                                                {{"model", model},
                                                 {"short model", short_model},
                                                 {"memory", memory},
                                                 {"not_mine", not_mine},
                                                 {"scalars", scalars},
                                                 {"triples", triples},
                                                 {"loss", loss},
                                                 {"inside", inside},
                                                 {"planted", planted},
                                                 {"ordered", ordered},
                                                 {"bulk", bulk},
                                                 {"files", files},
                                                 {"bulk_loss", bulk_loss},
                                                 {"barrier_loss", barrier_loss},
                                                 {"consistency", consistency},
                                                 {"read_far", read_far}});
}
