// SPDX-License-Identifier: Apache-2.0
// Blocks: large payloads, which travel beside the frames as messages of their own, from memory to
// memory.
#include <orrery/transport/mpi/carrier.hpp>

#include <orrery/transport/shm/world.hpp>

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

namespace orrery::transport {

namespace {

constexpr std::uint64_t block_tags = 16'000;  // every MPI has that many
constexpr std::uint64_t first_block_tag = 1;
constexpr std::uint64_t pieces_on_their_way = 2;
// so many times that for a node: then there will be none
constexpr std::int64_t memory_patience = 12;
// a PE stays awake so long for parts of which none begins or ends
constexpr std::int64_t block_patience_ns = 1'000'000'000;

}  // namespace

// Libraries send a piece as a whole, and what follows waits for it: signs of life, too. So few
// bytes are on their way at a time.
bool mpi_carrier::send_pieces(peer& to) {
  const std::uint64_t limit = pieces_on_their_way * map_.piece();
  bool any = false;
  while (!to.closed && !to.pieces.empty() && to.block_bytes + to.pieces.front().data.size() <= limit) {
    const waiting_piece next = to.pieces.front();
    to.pieces.pop_front();
    piece& p = to.blocks.emplace_back(engine::request{}, next.data.size());
    if (!engine_.send(to.node, next.tag, next.data, p.request)) {
      to.blocks.pop_back();
      suspect(to.node, engine_.error());
      return true;
    }
    to.block_bytes += next.data.size();
    any = true;
  }
  return any;
}

std::uint64_t mpi_carrier::send_block(std::uint64_t offset, std::uint64_t bytes) {
  peer& to = *sending_to_;
  const std::uint64_t tag = to.tags++ % block_tags + first_block_tag;
  const auto memory = local_.map(local_.node(), offset, bytes);
  if (!memory) return tag;
  (void)for_each_piece(bytes, map_.piece(), [&](std::uint64_t at, std::uint64_t n) {
    to.pieces.push_back({static_cast<int>(tag), std::span<const std::byte>(*memory).subspan(at, n)});
    return true;
  });
  return tag;
}

std::uint64_t mpi_carrier::release_block(std::uint64_t offset) {
  const auto it = guests_.find(offset);
  // Not of the node that is told: its block was given back with the node, and the place is another
  // one's now.
  if (it == guests_.end() || it->second.node != sending_to_->node) return ~std::uint64_t{0};
  const std::uint64_t there = it->second.offset;
  guests_.erase(it);
  local_.release(offset);
  return there;
}

mpi_carrier::fault mpi_carrier::receive_block(peer& from, const frame_reader::item& item) {
  const section& s = item.head;
  constexpr std::size_t ref_at = wire::granule;
  mirror_ring* const m = find_mirror(from, s.from_pe, s.to_pe);
  wire::block_ref ref{};
  if (m == nullptr || item.payload.size() != ref_at + sizeof ref)
    return fmt::format("a block from PE {} to PE {} that has no place there", s.from_pe, s.to_pe);
  std::memcpy(&ref, item.payload.data() + ref_at, sizeof ref);
  if (ref.bytes == 0 || ref.bytes > map_.at(from.node).memory)
    return fmt::format("a block of {} bytes from PE {} to PE {}, but its memory has {}", ref.bytes, s.from_pe, s.to_pe,
                       map_.at(from.node).memory);
  if (s.word < first_block_tag || s.word >= first_block_tag + block_tags || !m->fill_block(s.position, item.payload))
    return fmt::format("a block from PE {} to PE {} that has no place there at {}", s.from_pe, s.to_pe, s.position);
  arrivals_.push_back(
      {arrivals_so_far_++, from.node, m, s.position, ref, static_cast<int>(s.word), time_(), std::nullopt, {}, {}});
  if (may_begin(arrivals_.back()) && !begin_arrival(arrivals_.back())) {
    keep_memory_of(arrivals_.back());
    arrivals_.pop_back();
    return fmt::format("a block that cannot be received: {}", engine_.error());
  }
  show(*m);
  return m->damaged()
             ? fmt::format("a record of PE {} to PE {} that names no block, at {}", s.from_pe, s.to_pe, s.position)
             : fault{};
}

// Tags come again, and the library matches messages of one tag with receives in their order. So the
// blocks of a node begin in their order, and none before all pieces of an earlier one with its tag
// are asked for. Receives of a block that was refused may be open yet, so none begins after it.
bool mpi_carrier::may_begin(const arrival& a) const {
  if (peers_[a.node].damaged) return false;
  for (const arrival& earlier : arrivals_) {
    if (&earlier == &a) break;
    if (earlier.node == a.node && (!earlier.offset || (earlier.tag == a.tag && !earlier.awaited.empty()))) return false;
  }
  return true;
}

// False if the library refuses it. Without memory the block stays where it is, in its sender's
// memory, and so does what follows it in its ring.
bool mpi_carrier::begin_arrival(arrival& a) {
  const auto given = memory_for(a);
  if (!given) return true;
  const auto& memory = *given;
  if (!memory) {
    wait_for_memory(a, memory.error().message);
    return true;
  }
  a.offset = memory->offset;
  guests_[memory->offset] = {a.node, a.there.offset};
  a.awaited = std::span(memory->data, a.there.bytes);
  return ask_for_pieces(a);
}

// Not for more than are on their way: some libraries bring all that is asked for in one call.
bool mpi_carrier::ask_for_pieces(arrival& a) {
  while (a.pieces.size() < pieces_on_their_way && !a.awaited.empty()) {
    const std::uint64_t n = std::min<std::uint64_t>(a.awaited.size(), map_.piece());
    piece& p = a.pieces.emplace_back(engine::request{}, n);
    if (!engine_.receive(a.node, a.tag, a.awaited.first(n), p.request)) {
      a.pieces.pop_back();
      return false;
    }
    a.awaited = a.awaited.subspan(n);
  }
  return true;
}

std::optional<result<world::memory_block>> mpi_carrier::memory_for(const arrival& a) {
  if (a.there.bytes > pieces_on_their_way * map_.piece()) return slow_memory_.get(a.number, a.there.bytes);
  return memory_(a.there.bytes);
}

void mpi_carrier::forget_arrivals_of(std::uint32_t node) {
  std::erase_if(arrivals_, [&](const arrival& a) {
    if (a.node != node) return false;
    slow_memory_.forget(a.number);
    keep_memory_of(a);
    return true;
  });
}

// The library may write there as long as it holds the requests (I6). To end them is no way out:
// some libraries do not return from that when the sender is lost.
void mpi_carrier::keep_memory_of(const arrival& a) {
  if (!a.offset) return;
  guests_.erase(*a.offset);
  keeps_memory_ = true;
}

void mpi_carrier::wait_for_memory(const arrival& a, std::string_view why) {
  const std::int64_t limit = memory_patience * patience_ns_;
  if (time_() - a.since_ns < limit) return;  // what was read meanwhile is given back
  fatal_(fmt::format(
      "node {} has had no memory for a block of {} bytes from PE {} for {} s: {}: it ends; give the machine "
      "more shared memory, or send less at once",
      map_.own(), a.there.bytes, a.into->from(), limit / 1'000'000'000, why));
}

bool mpi_carrier::has_blocks_in_library() const {
  return std::ranges::any_of(active_, [&](std::uint32_t n) { return !peers_[n].blocks.empty(); }) ||
         std::ranges::any_of(arrivals_, [](const arrival& a) { return !a.pieces.empty(); });
}

// A node that is stopped, or has no memory, keeps nobody awake for long.
void mpi_carrier::look_for_moving_blocks(bool any) {
  bool moves = has_blocks_in_library();
  if (moves) {
    const std::int64_t now = time_();
    if (any) moved_ns_ = now;
    moves = now - moved_ns_ < block_patience_ns;
  }
  moves_blocks_.store(moves, std::memory_order_relaxed);
}

// One is enough: the first of those that do not sleep.
bool mpi_carrier::needs(std::uint32_t pe) noexcept {
  if (!moves_blocks()) return false;
  for (std::uint32_t other = map_.at(map_.own()).first_pe; other < pe; ++other)
    if (bell_of(other).sleeping.load(std::memory_order_relaxed) == 0) return false;
  return true;
}

bool mpi_carrier::finish_arrivals() {
  bool any = false;
  std::set<std::uint32_t> waiting;  // nodes whose next block has no memory, or no free tag
  for (auto a = arrivals_.begin(); a != arrivals_.end();) {
    const bool begun = a->offset || waiting.contains(a->node) || !may_begin(*a) || begin_arrival(*a);
    if (begun && !a->offset) waiting.insert(a->node);
    const engine::outcome now = !begun ? engine::outcome::failed : !a->offset ? engine::outcome::pending : look_at(*a);
    if (now == engine::outcome::pending) {
      ++a;
      continue;
    }
    peer& from = peers_[a->node];
    if (now == engine::outcome::done) {
      a->into->complete_block(a->position, *a->offset);
      show(*a->into);
      any = true;
    } else {
      keep_memory_of(*a);
    }
    a = arrivals_.erase(a);
    if (now == engine::outcome::done) continue;
    refuse(from, fmt::format("a block that did not come as it was announced: {}", engine_.error()));
    return true;  // the list may be another one
  }
  return any;
}

// Pieces end in their order, as far as it matters here. One that is shorter than it was said to be
// is a failure. Others have their turn after some pieces, also if more are there.
engine::outcome mpi_carrier::look_at(arrival& a) {
  std::uint32_t node = 0;
  std::uint64_t bytes = 0;
  for (std::uint64_t n = 0; n < pieces_on_their_way && !a.pieces.empty(); ++n) {
    const engine::outcome o = engine_.test(a.pieces.front().request, node, bytes);
    if (o != engine::outcome::done) return o;
    if (bytes != a.pieces.front().bytes) return engine::outcome::failed;
    peers_[a.node].heard_ns = time_();
    a.pieces.pop_front();
    if (!ask_for_pieces(a)) return engine::outcome::failed;
  }
  return a.pieces.empty() ? engine::outcome::done : engine::outcome::pending;
}

}  // namespace orrery::transport
