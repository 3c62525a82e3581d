// SPDX-License-Identifier: Apache-2.0
// The part of the carrier that receives. Nothing that came from another node is believed before it
// was checked.
#include <orrery/transport/mpi/carrier.hpp>

#include <orrery/transport/ring_memory.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace orrery::transport {

namespace {

constexpr int receives_in_a_row = 8;

}  // namespace

// Frames are looked at in the order in which their receives were posted, so those of one node are
// in order.
bool mpi_carrier::receive(bool everything) {
  bool any = false;
  // A PE deals with one frame before it looks for the next: a look that finds nothing costs a
  // system call or more, and what has come would wait for it.
  for (int i = 0; i < (everything ? receives_in_a_row : 1); ++i) {
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
  if (from.closed || from.left || from.damaged) return;  // I2
  from.heard_ns = time_();
  if (from.far) far_frames_.fetch_add(1, std::memory_order_relaxed);
  frame_reader reader(bytes, node);
  while (!from.closed && !from.left) {
    const auto item = reader.next();
    if (!item) break;
    fault f = check_epoch(from, reader.epoch(), item->head.kind == section_kind::eviction);
    if (f.empty()) f = receive_section(from, *item);
    if (!f.empty()) {
      refuse(from, f);
      return;
    }
  }
  from.epoch = std::max(from.epoch, reader.epoch());
  if (reader.damaged()) refuse(from, fmt::format("a frame of {} bytes whose parts do not fit together", bytes.size()));
}

// Frames of one sender come in order, and evictions before what follows from them (I4).
mpi_carrier::fault mpi_carrier::check_epoch(const peer& from, std::uint64_t epoch, bool tells) const {
  if (epoch < from.epoch) return fmt::format("a frame of epoch {}, after one of epoch {}", epoch, from.epoch);
  if (epoch > evictions_.size() && !tells)
    return fmt::format("a frame of epoch {}, but this node knows {} evictions", epoch, evictions_.size());
  return {};
}

mpi_carrier::fault mpi_carrier::receive_section(peer& from, const frame_reader::item& item) {
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
      return receive_ask(from, item.head);
    case section_kind::counters:
      return receive_counters(from, item);
    case section_kind::eviction:
      return receive_eviction(from, item);
    case section_kind::part:
      return receive_part(from, item);
    case section_kind::names:
      return receive_names(from, item);
  }
  return fmt::format("a part of unknown kind {}", static_cast<std::uint32_t>(item.head.kind));
}

mirror_ring* mpi_carrier::find_mirror(peer& from, std::uint32_t from_pe, std::uint32_t to_pe) noexcept {
  const auto it =
      std::ranges::find_if(from.mirrors, [&](const auto& m) { return m->from() == from_pe && m->to() == to_pe; });
  return it != from.mirrors.end() ? it->get() : nullptr;
}

mpi_carrier::fault mpi_carrier::receive_open(peer& from, const section& s) {
  constexpr std::uint64_t least = 4096;
  if (!from.far || map_.node_of(s.from_pe) != from.node || map_.node_of(s.to_pe) != map_.own() ||
      !std::has_single_bit(s.word) || s.word < least || s.word > map_.at(from.node).ring ||
      find_mirror(from, s.from_pe, s.to_pe) != nullptr)
    return fmt::format("the begin of a ring of {} bytes from PE {} to PE {}, which cannot be", s.word, s.from_pe,
                       s.to_pe);
  const std::uint64_t bytes = ring_header::bytes_for(s.word);
  auto memory = local_.allocate_ring(bytes);
  if (!memory) {
    fatal_(fmt::format("node {} has no memory for a ring from PE {}: {}: it ends", map_.own(), s.from_pe,
                       memory.error().message));
    return {};
  }
  prepare_ring_memory(std::span(memory->data, bytes), memory->zeroed);
  ring_header* const header = make_ring(memory->data, s.word, s.from_pe, s.to_pe);
  from.mirrors.push_back(wire::make_unique<mirror_ring>(*header, memory->offset, s.from_pe, s.to_pe));
  activate(from);
  {
    const std::scoped_lock lock{table_mutex_};
    mirror_table_[std::uint64_t{s.to_pe} << 32 | s.from_pe] = memory->offset;
  }
  bell_of(s.to_pe).announce.fetch_add(1, std::memory_order_release);  // SYNC: with links::take_news
  notify(bell_of(s.to_pe), true);
  return {};
}

void mpi_carrier::show(mirror_ring& m) {
  if (m.show()) wake_later(m.to(), false);
}

void mpi_carrier::wake_later(std::uint32_t pe, bool always) {
  if (const late_wakes::wake w{pe, always}; !wakes_.add(w)) wake(w);
}

void mpi_carrier::wake(late_wakes::wake w) {
  if (w.always)
    ring_doorbell(bell_of(w.pe), true);
  else
    notify(bell_of(w.pe), true);
}

void mpi_carrier::unlock(std::unique_lock<std::mutex>& lock) {
  const late_wakes due = wakes_.take();
  lock.unlock();
  for (const late_wakes::wake& w : due.all()) wake(w);
}

mpi_carrier::fault mpi_carrier::receive_records(peer& from, const frame_reader::item& item) {
  const section& s = item.head;
  mirror_ring* const m = find_mirror(from, s.from_pe, s.to_pe);
  if (m == nullptr || !m->fill(s.position, item.payload, s.word))
    return fmt::format("{} bytes of a ring from PE {} to PE {} that have no place there at {}", s.bytes, s.from_pe,
                       s.to_pe, s.position);
  show(*m);
  return m->damaged() ? fmt::format("records of PE {} to PE {} that cannot be, at {}", s.from_pe, s.to_pe, s.position)
                      : fault{};
}

mpi_carrier::fault mpi_carrier::receive_credit(peer& from, const section& s) {
  const auto it =
      std::ranges::find_if(from.rings, [&](const auto& r) { return r->from() == s.from_pe && r->to() == s.to_pe; });
  if (it == from.rings.end()) return {};  // it was given back meanwhile
  outgoing_ring& ring = **it;
  if (!ring.give_back(s.position, s.word))
    return fmt::format("credit for a ring from PE {} to PE {} up to {}, which was not sent", s.from_pe, s.to_pe,
                       s.position);
  // SYNC: take_news
  if (s.word >> 32 != 0) bell_of(s.from_pe).announce.fetch_add(1, std::memory_order_release);
  // SYNC: Dekker with the PE, which sets producer_waits, fences, and looks at the head once more.
  fence_light();
  if (s.word >> 32 != 0 || ring.is_waited_for()) wake_later(s.from_pe, true);
  return {};
}

mpi_carrier::fault mpi_carrier::receive_ask(peer& from, const section& s) {
  const bool names = s.position != 0;
  if (names) queue_names(from);
  if (from.far || names) queue_counters(from, s.word);
  return {};
}

mpi_carrier::fault mpi_carrier::receive_names(peer& from, const frame_reader::item& item) {
  const section& s = item.head;
  std::vector<std::byte>& coming = from.coming_names;
  if (s.position == 0) coming.clear();
  if (s.from_pe != from.node || s.word > largest_names || s.position != coming.size() ||
      item.payload.size() > s.word - s.position)
    return fmt::format("{} bytes of names at {} of {}, which have no place there", s.bytes, s.position, s.word);
  coming.insert(coming.end(), item.payload.begin(), item.payload.end());
  if (coming.size() == s.word) from.names = std::move(coming);
  return {};
}

mpi_carrier::fault mpi_carrier::receive_counters(peer& from, const frame_reader::item& item) {
  const cluster_map::place& there = map_.at(from.node);
  const section& s = item.head;
  const std::uint64_t first = s.from_pe;
  const std::uint64_t count = s.to_pe;
  if (first < there.first_pe || first + count > std::uint64_t{there.first_pe} + there.pe_count ||
      item.payload.size() != count * counters_per_pe * sizeof(std::uint64_t))
    return fmt::format("counters of {} PEs from PE {} on, which are not its own", count, first);
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
  return {};
}

mpi_carrier::fault mpi_carrier::receive_part(peer& from, const frame_reader::item& item) {
  if (!parts_) return fmt::format("{} bytes of a file that this node does not make", item.payload.size());
  parts_(from.node, item.payload);
  return {};
}

}  // namespace orrery::transport
