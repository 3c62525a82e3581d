// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/registry.hpp>

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::transport {
namespace registry_tests {

constexpr std::string_view reading_key = "N6orrery4wire10keyed_typeI7readingEE";
constexpr std::string_view long_key = "N6orrery4wire10keyed_typeIlEE";
constexpr std::string_view double_key = "N6orrery4wire10keyed_typeIdEE";
constexpr std::string_view int_key = "N6orrery4wire10keyed_typeIiEE";
constexpr std::string_view void_key = "N6orrery4wire10keyed_typeIvEE";

std::string line(std::string_view field, std::string_view key) {
  return std::string(field) + '=' + std::string(key) + '\n';
}

// A method counter::name(argument) that may have one signature only.
vocabulary::word method(std::uint64_t key, std::string_view name, std::string_view argument, std::uint64_t shape = 1) {
  vocabulary::word w;
  w.key = key;
  w.shape = shape;
  w.place = std::hash<std::string_view>{}(name) | 1;
  w.of = "Counter";
  w.method = name;
  w.parts = line("", void_key) + line("", argument);
  return w;
}
vocabulary of(std::uint64_t id, std::vector<vocabulary::word> words) {
  vocabulary v;
  v.id = id;
  v.words = std::move(words);
  return v;
}

class registry_test : public ::testing::Test {
 protected:
  // Comes, and stays until it leaves.
  result<world_registry::entry> come(const std::string& program, const vocabulary& v) {
    auto e = registry.enter(v, [&](std::uint32_t place) -> std::optional<std::string> {
      const auto it = there.find(place);
      return it != there.end() ? std::optional(it->second) : std::nullopt;
    });
    if (e) there[e->place] = program;
    return e;
  }
  void leave(std::uint32_t place) { there.erase(place); }
  std::string refused(const std::string& program, const vocabulary& v, transport_errc code) {
    const auto e = come(program, v);
    EXPECT_FALSE(e);
    if (e) return "";
    EXPECT_EQ(e.error().code, code);
    return e.error().message;
  }

  segment memory = std::move(*segment::create("registry", world_registry::bytes + 4096));
  world_registry registry{memory, 4096};
  std::map<std::uint32_t, std::string> there;
};

TEST_F(registry_test, gives_a_word_that_two_programs_have_one_number) {
  const auto server = come("server", of(1, {method(10, "tick", int_key), method(11, "tock", int_key)}));
  const auto client = come("client", of(2, {method(12, "more", int_key), method(11, "tock", int_key)}));
  ASSERT_TRUE(server && client);
  EXPECT_EQ(server->numbers, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(client->numbers, (std::vector<std::uint32_t>{2, 1}));
  EXPECT_NE(server->place, client->place);
}

TEST_F(registry_test, lets_nodes_of_one_program_share_a_place) {
  const vocabulary v = of(1, {method(10, "tick", int_key)});
  const auto first = come("server", v);
  const auto second = come("server", v);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->place, second->place);
  EXPECT_EQ(first->numbers, second->numbers);
  EXPECT_EQ(registry.numbers_at(first->place, v), first->numbers);
  EXPECT_EQ(registry.numbers_at(first->place, of(2, {method(10, "tick", int_key)})), std::nullopt);
  EXPECT_EQ(registry.numbers_at(no_vocabulary, v), std::nullopt);
}

TEST_F(registry_test, refuses_another_signature_and_names_both) {
  ASSERT_TRUE(come("ms", of(1, {method(10, "tick", long_key)})));
  EXPECT_EQ(refused("client", of(2, {method(20, "tick", int_key)}), transport_errc::different_build),
            "void Counter::tick(int) here, void Counter::tick(long) in program ms");
}

TEST_F(registry_test, refuses_another_field_and_names_it) {
  const auto with_field = [](std::uint64_t id, std::uint64_t shape, std::string_view high) {
    vocabulary v = of(id, {method(10, "read", reading_key, shape)});
    v.types.push_back({reading_key, "16\n" + line("low", double_key) + line("high", high)});
    v.words[0].types = {0};
    return v;
  };
  ASSERT_TRUE(come("ms", with_field(1, 100, double_key)));
  EXPECT_EQ(refused("client", with_field(2, 200, long_key), transport_errc::different_build),
            "reading::high is long here, double in program ms (Counter::read)");
}

TEST_F(registry_test, refuses_swapped_fields_and_shows_both_orders) {
  const auto with_fields = [](std::uint64_t id, std::string_view a, std::string_view b) {
    vocabulary v = of(id, {method(10, "read", reading_key, id)});
    v.types.push_back({reading_key, "16\n" + line(a, double_key) + line(b, double_key)});
    v.words[0].types = {0};
    return v;
  };
  ASSERT_TRUE(come("ms", with_fields(1, "low", "high")));
  EXPECT_EQ(refused("client", with_fields(2, "high", "low"), transport_errc::different_build),
            "reading is {double high, double low; 16 bytes} here, {double low, double high; 16 bytes} in program ms "
            "(Counter::read)");
}

TEST_F(registry_test, says_how_many_more_differ) {
  ASSERT_TRUE(come("ms", of(1, {method(10, "tick", long_key), method(11, "tock", long_key)})));
  const std::string why = refused("client", of(2, {method(20, "tick", int_key), method(21, "tock", int_key)}),
                                  transport_errc::different_build);
  EXPECT_TRUE(why.ends_with(", and 1 more")) << why;
}

TEST_F(registry_test, takes_what_differs_from_a_program_that_has_left) {
  const auto old = come("ms", of(1, {method(10, "tick", long_key, 1)}));
  ASSERT_TRUE(old);
  leave(old->place);
  const auto now = come("ms", of(2, {method(10, "tick", long_key, 2)}));
  ASSERT_TRUE(now);
  EXPECT_NE(now->numbers, old->numbers) << "what the old one had sent is not to be read as something else";
}

TEST_F(registry_test, keeps_the_numbers_of_programs_that_come_and_go) {
  const auto service = come("service", of(1, {method(10, "tick", int_key)}));
  ASSERT_TRUE(service);
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t kind = 100 + static_cast<std::uint64_t>(i % 3);
    const auto client = come("client", of(kind, {method(10, "tick", int_key), method(kind, "own", int_key)}));
    ASSERT_TRUE(client);
    numbers.insert(client->numbers.begin(), client->numbers.end());
    leave(client->place);
  }
  EXPECT_EQ(numbers.size(), 1U + 3U) << "of `tick`, and of three words `own`";
}

TEST_F(registry_test, gives_the_places_of_programs_that_have_left_away) {
  const auto service = come("service", of(1, {method(10, "tick", int_key)}));
  ASSERT_TRUE(service);
  for (std::uint64_t i = 0; i < 10 * world_registry::max_vocabularies; ++i) {
    const auto client = come("client", of(100 + i, {method(10, "tick", int_key), method(100 + i, "own", int_key)}));
    ASSERT_TRUE(client);
    EXPECT_NE(client->place, service->place);
    EXPECT_EQ(client->numbers[0], service->numbers[0]);
    EXPECT_EQ(client->numbers[1], i + 1) << "numbers are never used again";
    leave(client->place);
  }
}

TEST_F(registry_test, refuses_more_programs_at_a_time_than_it_has_places) {
  for (std::uint64_t i = 0; i < world_registry::max_vocabularies; ++i)
    ASSERT_TRUE(come("p", of(i + 1, {method(7, "m", int_key)}))) << i;
  const std::string why = refused("one more", of(1000, {method(7, "m", int_key)}), transport_errc::full);
  EXPECT_NE(why.find("64 different programs"), std::string::npos) << why;
}

TEST_F(registry_test, says_less_when_texts_do_not_fit) {
  vocabulary v = of(1, {method(10, "tick", long_key)});
  const std::string large(world_registry::place_bytes, 'x');
  v.types.push_back({reading_key, large});
  ASSERT_TRUE(come("ms", v));
  EXPECT_EQ(refused("client", of(2, {method(20, "tick", int_key)}), transport_errc::different_build),
            "void Counter::tick(int) here, void Counter::tick(long) in program ms");
}

TEST_F(registry_test, survives_whatever_others_write_into_it) {
  ASSERT_TRUE(come("ms", of(1, {method(10, "tick", long_key), method(11, "tock", int_key)})));
  std::vector<std::byte> good(3 * 4096);
  std::memcpy(good.data(), memory.data() + 4096, good.size());
  std::uint64_t state = 1;
  for (int run = 0; run < 2000; ++run) {
    std::memcpy(memory.data() + 4096, good.data(), good.size());
    for (int i = 0; i < 8; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      // The states of places, their headers, or words and texts.
      const std::size_t at = (state >> 33) % 3 == 0 ? (state >> 40) % 64 : 4096 + (state >> 40) % 400;
      memory.data()[4096 + at] = static_cast<std::byte>(state >> 24);
    }
    const vocabulary mine = of(2, {method(20, "tick", int_key), method(11, "tock", int_key)});
    if (const auto e = come("client", mine)) {
      EXPECT_EQ(e->numbers.size(), 2U);
      (void)registry.numbers_at(e->place, mine);
    }
    there = {{0, "ms"}};
  }
}

}  // namespace registry_tests
}  // namespace orrery::transport
