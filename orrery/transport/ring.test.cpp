// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/ring.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::transport {
namespace ring_tests {

using orrery::testing::test_seed;
using wire::envelope;
using wire::granule;
using wire::record_bytes;
using wire::record_kind;

/// A ring with both its sides, and fences of bytes around it that nobody may touch.
class whole_ring {
 public:
  explicit whole_ring(std::uint64_t capacity)
      : memory_(static_cast<std::byte*>(::operator new(fence + bytes(capacity) + fence, line))),
        size_(bytes(capacity)) {
    std::fill_n(memory_, fence + size_ + fence, std::byte{0});
    std::fill_n(memory_, fence, mark);
    std::fill_n(memory_ + fence + size_, fence, mark);
    header = make_ring(memory_ + fence, capacity, 1, 2);
    producer = ring_producer(*header);
    consumer = ring_consumer(*header, capacity);
  }
  whole_ring(const whole_ring&) = delete;
  whole_ring& operator=(const whole_ring&) = delete;
  ~whole_ring() {
    const auto untouched = [](std::byte b) { return b == mark; };
    EXPECT_TRUE(std::all_of(memory_, memory_ + fence, untouched)) << "somebody wrote in front of the ring";
    EXPECT_TRUE(std::all_of(memory_ + fence + size_, memory_ + fence + size_ + fence, untouched))
        << "somebody wrote behind the ring";
    ::operator delete(memory_, line);
  }
  [[nodiscard]] std::uint64_t capacity() const { return header->capacity; }
  [[nodiscard]] std::size_t index_of(const envelope* e) const {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(e) - header->data());
  }

  ring_header* header;
  ring_producer producer;
  ring_consumer consumer;

 private:
  static constexpr std::align_val_t line{64};
  static constexpr std::size_t fence = 256;
  static constexpr std::byte mark{0xa5};
  static std::size_t bytes(std::uint64_t capacity) { return ring_header::bytes_for(capacity); }

  std::byte* memory_;
  std::size_t size_;
};

/// Fills a record of `bytes` with what only the record of this number has in it.
void fill(envelope& e, std::uint32_t bytes, std::uint64_t number) {
  e.kind = record_kind::message;
  e.padding = 0;
  e.slot = bytes;
  e.handler = number;
  for (std::uint32_t i = 0; i < bytes - granule; ++i)
    e.payload()[i] = static_cast<std::byte>(number * 31 + i * 7 + (i >> 8));
}
/// True if it is just that.
bool holds(envelope& e, std::uint32_t bytes, std::uint64_t number) {
  if (e.kind != record_kind::message || e.slot != bytes || e.handler != number) return false;
  for (std::uint32_t i = 0; i < bytes - granule; ++i)
    if (e.payload()[i] != static_cast<std::byte>(number * 31 + i * 7 + (i >> 8))) return false;
  return true;
}
bool try_send(ring_producer& p, std::uint32_t bytes, std::uint64_t number) {
  envelope* e = p.reserve(bytes);
  if (e == nullptr) return false;
  fill(*e, bytes, number);
  p.commit(bytes);
  return true;
}
/// A size of a record for any number.
std::uint32_t some_size(const ring_producer& p, std::uint64_t any) {
  const std::uint32_t most = p.max_record() / granule;
  return (1 + static_cast<std::uint32_t>(any % most)) * granule;
}

TEST(ring, a_new_one_is_empty) {
  whole_ring r(256);
  EXPECT_EQ(r.consumer.front(), nullptr);
  EXPECT_TRUE(r.producer.drained());
  EXPECT_FALSE(r.consumer.has_unreleased());
}

TEST(ring, a_record_arrives_and_stays_until_it_is_popped) {
  whole_ring r(256);
  ASSERT_TRUE(try_send(r.producer, 64, 7));
  for (int i = 0; i < 2; ++i) {
    envelope* e = r.consumer.front();
    ASSERT_NE(e, nullptr);
    EXPECT_EQ(r.consumer.front_bytes(), 64U);
    EXPECT_TRUE(holds(*e, 64, 7));
  }
  r.consumer.pop();
  EXPECT_EQ(r.consumer.front(), nullptr);
}

TEST(ring, what_is_reserved_and_not_committed_is_not_seen_and_is_reserved_again) {
  whole_ring r(256);
  envelope* e = r.producer.reserve(64);
  ASSERT_NE(e, nullptr);
  fill(*e, 64, 1);
  EXPECT_EQ(r.consumer.front(), nullptr);
  EXPECT_EQ(r.producer.reserve(32), e);
  EXPECT_EQ(r.consumer.front(), nullptr);
}

TEST(ring, a_consumer_that_takes_nothing_more_says_so_without_room) {
  whole_ring r(256);
  EXPECT_FALSE(r.producer.refused());
  for (std::uint64_t n = 0; try_send(r.producer, 32, n); ++n) {
  }
  r.consumer.refuse();
  EXPECT_TRUE(r.producer.refused());
}

// The state of a producer's ring when the consumer is gone.
std::vector<std::uint64_t> left_in(const whole_ring& r) {
  std::vector<std::uint64_t> numbers;
  r.producer.for_each_left([&](const envelope& e, std::uint32_t) { numbers.push_back(e.handler); });
  return numbers;
}
TEST(ring, a_producer_can_tell_what_its_consumer_has_not_given_back) {
  whole_ring r(256);
  EXPECT_TRUE(left_in(r).empty());
  for (std::uint64_t n = 0; n < 40; ++n) {  // round and round, fillers included
    const std::uint32_t bytes = n % 3 == 0 ? 96 : 32;
    ASSERT_TRUE(try_send(r.producer, bytes, n));
    EXPECT_EQ(left_in(r), std::vector{n});
    ASSERT_TRUE(try_send(r.producer, 32, n + 1000));
    EXPECT_EQ(left_in(r), (std::vector{n, n + 1000}));
    for (int i = 0; i < 2; ++i) {
      ASSERT_NE(r.consumer.front(), nullptr);
      r.consumer.pop();
    }
    r.consumer.release_space();
    EXPECT_TRUE(left_in(r).empty());
  }
}
TEST(ring, a_producer_believes_nothing_of_what_a_consumer_could_have_written) {
  whole_ring r(256);
  ASSERT_TRUE(try_send(r.producer, 32, 1));
  ASSERT_TRUE(try_send(r.producer, 32, 2));
  for (const std::uint64_t head : {std::uint64_t{8}, std::uint64_t{96}, ~std::uint64_t{0}, std::uint64_t{1} << 40}) {
    r.header->head.store(head);
    EXPECT_LE(left_in(r).size(), 1U) << head;
  }
  r.header->head.store(0);
  for (const std::uint32_t size : {0U, 8U, 4096U, ~0U}) {
    reinterpret_cast<envelope*>(r.header->data())->size.store(size);
    EXPECT_TRUE(left_in(r).empty()) << size;
  }
}
TEST(ring, a_producer_believes_no_size_that_goes_beyond_the_end) {
  whole_ring r(256);
  for (std::uint64_t n = 0; n < 6; ++n) {
    ASSERT_TRUE(try_send(r.producer, 32, n));
    ASSERT_NE(r.consumer.front(), nullptr);
    r.consumer.pop();
    r.consumer.release_space();
  }
  for (std::uint64_t n = 6; n < 10; ++n) ASSERT_TRUE(try_send(r.producer, 32, n));
  EXPECT_EQ(left_in(r), (std::vector<std::uint64_t>{6, 7, 8, 9}));
  reinterpret_cast<envelope*>(r.header->data() + 192)->size.store(96);
  EXPECT_TRUE(left_in(r).empty());
}

// A producer that dies at any point before commit leaves what it had committed, and nothing else.
RC_GTEST_PROP(ring, a_producer_that_dies_in_the_middle_of_a_record_leaves_only_whole_ones,
              (std::uint8_t log, std::vector<std::uint16_t> sizes)) {
  whole_ring r(std::uint64_t{128} << log % 6);
  std::deque<std::pair<std::uint32_t, std::uint64_t>> sent;
  std::uint64_t number = 0;
  for (const auto any : sizes) {
    const std::uint32_t bytes = some_size(r.producer, any);
    if (any % 5 == 0 && r.consumer.front() != nullptr) {  // so that the ring goes round
      r.consumer.pop();
      r.consumer.release_space();
      sent.pop_front();
    }
    if (!try_send(r.producer, bytes, number)) continue;
    sent.emplace_back(bytes, number++);
  }
  if (envelope* e = r.producer.reserve(r.producer.max_record())) fill(*e, r.producer.max_record(), 12345);
  r.producer = {};  // it is gone
  for (const auto& [bytes, n] : sent) {
    envelope* e = r.consumer.front();
    RC_ASSERT(e != nullptr);
    RC_ASSERT(r.consumer.front_bytes() == bytes);
    RC_ASSERT(holds(*e, bytes, n));
    r.consumer.pop();
  }
  RC_ASSERT(r.consumer.front() == nullptr);
  RC_ASSERT(!r.consumer.corrupt());
}

// Sizes and turns as they come, in rings of all sizes: the same records arrive in the same order,
// none goes over the end of the ring or into another that was not yet read, and reserve fails only
// when the ring is really full.
RC_GTEST_PROP(ring, any_sequence_of_sizes_arrives_equal_and_in_order,
              (std::uint8_t log, std::vector<std::uint32_t> turns)) {
  whole_ring r(std::uint64_t{128} << log % 8);
  struct sent {
    std::uint32_t bytes;
    std::uint64_t number;
    std::size_t index;
  };
  std::deque<sent> model;
  std::uint64_t next = 0;
  const auto take = [&] {
    envelope* e = r.consumer.front();
    RC_ASSERT((e == nullptr) == model.empty());
    if (e == nullptr) return false;
    RC_ASSERT(r.consumer.front_bytes() == model.front().bytes);
    RC_ASSERT(r.index_of(e) == model.front().index);
    RC_ASSERT(holds(*e, model.front().bytes, model.front().number));
    r.consumer.pop();
    model.pop_front();
    return true;
  };
  for (const auto turn : turns) {
    if (turn % 3 == 0) {
      for (std::uint32_t n = turn / 3 % 4 + 1; n > 0 && take();) --n;
      if (turn / 16 % 2 == 0) r.consumer.release_space();
      continue;
    }
    const std::uint32_t bytes = some_size(r.producer, turn / 3);
    envelope* e = r.producer.reserve(bytes);
    if (e == nullptr) {
      RC_ASSERT(!model.empty() || r.consumer.has_unreleased());
      continue;
    }
    const std::size_t at = r.index_of(e);
    RC_ASSERT(at % granule == 0U && at + bytes <= r.capacity());
    for (const sent& s : model) RC_ASSERT(at + bytes <= s.index || s.index + s.bytes <= at);
    fill(*e, bytes, next);
    r.producer.commit(bytes);
    model.push_back({bytes, next++, at});
  }
  while (take()) {
  }
  r.consumer.release_space();
  RC_ASSERT(r.producer.drained());
  RC_ASSERT(!r.consumer.corrupt() && !r.producer.corrupt());
  // The largest record fits wherever the empty ring stands.
  RC_ASSERT(try_send(r.producer, r.producer.max_record(), next));
}

TEST(ring, a_full_one_refuses_and_takes_more_once_space_was_released) {
  for (std::uint64_t capacity = 128; capacity <= 4096; capacity *= 2) {
    whole_ring r(capacity);
    std::uint64_t sent = 0;
    while (try_send(r.producer, granule, sent)) ++sent;
    EXPECT_EQ(sent, capacity / granule - 1) << "one granule stays free";
    EXPECT_FALSE(r.producer.has_moved());
    for (std::uint64_t i = 0; i < sent; ++i) {
      envelope* e = r.consumer.front();
      ASSERT_NE(e, nullptr);
      EXPECT_TRUE(holds(*e, granule, i));
      r.consumer.pop();
    }
    EXPECT_EQ(r.consumer.front(), nullptr);
    r.consumer.release_space();
    EXPECT_TRUE(r.producer.has_moved());
    EXPECT_TRUE(r.producer.drained());
    EXPECT_TRUE(try_send(r.producer, r.producer.max_record(), 0));
  }
}

TEST(ring, a_record_that_does_not_fit_before_the_end_begins_at_the_front) {
  whole_ring r(512);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(try_send(r.producer, 128, i));
    ASSERT_NE(r.consumer.front(), nullptr);
    r.consumer.pop();
  }
  ASSERT_TRUE(try_send(r.producer, 32, 3));  // 96 bytes are left
  ASSERT_NE(r.consumer.front(), nullptr);
  r.consumer.pop();
  r.consumer.release_space();
  envelope* e = r.producer.reserve(128);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(r.index_of(e), 0U);
  EXPECT_EQ(r.consumer.front(), nullptr) << "only the filler is there";
  fill(*e, 128, 4);
  r.producer.commit(128);
  ASSERT_EQ(r.consumer.front(), e);
  EXPECT_TRUE(holds(*e, 128, 4));
}

TEST(ring, a_consumer_hands_space_back_in_quarters_or_when_it_is_told_to) {
  whole_ring r(1024);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(try_send(r.producer, 32, i));
    ASSERT_NE(r.consumer.front(), nullptr);
    r.consumer.pop();
    EXPECT_EQ(r.header->head.load(), i < 7 ? 0U : 256U);
  }
  ASSERT_TRUE(try_send(r.producer, 32, 8));
  ASSERT_NE(r.consumer.front(), nullptr);
  r.consumer.pop();
  EXPECT_TRUE(r.consumer.has_unreleased());
  r.consumer.release_space();
  EXPECT_EQ(r.header->head.load(), 288U);
  EXPECT_FALSE(r.consumer.has_unreleased());
}

TEST(ring, a_producer_is_to_be_woken_only_if_it_waits_and_space_was_released) {
  whole_ring r(1024);
  EXPECT_FALSE(r.consumer.release_space()) << "nothing was read";
  for (const bool waits : {false, true}) {
    r.header->producer_waits.store(waits ? 1 : 0);
    ASSERT_TRUE(try_send(r.producer, 256, 0));
    ASSERT_NE(r.consumer.front(), nullptr);
    EXPECT_EQ(r.consumer.pop(), waits);
    EXPECT_FALSE(r.consumer.release_space()) << "that has been said";
    ASSERT_TRUE(try_send(r.producer, 32, 0));
    ASSERT_NE(r.consumer.front(), nullptr);
    EXPECT_FALSE(r.consumer.pop());
    EXPECT_EQ(r.consumer.release_space(), waits);
  }
}

// --- the other side is broken or hostile ---------------------------------------------------------

/// The ring with its consumer after `before` bytes of records.
void advance(whole_ring& r, std::uint32_t before) {
  for (; before > 0; before -= granule) {
    ASSERT_TRUE(try_send(r.producer, granule, 0));
    ASSERT_NE(r.consumer.front(), nullptr);
    r.consumer.pop();
    r.consumer.release_space();
  }
}

RC_GTEST_PROP(damaged_ring, a_length_that_cannot_be_is_refused, (std::uint32_t size, std::uint8_t before)) {
  whole_ring r(1024);
  const std::uint32_t at = before % 32 * granule;
  advance(r, at);
  auto* e = r.producer.reserve(granule);
  RC_ASSERT(e != nullptr);
  for (const std::uint32_t s : {size, size % 2048, size * granule, (size % 64 + 1) * granule}) {
    if (s == 0 || (s % granule == 0 && s <= 1024 - at)) continue;
    e->kind = record_kind::message;
    e->size.store(s);
    RC_ASSERT(r.consumer.front() == nullptr);
    RC_ASSERT(r.consumer.corrupt());
    RC_ASSERT(r.consumer.front() == nullptr);
  }
}

// A filler leads to the front of the ring, and there is none there: else damaged ones could lead
// round and round for ever.
RC_GTEST_PROP(damaged_ring, a_filler_that_does_not_fill_the_end_is_refused,
              (std::uint8_t length, std::uint8_t before)) {
  whole_ring r(1024);
  const std::uint32_t at = before % 32 * granule;
  const std::uint32_t bytes = (length % 32 + 1) * granule;
  if (at + bytes > 1024 || (at != 0 && at + bytes == 1024)) return;
  advance(r, at);
  auto* e = r.producer.reserve(granule);
  RC_ASSERT(e != nullptr);
  e->kind = record_kind::skip;
  e->size.store(bytes);
  RC_ASSERT(r.consumer.front() == nullptr);
  RC_ASSERT(r.consumer.corrupt());
}

TEST(damaged_ring, nothing_but_fillers_does_not_keep_the_consumer_for_ever) {
  whole_ring r(256);
  for (std::uint32_t at = 0; at < 256; at += granule) {
    auto* e = reinterpret_cast<envelope*>(r.header->data() + at);
    e->kind = record_kind::skip;
    e->size.store(granule);
  }
  EXPECT_EQ(r.consumer.front(), nullptr);
  EXPECT_TRUE(r.consumer.corrupt());
}

TEST(damaged_ring, a_length_that_changes_after_it_was_checked_changes_nothing) {
  whole_ring r(1024);
  ASSERT_TRUE(try_send(r.producer, 64, 1));
  ASSERT_TRUE(try_send(r.producer, 96, 2));
  envelope* e = r.consumer.front();
  ASSERT_NE(e, nullptr);
  e->size.store(512);
  EXPECT_EQ(r.consumer.front_bytes(), 64U);
  r.consumer.pop();
  envelope* second = r.consumer.front();
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(holds(*second, 96, 2));
}

TEST(damaged_ring, a_capacity_that_changes_after_it_was_checked_changes_nothing) {
  whole_ring r(256);
  r.header->capacity = std::uint64_t{1} << 40;
  advance(r, 224);
  auto* e = r.producer.reserve(granule);
  ASSERT_NE(e, nullptr);
  e->kind = record_kind::message;
  e->size.store(64);
  EXPECT_EQ(r.consumer.front(), nullptr);
  EXPECT_TRUE(r.consumer.corrupt());
}

// A head that was never reached would make the producer overwrite what is unread, or its space grow
// without end.
RC_GTEST_PROP(damaged_ring, a_head_that_cannot_be_is_not_believed, (std::uint64_t head)) {
  whole_ring r(256);
  advance(r, 512);
  std::uint64_t sent = 0;
  while (try_send(r.producer, granule, sent)) ++sent;
  RC_ASSERT(sent == 7U);
  if (head >= 512 && head <= 512 + sent * granule) head += 1024;
  r.header->head.store(head);
  RC_ASSERT(r.producer.reserve(granule) == nullptr);
  RC_ASSERT(r.producer.corrupt());
  RC_ASSERT(!r.producer.has_moved());
  RC_ASSERT(!r.producer.drained());
  for (std::uint64_t i = 0; i < sent; ++i) {
    envelope* e = r.consumer.front();
    RC_ASSERT(e != nullptr);
    RC_ASSERT(holds(*e, granule, i));
    r.consumer.pop();
  }
}

// --- two threads ---------------------------------------------------------------------------------

/// Sends records of random sizes through the ring from one thread to another, with pauses at
/// random.
void pump(std::uint64_t capacity, std::uint64_t seed, std::uint64_t count) {
  whole_ring r(capacity);
  std::jthread producer([&, p = r.producer]() mutable {
    std::minstd_rand random(static_cast<std::uint32_t>(seed));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint32_t bytes = some_size(p, random());
      while (!try_send(p, bytes, i)) std::this_thread::yield();
      if (random() % 4096 == 0) std::this_thread::yield();
    }
    while (!p.drained()) std::this_thread::yield();
  });
  std::minstd_rand sizes(static_cast<std::uint32_t>(seed));
  std::minstd_rand random(static_cast<std::uint32_t>(seed) + 1);
  bool good = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t bytes = some_size(r.producer, sizes());
    (void)sizes();
    envelope* e = nullptr;
    while ((e = r.consumer.front()) == nullptr && !r.consumer.corrupt()) {
      r.consumer.release_space();
      std::this_thread::yield();
    }
    if (e == nullptr || !holds(*e, bytes, i) || r.consumer.front_bytes() != bytes) {
      good = false;
      ADD_FAILURE() << "record " << i << " is not what was sent";
      r.header->magic = 0;
      std::abort();  // the producer would wait for ever
    }
    r.consumer.pop();
    if (random() % 4096 == 0) std::this_thread::yield();
  }
  r.consumer.release_space();
  producer.join();
  EXPECT_TRUE(good);
  EXPECT_EQ(r.consumer.front(), nullptr);
  EXPECT_FALSE(r.consumer.corrupt());
}

TEST(ring, carries_records_of_all_sizes_between_two_threads) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t capacity = 128; capacity <= 64 << 10; capacity *= 2)
    pump(capacity, seed + capacity, capacity < 1024 ? 20'000 : 5'000'000 / capacity);
}

}  // namespace ring_tests
}  // namespace orrery::transport
