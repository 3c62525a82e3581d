// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/sim/carriers.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>

namespace orrery::transport {

namespace {
constexpr std::int64_t retry_ns = 1'000;
constexpr std::int64_t never = sim_settings::cut::for_ever;
constexpr int looks = 10;  // of each node, in the silence of a lost one
// After so many times that silence, who was cut off is missed and the others know it.
constexpr int longest_watch = 4;
}  // namespace

/// A node, its carrier, and the messages on their way to it.
class sim_carriers::machine final : public engine {
 public:
  machine(sim_carriers& all, const std::vector<cluster_map::place>& places, std::uint32_t node)
      : map(places, node), members(map.nodes(), node), all_(all), node_(node) {
    world_config config;
    config.program = "simulation";
    config.pe_count = places[node].pe_count;
    config.places = 2 * config.pe_count;
    auto made = shm_world::create(config);
    if (!made) throw std::runtime_error(fmt::format("no memory for simulated node {}: {}", node, made.error().message));
    memory = std::move(*made);
    carrier = wire::make_unique<mpi_carrier>(
        *this, *memory, map, members, all.settings_.silence_ns, [this](const std::string& why) { end(why); },
        [this] { return latest_ = std::max(latest_, all_.now_()); });
    carrier->miss_silent(false);
    (void)carrier->begin();
  }

  bool send(std::uint32_t to, int tag, std::span<const std::byte> data, request& begun) override {
    begun = 0;  // it is copied: the library needs the memory no longer
    machine& there = *all_.machines_[to];
    if (ended || there.ended) return true;
    line& l = there.lines_[{node_, tag}];
    const std::int64_t now = all_.now_();
    const std::int64_t passes = all_.passes_at(node_, to);
    if (passes != now) all_.watch_for_silent_nodes();
    const std::int64_t due = passes == never ? never : all_.net_.arrival(passes, node_, to, data.size());
    l.last_ns = std::max(l.last_ns, due);
    l.messages.push_back({l.last_ns, {data.begin(), data.end()}});
    if (l.last_ns != never) all_.drive_at_(to, l.last_ns);
    return true;
  }
  bool receive(std::uint32_t from, int tag, std::span<std::byte> into, request& begun) override {
    begun = ++requests_;
    posted_.push_back({begun, from, tag, into});
    return true;
  }
  outcome test(request& begun, std::uint32_t& from, std::uint64_t& bytes) override {
    if (begun == 0) return outcome::done;
    const auto wanted = std::ranges::find(posted_, begun, &posted::number);
    // Messages are matched in the order of the receives.
    const bool is_next = std::none_of(posted_.begin(), wanted,
                                      [&](const posted& p) { return p.from == wanted->from && p.tag == wanted->tag; });
    if (!is_next) return outcome::pending;
    line* const l = next_for(*wanted, from);
    if (l == nullptr) return outcome::pending;
    const std::vector<std::byte>& data = l->messages.front().bytes;
    std::ranges::copy(data, wanted->into.begin());
    bytes = data.size();
    l->messages.pop_front();
    posted_.erase(wanted);
    return outcome::done;
  }
  void cancel(request& begun) override {
    std::erase_if(posted_, [&](const posted& p) { return p.number == begun; });
  }
  [[nodiscard]] std::string error() const override { return "a simulated library has no errors"; }

  /// When the next message arrives, if one is on its way. One that has arrived may wait for its
  /// receive.
  [[nodiscard]] std::optional<std::int64_t> next_ns() const {
    std::optional<std::int64_t> next;
    for (const auto& [name, l] : lines_)
      for (const message& m : l.messages) {
        if (m.due_ns <= all_.now_()) continue;
        if (m.due_ns == never) break;
        next = std::min(next.value_or(m.due_ns), m.due_ns);
        break;
      }
    return next;
  }

  cluster_map map;
  cluster_members members;
  wire::unique_ptr<shm_world> memory;
  wire::unique_ptr<mpi_carrier> carrier;
  bool ended = false;
  bool watches = false;  // for silent nodes

 private:
  struct message {
    std::int64_t due_ns;
    std::vector<std::byte> bytes;
  };
  struct line {  // of messages with one tag from one node
    std::int64_t last_ns = 0;
    std::deque<message> messages;
  };
  struct posted {
    request number;
    std::uint32_t from;
    int tag;
    std::span<std::byte> into;
  };

  // The line whose next message such a receive gets, and who has sent it.
  line* next_for(const posted& p, std::uint32_t& from) {
    line* earliest = nullptr;
    for (auto& [name, l] : lines_) {
      if (name.second != p.tag || (p.from != any_node && name.first != p.from)) continue;
      if (l.messages.empty() || l.messages.front().due_ns > all_.now_()) continue;
      if (earliest != nullptr && earliest->messages.front().due_ns <= l.messages.front().due_ns) continue;
      earliest = &l;
      from = name.first;
    }
    return earliest;
  }

  // The carrier says that this node must end: the first one is gone, this one is taken for lost, or
  // carriers have a fault. It is under its lock.
  void end(const std::string& why) {
    if (all_.machines_[0]->ended) {
      members.change(0, node_state::dead, all_.loss_);
      return;
    }
    if (ended) return;
    ended = true;
    std::fputs(fmt::format("orrery: simulated node {}: {}\n", node_, why).c_str(), stderr);
    all_.ends_(node_);
  }

  sim_carriers& all_;
  std::uint32_t node_;
  std::int64_t latest_ = 0;
  std::map<std::pair<std::uint32_t, int>, line> lines_;  // by sender and tag
  std::deque<posted> posted_;
  request requests_ = 0;
};

sim_carriers::sim_carriers(const sim_settings& settings, network& net, clock now, wanted drive_at, ender ends)
    : settings_(settings),
      net_(net),
      now_(std::move(now)),
      drive_at_(std::move(drive_at)),
      ends_(std::move(ends)),
      begin_(now_()),
      watched_until_(begin_) {
  std::vector<cluster_map::place> places;
  for (std::uint32_t n = 0; n < settings.all_nodes(); ++n)
    places.push_back({.machine = n / settings.nodes, .first_pe = n * settings.pes, .pe_count = settings.pes});
  for (std::uint32_t n = 0; n < settings.all_nodes(); ++n)
    machines_.push_back(wire::make_unique<machine>(*this, places, n));
  if (const auto cut = next_cut()) drive_at_(0, *cut);
}
sim_carriers::~sim_carriers() = default;

mpi_carrier& sim_carriers::carrier(std::uint32_t node) noexcept { return *machines_[node]->carrier; }
cluster_members& sim_carriers::members(std::uint32_t node) noexcept { return machines_[node]->members; }
shm_world& sim_carriers::memory(std::uint32_t node) noexcept { return *machines_[node]->memory; }
const cluster_map& sim_carriers::map(std::uint32_t node) const noexcept { return machines_[node]->map; }

std::int64_t sim_carriers::passes_at(std::uint32_t from, std::uint32_t to) const {
  std::int64_t passes = now_();
  for (bool held = true; held && passes != never;) {
    held = false;
    for (const sim_settings::cut& c : settings_.cuts) {
      if (c.from != from || c.to != to || passes - begin_ < c.at_ns || passes - begin_ >= c.until_ns) continue;
      if (c.until_ns == never) return never;
      passes = begin_ + c.until_ns;
      held = true;
    }
  }
  return passes;
}

void sim_carriers::watch_for_silent_nodes() {
  watched_until_ = now_() + longest_watch * settings_.silence_ns;
  for (std::uint32_t n = 0; n < machines_.size(); ++n)
    if (!machines_[n]->watches) drive_at_(n, now_());
}

// The first that is still to come.
std::optional<std::int64_t> sim_carriers::next_cut() const {
  std::optional<std::int64_t> next;
  for (const sim_settings::cut& c : settings_.cuts)
    if (begin_ + c.at_ns > now_()) next = std::min(next.value_or(never), begin_ + c.at_ns);
  return next;
}

void sim_carriers::drive(std::uint32_t node) {
  machine& m = *machines_[node];
  if (m.ended) return;
  if (node == 0 && std::ranges::any_of(settings_.cuts, [&](const auto& c) { return begin_ + c.at_ns == now_(); }))
    watch_for_silent_nodes();
  if (m.watches != (now_() < watched_until_)) m.carrier->miss_silent(m.watches = !m.watches);
  while (m.carrier->tick() && !m.ended) {
  }
  if (m.ended) return;
  std::optional<std::int64_t> next = m.next_ns();
  if (!next && !m.carrier->is_calm()) next = now_() + retry_ns;  // it waits for memory
  if (m.watches) {
    const std::int64_t look = now_() + settings_.silence_ns / looks;
    next = std::min(next.value_or(look), look);
  }
  if (node == 0)
    if (const auto cut = next_cut()) next = std::min(next.value_or(*cut), *cut);
  if (next) drive_at_(node, *next);
}

void sim_carriers::kill(std::uint32_t node) noexcept { machines_[node]->ended = true; }

void sim_carriers::notice(std::uint32_t node, std::string_view how) {
  loss_ = how;
  for (std::uint32_t n = 0; n < machines_.size(); ++n) {
    if (n == node || machines_[n]->ended) continue;
    if (passes_at(node, n) != now_()) {
      watch_for_silent_nodes();
      continue;
    }
    machines_[n]->carrier->report_lost(node, how);
    drive_at_(n, now_());
  }
}

void sim_carriers::say_leaving(std::uint32_t node) noexcept {
  machine& m = *machines_[node];
  if (m.ended || !m.members.change(node, node_state::leaving)) return;
  m.carrier->say(node_news::leaving);
}

}  // namespace orrery::transport
