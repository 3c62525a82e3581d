// SPDX-License-Identifier: Apache-2.0
// The part of the carrier that sends, and that keeps time. carrier_receive.cpp has what comes,
// carrier_blocks.cpp blocks, carrier_members.cpp membership, carrier_answers.cpp counters, names.
#include <orrery/transport/mpi/carrier.hpp>

#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::transport {

namespace {

constexpr std::size_t receives = 16;
// to one node; what comes meanwhile shares the next one
constexpr std::size_t frames_on_their_way = 4;
constexpr std::size_t spare_frames = 16;
constexpr std::int64_t busy_look_ns = 10'000;  // between two looks of busy PEs
constexpr std::int64_t idle_ring_ns = 1'000'000'000;  // between two looks at rings

}  // namespace

mpi_carrier::mpi_carrier(engine& by, shm_world& local, const cluster_map& map, cluster_members& members,
                         std::int64_t patience_ns, std::function<void(const std::string&)> fatal, clock time,
                         memory_source memory)
    : engine_(by),
      local_(local),
      map_(map),
      members_(members),
      patience_ns_(patience_ns),
      fatal_(std::move(fatal)),
      time_(std::move(time)),
      memory_(memory ? std::move(memory) : [&local](std::uint64_t bytes) { return local.allocate_beyond(bytes); }),
      idle_rings_(wire::make_unique<std::atomic<bool>[]>(map.at(map.own()).pe_count)),
      copies_(wire::make_unique<counter_copy[]>(map.pes())),
      peers_(map.nodes()),
      slow_memory_(memory_, [&local](std::uint64_t offset) { local.release(offset); }) {
  const std::int64_t now = time_();
  for (std::uint32_t n = 0; n < peers_.size(); ++n) {
    peers_[n].node = n;
    peers_[n].far = map.is_far(n);
    peers_[n].closed = n == map.own();
    peers_[n].watched = n == 0 || map.own() == 0;
    peers_[n].heard_ns = peers_[n].said_ns = now;
    peers_[n].debugged_until_ns = now - patience_ns_;
  }
  last_tick_ns_ = rings_looked_at_ns_ = now;
  debugger_looked_for_ns_ = now - patience_ns_;
}

mpi_carrier::~mpi_carrier() = default;

bool mpi_carrier::begin() {
  const std::scoped_lock lock{mutex_};
  pool_.resize(receives);
  for (posted_receive& r : pool_)
    if (!engine_.receive(engine::any_node, 0, r.memory.memory(), r.request)) return false;
  return true;
}

bool mpi_carrier::drive() noexcept {
  std::unique_lock lock{mutex_, std::try_to_lock};
  if (!lock.owns_lock()) return false;
  drives_.store(drives_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const bool any = work(false);
  unlock(lock);
  return any;
}

void mpi_carrier::poll(bool busy) noexcept {
  std::unique_lock lock{mutex_, std::try_to_lock};
  if (!lock.owns_lock()) return;
  drives_.store(drives_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  bool looks = !std::exchange(just_came_, false);
  if (looks && busy) {
    const std::int64_t now = time_();
    looks = now - looked_ns_ >= busy_look_ns;
    if (looks) looked_ns_ = now;
  }
  if (looks)
    (void)work(false, busy);
  else
    (void)send_to_all(false, false);
  unlock(lock);
}

// Records that PEs have written go first: to look whether something has come takes longer.
bool mpi_carrier::work(bool everything, bool busy) {
  ask_if_wanted();
  bool any = send_to_all(everything, !busy);
  const bool came = receive(everything);
  just_came_ = came;
  for (const std::uint32_t n : engine_.failures())
    if (n < peers_.size()) suspect(n, "was reported as failed by the MPI library");
  any |= finish_arrivals();
  if (came) any |= send_to_all(everything, false);
  look_for_moving_blocks(any || came);
  return any || came;
}

// Only active nodes: a node of a large world talks to few others, and this is done at each poll.
bool mpi_carrier::send_to_all(bool everything, bool looks) {
  bool any = false;
  for (std::size_t i = 0; i < active_.size();) {  // an eviction makes others active meanwhile
    peer& p = peers_[active_[i]];
    any |= finish_sends(p, looks);
    if (!p.closed) any |= send(p, everything);
    if (is_at_rest(p)) {
      p.active = false;
      active_[i] = active_.back();
      active_.pop_back();
    } else {
      ++i;
    }
  }
  return any;
}

void mpi_carrier::activate(peer& p) {
  if (p.active || p.closed) return;
  p.active = true;
  active_.push_back(p.node);
}

// PEs write into rings, and release what is in mirrors, without a word to the carrier.
bool mpi_carrier::is_at_rest(const peer& p) noexcept {
  return p.closed || (p.rings.empty() && p.mirrors.empty() && p.controls.empty() && p.frames.empty() &&
                      p.pieces.empty() && p.blocks.empty());
}

std::size_t mpi_carrier::active_nodes() noexcept {
  const std::scoped_lock lock{mutex_};
  return active_.size();
}

bool mpi_carrier::tick() noexcept {
  std::unique_lock lock{mutex_};
  const std::int64_t now = time_();
  if (misses_silent_) give_signs(now);
  const bool any = work(true);
  if (misses_silent_) look_for_silent(now);
  if (now - rings_looked_at_ns_ >= idle_ring_ns) look_for_idle_rings(now);
  (void)slow_memory_.is_busy();  // memory that came for a block which is lost goes back
  last_tick_ns_ = now;
  unlock(lock);
  return any;
}

bool mpi_carrier::is_flushed() noexcept {
  const std::scoped_lock lock{mutex_};
  return has_sent_all();
}

bool mpi_carrier::is_calm() noexcept {
  const std::scoped_lock lock{mutex_};
  return arrivals_.empty() && wanted_.load(std::memory_order_relaxed) <= round_ && has_sent_all();
}

bool mpi_carrier::all_pes_sleep() noexcept {
  const cluster_map::place& own = map_.at(map_.own());
  for (std::uint32_t i = 0; i < own.pe_count; ++i)
    if (bell_of(own.first_pe + i).sleeping.load(std::memory_order_relaxed) == 0) return false;
  return true;
}

void mpi_carrier::pe_sleeps() noexcept {
  // SYNC: Dekker with mpi_world::rest, which says that it naps, fences, and looks at the PEs once
  // more; the PE has said that it sleeps, and fenced
  if (napping_.load(std::memory_order_relaxed) == nullptr || !all_pes_sleep()) return;
  if (socket_watch* const at = napping_.exchange(nullptr, std::memory_order_relaxed); at != nullptr) at->wake();
}

void mpi_carrier::pe_woke() noexcept {
  // SYNC: Dekker with mpi_world::rest, which says that it sleeps, fences, and looks at the PEs once
  // more
  fence_light();
  if (helper_.load(std::memory_order_relaxed) == nullptr) return;
  if (socket_watch* const at = helper_.exchange(nullptr, std::memory_order_relaxed); at != nullptr) at->wake();
}

bool mpi_carrier::has_sent_all() const {
  return std::ranges::all_of(active_, [&](std::uint32_t node) {
    const peer& p = peers_[node];
    return p.closed || (p.controls.empty() && p.frames.empty() && p.blocks.empty() && p.pieces.empty() &&
                        std::ranges::none_of(p.rings, [](const auto& r) { return r->has_more(); }));
  });
}

bool mpi_carrier::end() noexcept {
  const std::scoped_lock lock{mutex_};
  for (posted_receive& r : pool_) engine_.cancel(r.request);
  return !keeps_memory_ && !has_blocks_in_library();
}

// --- rings ---------------------------------------------------------------------------------------

void mpi_carrier::add_ring(std::uint32_t from, std::uint32_t to, std::uint64_t offset, ring_header& header) {
  const std::scoped_lock lock{mutex_};
  peer& p = peers_[map_.node_of(to)];
  p.rings.push_back(wire::make_unique<outgoing_ring>(header, offset, from, to));
  activate(p);
  watch(p);
}

void mpi_carrier::forget_ring(std::uint64_t offset) noexcept {
  const std::scoped_lock lock{mutex_};
  for (peer& p : peers_) std::erase_if(p.rings, [&](const auto& r) { return r->offset() == offset; });
}

// Into mirrors the carrier writes; outgoing rings are their PEs', which do it when they are awake
// and have nothing to do.
void mpi_carrier::look_for_idle_rings(std::int64_t now) {
  rings_looked_at_ns_ = now;
  for (peer& p : peers_) {
    for (const auto& m : p.mirrors) m->reclaim();
    for (const auto& r : p.rings) {
      if (!r->is_idle()) continue;
      idle_rings_[r->from() - map_.at(map_.own()).first_pe].store(true, std::memory_order_relaxed);
      wake_later(r->from(), true);
    }
  }
}

void mpi_carrier::reclaim_rings(std::uint32_t pe) noexcept {
  std::atomic<bool>& has_some = idle_rings_[pe - map_.at(map_.own()).first_pe];
  if (!has_some.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock{mutex_, std::try_to_lock};
  if (!lock.owns_lock()) return;  // when it has nothing to do again
  has_some.store(false, std::memory_order_relaxed);
  for (peer& p : peers_)
    for (const auto& r : p.rings)
      if (r->from() == pe) r->reclaim();
}

std::optional<std::uint64_t> mpi_carrier::mirror_offset(std::uint32_t to, std::uint32_t from) const noexcept {
  const std::scoped_lock lock{table_mutex_};
  const auto it = mirror_table_.find(std::uint64_t{to} << 32 | from);
  return it != mirror_table_.end() ? std::optional(it->second) : std::nullopt;
}

void mpi_carrier::release_memory_of(std::uint32_t node) noexcept {
  const std::scoped_lock lock{mutex_};
  peer& p = peers_[node];
  if (!p.closed && !p.left) return;
  for (const auto& m : p.mirrors) {
    {
      const std::scoped_lock table_lock{table_mutex_};
      mirror_table_.erase(std::uint64_t{m->to()} << 32 | m->from());
    }
    local_.release(m->offset());
  }
  forget_arrivals_of(node);
  p.mirrors.clear();
  std::erase_if(guests_, [&](const auto& g) {
    if (g.second.node == node) local_.release(g.first);
    return g.second.node == node;
  });
}

// --- sending -------------------------------------------------------------------------------------

bool mpi_carrier::send(peer& to, bool everything) {
  bool any = false;
  while (!to.closed && to.frames.size() < frames_on_their_way) {
    frame f = new_frame();
    fill(to, f, everything);
    if (f.is_empty()) {
      spare_.push_back(std::move(f));
      break;
    }
    any = true;
    tell_evictions(to);  // I4
    if (!transmit(to, std::move(f))) break;
  }
  any |= send_pieces(to);
  return any;
}

frame mpi_carrier::new_frame() {
  frame f = spare_.empty() ? frame{} : std::move(spare_.back());
  if (!spare_.empty()) spare_.pop_back();
  f.begin(map_.own());
  return f;
}

bool mpi_carrier::transmit(peer& to, frame f) {
  if (to.closed) return false;
  to.said_ns = time_();
  activate(to);
  sent_frame& s = to.frames.emplace_back(engine::request{}, std::move(f));
  if (engine_.send(to.node, 0, s.memory.finish(to.told), s.request)) return true;
  to.frames.pop_back();
  suspect(to.node, engine_.error());
  return false;
}

void mpi_carrier::fill(peer& to, frame& f, bool everything) {
  // Records first: what a node says last is that it has left.
  sending_to_ = &to;
  for (std::size_t i = 0; i < to.rings.size(); ++i) {
    outgoing_ring& r = *to.rings[(to.turn + i) % to.rings.size()];
    if (r.has_more()) r.take(f, *this);
  }
  if (!to.rings.empty()) to.turn = (to.turn + 1) % to.rings.size();
  sending_to_ = nullptr;
  for (const auto& m : to.mirrors) {
    const mirror_ring::credit c = m->owed();
    const bool now = m->is_due(c) || ((everything || !f.is_empty()) && m->is_news(c));
    if (!now || !f.fits(0)) continue;
    f.add({section_kind::credit, 0, m->from(), m->to(), c.position, c.word});
    m->has_said(c);
  }
  while (!to.controls.empty() && f.fits(to.controls.front().payload.size())) {
    const control& c = to.controls.front();
    std::byte* const at = f.add(c.head);
    if (!c.payload.empty()) std::memcpy(at, c.payload.data(), c.payload.size());
    to.controls.pop_front();
  }
}

// A look at a message that is on its way costs a system call. Without `looks` only those are looked
// at for whose end others wait. Messages end in their order, as far as it matters here.
bool mpi_carrier::finish_sends(peer& to, bool looks) {
  bool any = false;
  std::uint32_t ignored_node = 0;
  std::uint64_t ignored_bytes = 0;
  const auto is_over = [&](engine::request& r) {
    const engine::outcome o = engine_.test(r, ignored_node, ignored_bytes);
    if (o == engine::outcome::failed && !to.closed) suspect(to.node, engine_.error());
    return o != engine::outcome::pending;
  };
  // Messages on their way to a lost node are never looked at again: some libraries do not return.
  const auto may_look = [&] { return members_.state(to.node) != node_state::dead; };
  while (!to.frames.empty() && (looks || to.frames.size() >= frames_on_their_way) && may_look() &&
         is_over(to.frames.front().request)) {
    if (spare_.size() < spare_frames) spare_.push_back(std::move(to.frames.front().memory));
    to.frames.pop_front();
    any = true;
  }
  while (!to.blocks.empty() && (looks || !to.pieces.empty()) && may_look() && is_over(to.blocks.front().request)) {
    to.block_bytes -= to.blocks.front().bytes;
    to.blocks.pop_front();
    any = true;
  }
  return any;
}

void mpi_carrier::queue(peer& to, section head, std::span<const std::byte> payload) {
  if (to.closed) return;
  head.bytes = static_cast<std::uint32_t>(payload.size());
  to.controls.push_back({head, {payload.begin(), payload.end()}});
  activate(to);
}

// --- parts of files -----------------------------------------------------------------------------

void mpi_carrier::send_part(std::span<const std::byte> bytes) noexcept {
  const std::scoped_lock lock{mutex_};
  queue(peers_[0], {section_kind::part, 0, map_.own(), 0, 0, 0}, bytes);
}

void mpi_carrier::take_parts(part_sink sink) noexcept {
  const std::scoped_lock lock{mutex_};
  parts_ = std::move(sink);
}

doorbell& mpi_carrier::bell_of(std::uint32_t pe) noexcept { return local_.bell(map_.local_pe(pe, map_.own())); }

}  // namespace orrery::transport
