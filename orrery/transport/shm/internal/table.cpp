// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/internal/table.hpp>

#include <algorithm>
#include <cstring>

#include <unistd.h>

namespace orrery::transport {

using internal::fail;

namespace {

// Text from shared memory: ends within its field, and shows nothing that a terminal would obey.
template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  std::string text(field, ::strnlen(field, N));
  for (char& c : text)
    if (c < 0x20 || c == 0x7f) c = '?';
  return text;
}

template <std::size_t N>
void set_text(char (&field)[N], std::string_view text) noexcept {
  text = text.substr(0, N - 1);
  std::copy(text.begin(), text.end(), field);
}

constexpr handed_out unpack(std::uint64_t word) noexcept {
  return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
}

}  // namespace

void world_table::create(std::string_view name, const world_config& config, peer_id creator,
                         std::uint64_t nonce) const noexcept {
  auto& h = head();
  h.version = layout::version;
  h.uid = ::geteuid();
  h.bytes = layout::world_bytes;
  h.nonce = nonce;
  h.build_id = config.build_id;
  h.creator_pid = creator.pid;
  h.creator_start = creator.start_time;
  h.places = config.places != 0 ? std::min(config.places, max_places) : max_places;
  h.closed = config.closed ? 1 : 0;
  set_text(h.name, name);
  set_text(h.program, config.program);
  h.state.store(static_cast<std::uint32_t>(world_state::running), std::memory_order_relaxed);
  h.magic = layout::world_magic;
}

result<void> world_table::check(std::uint64_t bytes, std::string_view what) const {
  const auto& h = head();
  if (bytes < layout::page || h.magic != layout::world_magic) {
    return fail(transport_errc::damaged, 0, "{} is not a world of Orrery", what);
  }
  if (h.version != layout::version) {
    return fail(transport_errc::different_build, 0,
                "{} was made by another version of Orrery (layout {}, this is {}); build all "
                "programs with the same version",
                what, h.version, layout::version);
  }
  const auto given = unpack(h.numbers.load(std::memory_order_relaxed));
  if (bytes != layout::world_bytes || h.bytes != bytes || h.uid != ::geteuid() || given.nodes > max_nodes ||
      given.pes > max_pes) {
    return fail(transport_errc::damaged, 0, "the tables of {} are damaged; end its nodes and start it anew", what);
  }
  return {};
}

std::string world_table::name() const { return text_of(head().name); }
std::string world_table::program() const { return text_of(head().program); }

world_state world_table::state() const noexcept {
  // SYNC: acquire, with end_world and mark_lost
  switch (head().state.load(std::memory_order_acquire)) {
    case 1:
      return world_state::running;
    case 2:
      return world_state::ending;
    default:
      return world_state::lost;  // whoever writes anything else has broken the world
  }
}

handed_out world_table::numbers() const noexcept {
  // SYNC: acquire, with reserve
  const auto n = unpack(head().numbers.load(std::memory_order_acquire));
  return {std::min(n.nodes, max_nodes), std::min(n.pes, max_pes)};
}

std::uint32_t world_table::places() const noexcept {
  const std::uint32_t written = head().places;
  return written == 0 || written > max_places ? max_places : written;
}

namespace {
// The state of the node in the word. An impossible state is that of a node that cannot be trusted,
// hence dead.
node_state decode_state(std::uint32_t word, std::uint32_t node) noexcept {
  constexpr std::uint32_t mask = (1U << layout::state_bits) - 1;
  const std::uint32_t epoch = word >> layout::state_bits;
  const std::uint32_t state = word & mask;
  if (epoch > max_epoch || state > layout::claimed) return node_state::dead;
  if (epoch != epoch_of(node)) return epoch > epoch_of(node) ? node_state::left : node_state::empty;
  return state == layout::claimed ? node_state::empty : static_cast<node_state>(state);
}
}  // namespace

std::uint32_t world_table::node_at(std::uint32_t place) const noexcept {
  if (place >= numbers().nodes) return no_node;
  // SYNC: acquire, with place_giver and everything that changes an entry
  const std::uint32_t word = entry(place).state.load(std::memory_order_acquire);
  if (word == 0) return no_node;
  return number_of(place, std::min(word >> layout::state_bits, max_epoch));
}

node_state world_table::state_of(std::uint32_t n) const noexcept {
  if (n == no_node || place_of(n) >= numbers().nodes) return node_state::empty;
  // SYNC: acquire, with place_giver and everything that changes an entry
  return decode_state(entry(n).state.load(std::memory_order_acquire), n);
}

node_info world_table::info(std::uint32_t n) const {
  node_info i;
  if (n == no_node || place_of(n) >= numbers().nodes) return i;
  const auto& e = entry(n);
  const std::uint32_t before = e.state.load(std::memory_order_acquire);  // SYNC: with place_giver
  i.state = decode_state(before, n);
  if (i.state == node_state::empty) return i;
  i.node = n;
  const auto is_another = [&](std::uint32_t word) {
    return word >> layout::state_bits != epoch_of(n) && word >> layout::state_bits <= max_epoch;
  };
  if (is_another(before)) return i;
  i.id = {e.pid.load(std::memory_order_relaxed), e.start_time.load(std::memory_order_relaxed)};
  const std::uint32_t first = e.first_pe.load(std::memory_order_relaxed);
  const std::uint32_t count = e.pe_count.load(std::memory_order_relaxed);
  if (count <= max_pes - place_of(first)) {
    i.first_pe = first;
    i.pe_count = count;
  }
  i.launcher = launcher_of(n);
  i.segment_bytes = e.segment_bytes.load(std::memory_order_relaxed);
  i.program = text_of(e.program);
  // SYNC: acquire fence, with the release fence of place_giver: what was read is of this node if
  // the place still is.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (is_another(e.state.load(std::memory_order_relaxed))) {
    i = {};
    i.node = n;
    i.state = node_state::left;
  }
  return i;
}

std::uint32_t world_table::launcher_of(std::uint32_t n) const noexcept {
  const std::uint32_t now = n != no_node ? node_at(place_of(n)) : no_node;
  if (now != n || state_of(n) == node_state::empty) return no_node;
  const std::uint32_t launcher = entry(n).launcher.load(std::memory_order_relaxed);
  return state_of(launcher) != node_state::empty ? launcher : no_node;
}

std::uint32_t world_table::vocabulary_of(std::uint32_t n) const noexcept {
  return state_of(n) == node_state::empty ? no_vocabulary : entry(n).vocabulary.load(std::memory_order_relaxed) - 1;
}

std::uint32_t world_table::pe_at(std::uint32_t place) const noexcept {
  if (place >= numbers().pes) return no_node;
  // SYNC: acquire, with place_giver
  const std::uint64_t holder = pe(place).holder.load(std::memory_order_acquire);
  const auto number = static_cast<std::uint32_t>(holder >> 32);
  return holder != 0 && place_of(number) == place ? number : no_node;
}

std::uint32_t world_table::pe_node(std::uint32_t number) const noexcept {
  if (place_of(number) >= numbers().pes) return no_node;
  // SYNC: acquire, with place_giver
  const std::uint64_t holder = pe(number).holder.load(std::memory_order_acquire);
  const std::uint32_t node = static_cast<std::uint32_t>(holder) - 1;
  if (holder >> 32 != number || node == no_node || place_of(node) >= numbers().nodes) return no_node;
  const auto& e = entry(node);
  const std::uint32_t first = e.first_pe.load(std::memory_order_relaxed);
  if (number - first >= e.pe_count.load(std::memory_order_relaxed)) return no_node;
  return node;
}

std::uint32_t world_table::pe_of_alias(std::uint32_t alias) const noexcept {
  if (alias < max_pes) return alias;
  if (alias >= layout::aliases) return no_pe;
  // SYNC: acquire, with shm_world::take_alias
  const std::uint32_t pe = this->alias(alias).load(std::memory_order_acquire);
  return pe >= max_pes ? pe : no_pe;
}

std::uint64_t world_table::gone_nodes() const noexcept {
  std::uint64_t gone = 0;
  const std::uint32_t limit = numbers().nodes;
  for (std::uint32_t place = 0; place < limit; ++place) {
    const auto& e = entry(place);
    // The two words are of one node if the state is the same before and after. It changes a few
    // times in a node's life.
    std::uint32_t before = 0;
    std::uint32_t state = e.state.load(std::memory_order_acquire);  // SYNC: with place_giver
    std::uint32_t lives = 0;
    int tries = 64;
    do {
      before = state;
      // SYNC: with place_giver and shm_world::make_own_memory
      lives = e.lives.load(std::memory_order_acquire);
      state = e.state.load(std::memory_order_acquire);
    } while (state != before && --tries != 0);
    const node_state s = decode_state(state, number_of(place, std::min(state >> layout::state_bits, max_epoch)));
    const bool has_ended = s == node_state::left || s == node_state::dead;
    gone += (lives >> 1) + (has_ended ? lives & 1 : 0);
  }
  return gone;
}

bool world_table::change_state(std::uint32_t n, node_state from, node_state to) const noexcept {
  std::uint32_t expected = layout::state_word(n, static_cast<std::uint32_t>(from));
  // SYNC: acq_rel, with state_of: what was written to the entry before is seen with the new state.
  return entry(n).state.compare_exchange_strong(expected, layout::state_word(n, static_cast<std::uint32_t>(to)),
                                                std::memory_order_acq_rel);
}

bool world_table::mark_dead(std::uint32_t n) const noexcept {
  bool changed = false;
  for (node_state now = state_of(n);
       now != node_state::empty && now != node_state::left && now != node_state::dead && !changed; now = state_of(n)) {
    changed = change_state(n, now, node_state::dead);
  }
  // Nodes that a dead launcher has started look after themselves; those that it was yet to start
  // will never come.
  for (std::uint32_t place = 0; place < numbers().nodes; ++place) {
    const std::uint32_t other = node_at(place);
    if (state_of(other) == node_state::reserved && entry(place).launcher.load(std::memory_order_relaxed) == n)
      change_state(other, node_state::reserved, node_state::dead);
  }
  return changed;
}

}  // namespace orrery::transport
