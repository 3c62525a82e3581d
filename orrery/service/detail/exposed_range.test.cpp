// SPDX-License-Identifier: Apache-2.0
// Another OS process reads a range while it changes.
#include <orrery/scheduler/sanitizers.hpp>
#include <orrery/service/detail/exposed_memory.hpp>
#include <orrery/service/detail/exposed_range.hpp>
#include <orrery/service/detail/one_sided_reader.hpp>
#include <orrery/service/sorted_leaves.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <random>
#include <utility>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace exposed_range_tests {

using orrery::service::exposed_memory;
using orrery::service::exposed_place;
using orrery::service::exposed_range;
using orrery::service::mapped_exposure;
using orrery::service::one_sided_reply;
using orrery::service::one_sided_routes;
using orrery::service::owned_keys;

// A look-up may find any bits while the range changes: keys that cannot have them are not read so.
enum class number_key : std::uint8_t { one, two };
enum class bool_key : bool { no, yes };
enum old_bool_key : bool { old_no, old_yes };
enum class own_order_key { one, two };
[[maybe_unused]] constexpr bool operator<(own_order_key a, own_order_key b) {
  return static_cast<int>(a) > static_cast<int>(b);
}
template <class Key>
constexpr bool exposed = orrery::service::can_be_exposed<Key, int>;
static_assert(exposed<int> && exposed<double> && exposed<char> && exposed<number_key>);
static_assert(!exposed<bool> && !exposed<bool_key> && !exposed<old_bool_key>);
static_assert(!exposed<own_order_key> && !exposed<int*>);

// All words of a value are the same: its key, and how often it was written.
struct value {
  std::array<std::uint64_t, 6> word{};
};
using leaves = orrery::service::sorted_leaves<std::uint32_t, value>;
constexpr std::uint32_t keys = 2000;  // even ones are there at all times

value made(std::uint32_t key, std::uint64_t times) {
  value v;
  v.word.fill(std::uint64_t{key} << 40U | times);
  return v;
}

// The two OS processes share it.
struct board {
  std::atomic<bool> ends;
  std::atomic<std::uint64_t> read;
  std::atomic<std::uint64_t> refused;
  std::atomic<std::uint64_t> torn;
  std::atomic<std::uint64_t> missing;
  std::atomic<std::uint64_t> older;
};

one_sided_routes::route route_to(const exposed_place& p) {
  one_sided_routes::route r;
  r.memory = mapped_exposure::of(p.memory);
  if (r.memory == nullptr) return r;
  r.header = reinterpret_cast<const orrery::service::exposed_header*>(
      r.memory->at(p.header, sizeof(orrery::service::exposed_header)));
  r.id = p.id;
  return r;
}

// Reads until it is told to end.
void read_all(const exposed_place& from, board& b) {
  if (exposed_memory::made() != nullptr) ::_exit(4);  // a child must not write into its parent's
  const auto route = route_to(from);
  if (route.header == nullptr) ::_exit(3);
  std::mt19937 random(7);
  std::array<std::uint64_t, keys> seen{};
  while (!b.ends.load()) {
    const std::uint32_t key = random() % keys;
    one_sided_reply<value> r;
    if (!find_one_sided(route, key, false, r)) {
      ++b.refused;
      continue;
    }
    ++b.read;
    if (!r.value) {
      if (key % 2 == 0) ++b.missing;
      continue;
    }
    for (const std::uint64_t w : r.value->word)
      if (w != r.value->word[0] || w >> 40U != key) {
        ++b.torn;
        break;
      }
    const std::uint64_t times = r.value->word[0] & 0xff'ffff'ffffU;
    if (times < seen[key]) ++b.older;
    seen[key] = times;
  }
}

// Changes a range while another OS process reads it. `closes`: as it must be.
void change_and_read(bool closes, board& b) {
  exposed_memory* const memory = exposed_memory::make();
  ASSERT_NE(memory, nullptr);
  exposed_range exposed(memory);
  leaves items;
  const owned_keys<std::uint32_t> own{{}, {}, {}, 1};
  for (std::uint32_t k = 0; k < keys; k += 2) items.insert_in(items.find_leaf(k), std::uint32_t{k}, made(k, 0));
  exposed.open(own, items);
  const exposed_place place = exposed.place();
  const pid_t child = ::fork();
  if (child == 0) {
    read_all(place, b);
    ::_exit(0);
  }
  std::mt19937 random(5);
  const std::uint64_t enough = orrery::scheduler::slowed_down ? 20'000 : 200'000;
  std::uint64_t times = 0;
  int status = 0;
  while (b.read.load() < enough && times < 100 * enough && ::waitpid(child, &status, WNOHANG) == 0) {
    if (closes) exposed.close();
    for (int i = 0; i < 8; ++i) {
      std::uint32_t key = random() % keys;
      const std::size_t leaf = items.find_leaf(key);
      if (key % 2 == 0) {
        *items.change_in(leaf, key) = made(key, ++times);
      } else if (!items.erase_in(leaf, key)) {
        items.insert_in(leaf, std::move(key), made(key, ++times));
      }
    }
    if (times % 256 == 0) items = leaves(items);  // all of it lies elsewhere, as after a join
    if (closes) exposed.open(own, items);
    if (times % 16 == 0) ::usleep(1);
  }
  b.ends = true;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

class exposed_range_test : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    b = new (at) board{};
  }
  void TearDown() override { ::munmap(b, 4096); }
  board* b = nullptr;
};

TEST_F(exposed_range_test, shows_other_processes_what_it_held_at_one_moment) {
  change_and_read(true, *b);
  EXPECT_GT(b->read.load(), 0U);
  EXPECT_EQ(b->torn.load(), 0U);
  EXPECT_EQ(b->missing.load(), 0U);
  EXPECT_EQ(b->older.load(), 0U);
}
TEST_F(exposed_range_test, would_show_torn_values_if_it_did_not_close) {
  change_and_read(false, *b);
  EXPECT_GT(b->torn.load() + b->missing.load(), 0U);
}
}  // namespace exposed_range_tests
