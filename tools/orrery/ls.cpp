// SPDX-License-Identifier: Apache-2.0
#include "attach.hpp"
#include "commands.hpp"
#include "sample.hpp"
#include "text.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::tool {

namespace {

using transport::world_info;

std::string_view to_string(world_info::condition c) {
  switch (c) {
    case world_info::condition::running:
      return "running";
    case world_info::condition::ending:
      return "ending";
    case world_info::condition::stale:
      return "stale";
    case world_info::condition::unreadable:
      return "unreadable";
  }
  return "?";
}

// All nodes are counted, and the programs of all are named.
world_info info_of(const unnamed_world& w) {
  world_info info;
  info.name = name_of(w.world.creator);
  info.creator = w.world.creator;
  std::vector<std::string> programs;
  for (const transport::cluster_status::node& n : w.status.nodes) {
    const auto state = static_cast<transport::node_state>(n.state);
    if (std::ranges::find(programs, n.program) == programs.end()) programs.push_back(n.program);
    if (state != transport::node_state::alive && state != transport::node_state::leaving) continue;
    ++info.nodes;
    info.pes += static_cast<std::uint32_t>(n.counters.size() / transport::counters_per_pe);
  }
  info.program = fmt::format("{}", fmt::join(programs, ", "));
  const auto first = static_cast<transport::node_state>(w.status.nodes[0].state);
  info.state = transport::state_of_world(first) == transport::world_state::running ? world_info::condition::running
                                                                                   : world_info::condition::ending;
  return info;
}

void print_names(const std::vector<name_sample>& names) {
  if (names.empty()) return;
  constexpr std::size_t longest_name = 255;
  constexpr std::size_t longest_class = 60;
  text_table table({"NAME", "PROCESS", "CLASS", ">NODE", ">PE"});
  for (const name_sample& n : names)
    table.add({printable(n.name, longest_name), to_string(n.process), printable(n.class_name, longest_class),
               std::to_string(n.node), std::to_string(n.process.pe)});
  print_lines({""});
  print_lines(table.lines());
}

}  // namespace

int list_all(const common& c) {
  auto worlds = transport::list_worlds(c.directory);
  if (!worlds) return fail(worlds.error().message);
  for (const unnamed_world& w : unnamed_worlds(c.directory)) worlds->push_back(info_of(w));
  if (c.json) {
    auto list = nlohmann::ordered_json::array();
    for (const world_info& w : *worlds) {
      list.push_back({{"name", w.name},
                      {"program", w.program},
                      {"state", to_string(w.state)},
                      {"nodes", w.nodes},
                      {"pes", w.pes},
                      {"pid", w.creator.pid},
                      {"age_s", age_of(w.creator)}});
      if (!w.problem.empty()) list.back()["problem"] = w.problem;
    }
    print_json({{"worlds", std::move(list)}});
    return 0;
  }
  if (worlds->empty()) {
    fmt::print(
        "No named world of this user is running, and none that an MPI launcher has started; a program that is "
        "started with --orrery-world=NAME makes one.\n");
    return 0;
  }
  text_table table({"NAME", "PROGRAM", ">NODES", ">PES", ">AGE", ">PID", "STATE"});
  bool stale = false;
  bool is_part = false;
  for (const world_info& w : *worlds) {
    is_part |= w.is_part;
    stale |= w.state == world_info::condition::stale;
    if (w.creator.pid == 0) {
      table.add({w.name, "", "", "", "", "", std::string(to_string(w.state))});
      continue;
    }
    table.add({w.name, w.program, std::to_string(w.nodes), std::to_string(w.pes), short_time(age_of(w.creator)),
               std::to_string(w.creator.pid), std::string(to_string(w.state))});
  }
  print_lines(table.lines());
  for (const world_info& w : *worlds)
    if (w.state == world_info::condition::unreadable)
      fmt::print(stderr, "{}: {}\n", printable(w.name), printable(w.problem));
  if (is_part)
    fmt::print(stderr,
               "Of a named world that an MPI launcher has started this machine's nodes are counted here; 'orrery ls "
               "NAME' shows all.\n");
  if (stale) fmt::print(stderr, "The first node of a stale world has crashed; 'orrery clean' removes what it left.\n");
  return 0;
}

int list_one(const common& c, const std::string& name, const std::string& prefix) {
  const auto world = attach(name, c.directory);
  if (!world) return fail(world.error());
  world_sample w = take_sample(*world, true);
  const std::uint64_t hidden = w.name_count - w.names.size();
  std::erase_if(w.names, [&](const name_sample& n) { return !n.name.starts_with(prefix); });
  for (const std::string& problem : w.problems) (void)fail(problem);
  if (c.json) {
    print_json(to_json(w));
    return 0;
  }
  print_lines({headline(w), ""});
  std::vector<std::string> columns{">NODE",     "STATE", ">PID",      "PROGRAM", ">PE",    ">PROCESSES",
                                   ">EXECUTED", ">SENT", ">RECEIVED", ">PARKS",  ">QUEUE", ">MAILBOX"};
  if (!w.machines.empty()) columns.insert(columns.begin(), "MACHINE");
  text_table table(columns);
  for (const node_sample& n : w.nodes) {
    std::vector<std::string> start{std::to_string(n.info.node), std::string(state_in_words(n)),
                                   std::to_string(n.info.id.pid), n.info.program};
    if (!w.machines.empty()) start.insert(start.begin(), printable(w.machines[n.machine], longest_host));
    const std::size_t of_node = start.size();
    if (n.pes.empty()) {
      start.resize(columns.size());
      table.add(start);
    }
    for (const pe_sample& p : n.pes) {
      const pe_counters& k = p.counters;
      std::vector<std::string> row = start;
      for (const std::uint64_t number : {std::uint64_t{p.pe}, k.processes}) row.push_back(std::to_string(number));
      for (const std::uint64_t number :
           {k.executed + k.inline_calls, k.sent, k.received, k.parks, k.queue_high, k.mailbox_high})
        row.push_back(short_number(static_cast<double>(number)));
      table.add(std::move(row));
      start.assign(of_node, "");
    }
  }
  print_lines(table.lines());
  print_names(w.names);
  if (hidden != 0) fmt::print("{} more {} too many to be shown.\n", hidden, hidden == 1 ? "name is" : "names are");
  return 0;
}

int clean(const common& c) {
  const auto removed = transport::remove_stale_worlds(c.directory);
  if (!removed) return fail(removed.error().message);
  if (c.json) {
    print_json({{"removed", *removed}});
  } else {
    fmt::print("{} stale {} removed\n", *removed, *removed == 1 ? "world was" : "worlds were");
  }
  return 0;
}

}  // namespace orrery::tool
