// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carriers of several machines over a simulated network with a simulated clock, on one thread.

#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/mpi/carrier.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery::testing {

using namespace transport;  // NOLINT: tests only

inline constexpr std::int64_t ms = 1'000'000;
inline constexpr std::int64_t patience = 1000 * ms;
inline constexpr std::uint64_t ring_bytes = 4096;
inline constexpr std::uint64_t block_piece = 4096;  // blocks travel in parts of so many bytes

class simulated_machine;

/// The messages on their way between machines. Messages of one pair and one tag keep their order;
/// others overtake each other. Each direction between two machines may be cut, or held up.
struct simulated_network {
  struct message {
    std::int64_t due;
    std::vector<std::byte> bytes;
    std::uint64_t evictions;  // that its sender knew
  };
  struct line_name {
    std::uint32_t from;
    std::uint32_t to;
    int tag;
    auto operator<=>(const line_name&) const = default;
  };
  using pair = std::pair<std::uint32_t, std::uint32_t>;
  std::int64_t now = 0;
  std::map<line_name, std::deque<message>> lines;
  std::map<pair, bool> cut;
  std::map<pair, std::int64_t> held_until;
  std::vector<wire::unique_ptr<simulated_machine>> machines;
  std::mt19937_64 random;
  std::uint64_t below(std::uint64_t n) { return random() % n; }
  /// The next message of a line, if it has arrived.
  message* arrived(const line_name& l) {
    auto& line = lines[l];
    if (line.empty() || line.front().due > now || held_until[{l.from, l.to}] > now) return nullptr;
    return &line.front();
  }
};

/// One node on a machine of its own.
class simulated_machine final : public engine {
 public:
  simulated_machine(simulated_network& net, const std::vector<cluster_map::place>& places, std::uint32_t node)
      : net_(net), node_(node), map_(places, node, block_piece), members_(map_.nodes(), node) {
    world_config config;
    config.program = "test";
    config.places = 16;
    memory_ = std::move(*shm_world::create(config));
    carrier_ = wire::make_unique<mpi_carrier>(
        *this, *memory_, map_, members_, patience,
        [this](const std::string& line) {
          ended = true;
          if (why.empty()) why = line;
        },
        [this] { return net_.now; });
    carrier_->look_for_debugger([this] { return debugged; });
    if (!carrier_->begin()) std::abort();
  }

  bool send(std::uint32_t to, int tag, std::span<const std::byte> data, request& begun) override {
    begun = 0;
    if (net_.cut[{node_, to}] || ended) return true;
    auto& line = net_.lines[{node_, to, tag}];
    const std::int64_t due = net_.now + static_cast<std::int64_t>(net_.below(30)) * ms;
    line.push_back({line.empty() ? due : std::max(due, line.back().due), {data.begin(), data.end()}, known});
    return true;
  }
  bool receive(std::uint32_t from, int tag, std::span<std::byte> into, request& begun) override {
    begun = ++requests_;
    if (tag == 0) {
      posted_.emplace_back(begun, into);
    } else {
      pieces_[begun] = {from, tag, into};
    }
    return true;
  }
  outcome test(request& begun, std::uint32_t& from, std::uint64_t& bytes) override {
    if (begun == 0) return outcome::done;
    if (const auto p = pieces_.find(begun); p != pieces_.end()) return test_piece(p, from, bytes);
    if (posted_.empty() || posted_.front().first != begun) return outcome::pending;
    const std::uint64_t turn = net_.below(map_.nodes());
    for (std::uint64_t i = 0; i < map_.nodes(); ++i) {
      const auto other = static_cast<std::uint32_t>((turn + i) % map_.nodes());
      const simulated_network::message* const m = net_.arrived({other, node_, 0});
      if (m == nullptr) continue;
      std::ranges::copy(m->bytes, posted_.front().second.begin());
      from = other;
      bytes = m->bytes.size();
      must_know[other] = m->evictions;
      net_.lines[{other, node_, 0}].pop_front();
      posted_.pop_front();
      return outcome::done;
    }
    return outcome::pending;
  }
  void cancel(request&) override {}
  [[nodiscard]] std::string error() const override { return "no error"; }

  /// The work of its helper thread.
  void tick() {
    if (ended || stopped) return;
    (void)carrier_->tick();
    known = carrier_->evictions();
    // I4: that of all machines it still listens to.
    for (const auto& [other, least] : must_know) {
      if (members_.state(other) == node_state::dead || ended) continue;
      EXPECT_GE(known, least) << "node " << node_ << " acts on what node " << other << " knew";
    }
  }
  /// Opens a ring to another machine, which its PE writes into.
  ring_producer talk_to(std::uint32_t other) {
    auto ring = memory_->allocate(ring_header::bytes_for(ring_bytes));
    if (!ring) std::abort();
    std::memset(ring->data, 0, ring_header::bytes_for(ring_bytes));
    ring_header& header = *make_ring(ring->data, ring_bytes, node_, other);
    carrier_->add_ring(node_, other, ring->offset, header);
    return ring_producer(header);
  }
  [[nodiscard]] std::vector<std::uint32_t> lost() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t n = 0; n < map_.nodes(); ++n)
      if (members_.state(n) == node_state::dead) all.push_back(n);
    return all;
  }
  [[nodiscard]] mpi_carrier& carrier() noexcept { return *carrier_; }
  [[nodiscard]] shm_world& memory() noexcept { return *memory_; }
  [[nodiscard]] std::uint32_t node() const noexcept { return node_; }

  bool ended = false;
  bool stopped = false;
  bool debugged = false;
  std::string why;
  std::uint64_t known = 0;
  std::map<std::uint32_t, std::uint64_t> must_know;

 private:
  struct piece {
    std::uint32_t from;
    int tag;
    std::span<std::byte> into;
  };
  outcome test_piece(std::map<request, piece>::iterator p, std::uint32_t& from, std::uint64_t& bytes) {
    const piece& wanted = p->second;
    // Messages of one tag are matched in the order of the receives.
    for (auto earlier = pieces_.begin(); earlier != p; ++earlier)
      if (earlier->second.from == wanted.from && earlier->second.tag == wanted.tag) return outcome::pending;
    const simulated_network::line_name line{wanted.from, node_, wanted.tag};
    const simulated_network::message* const m = net_.arrived(line);
    if (m == nullptr) return outcome::pending;
    std::ranges::copy(m->bytes, wanted.into.begin());
    from = wanted.from;
    bytes = m->bytes.size();
    net_.lines[line].pop_front();
    pieces_.erase(p);
    return outcome::done;
  }

  simulated_network& net_;
  std::uint32_t node_;
  cluster_map map_;
  cluster_members members_;
  wire::unique_ptr<shm_world> memory_;
  wire::unique_ptr<mpi_carrier> carrier_;
  std::deque<std::pair<request, std::span<std::byte>>> posted_;
  std::map<request, piece> pieces_;
  request requests_ = 0;
};

struct simulated_cluster {
  simulated_network net;

  explicit simulated_cluster(std::uint32_t nodes, std::uint64_t seed = test_seed()) {
    net.random.seed(seed);
    std::vector<cluster_map::place> places;
    for (std::uint32_t n = 0; n < nodes; ++n) places.push_back({n, n, 1, 0, 0});
    for (std::uint32_t n = 0; n < nodes; ++n)
      net.machines.push_back(wire::make_unique<simulated_machine>(net, places, n));
  }
  [[nodiscard]] simulated_machine& at(std::uint32_t n) { return *net.machines[n]; }
  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(net.machines.size()); }
  void run_for(std::int64_t time) {
    for (const std::int64_t end = net.now + time; net.now < end; net.now += 5 * ms)
      for (std::uint32_t i = 0; i < nodes(); ++i) at(static_cast<std::uint32_t>(net.below(nodes()))).tick();
  }
  void cut(std::uint32_t from, std::uint32_t to, bool is_cut = true) {
    net.cut[{from, to}] = is_cut;
    if (is_cut) std::erase_if(net.lines, [&](const auto& l) { return l.first.from == from && l.first.to == to; });
  }
  /// Nothing from one arrives at the other for that time; then all of it does.
  void hold_up(std::uint32_t from, std::uint32_t to, std::int64_t time) { net.held_until[{from, to}] = net.now + time; }
  void cut_both(std::uint32_t a, std::uint32_t b) {
    cut(a, b);
    cut(b, a);
  }
  /// All that run agree with the first node who is lost, and nobody runs that is. Empty if so.
  std::string disagreement() {
    const auto lost = at(0).lost();
    for (std::uint32_t n = 1; n < nodes(); ++n) {
      const bool is_lost = std::ranges::find(lost, n) != lost.end();
      if (at(n).ended != is_lost)
        return fmt::format("node {} {}, but for the first node it is {}", n, at(n).ended ? "has ended" : "runs",
                           is_lost ? "lost" : "there");
      if (!is_lost && at(n).lost() != lost) return fmt::format("node {} takes others for lost than the first node", n);
    }
    return {};
  }
};

}  // namespace orrery::testing
