// SPDX-License-Identifier: Apache-2.0
// Programs that join a named world and leave it again, and the arrays and groups of those that stay. (tests/support/scenario.hpp)
#include <orrery/array/balance.hpp>
#include <orrery/array/section.hpp>
#include "../support/scenario.hpp"

#include <algorithm>

namespace guests_tests {

using namespace orrery;
using namespace orrery::testing;

struct Cell;
ORRERY_PROCESS(Cell, give, give_but_on, add, total, wait_for_end, where);
struct Cell : element<Cell> {
  Cell() = default;
  explicit Cell(const result_target& t) { contribute(1, sum, t); }
  void give(const result_target& t) { contribute(1, sum, t); }
  void give_but_on(std::uint32_t pe, const result_target& t) {
    if (this_pe() != pe) contribute(1, sum, t);
  }
  void add(int n) { all += n; }
  int total() const { return all; }
  std::uint32_t where() const { return this_pe(); }
  int wait_for_end(std::size_t pes) const;
  template <class A>
  void serialize(A& a) {
    a & all;
  }
  int all = 0;
};

// Its elements are made where messages to them are sent.
struct Word;
ORRERY_PROCESS(Word, count, hear, sum_of);
struct Word : element<Word, std::string> {
  static constexpr early when_early(std::string_view) { return early::create_at_sender; }
  int count() { return ++calls; }
  void hear(int n) { all += n; }
  int sum_of() const { return all; }
  template <class A>
  void serialize(A& a) {
    a & calls & all;
  }
  int calls = 0;
  int all = 0;
};

// What guests and host tell each other.
struct Desk {
  Desk() = default;
  explicit Desk(const array<Cell>& a) : cells(a) {}
  Desk(const array<Cell>& a, const array<Word, std::string>& w) : cells(a), words(w) {}
  array<Word, std::string> lend_words() const { return words; }
  void came() { ++guests; }
  int count() const { return guests; }
  array<Cell> lend() const { return cells; }
  void release() { ++released; }
  int releases() const { return released; }
  array<Cell> cells;
  array<Word, std::string> words;
  int guests = 0;
  int released = 0;
};
ORRERY_PROCESS(Desk, came, count, lend, lend_words, release, releases);

struct Fellow : member<Fellow> {
  int everybody() { return all_reduce(1); }
};
ORRERY_PROCESS(Fellow, everybody);

void await_pes(std::size_t n) {
  while (reachable_pes().size() != n) sleep_for(std::chrono::milliseconds(1));
}
int Cell::wait_for_end(std::size_t pes) const {
  await_pes(pes);
  return this->this_index();
}

constexpr int elements = 24;

void use(const array<Cell>& a, const char* what) {
  auto [target, count] = expect_result<int>();
  post(a)->give(target);
  check(count.get() == elements, fmt::format("a reduction of the array made {}", what));
  post(a)->add(1);
  quiescence(a);
  for (int i = 0; i < elements; ++i) {
    check(a[i]->total() == 1, fmt::format("a broadcast to element {} of the array made {}", i, what));
    a[i]->add(-1);
  }
  measure_load(a, true);
  check(balance(a, *balance_rotate()).moved == (reachable_pes().size() > 1 ? elements : 0), "balancing");
  std::vector<int> some{1, 5, 7};
  const auto s = create_section(a, some);
  post(s)->add(2);
  quiescence(a);
  for (const int i : some) {
    check(a[i]->total() == 2, "a broadcast to a section");
    a[i]->add(-2);
  }
  destroy(s);
}

void use_all(const array<Cell>& before) {
  use(before, "before");
  auto [target, born] = expect_result<int>();
  const auto a = create_array<Cell>(range<int>{elements}, {.name = "later", .homes = 2}, {}, target);
  check(born.get() == elements, "elements of a new array");
  use(a, "later");
  const std::vector<std::uint32_t> pes = reachable_pes();
  for (int i = 0; i < elements; ++i)
    check(std::ranges::find(pes, a[i]->where()) != pes.end(), "a new array is on PEs that are there");
  destroy(a);
  const auto g = spawn_group<Fellow>(everywhere(), 5);
  check(g->everybody() == std::vector<int>(5, 5), "a group that is everywhere");
  destroy(g);
}

constexpr int visits = 3;
// Guests come and go, one after the other.
void host() {
  const std::size_t own = reachable_pes().size();
  const auto before = create_array<Cell>(range<int>{elements}, {.name = "before"});
  const auto desk = spawn<Desk>(here());
  publish("/desk", desk);
  use_all(before);
  fmt::print(stderr, "up\n");
  for (int n = 1; n <= visits; ++n) {
    while (desk->count() < n) yield();
    auto waits = start(before[n])->wait_for_end(own);
    await_pes(own);  // the guest leaves, or is killed
    check(waits.get() == n, "a call that waited meanwhile");
    use_all(before);
    fmt::print(stderr, "seen\n");
  }
}

// Makes an array of its own, which ends with it.
void guest() {
  const auto a = create_array<Cell>(range<int>{elements}, {.name = "guest"});
  auto [target, count] = expect_result<int>();
  post(a)->give(target);
  check(count.get() == elements, "a reduction of a guest's array");
  destroy(a);
  lookup<Desk>("/desk")->came();
}
// Lends its array to guests, and makes another while they are there.
void lender() {
  const std::size_t own = reachable_pes().size();
  const auto a = create_array<Cell>(range<int>{elements}, {.name = "lent"});
  const auto desk = spawn<Desk>(here(), a);
  publish("/desk", desk);
  fmt::print(stderr, "up\n");
  for (int n = 1; n <= visits; ++n) {
    while (desk->count() < n) yield();
    use(a, "before, which a guest has used");
    const auto later = create_array<Cell>(range<int>{elements}, {.name = "later"});
    use(later, "while a guest is there");
    fmt::print(stderr, "made\n");
    desk->release();
    await_pes(own);
    use(a, "before, whose guest is gone");
    use(later, "while a guest was there");
    destroy(later);
    fmt::print(stderr, "seen\n");
  }
}

void expect_total(const array<Cell>& a, int i, int expected, std::string_view what) {
  const int total = a[i]->total();
  check(total == expected,
        fmt::format("{}: element {} on PE {} has {}, not {}", what, i, a[i]->where(), total, expected));
}
void borrow(const array<Cell>& a) {
  constexpr int many = 3000;
  for (int i = 0; i < many; ++i) post(a[i % 3])->add(1);
  for (int i = 0; i < 3; ++i) {
    expect_total(a, i, many / 3, "posts to an element of another program, and a call after them");
    a[i]->add(-many / 3);
    expect_total(a, i, 0, "a call to an element of another program");
  }
  post(a)->add(1);
  quiescence(a);
  for (int i = 0; i < elements; ++i) expect_total(a, i, 1, "a broadcast to an array of another program");
  post(a)->add(-1);
  quiescence(a);
  auto [target, count] = expect_result<int>();
  post(a)->give(target);
  check(count.get() == elements, "a reduction of an array of another program");
  while (!try_post(a[5])->add(2)) yield();
  a[5]->add(-2);

  a.insert(100);
  check(start(a[100])->total().get() == 0, "an element that a guest has made");
  check_contains(thrown<usage_error>("an element that is there already", [&] { a.insert(100); }), "lent[100]");
  a.post_insert(101);
  quiescence(a);
  check(a[101]->total() == 0, "another element that a guest has made");
  destroy(a[100]);
  destroy(a[101]);
  (void)thrown<process_gone>("an element that a guest has destroyed", [&] { (void)a[100]->total(); });

  std::vector<int> some{1, 2};
  for (const auto& text : {thrown<usage_error>("insert_at", [&] { a.insert_at(here(), 102); }),
                           thrown<usage_error>("a section", [&] { (void)create_section(a, some); }),
                           thrown<usage_error>("a footprint", [&] { (void)a.footprint(); })})
    check_contains(text, "was made by another program");

  const auto own = create_array<Cell>(range<int>{elements}, {.name = "own"});
  const std::vector<std::uint32_t> pes = program_pes();
  for (int i = 0; i < elements; ++i)
    check(std::ranges::find(pes, own[i]->where()) != pes.end(), "an array is on the PEs of the program that made it");
  destroy(own);
}

void borrower() {
  const auto desk = lookup<Desk>("/desk");
  borrow(desk->lend());
  const int before = desk->releases();
  desk->came();
  while (desk->releases() == before) yield();
}
void borrower_that_is_killed() {
  const auto desk = lookup<Desk>("/desk");
  borrow(desk->lend());
  desk->came();
  sleep_for(std::chrono::hours(1));
}

void die() { std::abort(); }
// Its last PE dies while a guest waits for a reduction.
void lender_that_loses_a_node() {
  const auto a = create_array<Cell>(range<int>{elements}, {.name = "lent"});
  const auto desk = spawn<Desk>(here(), a);
  publish("/desk", desk);
  fmt::print(stderr, "up\n");
  while (desk->count() < 1) yield();
  post_call<&die>(pe(program_pes().back()));
  while (desk->count() < 2) yield();
}
void borrower_of_what_is_lost() {
  const auto desk = lookup<Desk>("/desk");
  const auto a = desk->lend();
  auto first = expect_result<int>();
  post(a)->give_but_on(2, first.target);
  quiescence(a);
  desk->came();
  (void)thrown<node_lost>("a reduction that waits for what is lost", [&] { (void)first.result.get(); });
  for (int i = 0; i < 2; ++i) {
    auto next = expect_result<int>();
    const auto begin = [&] {
      post(a)->give(next.target);
      (void)next.result.get();
    };
    // the guest has heard of the loss first, or who makes the array
    check_contains(thrown<node_lost>("a reduction of what is lost", begin), "lent");
  }
  desk->came();
}
TEST(guests, hear_that_an_array_has_lost_a_part) {
  program first({"--scenario=lender_that_loses_a_node", own_world(), "--orrery-nodes=3", "--orrery-pes=1"});
  first.hear("up");
  const std::string said = outcome_of({"--scenario=borrower_of_what_is_lost", own_world(), "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
  (void)first.end();
}

void lender_of_words() {
  const auto cells = create_array<Cell>(range<int>{elements}, {.name = "lent"});
  const auto words = create_array<Word>({.name = "words"});
  const auto desk = spawn<Desk>(here(), cells, words);
  publish("/desk", desk);
  fmt::print(stderr, "up\n");
  while (desk->count() < 1) yield();
  quiescence(cells);
  quiescence(words);
}
// Messages to elements that there are not yet, and results that come from the other program.
void borrower_of_words() {
  const auto desk = lookup<Desk>("/desk");
  const auto words = desk->lend_words();
  for (int n = 1; n <= 3; ++n) check(words["x"]->count() == n, "a call to an element that a guest's message makes");
  post(words["y"])->hear(5);
  check(words["y"]->sum_of() == 5, "a post to an element that it makes");

  const auto own = create_array<Word>({.name = "own"});
  for (const char* const w : {"a", "b"}) own.insert(w);
  post(desk->lend())->give(result_to<&Word::hear>(own));
  for (const char* const w : {"a", "b"})
    while (own[w]->sum_of() != elements) yield();
  post(desk->lend())->give(result_to<&Word::hear>(own["a"]));
  while (own["a"]->sum_of() != 2 * elements) yield();
  desk->came();
}
TEST(guests, make_elements_by_messages_and_get_results_in_their_own_arrays) {
  program first({"--scenario=lender_of_words", own_world(), "--orrery-nodes=2", "--orrery-pes=2"});
  first.hear("up");
  EXPECT_EQ(outcome_of({"--scenario=borrower_of_words", own_world(), "--orrery-pes=2"}), "good");
  EXPECT_EQ(first.end(), "good");
}

void lend_to_guests(std::vector<std::string> options) {
  options.insert(options.end(), {"--scenario=lender", own_world()});
  program first(options);
  first.hear("up");
  std::string said;
  for (int n = 0; n < visits; ++n) {
    const bool killed = n == 1;
    program guest({killed ? "--scenario=borrower_that_is_killed" : "--scenario=borrower", own_world(),
                   fmt::format("--orrery-pes={}", 1 + n % 2)});
    said += first.hear("made");
    if (killed) ::kill(guest.pid(), SIGKILL);
    EXPECT_EQ(guest.end(), killed ? "killed by signal 9" : "good");
    said += first.hear("seen");
  }
  EXPECT_EQ(count_of(said, "another program"), 0) << said;
  EXPECT_TRUE(first.end().ends_with("good"));
}

void host_and_guests(std::vector<std::string> options) {
  options.insert(options.end(), {"--scenario=host", own_world()});
  program first(options);
  first.hear("up");
  std::string said;
  for (int n = 0; n < visits; ++n) {
    EXPECT_EQ(outcome_of({"--scenario=guest", own_world(), fmt::format("--orrery-pes={}", 1 + n % 2)}), "good");
    said += first.hear("seen");
  }
  EXPECT_EQ(said, "");
  EXPECT_EQ(first.end(), "good");
}

TEST(guests, that_leave_take_nothing_along_from_one_node) { host_and_guests({"--orrery-pes=2"}); }
TEST(guests, that_leave_take_nothing_along_from_three_nodes) {
  host_and_guests({"--orrery-nodes=3", "--orrery-pes=1"});
}
TEST(guests, that_leave_take_nothing_along_from_two_nodes_of_two) {
  host_and_guests({"--orrery-nodes=2", "--orrery-pes=2"});
}
TEST(guests, use_arrays_that_were_made_before_they_came_from_one_node) { lend_to_guests({"--orrery-pes=2"}); }
TEST(guests, use_arrays_that_were_made_before_they_came_from_three_nodes) {
  lend_to_guests({"--orrery-nodes=3", "--orrery-pes=1"});
}
TEST(guests, use_arrays_that_were_made_before_they_came_from_two_nodes_of_two) {
  lend_to_guests({"--orrery-nodes=2", "--orrery-pes=2"});
}

const orrery::testing::scenarios_of_file of_this({{"host", host},
                                                  {"guest", guest},
                                                  {"lender", lender},
                                                  {"borrower", borrower},
                                                  {"lender_that_loses_a_node", lender_that_loses_a_node},
                                                  {"borrower_of_what_is_lost", borrower_of_what_is_lost},
                                                  {"lender_of_words", lender_of_words},
                                                  {"borrower_of_words", borrower_of_words},
                                                  {"borrower_that_is_killed", borrower_that_is_killed}});

}  // namespace guests_tests
