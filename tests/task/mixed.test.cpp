// SPDX-License-Identifier: Apache-2.0
// Messages between tasks of C (mirror.c) and processes of C++, by the header that orrery-cc has made of kinds.h. Each runs on one PE, on two, on two OS
// processes, and on two simulated machines whose messages take random times.
#include <orrery/orrery.hpp>
#include <orrery/task/tasks.hpp>

#include "../support/scenario.hpp"

#include <algorithm>
#include <sstream>

#include "kinds.hpp"

namespace {

namespace tasks = orrery::tasks;
using kinds::Everything;
using kinds::Mirror;
using kinds::Parcel;
using kinds::Sink;
using orrery::testing::check;

Everything everything() {
  Everything e;
  e.big = 1ULL << 39;
  e.small = 5;
  e.pair = {1, 2};
  e.color = kinds::GREEN;
  std::strcpy(e.fixed, "fixed");
  e.text = "text";
  e.corners.push_back({1, 2, "a"});
  e.corners.push_back({3, 4, std::nullopt});
  e.inner.s = 9;
  e.centre = kinds::Point{5, 6, std::string(3000, 'x')};
  e.names = {"x", std::nullopt};
  e.pairs = {{5, 6}, {7, 8}, {9, 10}};
  e.flags[0][1] = true;
  e.bit = {1, 0, 1, 1};
  e.halves = {1, 2, 3, 4};
  e.when = 1'000'000'000'000;
  e.next = std::make_unique<Everything>();
  e.next->text = "";
  return e;
}

bool is_everything(const Everything& e) {
  return e.big == 1ULL << 39 && e.small == 5 && e.pair.b == 2 && e.color == kinds::GREEN &&
         e.fixed == std::string("fixed") && e.text == "text" && !e.other && e.corners.size() == 2 &&
         e.corners[0].label == "a" && !e.corners[1].label && e.corners[1].y == 4 && e.inner.s == 9 && e.centre &&
         e.centre->label == std::string(3000, 'x') && e.names.size() == 2 && e.names[0] == "x" && !e.names[1] &&
         e.pairs.size() == 3 && e.pairs[2].b == 10 && e.flags[0][1] && !e.flags[1][1] &&
         e.bit == std::vector<unsigned char>{1, 0, 1, 1} && e.halves[3] == 4 && e.when == 1'000'000'000'000 && e.next &&
         e.next->text == "" && !e.next->next && !e.next->centre;
}

Parcel parcel(int number, std::size_t first, const std::vector<std::size_t>& more) {
  Parcel p{number, tasks::buffer(first), {}};
  std::ranges::fill(p.first.bytes(), std::byte{7});
  for (const std::size_t size : more) {
    std::ranges::fill(p.more.emplace_back(size).bytes(), std::byte{8});
  }
  return p;
}
bool is_parcel(const Parcel& p, int number, std::size_t first, const std::vector<std::size_t>& more) {
  bool good = p.number == number && p.first.bytes().size() == first && p.more.size() == more.size();
  good = good && std::ranges::all_of(p.first.bytes(), [](std::byte b) { return b == std::byte{7}; });
  for (std::size_t i = 0; good && i < more.size(); ++i)
    good = p.more[i].bytes().size() == more[i] &&
           std::ranges::all_of(p.more[i].bytes(), [](std::byte b) { return b == std::byte{8}; });
  return good;
}

orrery_task mirror(orrery::placement where) {
  orrery_task t{};
  check(Mirror::create(t, tasks::place_of(where)) == ORRERY_OK, orrery_error());
  return t;
}
orrery::placement there() { return orrery::pe(orrery::world_pes() - 1); }

// A function that is named, asks for its messages by tag, and answers in C++.
void sink_function(orrery::remote<orrery::function> back) {
  tasks::receive(Sink::NOTHING);  // the last that is sent
  const Everything e = tasks::receive(Sink::EVERYTHING);
  check(is_everything(e), "everything has changed on its way");
  check(!orrery_task_is_null(e.from), "the mirror has not said who it is");
  const Parcel p = tasks::receive(Sink::PARCEL);
  check(is_parcel(p, 1, 70'000, {}), "a parcel has changed");
  check(is_parcel(tasks::receive(Sink::PARCEL), 2, 10, {0, 5000}), "the second parcel has changed");
  check(!tasks::receive_for(std::chrono::microseconds(10)), "there is one message too many");
  orrery::send(back, true);
}

void send_all(orrery_task m) {
  send(m, Mirror::EVERYTHING, everything());
  Parcel p = parcel(1, 70'000, {});
  send(m, Mirror::PARCEL, std::move(p));
  check(!p.first && p.first.bytes().empty(), "a buffer that was sent is still there");
  check(try_send(m, Mirror::PARCEL, parcel(2, 10, {0, 5000})), "there is no room");
  send(m, Mirror::NOTHING);
}

int function() {
  const auto sink = orrery::spawn(there(), &sink_function, orrery::this_process<orrery::function>());
  orrery::publish("sink", sink);
  const orrery_task m = mirror(orrery::here());
  send_all(m);
  check(orrery::receive<bool>(), "nothing came");
  check(orrery_join(tasks::task_of(sink), ORRERY_FOREVER) == ORRERY_OK, "the end of a function is not told");
  return 0;
}

// An object, which is given its messages.
class sink_object : public Sink::receiver {
 public:
  void handle_EVERYTHING(Everything e) override {
    good_ += is_everything(e) ? 1 : 0;
    from_ = e.from;
  }
  void handle_PARCEL(Parcel p) override {
    good_ += is_parcel(p, 1, 70'000, {}) || is_parcel(p, 2, 10, {0, 5000}) ? 1 : 0;
    kept_.push_back(std::move(p));  // outlives the message
  }
  void handle_NOTHING() override { nothing_ = true; }

  int good() const { return nothing_ ? good_ : -1; }
  bool kept() const {
    return kept_.size() == 2 && is_parcel(kept_[0], 1, 70'000, {}) && is_parcel(kept_[1], 2, 10, {0, 5000});
  }
  // What it has kept goes to C again, as a call of C++ asks for it.
  void give_back() {
    for (Parcel& p : std::exchange(kept_, {})) send(from_, Mirror::PARCEL, std::move(p));
    send(from_, Mirror::NOTHING);
    nothing_ = false;
  }

 private:
  orrery_task from_{};
  std::vector<Parcel> kept_;
  int good_ = 0;
  bool nothing_ = false;
};
ORRERY_PROCESS(sink_object, good, kept, give_back);

int object() {
  const auto sink = orrery::spawn<sink_object>(orrery::here());
  orrery::publish("sink", sink);
  send_all(mirror(there()));
  while (sink->good() < 0) orrery::yield();
  check(sink->good() == 3, "a message has changed");
  check(sink->kept(), "what the object has kept has changed");
  sink->give_back();
  while (sink->good() < 0) orrery::yield();
  check(sink->good() == 5 && sink->kept(), "what was given back has changed");
  check(orrery_watch(tasks::task_of(sink), 77) == ORRERY_OK, orrery_error());
  orrery::start_destroy(sink).get();
  check(tasks::receive_tag(77).bytes().size() == sizeof(orrery_ended), "the end of an object is not told");
  return 0;
}

// A function that has such an object, for many messages from several tasks at once.
void serving_function() {
  sink_object sink;
  tasks::serve(sink);
}

int many() {
  constexpr int rounds = 200;
  const auto sink = orrery::spawn<sink_object>(there());
  orrery::publish("sink", sink);
  std::vector<orrery_task> mirrors;
  for (std::uint32_t i = 0; i < 4; ++i) mirrors.push_back(mirror(orrery::pe(i % orrery::world_pes())));
  for (int round = 0; round < rounds; ++round)
    for (const orrery_task& m : mirrors) send(m, Mirror::EVERYTHING, everything());
  for (const orrery_task& m : mirrors) (void)orrery_stop(m);
  for (const orrery_task& m : mirrors) check(orrery_join(m, ORRERY_FOREVER) == ORRERY_OK, orrery_error());
  send(tasks::task_of(sink), Sink::NOTHING);
  while (sink->good() < 0) orrery::yield();
  while (sink->good() < 4 * rounds) orrery::yield();  // what was sent before by others may come later
  const auto serving = orrery::spawn(there(), &serving_function);
  send(tasks::task_of(serving), Sink::EVERYTHING, everything());
  orrery::start_destroy(serving).get();
  return 0;
}

struct plain {
  int get() const { return 1; }
};
ORRERY_PROCESS(plain, get);

// What cannot be done is said.
int wrong() {
  using orrery::testing::check_contains;
  using orrery::testing::thrown;
  const orrery_task m = mirror(there());
  Everything e;
  e.corners.resize(3);  // `count` counts the names, too
  check_contains(thrown<orrery::usage_error>("lengths", [&] { send(m, Mirror::EVERYTHING, e); }),
                 "'Everything.names' has 0 elements");
  e.names.resize(3);
  e.corners.resize(300);
  check_contains(thrown<orrery::usage_error>("count", [&] { send(m, Mirror::EVERYTHING, e); }),
                 "'Everything.corners' has 300 elements");
  (void)thrown<orrery::usage_error>("null", [&] { send(orrery_task{}, Mirror::NOTHING); });

  const orrery_task self = orrery_self();
  send(self, tasks::tag<kinds::Point>{1}, {1, 2, "a"});
  tasks::mail got = tasks::receive();
  check(got.has(tasks::tag<kinds::Point>{1}) && orrery_task_same(got.sender(), self), "it is another message");
  check_contains(thrown<orrery::bad_message>("type", [&] { (void)got.open<Everything>(); }), "of another type");
  check(got.open<kinds::Point>().label == "a", "the point has changed");
  check_contains(thrown<orrery::usage_error>("twice", [&] { (void)got.open<kinds::Point>(); }), "opened");

  kinds::Counts counts{.a = {1, 2, 3}, .b = {4}, .c = {5}, .d = {6, 7}, .fixed = {8, 9}};
  send(self, tasks::tag<kinds::Counts>{2}, counts);
  counts = tasks::receive(tasks::tag<kinds::Counts>{2});
  check(counts.a.size() == 3 && counts.b[0] == 4 && counts.c == std::vector{5} && counts.d[1] == 7 &&
            counts.fixed[1] == 9,
        "counts of other types have changed");
  counts.a.resize(128);
  check_contains(thrown<orrery::usage_error>("char", [&] { send(self, tasks::tag<kinds::Counts>{2}, counts); }),
                 "'Counts.a' has 128 elements");
  counts.a.clear();
  counts.c.resize(2);
  check_contains(thrown<orrery::usage_error>("bool", [&] { send(self, tasks::tag<kinds::Counts>{2}, counts); }),
                 "'Counts.c' has 2 elements");

  send(self, tasks::tag<kinds::Point>{3}, {1, 2, "a"});
  check_contains(thrown<orrery::bad_message>("none", [] { tasks::receive(tasks::tag<void>{3}); }),
                 "its tag carries no message");

  const auto object = orrery::spawn<plain>(orrery::here());
  orrery::publish("plain", object);
  orrery_task found{};
  check(orrery_find("plain", &found, ORRERY_NOW) == ORRERY_USAGE, "an object that is given no messages is found");
  check(object->get() == 1, "the object is not there");
  return 0;
}

class mixed : public ::testing::TestWithParam<std::string_view> {
 protected:
  static std::string outcome(std::string_view scenario) {
    std::vector<std::string> options{fmt::format("--scenario={}", scenario)};
    std::istringstream words{std::string(GetParam())};
    for (std::string word; words >> word;) options.push_back(word);
    return orrery::testing::outcome_of(options);
  }
};
INSTANTIATE_TEST_SUITE_P(on, mixed,
                         ::testing::Values("--orrery-pes=1", "--orrery-pes=2", "--orrery-pes=2 --orrery-serialize",
                                           "--orrery-nodes=2 --orrery-pes=1",
                                           "--orrery-sim=machines=2,jitter=5us,seed=1 --orrery-quiet",
                                           "--orrery-sim=machines=2,jitter=5us,seed=2 --orrery-quiet"));

TEST_P(mixed, tasks_of_c_and_functions_send_all_kinds_of_members) { EXPECT_EQ(outcome("function"), "good"); }
TEST_P(mixed, objects_are_given_messages_and_may_keep_their_buffers) { EXPECT_EQ(outcome("object"), "good"); }
TEST_P(mixed, many_messages_of_several_tasks_come_to_one_object) { EXPECT_EQ(outcome("many"), "good"); }
TEST_P(mixed, what_cannot_be_sent_or_opened_is_refused) { EXPECT_EQ(outcome("wrong"), "good"); }

}  // namespace

int main(int argc, char** argv) {
  return orrery::testing::run_tests_or_scenario(
      argc, argv, {{"function", function}, {"object", object}, {"many", many}, {"wrong", wrong}});
}
