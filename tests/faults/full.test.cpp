// SPDX-License-Identifier: Apache-2.0
// Programs that send more than their mailboxes hold, and messages that fail without anybody being told: what the user gets to see.
#include "../support/scenario.hpp"

#include <orrery/array/array.hpp>

#include <stdexcept>
#include <vector>

namespace orrery::faults {

class Pipe_reader {
 public:
  void read_byte() {  // that nobody writes
    int ends[2];
    char c = 0;
    if (::pipe(ends) == 0) (void)!::read(ends[0], &c, 1);
  }
  void compute() {
    for (volatile bool more = true; more;) continue;
  }
  ORRERY_PROCESS_MEMBERS(Pipe_reader, read_byte, compute)
};

namespace full_tests {

using namespace testing;

constexpr int many = 2000;
constexpr int crowd = 24;
constexpr int times = 20;

class Repeater {
 public:
  void work() { post(this_process<Repeater>())->tail(); }
  void tail() { ++tails_; }
  int tails() { return tails_; }
  ORRERY_PROCESS_MEMBERS(Repeater, work, tail, tails)

 private:
  int tails_ = 0;
};

class Reentrant_repeater {
 public:
  static constexpr bool orrery_reentrant = true;
  void work() { post(this_process<Reentrant_repeater>())->tail(); }
  void tail() { ++tails_; }
  int tails() { return tails_; }
  ORRERY_PROCESS_MEMBERS(Reentrant_repeater, work, tail, tails)

 private:
  int tails_ = 0;
};

template <class R>
void feed(remote<R> to, remote<orrery::function> done) {
  for (int i = 0; i < many; ++i) post(to)->work();
  send(done, 1);
}
template <class R>
void post_to_oneself() {
  const auto me = this_process<orrery::function>();
  const auto r = spawn<R>(pe(0));
  for (std::uint32_t i = 0; i < 4; ++i) spawn(pe(i % world_pes()), feed<R>, r, me);
  for (int i = 0; i < 4; ++i) (void)receive<int>();
  quiescence();
  check(r->tails() == 4 * many, fmt::format("{} of {} tails", r->tails(), 4 * many));
}

struct Crowd;
ORRERY_PROCESS(Crowd, bombard, hit, grow, tell);
struct Crowd : element<Crowd> {
  void bombard() {
    for (int t = 0; t < times; ++t)
      for (int i = 0; i < crowd; ++i) post(this_array()[i])->hit();
  }
  void hit() { ++hits; }
  void grow(int depth, std::uint32_t seed) {
    ++hits;
    for (std::uint32_t i = 1; depth > 0 && i <= 3; ++i)
      post(this_array()[static_cast<std::int32_t>((3 * seed + i) % crowd)])->grow(depth - 1, 3 * seed + i);
  }
  void tell(result_target t) { contribute(hits, sum, t); }
  template <class A>
  void serialize(A& a) {
    a & hits;
  }
  std::int64_t hits = 0;
};
void check_hits(const array<Crowd>& a, std::int64_t expected) {
  quiescence(a);
  auto [target, result] = expect_result<std::int64_t>();
  post(a)->tell(target);
  const std::int64_t hits = result.get();
  check(hits == expected, fmt::format("{} of {} messages", hits, expected));
  destroy(a);
}

void floods() {
  post_to_oneself<Repeater>();
  post_to_oneself<Reentrant_repeater>();
  const auto all = create_array<Crowd>(range<std::int32_t>{crowd});
  post(all)->bombard();
  check_hits(all, crowd * crowd * times);
  const auto tree = create_array<Crowd>(range<std::int32_t>{crowd});
  post(tree[0])->grow(8, 0);
  check_hits(tree, 9841);
}

// More than a node's memory for messages holds, both ways at once.
class Bulk {
 public:
  void bombard(remote<Bulk> other, int n) {
    for (int i = 0; i < n; ++i) post(other)->take(std::vector<char>(20'000, 'x'));
  }
  void take(const std::vector<char>& v) { bytes_ += v.size(); }
  std::size_t bytes() { return bytes_; }
  ORRERY_PROCESS_MEMBERS(Bulk, bombard, take, bytes)

 private:
  std::size_t bytes_ = 0;
};
void bulk() {
  const auto one = spawn<Bulk>(pe(0));
  const auto other = spawn<Bulk>(pe(world_pes() - 1));
  auto a = start(one)->bombard(other, 200);
  auto b = start(other)->bombard(one, 200);
  a.get();
  b.get();
  check(one->bytes() == 4'000'000 && other->bytes() == 4'000'000, "bytes are missing");
}

class Failing {
 public:
  void fail() { throw std::runtime_error("it cannot be done"); }
  void nothing() {}
  ORRERY_PROCESS_MEMBERS(Failing, fail, nothing)
};

void fail_somewhere() {
  for (std::uint32_t i = 0; i < world_pes(); ++i) post(spawn<Failing>(pe(i)))->fail();
  quiescence();
}
void fail_at_the_end() { post(spawn<Failing>(pe(0)))->fail(); }
void drop_a_failed_future() {
  const auto f = spawn<Failing>(pe(world_pes() - 1));
  (void)start(f)->fail();
  f->nothing();
}

void compute_for_ever() {
  post(spawn<Pipe_reader>(pe(1)))->compute();
  sleep_for(std::chrono::milliseconds(5));
}
void wait_for_a_pipe() { spawn<Pipe_reader>(pe(1))->read_byte(); }

const scenarios all{{"floods", floods},
                    {"bulk", bulk},
                    {"fail_somewhere", fail_somewhere},
                    {"fail_at_the_end", fail_at_the_end},
                    {"drop_a_failed_future", drop_a_failed_future},
                    {"wait_for_a_pipe", wait_for_a_pipe},
                    {"compute_for_ever", compute_for_ever}};

std::string outcome(const std::string& scenario, std::vector<std::string> options) {
  options.insert(options.begin(), "--scenario=" + scenario);
  if (!options.back().starts_with("--orrery-failed-exit")) options.emplace_back("--orrery-failed-exit=1");
  return outcome_of(std::move(options));
}

TEST(full_mailboxes, lose_nothing_between_threads_and_nodes) {
  const std::string small = "--orrery-mailbox=8K";
  EXPECT_EQ(outcome("floods", {"--orrery-pes=3", small}), "good");
  EXPECT_EQ(outcome("floods", {"--orrery-nodes=3", "--orrery-pes=1", small}), "good");
  EXPECT_EQ(outcome("floods", {"--orrery-nodes=2", "--orrery-pes=2", small, "--orrery-ring=32K"}), "good");
}

TEST(full_mailboxes, lose_nothing_in_simulated_worlds) {
  for (int seed = 1; seed <= 5; ++seed)
    EXPECT_EQ(outcome("floods", {fmt::format("--orrery-sim=machines=3,pes=2,jitter=10us,seed={}", seed),
                                 "--orrery-mailbox=8K", "--orrery-quiet"}),
              "good");
}

TEST(full_mailboxes, leave_memory_for_messages_between_nodes) {
  EXPECT_EQ(outcome("bulk", {"--orrery-nodes=2", "--orrery-pes=1", "--orrery-memory=1M", "--orrery-mailbox=64K"}),
            "good");
}

TEST(failed_posts, change_the_exit_code_of_every_kind_of_world) {
  for (const auto& options : std::vector<std::vector<std::string>>{
           {"--orrery-pes=2"}, {"--orrery-nodes=2", "--orrery-pes=1"}, {"--orrery-sim=pes=2", "--orrery-quiet"}}) {
    const std::string said = outcome("fail_somewhere", options);
    EXPECT_EQ(count_of(said, "Failing::fail failed, and nobody waits for its result: it cannot be done\n"), 2) << said;
    EXPECT_EQ(count_of(said, "so the exit code is"), 1) << said;  // other nodes leave that to the first one
    EXPECT_TRUE(
        said.ends_with("2 one-way messages failed, so the exit code is 1 (--orrery-failed-exit sets it)\n"
                       "exit status 1"))
        << said;
  }
}

TEST(failed_posts, change_the_exit_code_at_the_end_too) {
  const std::string said = outcome("fail_at_the_end", {"--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("exit status 1")) << said;
  EXPECT_EQ(count_of(said, "it cannot be done"), 1) << said;
}

TEST(failed_posts, leave_the_exit_code_alone_where_the_program_wants_that) {
  const std::string said = outcome("fail_somewhere", {"--orrery-pes=2", "--orrery-failed-exit=0"});
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_TRUE(outcome("fail_somewhere", {"--orrery-pes=2", "--orrery-failed-exit=9"}).ends_with("exit status 9"));
}

TEST(failed_posts, are_what_dropped_futures_with_exceptions_are) {
  for (const auto& options : std::vector<std::vector<std::string>>{{"--orrery-pes=1"}, {"--orrery-nodes=2"}}) {
    const std::string said = outcome("drop_a_failed_future", options);
    EXPECT_EQ(count_of(said, "Failing::fail failed, and nobody waits for its result: it cannot be done\n"), 1) << said;
    EXPECT_TRUE(said.ends_with("exit status 1")) << said;
  }
}

TEST(stuck_method, is_named_when_it_waits_without_using_the_processor) {
  program p({"--scenario=wait_for_a_pipe", "--orrery-pes=2", "--orrery-stuck=100ms"});
  p.hear(
      "orrery: PE 1: orrery::faults::Pipe_reader::read_byte has waited for 0.1 s without using the processor, and nothing else runs "
      "on this PE meanwhile. It may wait for a lock that a parked method holds, for a thread, or for a file: let methods wait by "
      "means of Orrery only (--orrery-stuck sets the time)");
  ::kill(p.pid(), SIGKILL);
  EXPECT_EQ(p.end(), "killed by signal 9");  // a line that does not come would have been waited for until an alarm
}

TEST(stuck_method, is_named_when_the_program_has_ended_and_waits_for_it) {
  program p({"--scenario=compute_for_ever", "--orrery-pes=2", "--orrery-stuck=200ms"});
  p.hear(
      "orrery: PE 1: the program ended 0.1 s ago, but orrery::faults::Pipe_reader::compute still runs there. It is waited for until "
      "it returns, or lets others run: by a call to another PE, sleep_for, yield (--orrery-stuck sets twice the time)");
  ::kill(p.pid(), SIGKILL);
  EXPECT_EQ(p.end(), "killed by signal 9");
}

const orrery::testing::scenarios_of_file of_this(all);

}  // namespace full_tests
}  // namespace orrery::faults
