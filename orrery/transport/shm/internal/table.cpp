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

constexpr std::uint64_t pack(handed_out n) noexcept { return std::uint64_t{n.nodes} << 32 | n.pes; }
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

// Memory for all entries that the new numbers make reachable. Row `to` of the ring directory needs
// memory for all senders that have a number, so new senders may need more of the old rows.
result<void> world_table::back(const segment& memory, handed_out before, handed_out after) const {
  const auto range = [&](std::uint64_t at, std::uint64_t from, std::uint64_t to) {
    const std::uint64_t first = (at + from) / layout::page * layout::page;
    return memory.back(first, (at + to + layout::page - 1) / layout::page * layout::page - first);
  };
  const auto table = [&](std::uint64_t at, std::uint64_t entry, std::uint32_t from, std::uint32_t to) {
    return range(at, entry * from, entry * to);
  };
  if (auto r = table(layout::nodes_at, sizeof(layout::node_entry), before.nodes, after.nodes); !r) return r;
  if (auto r = table(layout::pe_nodes_at, sizeof(std::uint32_t), before.pes, after.pes); !r) return r;
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

result<handed_out> world_table::reserve(const segment& memory, const world_config& config, peer_id self) const {
  auto& numbers = head().numbers;
  std::uint64_t word = numbers.load(std::memory_order_acquire);
  handed_out before;
  handed_out after;
  do {
    before = unpack(word);
    // 64 bits: neither the sum nor a number that is damaged may wrap.
    const std::uint64_t nodes = std::uint64_t{before.nodes} + config.nodes;
    const std::uint64_t pes = before.pes + std::uint64_t{config.nodes} * config.pe_count;
    if (nodes > max_nodes || pes > max_pes) {
      return fail(transport_errc::full, 0,
                  "{} nodes of {} PEs do not fit into the world: it has given out {} of {} node "
                  "numbers and {} of {} PE numbers, which are never used again; ask for fewer or "
                  "start a new world",
                  config.nodes, config.pe_count, before.nodes, max_nodes, before.pes, max_pes);
    }
    after = {static_cast<std::uint32_t>(nodes), static_cast<std::uint32_t>(pes)};
    if (auto backed = back(memory, before, after); !backed) return internal::pass(backed);
    // SYNC: release, with numbers(): who sees the numbers may touch the tables.
  } while (!numbers.compare_exchange_weak(word, pack(after), std::memory_order_acq_rel, std::memory_order_acquire));
  for (std::uint32_t n = before.nodes; n < after.nodes; ++n) {
    auto& e = entry(n);
    const std::uint32_t first = before.pes + (n - before.nodes) * config.pe_count;
    e.first_pe.store(first, std::memory_order_relaxed);
    e.pe_count.store(config.pe_count, std::memory_order_relaxed);
    e.launcher.store(before.nodes, std::memory_order_relaxed);
    set_text(e.program, config.program);
    for (std::uint32_t pe = first; pe < first + config.pe_count; ++pe)
      pe_node_word(pe).store(n + 1, std::memory_order_relaxed);
    const bool is_self = n == before.nodes;
    if (is_self) {
      e.pid.store(self.pid, std::memory_order_relaxed);
      e.start_time.store(self.start_time, std::memory_order_relaxed);
    }
    // SYNC: release, with state_of: the entry above is complete.
    e.state.store(static_cast<std::uint32_t>(is_self ? node_state::joining : node_state::reserved),
                  std::memory_order_release);
  }
  return before;
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

node_state world_table::state_of(std::uint32_t n) const noexcept {
  if (n >= numbers().nodes) return node_state::empty;
  // SYNC: acquire, with reserve and everything that changes an entry
  const std::uint32_t word = entry(n).state.load(std::memory_order_acquire);
  // What cannot be is a node that cannot be trusted, hence dead.
  return word > static_cast<std::uint32_t>(node_state::dead) ? node_state::dead : static_cast<node_state>(word);
}

node_info world_table::info(std::uint32_t n) const {
  node_info i;
  i.state = state_of(n);
  if (i.state == node_state::empty) return i;
  const auto& e = entry(n);
  i.node = n;
  i.id = {e.pid.load(std::memory_order_relaxed), e.start_time.load(std::memory_order_relaxed)};
  const std::uint32_t first = e.first_pe.load(std::memory_order_relaxed);
  const std::uint32_t count = e.pe_count.load(std::memory_order_relaxed);
  if (first <= max_pes && count <= max_pes - first) {
    i.first_pe = first;
    i.pe_count = count;
  }
  const std::uint32_t launcher = e.launcher.load(std::memory_order_relaxed);
  if (launcher < max_nodes) i.launcher = launcher;
  i.segment_bytes = e.segment_bytes.load(std::memory_order_relaxed);
  i.program = text_of(e.program);
  return i;
}

std::uint32_t world_table::pe_node(std::uint32_t pe) const noexcept {
  if (pe >= numbers().pes) return no_node;
  const std::uint32_t word = pe_node_word(pe).load(std::memory_order_relaxed);
  if (word == 0 || word > max_nodes) return no_node;
  const auto& e = entry(word - 1);
  const std::uint32_t first = e.first_pe.load(std::memory_order_relaxed);
  if (pe < first || pe - first >= e.pe_count.load(std::memory_order_relaxed)) return no_node;
  return word - 1;
}

}  // namespace orrery::transport
