// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/internal/place_giver.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

namespace orrery::transport {

using internal::fail;

namespace {

constexpr std::uint32_t state_mask = (1U << layout::state_bits) - 1;

bool is_there(node_state s) noexcept { return s == node_state::alive || s == node_state::leaving; }

void set_program(char (&field)[32], std::string_view text) noexcept {
  text = text.substr(0, sizeof field - 1);
  std::memset(field, 0, sizeof field);
  std::ranges::copy(text, field);
}

}  // namespace

// Nobody watches who died before it was alive.
void place_giver::end_those_that_died_joining() const {
  for (std::uint32_t place = 0; place < table_.numbers().nodes; ++place) {
    const std::uint32_t node = table_.node_at(place);
    const node_info there = table_.info(node);
    if (there.state == node_state::joining) {
      if (const auto process = peer::open(there.id); !process && process.error().code == transport_errc::gone)
        (void)table_.mark_dead(node);
    } else if (there.state == node_state::reserved && there.launcher != node) {
      const node_state launcher = table_.state_of(there.launcher);
      if (launcher == node_state::empty || launcher == node_state::left || launcher == node_state::dead)
        table_.change_state(node, node_state::reserved, node_state::dead);
    }
  }
}

std::uint64_t place_giver::noticed_by_all() {
  holding_.clear();
  const std::uint64_t gone = table_.gone_nodes();
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::uint32_t place = 0; place < table_.numbers().nodes; ++place) {
    const std::uint32_t node = table_.node_at(place);
    const node_info there = table_.info(node);
    if (!is_there(there.state)) continue;
    // SYNC: acquire, with world_table's users that have noticed: they touch what is gone no more.
    std::uint64_t own = table_.entry(node).noticed.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < there.pe_count; ++i)
      own = std::min(own, table_.pe(there.first_pe + i).noticed.load(std::memory_order_acquire));
    if (own < gone) holding_.push_back(node);
    least = std::min(least, own);
  }
  return least;
}

std::vector<place_giver::place> place_giver::look_at_nodes() {
  const std::uint32_t used = table_.numbers().nodes;
  std::vector<place> places(used);
  std::vector<std::uint32_t> ended;
  for (std::uint32_t i = 0; i < used; ++i) {
    // SYNC: with change_state
    const std::uint32_t word = table_.entry(i).state.load(std::memory_order_acquire);
    const std::uint32_t state = word & state_mask;
    const std::uint32_t epoch = word >> layout::state_bits;
    if (epoch >= max_epoch) continue;  // used up
    places[i].epoch = word == 0 ? 0 : epoch + 1;
    if (word == 0 || state == layout::claimed) {
      places[i].is_free = true;
    } else if (const node_state s = table_.state_of(table_.node_at(i));
               s == node_state::left || s == node_state::dead) {
      ended.push_back(i);
    }
  }
  const std::uint64_t gone = table_.gone_nodes();  // it includes all that have ended
  for (const std::uint32_t i : ended)
    if (auto& at = table_.entry(i).gone_at; at.load(std::memory_order_relaxed) == 0)
      at.store(gone + 1, std::memory_order_relaxed);
  const std::uint64_t noticed = noticed_by_all();
  for (const std::uint32_t i : ended) {
    const bool is_known = table_.entry(i).gone_at.load(std::memory_order_relaxed) - 1 <= noticed;
    (is_known ? places[i].is_free : places[i].is_held) = true;
  }
  return places;
}

// A PE's place is free as its node's is. The node's place may have been given to another one since.
std::vector<place_giver::place> place_giver::look_at_pes(const std::vector<place>& nodes) const {
  const std::uint32_t used = table_.numbers().pes;
  std::vector<place> places(used);
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint64_t holder = table_.pe(i).holder.load(std::memory_order_relaxed);
    const std::uint32_t number = static_cast<std::uint32_t>(holder >> 32);
    const std::uint32_t node = static_cast<std::uint32_t>(holder) - 1;
    if (holder == 0) {
      places[i].is_free = true;
      continue;
    }
    if (place_of(number) != i || place_of(node) >= nodes.size() || epoch_of(number) >= max_epoch) continue;
    places[i].epoch = epoch_of(number) + 1;
    const place& its = nodes[place_of(node)];
    const std::uint32_t now = table_.node_at(place_of(node));
    if (now != no_node && epoch_of(now) > epoch_of(node)) {
      places[i].is_free = true;
    } else if (now == node) {
      places[i].is_free = its.is_free;
      places[i].is_held = its.is_held;
    }
  }
  return places;
}

// The least used of the rows that are long enough; at the ends of longer ones, so that they stay
// long.
std::optional<place_giver::run> place_giver::find_run(const std::vector<place>& places, std::uint64_t count) const {
  std::optional<run> best;
  const auto used = static_cast<std::uint32_t>(places.size());
  const auto consider = [&](std::uint32_t first) {
    run r{first, 0};
    for (std::uint32_t i = first; i < first + count; ++i) r.epoch = std::max(r.epoch, places[i].epoch);
    if (!best || r.epoch < best->epoch) best = r;
  };
  std::uint32_t tail = used;  // where the row begins that ends with the tables
  for (std::uint32_t i = 0; i < used; ++i) {
    if (!places[i].is_free) continue;
    std::uint32_t end = i;
    while (end < used && places[end].is_free) ++end;
    if (end == used) tail = i;
    if (end - i >= count) {
      consider(i);
      consider(end - static_cast<std::uint32_t>(count));
    }
    i = end;
  }
  if (best || tail + count > table_.places()) return best;
  run r{tail, 0};
  for (std::uint32_t i = tail; i < used; ++i) r.epoch = std::max(r.epoch, places[i].epoch);
  return r;
}

// Memory for all entries that the new places make reachable. Row `to` of the ring directory needs
// memory for all senders that have a place, so new senders may need more of the old rows.
result<void> place_giver::back(handed_out before, handed_out after) const {
  const auto range = [&](std::uint64_t at, std::uint64_t from, std::uint64_t to) {
    const std::uint64_t first = (at + from) / layout::page * layout::page;
    return memory_.back(first, (at + to + layout::page - 1) / layout::page * layout::page - first);
  };
  const auto table = [&](std::uint64_t at, std::uint64_t entry, std::uint32_t from, std::uint32_t to) {
    return range(at, entry * from, entry * to);
  };
  if (auto r = table(layout::nodes_at, sizeof(layout::node_entry), before.nodes, after.nodes); !r) return r;
  if (auto r = table(layout::pe_nodes_at, sizeof(layout::pe_entry), before.pes, after.pes); !r) return r;
  if (auto r = table(layout::bells_at, sizeof(doorbell), before.pes, after.pes); !r) return r;
  if (auto r = table(layout::counters_at, sizeof(layout::counter) * counters_per_pe, before.pes, after.pes); !r)
    return r;
  constexpr std::uint64_t entry = sizeof(layout::ring_entry);
  constexpr std::uint64_t per_page = layout::page / entry;
  const std::uint64_t had = (before.pes + per_page - 1) / per_page * per_page;
  for (std::uint32_t to = 0; to < after.pes; ++to) {
    const std::uint64_t from = to < before.pes ? had : 0;
    if (from >= after.pes) continue;
    if (auto r = range(layout::rings_at + layout::row_bytes * to, entry * from, entry * after.pes); !r) return r;
  }
  return {};
}

// From here until its entry is complete the place is nobody's.
void place_giver::claim(std::uint32_t node) const noexcept {
  auto& e = table_.entry(node);
  const std::uint32_t word = e.state.load(std::memory_order_acquire);
  const std::uint32_t lives = e.lives.load(std::memory_order_relaxed);
  // SYNC: release, with gone_nodes: who sees `claimed` sees that who was there is counted as one of
  // those before.
  if (word != 0 && (word & state_mask) != layout::claimed && (lives & 1) != 0)
    e.lives.store(lives + 1, std::memory_order_release);
  e.state.store(layout::state_word(node, layout::claimed), std::memory_order_release);
  // SYNC: release fence, with info: who reads any of what follows sees that the place is not the
  // old node's.
  std::atomic_thread_fence(std::memory_order_release);
  e.pid.store(0, std::memory_order_relaxed);
  e.start_time.store(0, std::memory_order_relaxed);
  e.segment_fd.store(0, std::memory_order_relaxed);
  e.segment_bytes.store(0, std::memory_order_relaxed);
  e.kick_fd.store(0, std::memory_order_relaxed);
  e.kick_inode.store(0, std::memory_order_relaxed);
  e.board_fd.store(0, std::memory_order_relaxed);
  e.gone_at.store(0, std::memory_order_relaxed);
  e.noticed.store(0, std::memory_order_relaxed);
}

// Nobody reads there, or writes, but for bells that ring once more.
void place_giver::clear_pe(std::uint32_t pe, std::uint32_t node) const noexcept {
  auto& e = table_.pe(pe);
  const std::uint32_t used = table_.numbers().pes;
  if (place_of(pe) < used) {
    for (std::uint32_t other = 0; other < used; ++other) {
      table_.ring(pe, other).store(0, std::memory_order_relaxed);
      table_.ring(other, pe).store(0, std::memory_order_relaxed);
    }
    layout::counter* const words = table_.counters() + std::uint64_t{place_of(pe)} * counters_per_pe;
    for (std::uint32_t i = 0; i < counters_per_pe; ++i) words[i].store(0, std::memory_order_relaxed);
    table_.bells()[place_of(pe)].sleeping.store(0, std::memory_order_relaxed);
  }
  e.noticed.store(0, std::memory_order_relaxed);
  // SYNC: release, with pe_at and pe_node
  e.holder.store(std::uint64_t{pe} << 32 | (node + 1), std::memory_order_release);
}

std::string place_giver::holding_text() const {
  if (holding_.empty()) return "";
  const node_info first = table_.info(holding_.front());
  return fmt::format("; places of programs that have left are free when node {} (pid {}){} notices that", first.node,
                     first.id.pid,
                     holding_.size() == 1 ? std::string() : fmt::format(" and {} more", holding_.size() - 1));
}

result<place_giver::given> place_giver::give(const world_config& config, std::uint32_t vocabulary_place, peer_id self) {
  end_those_that_died_joining();
  const std::uint64_t pe_count = std::uint64_t{config.nodes} * config.pe_count;
  const auto nodes = look_at_nodes();
  const auto pes = look_at_pes(nodes);
  const auto node_run = find_run(nodes, config.nodes);
  const auto pe_run = find_run(pes, pe_count);
  if (!node_run || !pe_run) {
    const auto taken = [](const std::vector<place>& all) { return std::ranges::count(all, false, &place::is_free); };
    const auto held = [](const place& p) { return p.is_held; };
    if (std::ranges::none_of(nodes, held) && std::ranges::none_of(pes, held)) holding_.clear();
    return fail(
        transport_errc::full, 0,
        "{} nodes of {} PEs do not fit into the world: {} of its {} places for nodes and {} of its {} places for "
        "PEs are in use, and each program takes places in a row{}; ask for fewer or start a new world",
        config.nodes, config.pe_count, taken(nodes), table_.places(), taken(pes), table_.places(), holding_text());
  }
  const handed_out before = table_.numbers();
  const handed_out after{std::max(before.nodes, node_run->first + config.nodes),
                         std::max(before.pes, pe_run->first + static_cast<std::uint32_t>(pe_count))};
  if (auto backed = back(before, after); !backed) return internal::pass(backed);
  const given to{number_of(node_run->first, node_run->epoch), number_of(pe_run->first, pe_run->epoch)};
  for (std::uint32_t i = 0; i < config.nodes; ++i) {
    const std::uint32_t node = to.node + i;
    const std::uint32_t first = to.first_pe + i * config.pe_count;
    claim(node);
    auto& e = table_.entry(node);
    e.first_pe.store(first, std::memory_order_relaxed);
    e.pe_count.store(config.pe_count, std::memory_order_relaxed);
    e.launcher.store(to.node, std::memory_order_relaxed);
    e.vocabulary.store(vocabulary_place + 1, std::memory_order_relaxed);
    set_program(e.program, config.program);
    for (std::uint32_t pe = first; pe < first + config.pe_count; ++pe) clear_pe(pe, node);
  }
  // SYNC: release, with numbers(): who sees the places may touch the tables.
  table_.head().numbers.store(std::uint64_t{after.nodes} << 32 | after.pes, std::memory_order_release);
  auto& own = table_.entry(to.node);
  own.pid.store(self.pid, std::memory_order_relaxed);
  own.start_time.store(self.start_time, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < config.nodes; ++i) {
    const node_state state = i == 0 ? node_state::joining : node_state::reserved;
    // SYNC: release, with state_of: the entry above is complete.
    table_.entry(to.node + i)
        .state.store(layout::state_word(to.node + i, static_cast<std::uint32_t>(state)), std::memory_order_release);
  }
  return to;
}

}  // namespace orrery::transport
