// SPDX-License-Identifier: Apache-2.0
// Records and blocks between the carriers of several machines, over a network where messages are
// late and overtake those of other pairs, lines are held up or cut in one direction, and machines
// are stopped: what is read is what was written, once, in order, without a gap.
#include <orrery/transport/internal/test_sanitized.hpp>
#include <orrery/transport/mpi/internal/test_cluster.hpp>

#include <algorithm>
#include <thread>

namespace orrery::transport {
namespace chaos_tests {

using testing::ms;
using testing::patience;
using testing::ring_bytes;
using testing::simulated_cluster;
using testing::simulated_machine;

/// A byte of the record or block that has this number in its ring.
std::byte byte_of(std::uint64_t number, std::size_t i) { return static_cast<std::byte>(number * 31 + i * 7); }

/// The two ends of what one machine writes to another.
struct stream {
  stream(simulated_machine& sender, simulated_machine& receiver)
      : from(sender), to(receiver), writer(sender.talk_to(receiver.node())) {}

  void write(std::uint64_t random) {
    const bool is_block = random % 6 == 0;
    const auto bytes = static_cast<std::uint32_t>(wire::granule * (2 + random / 8 % 14));
    wire::envelope* const e = writer.reserve(is_block ? 2 * wire::granule : bytes);
    if (e == nullptr) return;
    if (is_block) {
      const std::uint64_t parts = random / 64 % 8 == 0 ? 3 : 1;
      const std::uint64_t length = 1 + random / 512 % (parts * testing::block_piece);
      const auto memory = from.memory().allocate(length);
      if (!memory) return;
      for (std::uint64_t i = 0; i < length; ++i) memory->data[i] = byte_of(written, i);
      lent[memory->offset] = length;
      const wire::block_ref ref{memory->offset, length};
      std::memcpy(e->payload(), &ref, sizeof ref);
    } else {
      for (std::size_t i = 0; i < bytes - wire::granule; ++i) e->payload()[i] = byte_of(written, i);
    }
    e->padding = 0;
    e->kind = wire::record_kind::message;
    e->form = is_block ? wire::payload_form::block : wire::payload_form::wire;
    e->reply = written++;
    writer.commit(is_block ? 2 * wire::granule : bytes);
  }
  /// Memory of a block is its sender's again. False if there is no room for that now.
  bool give_back(std::uint64_t offset) {
    wire::envelope* const e = writer.reserve(wire::granule);
    if (e == nullptr) return false;
    e->padding = 0;
    e->kind = wire::record_kind::release;
    e->form = wire::payload_form::wire;
    e->reply = offset;
    writer.commit(wire::granule);
    return true;
  }
  /// Reads some records; `back`: the stream in the other direction.
  void read(std::uint64_t most, stream& back) {
    if (!reader) {
      const auto at = to.carrier().mirror_offset(to.node(), from.node());
      if (!at) return;
      const auto memory = to.memory().map(to.memory().node(), *at, ring_header::bytes_for(ring_bytes));
      reader.emplace(*reinterpret_cast<ring_header*>(memory->data()), ring_bytes);
    }
    while (!owed.empty() && back.give_back(owed.front())) owed.pop_front();
    for (; most > 0; --most) {
      wire::envelope* const e = reader->front();
      ASSERT_FALSE(reader->corrupt());
      if (e == nullptr) break;
      if (e->kind == wire::record_kind::release) {
        ASSERT_EQ(back.lent.erase(e->reply), 1) << "a block comes back that was not lent";
        to.memory().release(e->reply);
      } else {
        ASSERT_EQ(e->reply, got) << "from node " << from.node() << " to node " << to.node();
        look_at(*e);
        ++got;
      }
      (void)reader->pop();
    }
    (void)reader->release_space();
  }
  void look_at(wire::envelope& e) {
    std::span<const std::byte> payload(e.payload(), reader->front_bytes() - wire::granule);
    if (e.form == wire::payload_form::block) {
      wire::block_ref ref{};
      std::memcpy(&ref, e.payload(), sizeof ref);
      const auto memory = to.memory().map(to.memory().node(), ref.offset, ref.bytes);
      ASSERT_TRUE(memory);
      payload = *memory;
      owed.push_back(ref.offset);
    }
    for (std::size_t i = 0; i < payload.size(); ++i) ASSERT_EQ(payload[i], byte_of(got, i)) << "record " << got;
  }

  simulated_machine& from;
  simulated_machine& to;
  ring_producer writer;
  std::optional<ring_consumer> reader;
  std::uint64_t written = 0;
  std::uint64_t got = 0;
  std::map<std::uint64_t, std::uint64_t> lent;  // blocks that were not given back
  std::deque<std::uint64_t> owed;               // blocks that are to be given back
};

struct talking_cluster : simulated_cluster {
  explicit talking_cluster(std::uint32_t nodes, std::uint64_t seed) : simulated_cluster(nodes, seed) {
    for (std::uint32_t a = 0; a < nodes; ++a)
      for (std::uint32_t b = 0; b < nodes; ++b)
        if (a != b) streams.try_emplace({a, b}, at(a), at(b));
  }
  void talk_for(std::int64_t time, bool writes) {
    for (const std::int64_t end = net.now + time; net.now < end; net.now += 5 * ms) {
      for (auto& [ends, s] : streams) {
        if (s.from.ended || s.from.stopped) continue;
        if (writes && net.below(3) == 0) s.write(net.random());
      }
      for (auto& [ends, s] : streams) {
        if (s.to.ended || s.to.stopped || is_lost_at(s.to, ends.first)) continue;
        if (net.below(3) == 0) s.read(net.below(8), streams.at({ends.second, ends.first}));
        if (::testing::Test::HasFatalFailure()) return;
      }
      for (std::uint32_t i = 0; i < nodes(); ++i) at(static_cast<std::uint32_t>(net.below(nodes()))).tick();
    }
  }
  static bool is_lost_at(const simulated_machine& m, std::uint32_t node) {
    const auto lost = m.lost();
    return std::ranges::find(lost, node) != lost.end();
  }
  [[nodiscard]] bool has_read_all() const {
    return std::ranges::all_of(streams, [](const auto& of) {
      const stream& s = of.second;
      return s.from.ended || s.to.ended || (s.got == s.written && s.lent.empty());
    });
  }
  /// All that was written between machines that live has been read, and its blocks are back. (A
  /// thread gets memory for blocks of several parts, in its own time.)
  void expect_all_of_the_living() {
    while (!has_read_all()) {
      talk_for(50 * ms, false);
      if (::testing::Test::HasFatalFailure()) return;
      std::this_thread::yield();
    }
    for (std::uint32_t n = 0; n < nodes(); ++n) EXPECT_TRUE(at(n).memory().memory().consistent());
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, stream> streams;
};

TEST(carriers_of_machines, bring_all_records_and_blocks_once_and_in_order_whatever_is_late) {
  const std::uint64_t seed = testing::test_seed();
  std::uint64_t records = 0;
  for (std::uint64_t round = 0; round < 6; ++round) {
    SCOPED_TRACE(fmt::format("seed {}", seed + round));
    talking_cluster c(4, seed + round);
    for (int step = 0; step < 8; ++step) {
      // less than anybody is missed for
      const auto a = static_cast<std::uint32_t>(c.net.below(4));
      const auto b = static_cast<std::uint32_t>(c.net.below(4));
      if (c.net.held_until[{a, b}] + patience / 2 < c.net.now)
        c.hold_up(a, b, static_cast<std::int64_t>(c.net.below(500)) * ms);
      c.talk_for(static_cast<std::int64_t>(100 + c.net.below(400)) * ms, true);
      if (HasFatalFailure()) return;
    }
    c.talk_for(10 * patience, false);
    if (HasFatalFailure()) return;
    for (std::uint32_t n = 0; n < 4; ++n) ASSERT_TRUE(c.at(n).lost().empty() && !c.at(n).ended) << c.at(n).why;
    c.expect_all_of_the_living();
    for (const auto& [ends, s] : c.streams) records += s.got;
  }
  EXPECT_GE(records, 1000);
}

// Cuts of single directions, machines that stop and go on, and reports of lost ones. The first node
// is never stopped.
TEST(carriers_of_machines, bring_no_record_twice_and_leave_no_gap_when_machines_are_lost) {
  const std::uint64_t seed = testing::test_seed();
  std::size_t lost = 0;
  constexpr std::uint64_t rounds = ORRERY_TEST_SANITIZED ? 5 : 15;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE(fmt::format("seed {}", seed + round));
    talking_cluster c(5, seed + round);
    c.talk_for(200 * ms, true);
    for (int step = 0; step < 4; ++step) {
      const auto a = static_cast<std::uint32_t>(c.net.below(5));
      const auto b = static_cast<std::uint32_t>(c.net.below(5));
      switch (c.net.below(5)) {
        case 0:
          if (a != b) c.cut(a, b);
          break;
        case 1:
          if (a != 0) c.at(a).stopped = !c.at(a).stopped;
          break;
        case 2:
          if (a != b && b != 0 && !c.at(a).ended) c.at(a).carrier().report_lost(b, "was reported");
          break;
        default:
          c.hold_up(a, b, static_cast<std::int64_t>(c.net.below(700)) * ms);
          break;
      }
      c.talk_for(static_cast<std::int64_t>(c.net.below(1000)) * ms, true);
      if (HasFatalFailure()) return;
    }
    for (std::uint32_t n = 0; n < 5; ++n) c.at(n).stopped = false;
    c.talk_for(10 * patience, false);
    if (HasFatalFailure()) return;
    ASSERT_FALSE(c.at(0).ended) << c.at(0).why;
    ASSERT_EQ(c.disagreement(), "");
    c.expect_all_of_the_living();
    lost += c.at(0).lost().size();
  }
  EXPECT_GE(lost, rounds / 4) << "hardly anything went wrong";
}

}  // namespace chaos_tests
}  // namespace orrery::transport
