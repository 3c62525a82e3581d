// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/function_map.hpp>

#include <orrery/process/on_end.hpp>
#include <orrery/scheduler/node.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace orrery::detail {

namespace {

/// Takes `--name=value` out of the program's arguments.
std::optional<std::string> take_option(args& arguments, std::string_view name) {
  const std::string begin = fmt::format("--{}=", name);
  const auto at = std::ranges::find_if(arguments, [&](const std::string& a) { return a.starts_with(begin); });
  if (at == arguments.end()) return std::nullopt;
  const std::string value = at->substr(begin.size());
  arguments.erase(at);
  return value;
}

const named_map& choose(std::span<const named_map> all, const std::optional<std::string>& name) {
  if (!name) return all.front();
  const auto at = std::ranges::find(all, *name, &named_map::name);
  if (at != all.end()) return *at;
  std::vector<std::string_view> names;
  for (const named_map& m : all) names.push_back(m.name);
  throw usage_error(errc::bad_argument,
                    fmt::format("--map={}: there is no such map; this program has {}", *name, fmt::join(names, ", ")));
}

std::size_t read_count(const std::optional<std::string>& text) {
  if (!text) return 0;
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), n);
  if (error != std::errc{} || end != text->data() + text->size() || n == 0)
    throw usage_error(errc::bad_argument, fmt::format("--per-node={}: a number from 1 on is needed", *text));
  return n;
}

/// The PEs of the ranks, node by node.
std::vector<std::uint32_t> places_of(std::size_t per_node) {
  const scheduler::node& n = here_pe().owner();
  const std::vector<std::uint32_t> pes = program_pes();
  std::vector<std::uint32_t> places;
  for (std::size_t first = 0; first < pes.size();) {
    std::size_t end = first;
    while (end < pes.size() && n.node_of(pes[end]) == n.node_of(pes[first])) ++end;
    const std::size_t count = per_node != 0 ? per_node : end - first;
    for (std::size_t i = 0; i < count; ++i) places.push_back(pes[first + i % (end - first)]);
    first = end;
  }
  return places;
}

}  // namespace

int run_map(std::span<const named_map> all, args arguments) {
  const named_map& map = choose(all, take_option(arguments, "map"));
  const std::vector<std::uint32_t> places = places_of(read_count(take_option(arguments, "per-node")));
  std::vector<remote<function>> functions;
  std::vector<future<ending>> ends;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    functions.push_back(map.begin(orrery::pe(places[rank]), rank, arguments));
    ends.push_back(end_of(functions.back()));  // it waits for the others
  }
  for (const auto& f : functions) send(f, functions);
  int failed = 0;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const ending e = ends[rank].get();
    if (!e.failed()) continue;
    ++failed;
    fmt::print(stderr, "orrery: rank {} of the map {}, on PE {}: {}\n", rank, map.name, places[rank],
               e.what.empty() ? "it was destroyed" : e.what);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace orrery::detail
