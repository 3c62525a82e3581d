// SPDX-License-Identifier: Apache-2.0
// What a damaged or forged message can do: be refused, and cost no more memory than its size
// justifies. The rest (no read out of bounds) is the address sanitizer's to see.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/wire/error.hpp>
#include <orrery/wire/exception.hpp>
#include <orrery/wire/internal/test_message.hpp>
#include <orrery/wire/serialize.hpp>

namespace {

// Bytes asked of operator new by this thread.
thread_local std::size_t allocated = 0;

}  // namespace

// The thread sanitizer of Clang brings its own and lets nobody replace it; there, nothing is
// counted.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ORRERY_TEST_CANNOT_COUNT 1
#endif
#endif
#ifndef ORRERY_TEST_CANNOT_COUNT
// Not inlined, so that the compiler does not match malloc with delete, and delete with free.
[[gnu::noinline]] void* operator new(std::size_t n) {
  allocated += n;
  if (void* p = std::malloc(n != 0 ? n : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

namespace orrery {
namespace serialize_hostile_tests {

using wire::encode;
using wire::message;

struct record {
  std::uint32_t id = 0;
  std::string name;
  std::vector<double> values;
  std::vector<std::string> words;
  std::optional<std::vector<record>> more;
  std::variant<bool, std::string, std::unique_ptr<record>> choice;
  std::map<std::string, std::vector<bool>> map;
  std::unordered_map<std::uint16_t, std::deque<std::string>> table;
  std::unordered_set<std::string> set;
  std::list<std::shared_ptr<std::string>> list;
};

record sample(int depth) {
  record r;
  r.id = 7;
  r.name = "a name of some length";
  r.values = {1, 2, 3};
  r.words = {"one", "two", "", "four"};
  if (depth != 0) {
    r.more.emplace();
    r.more->push_back(sample(depth - 1));
    r.choice = std::make_unique<record>(sample(depth - 1));
  } else {
    r.choice = std::string("leaf");
  }
  r.map = {{"a", {true, false}}, {"b", std::vector<bool>(20)}};
  r.table = {{1, {"x", "y"}}, {2, {}}};
  r.set = {"p", "q"};
  r.list = {std::make_shared<std::string>("shared"), nullptr};
  return r;
}

// An empty std::deque takes 640 bytes and, on the wire, 4: nothing here is worse. The constant is
// for the exception that is thrown.
void expect_modest(std::size_t message_size) {
  EXPECT_LE(allocated, 200 * message_size + 4096) << "for a message of " << message_size;
}

// Reads the message, which may be refused, and checks the memory that took.
template <class T>
void read_hostile(const message& m) {
  allocated = 0;
  try {
    reader r(m.bytes());
    (void)read<T>(r);
  } catch (const bad_message&) {
  }
  expect_modest(m.size());
}

TEST(hostile, every_truncation_of_a_message_is_refused) {
  const message m = encode(sample(2));
  for (std::size_t n = 0; n != m.size(); ++n) {
    const message truncated = m.first(n);
    allocated = 0;
    reader r(truncated.bytes());
    EXPECT_THROW((void)read<record>(r), bad_message) << n;
    expect_modest(m.size());
  }
}

TEST(hostile, every_byte_may_be_any_other) {
  const message m = encode(sample(1));
  for (std::size_t i = 0; i != m.size(); ++i) {
    const std::byte good = m.bytes()[i];
    for (const int bad : {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff}) {
      m.bytes()[i] = static_cast<std::byte>(bad);
      read_hostile<record>(m);
    }
    m.bytes()[i] = good;
  }
}

TEST(hostile, many_bytes_may_be_any_other) {
  const message good = encode(sample(2));
  std::minstd_rand random(42);
  for (int i = 0; i != 5000; ++i) {
    const message m(good.bytes());
    for (unsigned flips = 1 + random() % 8; flips != 0; --flips) {
      m.bytes()[random() % m.size()] = static_cast<std::byte>(random());
    }
    read_hostile<record>(m);
  }
}

TEST(hostile, lengths_of_any_size_allocate_next_to_nothing) {
  for (const std::uint64_t n :
       {std::uint64_t{1000}, std::uint64_t{1} << 20, std::uint64_t{1} << 32, std::uint64_t{1} << 61, UINT64_MAX}) {
    const message m =
        n < wire::long_length ? encode(static_cast<std::uint32_t>(n), 'x') : encode(wire::long_length, n, 'x');
    read_hostile<std::string>(m);
    read_hostile<std::vector<double>>(m);
    read_hostile<std::vector<std::string>>(m);
    read_hostile<std::vector<bool>>(m);
    read_hostile<std::vector<std::optional<std::array<double, 1000>>>>(m);
    read_hostile<std::deque<int>>(m);
    read_hostile<std::list<std::tuple<>>>(m);
    read_hostile<std::unordered_set<int>>(m);
    read_hostile<std::unordered_map<std::string, std::string>>(m);
    read_hostile<std::span<const double>>(m);
    read_hostile<std::string_view>(m);
    read_hostile<wire_exception>(m);
  }
}

TEST(hostile, elements_that_are_large_here_and_small_in_the_message_come_one_by_one) {
  // 100 elements of one byte each are announced and there, but no room is made for 100 x 8,008.
  using large = std::optional<std::array<double, 1000>>;
  const message m = encode(std::vector<large>(100));
  ASSERT_EQ(m.size(), 104u);
  m.bytes()[4 + 10] = std::byte{7};  // the 11th is damaged
  allocated = 0;
  reader r(m.bytes());
  EXPECT_THROW((void)read<std::vector<large>>(r), bad_message);
  EXPECT_LT(allocated, 20u * sizeof(large));
}

}  // namespace serialize_hostile_tests
}  // namespace orrery
