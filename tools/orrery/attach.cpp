// SPDX-License-Identifier: Apache-2.0
#include "attach.hpp"

#include "text.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::tool {

std::expected<watched_world, std::string> attach(const std::string& name, const std::string& directory) {
  auto view = transport::world_view::attach(name, directory);
  if (view) return watched_world{std::move(*view), 0, {}};
  std::string why = view.error().message;
  if (view.error().code == transport::transport_errc::not_found) {
    std::vector<std::string> running;
    if (const auto worlds = transport::list_worlds(directory))
      for (const auto& w : *worlds)
        if (w.state == transport::world_info::condition::running) running.push_back(w.name);
    for (unnamed_world& w : unnamed_worlds(directory)) {
      running.push_back(name_of(w.world.creator));
      if (running.back() == name) return std::move(w.world);
    }
    if (!running.empty()) why += fmt::format("; running are: {}", fmt::join(running, ", "));
  }
  return std::unexpected(std::move(why));
}

std::string headline(const world_sample& w) {
  std::size_t nodes = 0;
  std::size_t pes = 0;
  std::uint64_t processes = 0;
  for (const node_sample& n : w.nodes) {
    nodes += n.here() ? 1 : 0;
    pes += n.pes.size();
    for (const pe_sample& p : n.pes) processes += p.counters.processes;
  }
  const auto counted = [](std::uint64_t n, std::string_view one, std::string_view several) {
    return fmt::format("{} {}", n, n == 1 ? one : several);
  };
  std::string text = fmt::format("world {}: {}, {} for {}, {}", w.name, w.program, w.state, short_time(w.age_s),
                                 counted(nodes, "node", "nodes"));
  if (!w.machines.empty()) text += " on " + counted(w.machines.size(), "machine", "machines");
  text += fmt::format(", {}, {} processes", counted(pes, "PE", "PEs"), processes);
  if (w.machines.empty() || w.name_count != 0) text += ", " + counted(w.name_count, "name", "names");
  return text;
}

int fail(const std::string& why) {
  fmt::print(stderr, "orrery: {}\n", printable_lines(why));
  return 1;
}

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{}\n", printable(line));
  std::fflush(stdout);
}

void print_json(const nlohmann::ordered_json& value) {
  fmt::print("{}\n", value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  std::fflush(stdout);
}

}  // namespace orrery::tool
