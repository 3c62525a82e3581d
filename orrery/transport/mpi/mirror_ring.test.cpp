// SPDX-License-Identifier: Apache-2.0
// A ring, frames, its mirror and credit, as a carrier uses them, on one thread: what is read is
// what was written.
#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/mpi/mirror_ring.hpp>
#include <orrery/transport/mpi/outgoing_ring.hpp>

#include <algorithm>
#include <deque>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace orrery::transport {
namespace mirror_ring_tests {

constexpr std::uint64_t capacity = 8192;

/// Shared, as that of nodes.
struct memory_of_ring {
  explicit memory_of_ring(std::uint64_t ring_bytes)
      : bytes(static_cast<std::byte*>(::mmap(nullptr, ring_header::bytes_for(ring_bytes), PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
              ring_header::bytes_for(ring_bytes)) {
    prepare_ring_memory(bytes, false);
    header = make_ring(bytes.data(), ring_bytes, 1, 2);
  }
  memory_of_ring(const memory_of_ring&) = delete;
  memory_of_ring& operator=(const memory_of_ring&) = delete;
  ~memory_of_ring() { ::munmap(bytes.data(), bytes.size()); }
  [[nodiscard]] std::uint64_t resident() const { return resident_bytes(bytes); }

  std::span<std::byte> bytes;
  ring_header* header = nullptr;
};

/// Both ends of a ring between machines. Frames are lists here, so that they may be late.
struct two_ends final : outgoing_ring::user {
  explicit two_ends(std::uint64_t ring_bytes = capacity) : there(ring_bytes), here(ring_bytes) {}
  memory_of_ring there;
  memory_of_ring here;
  ring_producer producer{*there.header};
  outgoing_ring outgoing{*there.header, 0, 1, 2};
  mirror_ring mirror{*here.header, 0, 1, 2};
  ring_consumer consumer{*here.header, here.header->capacity};
  std::uint64_t blocks_sent = 0;
  std::vector<std::uint64_t> late_blocks;  // positions of records whose blocks are on their way

  std::uint64_t send_block(std::uint64_t, std::uint64_t) override { return ++blocks_sent; }
  std::uint64_t release_block(std::uint64_t offset) override { return offset + 1000; }

  bool write(std::uint32_t bytes, std::uint64_t number, wire::payload_form form = wire::payload_form::wire,
             wire::record_kind kind = wire::record_kind::message) {
    wire::envelope* const e = producer.reserve(bytes);
    if (e == nullptr) return false;
    e->kind = kind;
    e->form = form;
    e->padding = 0;
    e->reply = number;
    for (std::uint32_t i = 0; i < bytes - wire::granule; ++i) e->payload()[i] = static_cast<std::byte>(number + i);
    producer.commit(bytes);
    return true;
  }
  [[nodiscard]] frame take() {
    frame f;
    f.begin(0);
    outgoing.take(f, *this);
    return f;
  }
  /// False if the mirror refuses it.
  bool bring(frame& f) {
    frame_reader reader(f.finish(), 0);
    bool good = true;
    while (const auto item = reader.next()) {
      if (item->head.kind == section_kind::records)
        good = good && mirror.fill(item->head.position, item->payload, item->head.word);
      if (item->head.kind == section_kind::block) {
        good = good && mirror.fill_block(item->head.position, item->payload);
        late_blocks.push_back(item->head.position);
      }
      (void)mirror.show();
    }
    return good && !reader.damaged() && !mirror.damaged();
  }
  void bring_blocks() {
    for (const std::uint64_t p : late_blocks) mirror.complete_block(p, 0);
    late_blocks.clear();
    (void)mirror.show();
  }
  /// The number of the next record, after its bytes were compared; 0 if there is none.
  std::uint64_t read() {
    wire::envelope* const e = consumer.front();
    if (e == nullptr) return 0;
    const std::uint64_t number = e->reply;
    if (e->form == wire::payload_form::wire)
      for (std::uint32_t i = 0; i < consumer.front_bytes() - wire::granule; ++i)
        if (e->payload()[i] != static_cast<std::byte>(number + i)) return ~std::uint64_t{0};
    (void)consumer.pop();
    return number;
  }
  void say_credit() {
    const mirror_ring::credit c = mirror.owed();
    ASSERT_TRUE(outgoing.give_back(c.position, c.word));
    mirror.has_said(c);
  }
};

TEST(a_ring_between_machines, grows_under_load_and_gives_its_memory_back_when_it_is_idle) {
  constexpr std::uint64_t large = 128 << 10;
  constexpr std::uint64_t small = 2 * ring_page;
  two_ends t(large);
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  for (int round = 0; round < 5; ++round) {
    EXPECT_LE(t.there.resident(), small);
    EXPECT_LE(t.here.resident(), small);
    while (t.write(1024, written + 1)) ++written;
    while (t.outgoing.has_more()) {
      frame f = t.take();
      ASSERT_TRUE(t.bring(f));
    }
    EXPECT_GE(t.there.resident(), large * 3 / 4);
    EXPECT_GE(t.here.resident(), large * 3 / 4);
    t.mirror.reclaim();
    EXPECT_FALSE(t.outgoing.is_idle()) << "what is in it nobody has read";
    while (t.read() == read + 1) ++read;
    EXPECT_EQ(read, written) << "round " << round;
    (void)t.consumer.release_space();
    t.say_credit();
    t.mirror.reclaim();  // idle since the last look
    ASSERT_TRUE(t.outgoing.is_idle());
    t.outgoing.reclaim();
    EXPECT_TRUE(t.producer.drained());
  }
}

TEST(a_ring_between_machines, keeps_its_memory_while_it_is_in_use) {
  constexpr std::uint64_t large = 128 << 10;
  two_ends t(large);
  std::uint64_t written = 0;
  for (int round = 0; round < 4; ++round) {
    while (t.write(1024, written + 1)) ++written;
    while (t.outgoing.has_more()) {
      frame f = t.take();
      ASSERT_TRUE(t.bring(f));
    }
    while (t.read() != 0) {
    }
    (void)t.consumer.release_space();
    t.say_credit();
    t.mirror.reclaim();
    EXPECT_FALSE(t.outgoing.is_idle()) << "much went through it since the last look";
    EXPECT_GE(t.here.resident(), large * 3 / 4);
  }
}

TEST(a_ring_between_machines, gives_all_records_once_and_in_order_whatever_is_late) {
  std::mt19937_64 random(testing::test_seed());
  two_ends t;
  std::deque<frame> on_their_way;
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  constexpr std::uint64_t all = 20'000;
  const auto below = [&](std::uint64_t n) { return random() % n; };
  while (read < all) {
    switch (below(6)) {
      case 0:
      case 1: {
        const bool is_block = below(5) == 0;
        const auto bytes = static_cast<std::uint32_t>(wire::granule * (2 + below(60)));
        if (written < all &&
            t.write(bytes, written + 1, is_block ? wire::payload_form::block : wire::payload_form::wire))
          ++written;
        break;
      }
      case 2:
        if (t.outgoing.has_more()) on_their_way.push_back(t.take());
        break;
      case 3:
        if (on_their_way.empty()) break;
        ASSERT_TRUE(t.bring(on_their_way.front()));
        on_their_way.pop_front();
        break;
      case 4:
        if (below(2) == 0) t.bring_blocks();
        for (std::uint64_t n = below(8); n > 0; --n) {
          const std::uint64_t number = t.read();
          if (number == 0) break;
          ASSERT_EQ(number, read + 1);
          ++read;
        }
        break;
      default:
        (void)t.consumer.release_space();
        t.say_credit();
        t.mirror.reclaim();
        if (t.outgoing.is_idle()) t.outgoing.reclaim();
        break;
    }
    ASSERT_FALSE(t.consumer.corrupt());
  }
  EXPECT_EQ(t.consumer.read(), t.producer.written());
}

TEST(a_ring_between_machines, splits_records_that_are_larger_than_a_frame_has_room) {
  two_ends t;
  ASSERT_TRUE(t.write(2048, 7));
  frame f;
  f.begin(0);
  // All but room for a part of the record.
  f.add({section_kind::ask, static_cast<std::uint32_t>(f.room() - 2 * sizeof(section) - 1000), 0, 0, 0, 0});
  t.outgoing.take(f, t);
  ASSERT_TRUE(t.bring(f));
  EXPECT_EQ(t.read(), 0) << "a part of a record was shown";
  frame rest = t.take();
  ASSERT_TRUE(t.bring(rest));
  EXPECT_EQ(t.read(), 7);
}

TEST(a_ring_between_machines, shows_nothing_behind_a_block_that_is_not_there) {
  two_ends t;
  ASSERT_TRUE(t.write(64, 1));
  ASSERT_TRUE(t.write(64, 2, wire::payload_form::block));
  ASSERT_TRUE(t.write(64, 3));
  frame f = t.take();
  ASSERT_TRUE(t.bring(f));
  EXPECT_EQ(t.read(), 1);
  EXPECT_EQ(t.read(), 0);
  t.bring_blocks();
  EXPECT_EQ(t.read(), 2);
  EXPECT_EQ(t.read(), 3);
}

TEST(a_ring_between_machines, names_a_block_that_is_given_back_as_its_sender_does) {
  two_ends t;
  ASSERT_TRUE(t.write(32, 5, wire::payload_form::wire, wire::record_kind::release));
  frame f = t.take();
  ASSERT_TRUE(t.bring(f));
  EXPECT_EQ(t.read(), 1005);
}

TEST(a_ring_between_machines, refuses_credit_for_what_was_never_sent) {
  two_ends t;
  ASSERT_TRUE(t.write(64, 1));
  EXPECT_FALSE(t.outgoing.give_back(64, 0)) << "it is not in a frame yet";
  (void)t.take();
  EXPECT_TRUE(t.outgoing.give_back(64, 3));
  EXPECT_EQ(t.producer.stops(), 3);
  EXPECT_FALSE(t.outgoing.give_back(0, 3)) << "it was released before";
  EXPECT_FALSE(t.outgoing.give_back(~std::uint64_t{0}, 0));
}

TEST(a_mirror, refuses_bytes_at_other_positions_and_more_than_it_has_room_for) {
  two_ends t;
  const std::vector<std::byte> bytes(64);
  EXPECT_FALSE(t.mirror.fill(32, bytes, 64));
  EXPECT_FALSE(t.mirror.fill(0, bytes, 32));
  EXPECT_FALSE(t.mirror.fill(0, bytes, capacity));
  EXPECT_FALSE(t.mirror.fill(0, std::span(bytes).first(40), 64));
  EXPECT_TRUE(t.mirror.fill(0, bytes, 64));
  (void)t.mirror.show();  // a record of no bytes
  EXPECT_TRUE(t.mirror.damaged());
}

// Any frame is taken or refused, and what is read from the mirror stays inside of it.
TEST(a_mirror, survives_frames_with_random_bytes) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 2'000; ++round) {
    two_ends t;
    for (std::uint64_t n = 1; n < 5; ++n) ASSERT_TRUE(t.write(64 * static_cast<std::uint32_t>(n), n));
    frame f = t.take();
    const auto bytes = f.finish();
    std::vector<std::byte> changed(bytes.begin(), bytes.end());
    for (int i = 0; i < 3; ++i) changed[random() % changed.size()] = static_cast<std::byte>(random());
    frame_reader reader(changed, 0);
    while (const auto item = reader.next()) {
      if (item->head.kind == section_kind::records)
        (void)t.mirror.fill(item->head.position, item->payload, item->head.word);
      (void)t.mirror.show();
    }
    for (int n = 0; n < 10 && t.read() != 0; ++n) {
    }
  }
}

}  // namespace mirror_ring_tests
}  // namespace orrery::transport
