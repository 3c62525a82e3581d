// SPDX-License-Identifier: Apache-2.0
// The part of the carrier that receives. Nothing that came from another node is believed before it was checked.
#include <orrery/transport/mpi/carrier.hpp>

#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/wait.hpp>

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace orrery::transport {

namespace {

constexpr int receives_in_a_row = 8;
constexpr std::uint64_t largest_piece = std::uint64_t{1} << 30;
constexpr std::uint64_t largest_block = std::uint64_t{1} << 40;

}  // namespace

// Frames are looked at in the order in which their receives were posted, so those of one node are in order.
bool mpi_carrier::receive() {
  bool any = false;
  for (int i = 0; i < receives_in_a_row; ++i) {
    posted_receive& r = pool_[oldest_];
    std::uint32_t node = 0;
    std::uint64_t bytes = 0;
    const engine::outcome o = engine_.test(r.request, node, bytes);
    if (o == engine::outcome::pending) return any;
    if (o == engine::outcome::done && node < peers_.size() && bytes <= frame::capacity)
      receive_frame(node, r.memory.memory().first(bytes));
    if (!engine_.receive(engine::any_node, 0, r.memory.memory(), r.request)) {
      fatal_(fmt::format("node {} cannot receive any more: {}: it ends", map_.own(), engine_.error()));
      return any;
    }
    oldest_ = (oldest_ + 1) % pool_.size();
    any = true;
  }
  return any;
}

void mpi_carrier::receive_frame(std::uint32_t node, std::span<const std::byte> bytes) {
  peer& from = peers_[node];
  if (from.closed || from.left) return;
  from.heard_ns = real_now_ns();
  frame_reader reader(bytes, node);
  bool good = true;
  while (good && !from.closed && !from.left) {
    const auto item = reader.next();
    if (!item) break;
    good = receive_section(from, *item);
  }
  if (!good || reader.damaged()) suspect(node, fmt::format("has sent node {} what cannot be", map_.own()));
}

bool mpi_carrier::receive_section(peer& from, const frame_reader::item& item) {
  switch (item.head.kind) {
    case section_kind::open:
      return receive_open(from, item.head);
    case section_kind::records:
      return receive_records(from, item);
    case section_kind::block:
      return receive_block(from, item);
    case section_kind::credit:
      return receive_credit(from, item.head);
    case section_kind::state:
      return receive_state(from, item);
    case section_kind::ask:
      if (from.far) queue_counters(from, item.head.word);
      return true;
    case section_kind::counters:
      return receive_counters(from, item);
  }
  return false;
}

mirror_ring* mpi_carrier::find_mirror(peer& from, std::uint32_t from_pe, std::uint32_t to_pe) noexcept {
  const auto it =
      std::ranges::find_if(from.mirrors, [&](const auto& m) { return m->from() == from_pe && m->to() == to_pe; });
  return it != from.mirrors.end() ? it->get() : nullptr;
}

bool mpi_carrier::receive_open(peer& from, const section& s) {
  constexpr std::uint64_t least = 4096;
  constexpr std::uint64_t most = std::uint64_t{1} << 30;
  if (!from.far || map_.node_of(s.from_pe) != from.node || map_.node_of(s.to_pe) != map_.own() ||
      !std::has_single_bit(s.word) || s.word < least || s.word > most ||
      find_mirror(from, s.from_pe, s.to_pe) != nullptr)
    return false;
  const std::uint64_t bytes = ring_header::bytes_for(s.word);
  auto memory = local_.allocate_beyond(bytes);
  if (!memory) {
    fatal_(fmt::format("node {} has no memory for a ring from PE {}: {}: it ends", map_.own(), s.from_pe,
                       memory.error().message));
    return false;
  }
  if (!memory->zeroed) std::memset(memory->data, 0, bytes);
  ring_header* const header = make_ring(memory->data, s.word, s.from_pe, s.to_pe);
  from.mirrors.push_back(std::make_unique<mirror_ring>(*header, memory->offset, s.from_pe, s.to_pe));
  {
    const std::scoped_lock lock{table_mutex_};
    mirror_table_[std::uint64_t{s.to_pe} << 32 | s.from_pe] = memory->offset;
  }
  bell_of(s.to_pe).announce.fetch_add(1, std::memory_order_release);  // SYNC: with links::take_news
  notify(bell_of(s.to_pe), true);
  return true;
}

void mpi_carrier::show(mirror_ring& m) {
  if (m.show()) notify(bell_of(m.to()), true);
}

bool mpi_carrier::receive_records(peer& from, const frame_reader::item& item) {
  mirror_ring* const m = find_mirror(from, item.head.from_pe, item.head.to_pe);
  if (m == nullptr || !m->fill(item.head.position, item.payload, item.head.word)) return false;
  show(*m);
  return !m->damaged();
}

bool mpi_carrier::receive_block(peer& from, const frame_reader::item& item) {
  mirror_ring* const m = find_mirror(from, item.head.from_pe, item.head.to_pe);
  constexpr std::size_t ref_at = wire::granule;
  if (m == nullptr || item.payload.size() != ref_at + sizeof(wire::block_ref)) return false;
  wire::block_ref ref{};
  std::memcpy(&ref, item.payload.data() + ref_at, sizeof ref);
  if (ref.bytes == 0 || ref.bytes > largest_block) return false;
  auto memory = local_.allocate_beyond(ref.bytes);
  if (!memory) {
    fatal_(fmt::format("node {} has no memory for {} bytes from PE {}: {}: it ends", map_.own(), ref.bytes,
                       item.head.from_pe, memory.error().message));
    return false;
  }
  guests_[memory->offset] = {from.node, ref.offset};
  ref.offset = memory->offset;
  std::byte record[ref_at + sizeof ref];
  std::memcpy(record, item.payload.data(), ref_at);
  std::memcpy(record + ref_at, &ref, sizeof ref);
  if (!m->fill_block(item.head.position, record)) return false;
  arrival a{from.node, m, item.head.position, memory->offset, {}};
  for (std::uint64_t at = 0; at < ref.bytes; at += largest_piece) {
    engine::request& r = a.pieces.emplace_back();
    const std::span piece(memory->data + at, std::min(largest_piece, ref.bytes - at));
    if (!engine_.receive(from.node, static_cast<int>(item.head.word), piece, r)) return false;
  }
  arrivals_.push_back(std::move(a));
  return true;
}

bool mpi_carrier::finish_arrivals() {
  bool any = false;
  for (auto a = arrivals_.begin(); a != arrivals_.end();) {
    std::uint32_t node = 0;
    std::uint64_t bytes = 0;
    engine::outcome last = engine::outcome::done;
    while (!a->pieces.empty() && last == engine::outcome::done) {
      last = engine_.test(a->pieces.back(), node, bytes);
      if (last == engine::outcome::done) a->pieces.pop_back();
    }
    if (last == engine::outcome::failed) {
      suspect(a->node, engine_.error());
      if (peers_[a->node].closed) return true;  // which has changed the list
      a = arrivals_.erase(a);
    } else if (last == engine::outcome::done) {
      a->into->complete_block(a->position);
      show(*a->into);
      a = arrivals_.erase(a);
      any = true;
    } else {
      ++a;
    }
  }
  return any;
}

bool mpi_carrier::receive_credit(peer& from, const section& s) {
  const auto it =
      std::ranges::find_if(from.rings, [&](const auto& r) { return r->from() == s.from_pe && r->to() == s.to_pe; });
  if (it == from.rings.end()) return true;  // it was given back meanwhile
  outgoing_ring& ring = **it;
  if (!ring.give_back(s.position, s.word)) return false;
  if (s.word >> 32 != 0) bell_of(s.from_pe).announce.fetch_add(1, std::memory_order_release);  // SYNC: take_news
  // SYNC: Dekker with the PE, which sets producer_waits, fences, and looks at the head once more.
  fence_light();
  if (s.word >> 32 != 0 || ring.is_waited_for()) ring_doorbell(bell_of(s.from_pe), true);
  return true;
}

bool mpi_carrier::receive_state(peer& from, const frame_reader::item& item) {
  const std::uint32_t about = item.head.from_pe;
  if (about >= peers_.size()) return false;
  const std::string how(reinterpret_cast<const char*>(item.payload.data()), item.payload.size());
  switch (static_cast<node_news>(item.head.word)) {
    case node_news::here:
      return true;
    case node_news::leaving:
      members_.change(from.node, node_state::leaving);
      return true;
    case node_news::left:
      from.left = true;
      from.rings.clear();
      forget_question(from.node);
      members_.change(from.node, node_state::left);
      return true;
    case node_news::lost:
      if (from.node != 0) return false;
      if (about == map_.own())
        fatal_(fmt::format("node {} is taken for lost by the first node of the world, as it {}: it ends", about, how));
      else
        lose(about, how);
      return true;
    case node_news::suspect:
      if (map_.own() != 0 || about == 0) return false;
      lose(about, how);
      return true;
  }
  return false;
}

bool mpi_carrier::receive_counters(peer& from, const frame_reader::item& item) {
  const cluster_map::place& there = map_.at(from.node);
  const section& s = item.head;
  const std::uint64_t first = s.from_pe;
  const std::uint64_t count = s.to_pe;
  if (first < there.first_pe || first + count > std::uint64_t{there.first_pe} + there.pe_count ||
      item.payload.size() != count * counters_per_pe * sizeof(std::uint64_t))
    return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t words[counters_per_pe];
    std::memcpy(words, item.payload.data() + i * sizeof words, sizeof words);
    auto& copy = copies_[first + i].words;
    constexpr std::size_t idle = counters_per_pe - 2;
    for (std::size_t w = 0; w < counters_per_pe; ++w)
      if (w != idle) copy[w].store(words[w], std::memory_order_relaxed);
    copy[idle].store(words[idle], std::memory_order_release);  // SYNC: with node::world_if_idle
  }
  if (s.word == round_ && s.position != 0) forget_question(from.node);
  return true;
}

}  // namespace orrery::transport
