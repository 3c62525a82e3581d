// SPDX-License-Identifier: Apache-2.0
#include "sample.hpp"

#include <orrery/process/detail/names_on_board.hpp>
#include <orrery/process/detail/silent_pe.hpp>
#include <orrery/transport/mpi/cluster_status.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>

#include <fmt/format.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

using published = std::array<std::uint64_t, scheduler::published_words>;

pe_counters read_counters(const transport::world_view& view, std::uint32_t pe) {
  published words{};
  for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = view.counter(pe, i);
  return scheduler::decode_counters(words, transport::now_ns());
}

const pe_counters* find(const world_sample& w, std::uint32_t pe) {
  for (const node_sample& n : w.nodes)
    for (const pe_sample& p : n.pes)
      if (p.pe == pe) return &p.counters;
  return nullptr;
}

// A world's names are as good as its nodes: damaged ones are told, and cost no more than these names.
void add_names(world_sample& w, const transport::result<std::vector<std::byte>>& text, std::uint32_t node) {
  try {
    if (!text) {
      w.problems.push_back(text.error().message);
      return;
    }
    orrery::detail::names_on_board board = orrery::detail::decode_names(*text);
    constexpr std::uint64_t most = std::uint64_t{1} << 40;  // so that no sum wraps
    w.name_count += std::max<std::uint64_t>(std::min(board.total, most), board.names.size());
    for (auto& n : board.names) w.names.push_back({std::move(n.name), n.process, board.classes[n.cls], node});
  } catch (const orrery::error& e) {
    w.problems.push_back(fmt::format("the names of node {} cannot be read: {}", node, e.what()));
  }
}

// The nodes of all machines, as the first node of this one tells.
void add_machines(world_sample& w, std::uint64_t nonce, bool names) {
  constexpr std::chrono::milliseconds patience{3000};
  auto status = transport::ask_for_status(nonce, patience, names);
  if (!status) {
    w.problems.push_back(std::move(status.error().message));
    return;
  }
  if (!status->is_fresh) w.problems.emplace_back("some nodes do not answer: their figures are older");
  w.machines = std::move(status->hosts);
  std::uint32_t number = 0;
  for (transport::cluster_status::node& n : status->nodes) {
    node_sample& node = w.nodes.emplace_back();
    node.machine = n.machine;
    node.info.node = number++;
    node.info.state = static_cast<transport::node_state>(n.state);
    node.info.id.pid = n.pid;
    node.info.program = n.program;
    node.info.first_pe = n.first_pe;
    node.info.pe_count = static_cast<std::uint32_t>(n.counters.size() / transport::counters_per_pe);
    for (std::uint32_t i = 0; node.here() && i < node.info.pe_count; ++i) {
      published words{};
      std::copy_n(n.counters.begin() + std::ptrdiff_t{i} * transport::counters_per_pe, words.size(), words.begin());
      node.pes.push_back({n.first_pe + i, scheduler::decode_counters(words, n.now_ns)});
    }
    if (names) add_names(w, std::move(n.names), node.info.node);
  }
  if (w.program.empty() && !w.nodes.empty()) {
    w.program = w.nodes[0].info.program;
    w.state = transport::to_string(transport::state_of_world(w.nodes[0].info.state));
  }
  std::ranges::sort(w.nodes, {}, [](const node_sample& n) { return std::pair(n.machine, n.info.node); });
  std::ranges::sort(w.names, {}, &name_sample::name);
}

}  // namespace

std::string name_of(const transport::peer_id& teller) { return fmt::format("mpi-{}", teller.pid); }

std::vector<unnamed_world> unnamed_worlds(const std::string& directory) {
  constexpr std::chrono::milliseconds patience{1000};
  std::vector<unnamed_world> all;
  if (!directory.empty() || std::getenv("ORRERY_SHM_DIR") != nullptr) return all;
  for (const std::uint64_t nonce : transport::told_worlds()) {
    auto status = transport::ask_for_status(nonce, patience);
    if (!status || !status->name.empty()) continue;
    const transport::peer_id teller =
        transport::find_peer(status->nodes[status->teller].pid).value_or(transport::peer_id{});
    all.push_back({{std::nullopt, nonce, teller}, std::move(*status)});
  }
  std::ranges::sort(all, {}, [](const unnamed_world& w) { return w.world.creator.pid; });
  return all;
}

world_sample take_sample(const watched_world& world, bool names) {
  world_sample w;
  if (!world.view) {
    w.name = name_of(world.creator);
    w.pid = world.creator.pid;
    w.age_s = age_of(world.creator);
    add_machines(w, world.nonce, names);
    return w;
  }
  const transport::world_view& view = *world.view;
  w.name = view.name();
  w.program = view.program();
  w.state = to_string(view.state());
  w.pid = view.creator().pid;
  w.age_s = age_of(view.creator());
  if (view.is_part()) {
    add_machines(w, view.nonce(), names);
    return w;
  }
  for (std::uint32_t place = 0; place < view.node_limit(); ++place) {
    const std::uint32_t n = view.node_at(place);
    node_sample node{view.info(n)};
    if (node.info.state == transport::node_state::empty) continue;
    const std::uint32_t end = node.info.first_pe + node.info.pe_count;
    for (std::uint32_t pe = node.info.first_pe; node.here() && pe != end; ++pe)
      node.pes.push_back({pe, read_counters(view, pe)});
    node.stopped = node.here() && orrery::detail::is_stopped(node.info.id);
    if (node.here()) add_names(w, view.read_board(n), n);
    w.nodes.push_back(std::move(node));
  }
  std::ranges::sort(w.names, {}, &name_sample::name);
  return w;
}

std::string_view state_in_words(const node_sample& n) noexcept {
  return n.stopped && n.info.state == transport::node_state::alive ? "stopped" : transport::to_string(n.info.state);
}

bool is_over(const watched_world& world) {
  if (world.view) return !world.view->creator_running() || world.view->state() != transport::world_state::running;
  const auto told = transport::told_worlds();
  return std::ranges::find(told, world.nonce) == told.end();
}

pe_rates rates_between(const pe_counters& before, const pe_counters& after) noexcept {
  const auto elapsed = static_cast<double>(after.at_ns - before.at_ns);
  if (before.at_ns == 0 || elapsed <= 0) return {};  // no news: it computes
  const auto rate = [&](std::uint64_t b, std::uint64_t a) {
    return a > b ? static_cast<double>(a - b) * 1e9 / elapsed : 0.0;
  };
  return {
      .messages = rate(before.executed + before.inline_calls, after.executed + after.inline_calls),
      .sent = rate(before.sent, after.sent),
      .sent_bytes = rate(before.sent_bytes, after.sent_bytes),
      .received_bytes = rate(before.received_bytes, after.received_bytes),
      .parks = rate(before.parks, after.parks),
      .idle = std::min(1.0, rate(before.idle_ns, after.idle_ns) / 1e9),
  };
}

double age_of(const transport::peer_id& id) {
  if (transport::find_peer(id.pid) != id) return 0;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double started = static_cast<double>(id.start_time) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9 - started;
}

nlohmann::ordered_json to_json(const world_sample& now, const world_sample* before) {
  using json = nlohmann::ordered_json;
  json world{
      {"name", now.name}, {"program", now.program}, {"state", now.state}, {"pid", now.pid}, {"age_s", now.age_s}};
  if (!now.machines.empty()) world["machines"] = now.machines;
  world["nodes"] = json::array();
  for (const node_sample& n : now.nodes) {
    json node{{"node", n.info.node},
              {"state", state_in_words(n)},
              {"pid", n.info.id.pid},
              {"program", n.info.program},
              {"pes", json::array()}};
    if (!now.machines.empty()) node["machine"] = now.machines[n.machine];
    for (const pe_sample& p : n.pes) {
      json pe{{"pe", p.pe}, {"asleep", p.counters.asleep}};
      for (const auto& c : scheduler::counter_table()) pe[std::string(c.name)] = p.counters.*c.value;
      if (before != nullptr) {
        const pe_counters* const old = find(*before, p.pe);
        const pe_rates r = old != nullptr ? rates_between(*old, p.counters) : pe_rates{};
        pe["per_second"] = {{"messages", r.messages},
                            {"sent", r.sent},
                            {"sent_bytes", r.sent_bytes},
                            {"received_bytes", r.received_bytes},
                            {"parks", r.parks}};
        pe["idle"] = r.idle;
      }
      node["pes"].push_back(std::move(pe));
    }
    world["nodes"].push_back(std::move(node));
  }
  if (!now.problems.empty()) world["problems"] = now.problems;
  world["name_count"] = now.name_count;
  if (before != nullptr) return world;
  world["names"] = json::array();
  for (const name_sample& n : now.names)
    world["names"].push_back({{"name", n.name},
                              {"process", to_string(n.process)},
                              {"class", n.class_name},
                              {"node", n.node},
                              {"pe", n.process.pe}});
  return world;
}

}  // namespace orrery::tool
