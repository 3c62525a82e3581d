// SPDX-License-Identifier: Apache-2.0
// What a node may send that it should not, and programs that do not fit: damaged records, exceptions of all kinds, payloads that
// no memory can hold, other builds, answers nobody waits for.
#include "../support/scenario.hpp"

#include <orrery/process/detail/typed_handler.hpp>
#include <orrery/process/receive_any.hpp>
#include <orrery/process/submit.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/shm/world.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <typeinfo>

namespace orrery::faults {
namespace {

using namespace testing;

// --- exceptions --------------------------------------------------------------------------------------------------------

struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct known_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
ORRERY_EXCEPTION(known_error);
struct not_an_exception {
  int n = 0;
};

struct thrower {
  explicit thrower(bool fails) {
    if (fails) throw std::domain_error("in the constructor");
  }
  int value() { return 7; }
  int fail(int how) {
    switch (how) {
      case 0:
        throw std::out_of_range("out of range");
      case 1:
        throw std::bad_alloc();
      case 2:
        throw std::system_error(ENOENT, std::generic_category(), "a file");
      case 3:
        throw own_error("my own");
      case 4:
        throw 42;
      case 5:
        throw not_an_exception{};
      case 6:
        throw usage_error(errc::bad_argument, "an argument");
      case 7:
        throw std::string("a string");
      case 8:
        throw known_error("known here");
      default:
        return how;
    }
  }
  void fail_at_length(std::size_t n) { throw std::length_error(std::string(n, 'w')); }
  std::vector<double> large(std::size_t n) { return std::vector<double>(n, 1.0); }
  double sum(std::span<const double> v) { return v.empty() ? 0 : v.back(); }
  int slow() {
    sleep_for(std::chrono::milliseconds(20));
    return ++done;
  }
  int finished() { return done; }
  int done = 0;
};
ORRERY_PROCESS(thrower, fail_at_length, value, fail, large, sum, slow, finished);

void exceptions() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto t = spawn<thrower>(pe(p), false);
    for (const bool by_future : {false, true}) {
      const auto fail = [&](int how) {
        return [&t, by_future, how] {
          if (by_future) {
            (void)start(t)->fail(how).get();
          } else {
            (void)t->fail(how);
          }
        };
      };
      check(thrown<std::out_of_range>("out_of_range", fail(0)) == "out of range", "what");
      (void)thrown<std::bad_alloc>("bad_alloc", fail(1));
      check_contains(thrown<std::system_error>("system_error", fail(2)), "a file");
      check_contains(thrown<usage_error>("usage_error", fail(6)), "an argument");
      check_contains(thrown<remote_error>("a class of the program", fail(3)), "my own");
      check_contains(thrown<remote_error>("a class of the program", fail(3)), "own_error");
      check_contains(thrown<remote_error>("an int", fail(4)), "int");
      check_contains(thrown<remote_error>("an int", fail(4)), "thrower::fail");
      check_contains(thrown<remote_error>("a struct", fail(5)), "not_an_exception");
      check_contains(thrown<remote_error>("a string", fail(7)), "string");
      check(thrown<known_error>("a class with a line", fail(8)) == "known here", "what");
    }
    // One way: a line on stderr, and all goes on.
    for (int how = 0; how < 9; ++how) post(t)->fail(how);
    check(t->value() == 7, "after failed posts");
    check_contains(thrown<std::domain_error>("spawn", [&] { (void)spawn<thrower>(pe(p), true); }), "constructor");
    destroy(t);
    (void)thrown<process_gone>("a call", [&] { (void)t->value(); });
    (void)thrown<process_gone>("a future", [&] { (void)start(t)->value().get(); });
    (void)thrown<process_gone>("a destroy", [&] { destroy(t); });
  }
}

// --- answers nobody waits for ------------------------------------------------------------------------------------------

// What is too long is cut, and alike wherever the process is.
void texts_of_any_length() {
  const auto here_too = spawn<thrower>(here(), false);
  const auto s = spawn<thrower>(pe(world_pes() - 1), false);
  for (const std::size_t n : {0UL, 1000UL, 30'000UL, 200'000UL, 10'000'000UL}) {
    const std::string what = thrown<std::length_error>("a long text", [&] { s->fail_at_length(n); });
    const auto letters = static_cast<std::size_t>(std::ranges::count(what, 'w'));
    check(letters >= std::min(n, std::size_t{20'000}), fmt::format("{} of {} letters came", letters, n));
    check(letters == n || what.ends_with(" more bytes)"), "what was cut is not said");
    const std::string same = thrown<std::length_error>("a long text", [&] { here_too->fail_at_length(n); });
    const std::string later =
        thrown<std::length_error>("a long text", [&] { start(here_too)->fail_at_length(n).get(); });
    check(same == what && later == what, fmt::format("{} letters arrive as another text here", n));
  }
  check(s->value() == 7, "a call after all that");
}

void unwanted_answers() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto t = spawn<thrower>(pe(p), false);
    for (int i = 0; i < 3; ++i) {
      (void)start(t)->slow();  // dropped at once
      (void)start(t)->large(100'000);
      (void)start(t)->fail(i);
      auto late = start(t)->slow();
      check(!late.wait_for(std::chrono::nanoseconds(1)), "too early");
    }
    check(t->finished() == 6, "a call whose future was dropped was not executed");
    check(t->value() == 7, "value");
  }
  quiescence();
}

// --- too large for any memory ------------------------------------------------------------------------------------------

// The world has 8 MiB for each node.
void payloads_above_the_limit() {
  const auto t = spawn<thrower>(pe(world_pes() - 1), false);
  const std::vector<double> big(4 << 20, 1.0);  // 32 MiB
  const std::vector<double> fits(1 << 18, 2.0);
  for (int i = 0; i < 3; ++i) {
    check_contains(thrown<world_error>("an argument", [&] { (void)t->sum(big); }), "memory");
    (void)thrown<world_error>("a future", [&] { (void)start(t)->sum(big).get(); });
    (void)thrown<world_error>("a post", [&] { post(t)->sum(big); });
    (void)thrown<world_error>("a result", [&] { (void)t->large(big.size()); });
    check(t->sum(fits) == 2.0 && t->large(fits.size()).size() == fits.size(), "what fits");
  }
  // Many that fit one by one have to wait for each other.
  std::vector<future<double>> many;
  for (int i = 0; i < 40; ++i) many.push_back(start(t)->sum(fits));
  for (auto& f : many) check(f.get() == 2.0, "one of many");
}

// Large payloads that a function receives in each way.
struct parcel {
  std::vector<char> content;
  template <class A>
  void serialize(A& a) {
    a & content;
    if constexpr (A::is_loading::value)
      if (content.front() == '!') throw std::domain_error("it does not like it");
  }
};
bool is_large(const parcel& p) { return p.content.size() > 1; }
void receive_parcels(remote<function> to, int times) {
  for (int i = 0; i < times; ++i) {
    switch (i % 4) {
      case 0:
        (void)receive<parcel>();
        break;
      case 1:
        (void)receive<parcel>(1);
        break;
      case 2:
        receive(on<parcel>(is_large, [](const parcel&) {}));
        break;
      default:
        (void)thrown<std::exception>("what cannot be read", [] { (void)receive<parcel>(); });
    }
    send(to, i);
  }
}
void received_payloads_are_given_back() {
  constexpr int times = 1000;  // eight times the memory for messages
  const auto taker = spawn(pe(world_pes() - 1), receive_parcels, this_process<function>(), times);
  const auto in_use = [] { return detail::here_pe().owner().world()->shared()->memory().stats().in_use; };
  std::uint64_t before = 0;
  for (int i = 0; i < times; ++i) {
    const parcel p{std::vector<char>(1 << 16, i % 4 == 3 ? '!' : 'x')};
    check(try_send(taker, p, static_cast<std::uint64_t>(i % 4)), "there is no memory for a message");
    check(receive<int>() == i, "the order");
    if (i == 7) before = in_use();
  }
  while (in_use() > before + (1 << 20)) yield();  // the watchdog ends it
}

// A thread of another node than the first, where every PE has gone to rest.
void submit_later(remote<function> to) {
  std::thread([to] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const outside_work here_too;
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    (void)submit([to] { send(to, 1); });
  }).detach();
}
void work_outside_of_another_node() {
  call<&submit_later>(node(world_nodes() - 1), this_process<function>());
  check(receive<int>() == 1, "what the thread sends");
}

// --- damaged records ---------------------------------------------------------------------------------------------------

enum class damage : int { kind, size, reply, failure, probe, handler, form, length, block, text };

std::size_t length_of(const std::string& s) { return s.size(); }
// The index of a remote function whose argument begins with a length.
std::uint32_t handler_of_text() { return detail::function_handler<&length_of>::instance.index; }

// Writes what no node writes into the ring to PE 0.
void send_damaged(int what) {
  scheduler::pe& self = *scheduler::current_pe;
  scheduler::outbound& c = self.outbound_to(0);
  constexpr std::uint32_t bytes = 3 * wire::granule;
  wire::envelope* e = self.reserve(c, bytes);
  std::memset(e->payload(), 0x5a, bytes - wire::granule);
  e->kind = wire::record_kind::message;
  e->form = wire::payload_form::wire;
  e->padding = 0;
  e->slot = wire::no_slot;
  e->generation = 0;
  e->handler = 0;
  e->reply = 0;
  switch (static_cast<damage>(what)) {
    case damage::kind:
      e->kind = static_cast<wire::record_kind>(200);
      break;
    case damage::size:
      e->size.store(33, std::memory_order_release);
      transport::ring_doorbell(*c.bell, true);
      while (self.owner().world_runs()) ::sched_yield();  // nothing else is written there
      return;
    case damage::reply:
    case damage::failure:
      e->kind = static_cast<damage>(what) == damage::reply ? wire::record_kind::reply : wire::record_kind::failure;
      e->reply = 0x123456789;
      break;
    case damage::probe:
      e->kind = wire::record_kind::wait_probe;
      break;
    default:
      break;
  }
  self.commit(c, bytes);
}

// The same as a call that waits for its answer: it gets one.
void call_damaged(int what) {
  scheduler::pe& self = *scheduler::current_pe;
  detail::typed_sink<void> k;
  detail::prepare(k, self, {0, wire::no_slot, 0}, *scheduler::handler_table()[0]);
  scheduler::outbound& c = self.outbound_to(0);
  constexpr std::uint32_t bytes = 3 * wire::granule;
  wire::envelope* e = self.reserve(c, bytes);
  std::memset(e->payload(), 0x5a, bytes - wire::granule);
  e->kind = wire::record_kind::message;
  e->form = wire::payload_form::wire;
  e->padding = 0;
  e->slot = wire::no_slot;
  e->generation = 0;
  e->handler = handler_of_text();
  e->reply = self.replies().expect(k);
  switch (static_cast<damage>(what)) {
    case damage::handler:
      e->handler = std::numeric_limits<std::uint64_t>::max();
      break;
    case damage::form:
      e->form = wire::payload_form::refs;
      break;
    case damage::length:
      e->padding = 60'000;
      break;
    case damage::block:
      e->form = wire::payload_form::block;
      break;
    default:
      break;
  }
  self.commit(c, bytes);
  self.wait(k);
  k.take();
}

void damaged_messages_are_answered() {
  (void)call<&length_of>(pe(1), std::string("good"));
  const auto sends = [](damage what, std::string_view part) {
    check_contains(thrown<bad_message>("a damaged call", [&] { call<&call_damaged>(pe(1), static_cast<int>(what)); }),
                   part);
  };
  sends(damage::handler, "unknown handler");
  sends(damage::form, "unknown form");
  sends(damage::length, "impossible length");
  sends(damage::block, "outside of its sender's memory");
  sends(damage::text, "");
  check(call<&length_of>(pe(1), std::string("good")) == 4, "node 1 is not trusted any more");
  check(call<&length_of>(pe(2), std::string("good")) == 4, "node 2");
}
std::size_t ask_others(std::uint32_t at) { return call<&length_of>(pe(at), std::string("others")); }
std::atomic<bool> was_told{false};
void tell() { was_told = true; }
bool told() { return was_told; }
// On the node that is not trusted any more, and does not know why: it calls the one that found the nonsense.
void call_until_it_fails() {
  try {
    for (;;) (void)call<&length_of>(pe(0), std::string("first"));
  } catch (const node_lost&) {
    call<&tell>(pe(2));
  }
}
void a_node_that_sends_nonsense(damage what) {
  const auto victim = spawn<thrower>(pe(1), false);
  if (what != damage::size) post_call<&call_until_it_fails>(pe(1));  // there, the PE does not go on
  auto pending = start(victim)->slow();
  post_call<&send_damaged>(pe(1), static_cast<int>(what));
  await_loss_of(1);
  try {
    (void)pending.get();
  } catch (const node_lost&) {
  }
  (void)thrown<node_lost>("a call", [&] { (void)victim->value(); });
  for (int i = 0; i < 100; ++i) check(ask_others(2) == 6, "the others");
  while (what != damage::size && !call<&told>(pe(2))) yield();
}

// --- another build -----------------------------------------------------------------------------------------------------

void host() {
  publish("/host", spawn<thrower>(here(), false));
  publish("/host/main", this_process<function>());
  fmt::print(stderr, "up\n");
  (void)receive<int>();
}
void guest() {
  check(lookup<thrower>("/host")->value() == 7, "value");
  send(lookup<function>("/host/main"), 1);
}

// --- the tests ---------------------------------------------------------------------------------------------------------

TEST(an_exception, with_a_text_of_any_length_reaches_the_caller) {
  EXPECT_EQ(outcome_of({"--scenario=texts", "--orrery-nodes=2", "--orrery-pes=1"}), "good");
}
TEST(an_exception, of_any_type_from_main_ends_the_program_with_one_line) {
  for (const char* nodes : {"--orrery-nodes=1", "--orrery-nodes=2"})
    EXPECT_EQ(
        outcome_of({"--scenario=main", nodes, "--orrery-pes=1"}),
        "orrery: the main function ended with an exception: int was thrown, which is not a std::exception\nexit status 1");
}
TEST(an_exception, of_any_type_reaches_a_caller_on_another_node) {
  const std::string said = outcome_of({"--scenario=exceptions", "--orrery-nodes=2", "--orrery-pes=2"});
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "thrower::fail failed, and nobody waits for its result"), 4 * 9) << said;
}
TEST(an_answer, that_nobody_waits_for_is_dropped) {
  const std::string said =
      outcome_of({"--scenario=unwanted", "--orrery-nodes=2", "--orrery-pes=2", "--orrery-failed-exit=0"});
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "thrower::fail failed, and nobody waits for its result"), 4 * 3) << said;
}
TEST(a_payload, above_the_memory_limit_is_an_error) {
  const std::string said = outcome_of({"--scenario=large", "--orrery-nodes=2", "--orrery-pes=1", "--orrery-memory=8M"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST(a_payload, is_given_back_when_a_function_has_received_it) {
  EXPECT_EQ(outcome_of({"--scenario=received", "--orrery-nodes=2", "--orrery-pes=1", "--orrery-memory=8M"}), "good");
}
TEST(a_thread_that_is_no_pe, keeps_the_world_alive_from_any_node) {
  EXPECT_EQ(outcome_of({"--scenario=outside", "--orrery-nodes=2", "--orrery-pes=1"}), "good");
}
TEST(a_damaged_message, is_answered_with_an_error_that_says_what_is_wrong) {
  EXPECT_EQ(outcome_of({"--scenario=damaged", "--orrery-nodes=3", "--orrery-pes=1"}), "good");
}
class nonsense : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};
TEST_P(nonsense, makes_its_sender_a_lost_node_and_the_others_go_on) {
  const std::string said =
      outcome_of({std::string("--scenario=") + GetParam().first, "--orrery-nodes=3", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, GetParam().second), 1) << said;
  EXPECT_EQ(count_of(said, "the node is treated as lost"), 1) << said;
}
INSTANTIATE_TEST_SUITE_P(of, nonsense,
                         ::testing::Values(std::pair{"kind", "a record of unknown kind"},
                                           std::pair{"size", "a record of impossible size"},
                                           std::pair{"reply", "a reply to a call that was never made"},
                                           std::pair{"failure", "a reply to a call that was never made"},
                                           std::pair{"probe", "a probe"}),
                         [](const auto& i) { return std::string(i.param.first); });

TEST(another_build, with_one_more_method_joins) {
  const scratch_directory worlds;
  program first({"--scenario=host", own_world(), worlds.option(), "--orrery-pes=1"});
  first.hear("up");
  EXPECT_EQ(outcome_of({"--scenario=guest", "--other-build", own_world(), worlds.option(), "--orrery-pes=1"}), "good");
  EXPECT_EQ(first.end(), "good");
  EXPECT_TRUE(worlds.files().empty());
}

}  // namespace
}  // namespace orrery::faults

int main(int argc, char** argv) {
  using namespace orrery::faults;
  using namespace orrery::testing;
  // A build with one more method.
  std::optional<orrery::scheduler::handler> more;
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--other-build")
      more.emplace("other_class", "method", "void()", nullptr, nullptr, nullptr, 0U, false);
  const auto nonsense_of = [](damage d) { return [d] { a_node_that_sends_nonsense(d); }; };
  return run_tests_or_scenario(argc, argv,
                               {{"exceptions", exceptions},
                                {"texts", texts_of_any_length},
                                {"main", [] { throw 5; }},
                                {"unwanted", unwanted_answers},
                                {"large", payloads_above_the_limit},
                                {"received", received_payloads_are_given_back},
                                {"outside", work_outside_of_another_node},
                                {"damaged", damaged_messages_are_answered},
                                {"kind", nonsense_of(damage::kind)},
                                {"size", nonsense_of(damage::size)},
                                {"reply", nonsense_of(damage::reply)},
                                {"failure", nonsense_of(damage::failure)},
                                {"probe", nonsense_of(damage::probe)},
                                {"host", host},
                                {"guest", guest}});
}
