// SPDX-License-Identifier: Apache-2.0
// Values that each node has, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/process/collectives.hpp>
#include <orrery/process/spread.hpp>

#include <set>
#include <stdexcept>

namespace orrery {
namespace spread_tests {

using testing::check;
using testing::thrown;

struct Table {
  std::vector<int> values;
  std::string name;
};

int look(spread_handle<Table> t, int i) { return t->values.at(static_cast<std::size_t>(i)); }
std::uintptr_t place_of(spread_handle<Table> t) { return reinterpret_cast<std::uintptr_t>(&*t); }
spread_handle<Table> make(int n) { return spread(Table{std::vector<int>(3, n), "of " + std::to_string(n)}); }

void values() {
  const auto t = spread(Table{{1, 2, 3}, "numbers"});
  const auto other = spread(std::string("a text"));
  for (int round = 0; round < 2; ++round)
    for (std::uint32_t p = 0; p < world_pes(); ++p) {
      check(call<&look>(pe(p), t, 2) == 3, "each node reads it");
      const auto theirs = call<&make>(pe(p), static_cast<int>(p));
      check(theirs->name == "of " + std::to_string(p), "anybody makes one");
      check(call<&look>(pe(world_pes() - 1 - p), theirs, 0) == static_cast<int>(p), "and all read it");
    }
  check(t->name == "numbers" && *other == "a text" && t == spread_handle(t) && t && !spread_handle<int>(), "a value");
  const auto copy = t;
  check(&*copy == &*t, "copies share it");
  thrown<usage_error>("no value", [] { (void)*spread_handle<int>(); });
}

void sharing() {  // one object for each node
  const auto t = spread(Table{{7}, "shared"});
  std::set<std::pair<std::uint32_t, std::uintptr_t>> places;
  const std::uint32_t pes_of_node = world_pes() / world_nodes();
  for (std::uint32_t p = 0; p < world_pes(); ++p) places.emplace(p / pes_of_node, call<&place_of>(pe(p), t));
  check(places.size() == world_nodes(), "each node has one object");
}

// Runs twice in one OS process.
void earlier_run() {
  static spread_handle<Table> read;
  static spread_handle<Table> unread;
  if (!read) {
    read = make(1);
    unread = make(2);
    check(read->name == "of 1", "it is read in its own run");
    return;
  }
  const auto first = spread(std::string("another type"));
  const auto second = spread(std::string("in their place"));
  thrown<usage_error>("one that was read in an earlier run", [] { (void)*read; });
  thrown<usage_error>("one that was not", [] { (void)*unread; });
  thrown<usage_error>("a copy", [] { (void)*spread_handle<Table>(read); });
  check(*first == "another type" && *second == "in their place", "those of this run");
}

/// For a program that joins the world later.
struct Desk {
  explicit Desk(spread_handle<Table> t) : table(std::move(t)) {}
  spread_handle<Table> lend() const { return table; }
  void came() { ++guests; }
  int count() const { return guests; }
  spread_handle<Table> table;
  int guests = 0;
};
ORRERY_PROCESS(Desk, lend, came, count);

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(wire_size(value));
  writer w(bytes);
  write(w, value);
  return bytes;
}
void load_into(const auto& from, auto& into) {
  const std::vector<std::byte> bytes = bytes_of(from);
  reader r(bytes);
  r & into;
}
void loading() {
  auto t = make(1);
  check(t->name == "of 1", "its first value");
  load_into(make(2), t);
  check(t->name == "of 2", "the value that was loaded");
  auto g = spawn_group<Desk>(here(), 2, t);
  load_into(group<Desk>(), g);
  check(!g, "a group that was null");
}

void lender() {
  const auto desk = spawn<Desk>(here(), spread(Table{{4, 5, 6}, "lent"}));
  publish("/desk", desk);
  fmt::print(stderr, "up\n");
  while (desk->count() == 0) yield();
}
void borrower() {
  const auto desk = lookup<Desk>("/desk");
  const auto table = desk->lend();
  check(table->name == "lent", "a node that joins later gets the value");
  for (const std::uint32_t p : program_pes()) check(call<&look>(pe(p), table, 1) == 5, "all of its PEs do");
  desk->came();
}

// --- all to all ----------------------------------------------------------------------------------

struct Worker : member<Worker> {
  std::vector<int> exchange(int rounds) {
    std::vector<int> got;
    for (int round = 0; round < rounds; ++round) {
      std::vector<int> mine;
      for (std::size_t to = 0; to < size(); ++to) mine.push_back(value(rank(), to, round));
      got = all_to_all(*this, std::move(mine));
      testing::check(got.size() == size(), "one from each");
      for (std::size_t from = 0; from < got.size(); ++from)
        testing::check(got[from] == value(from, rank(), round), "the right one from each");
      if (round % 3 == 1) (void)all_reduce(1);
      if (round % 3 == 2) barrier();
    }
    return got;
  }
  void wrong() { (void)all_to_all(*this, std::vector<int>(rank() == 1 ? 1 : size())); }
  void others() {
    if (rank() == 1) {
      barrier();
    } else {
      (void)all_to_all(*this, std::vector<int>(size()));
    }
  }
  static int value(std::size_t from, std::size_t to, int round) {
    return static_cast<int>(from * 10'000 + to * 100) + round;
  }
};
ORRERY_PROCESS(Worker, exchange, wrong, others);

void exchanges() {
  for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{7}}) {
    const auto g = spawn_group<Worker>(everywhere(), n);
    (void)g->exchange(7);
    if (n > 1) thrown<usage_error>("another number of values", [&] { g->wrong(); });
    (void)g->exchange(2);
    if (n > 1) thrown<usage_error>("another collective", [&] { g->others(); });
  }
}

// --- values that make trouble --------------------------------------------------------------------

enum class trouble : std::uint8_t { none, writing, reading, copying };

struct Picky {
  trouble in = trouble::none;

  Picky() = default;
  explicit Picky(trouble t) : in(t) {}
  Picky(const Picky& o) : in(o.in) {
    if (in == trouble::copying) throw std::domain_error("a copy");
  }
  Picky(Picky&& o) noexcept : in(o.in) {}
  Picky& operator=(const Picky&) = delete;
  Picky& operator=(Picky&& o) noexcept {
    in = o.in;
    return *this;
  }
  ~Picky() = default;
  template <class A>
  void serialize(A& a) {
    if (A::is_saving::value && in == trouble::writing) throw std::domain_error("writing");
    a & in;
    if (A::is_loading::value && in == trouble::reading) throw std::domain_error("reading");
  }
};
struct either {
  Picky operator()(Picky a, Picky b) const { return a.in != trouble::none ? std::move(a) : std::move(b); }
};

struct Careful : member<Careful> {
  void reduce(std::size_t from, trouble t) { (void)all_reduce(Picky(rank() == from ? t : trouble::none), either{}); }
  void exchange(std::size_t from, trouble t) {
    std::vector<Picky> mine(size());
    if (rank() == from) mine[1 - from] = Picky(t);
    (void)all_to_all(*this, std::move(mine));
  }
};
ORRERY_PROCESS(Careful, reduce, exchange);

// One member on each of two nodes: nobody waits for ever, and who does not get the value hears why.
void troubles() {
  for (const std::size_t from : {std::size_t{0}, std::size_t{1}})
    for (const trouble t : {trouble::writing, trouble::reading, trouble::copying}) {
      const auto outcome = [&](auto begin) {
        const auto g = spawn_group<Careful>(everywhere(), 2);
        std::vector<future<void>> waits;
        for (std::size_t rank = 0; rank < 2; ++rank) waits.push_back(begin(g[rank]));
        std::string text;
        for (auto& w : waits) try {
            w.get();
            text += '.';
          } catch (const std::domain_error&) {
            text += '!';
          }
        destroy(g);
        return text;
      };
      const auto text = fmt::format("from {}, trouble {}", from, static_cast<int>(t));
      const std::string reduced = outcome([&](auto m) { return start(m)->reduce(from, t); });
      const bool both = t == trouble::copying || from == 1;
      check(reduced == (both ? "!!" : ".!"), fmt::format("all_reduce, {}: {}", text, reduced));
      if (t == trouble::copying) continue;  // all_to_all moves
      const std::string exchanged = outcome([&](auto m) { return start(m)->exchange(from, t); });
      const char* const expected = t == trouble::writing ? "!!" : from == 0 ? ".!" : "!.";
      check(exchanged == expected, fmt::format("all_to_all, {}: {}", text, exchanged));
    }
}

using spreading = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(spreading);
TEST_P(spreading, gives_a_value_to_all) { EXPECT_EQ(wrong_in("values"), ""); }
TEST_P(spreading, exchanges_values_of_all_members) { EXPECT_EQ(wrong_in("exchanges"), ""); }
TEST(spreading_on_nodes, has_one_object_on_each) {
  for (const char* pes : {"--orrery-pes=1", "--orrery-pes=2"})
    EXPECT_EQ(testing::outcome_of({"--scenario=sharing_of_spread", "--orrery-nodes=2", pes}), "good");
  EXPECT_EQ(testing::outcome_of({"--scenario=sharing_of_spread", "--orrery-pes=3"}), "good");
}

TEST(handles_of_spread, of_an_earlier_run_are_refused) {
  EXPECT_EQ(testing::outcome_of({"--again", "--scenario=earlier_run", "--orrery-pes=2"}), "good");
}
TEST_P(spreading, takes_over_what_is_loaded_into_a_handle) { EXPECT_EQ(wrong_in("loading_of_handles"), ""); }

TEST(exchanging_on_nodes, ends_where_a_value_cannot_be_written_read_or_copied) {
  EXPECT_EQ(testing::outcome_of({"--scenario=troubles", "--orrery-nodes=2", "--orrery-pes=1"}), "good");
}

TEST(spreading_on_nodes, gives_the_value_to_nodes_that_join_later) {
  for (const char* nodes : {"--orrery-nodes=1", "--orrery-nodes=3"})
    for (const char* pes : {"--orrery-pes=1", "--orrery-pes=2"}) {
      testing::program first({"--scenario=lender", testing::own_world(), nodes, pes});
      first.hear("up");
      EXPECT_EQ(testing::outcome_of({"--scenario=borrower", testing::own_world(), nodes, pes}), "good");
      EXPECT_EQ(first.end(), "good");
    }
}

const orrery::testing::scenarios_of_file of_this({{"values", values},
                                                  {"sharing_of_spread", sharing},
                                                  {"exchanges", exchanges},
                                                  {"troubles", troubles},
                                                  {"earlier_run", earlier_run},
                                                  {"loading_of_handles", loading},
                                                  {"lender", lender},
                                                  {"borrower", borrower}});

}  // namespace spread_tests
}  // namespace orrery
