// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/hosts.hpp>

#include <orrery/process/machines.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/storage/detail/page_file.hpp>
#include <orrery/transport/world.hpp>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

namespace orrery::storage::internal {
namespace {

bool is_host_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_' || c == '#';
}
// It begins as HOST:PATH does.
bool names_host(const std::string& text) {
  const std::size_t colon = text.find(':');
  return colon != std::string::npos && colon > 0 && std::ranges::all_of(text.substr(0, colon), is_host_letter);
}
const scheduler::node& this_world() { return orrery::detail::here_pe().owner(); }

}  // namespace

host_folder parse_folder(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (!names_host(text) || !text.substr(colon + 1).starts_with('/')) return {"", detail::tidy_path(text)};
  return {text.substr(0, colon), detail::tidy_path(text.substr(colon + 1))};
}
host_folder parse_given_folder(const std::string& text) {
  host_folder parsed = parse_folder(text);
  if (parsed.host.empty() && names_host(text))
    detail::throw_errno(
        EINVAL, fmt::format("the folder '{}': a HOST:PATH needs a path that begins with '/'; a folder here with a "
                            "colon in its name is './{}'",
                            text, text));
  return parsed;
}
std::string folder_text(const std::string& host, const std::string& folder) {
  return host.empty() ? folder : host + ":" + folder;
}

std::string file_text(const std::string& path) {
  return folder_text(world_machines() > 1 ? machine_names()[this_machine()] : std::string{}, path);
}

std::chrono::nanoseconds longest_after_kill() {
  constexpr auto end_of_requests = std::chrono::seconds(2);  // which the kernel has yet to do
  const transport::world* const world = this_world().world();
  return end_of_requests + (world != nullptr ? 2 * world->patience() : std::chrono::nanoseconds{});
}

std::uint32_t machine_named(const std::vector<std::string>& names, const std::string& host, const std::string& folder,
                            const std::string& data_set) {
  if (host.empty()) return this_machine();
  if (const auto found = orrery::detail::find_machine(names, host)) return *found;
  std::string all;
  for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
  detail::throw_errno(EHOSTDOWN,
                      fmt::format("the folder {} of the data set {} is on the machine {}, which is not in this world "
                                  "(it has {}): start the program on that machine, too",
                                  folder, data_set, host, all));
}

std::uint32_t machine_of_node(std::uint32_t node) {
  const scheduler::node& n = this_world();
  return n.world() != nullptr ? n.world()->machine_of(node) : 0;
}
std::vector<std::uint32_t> nodes_of_machine(std::uint32_t machine) {
  const scheduler::node& n = this_world();
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < world_nodes(); ++i)
    if (n.node_at(i) != transport::no_node && machine_of_node(n.node_at(i)) == machine) all.push_back(n.node_at(i));
  return all;
}
std::vector<std::uint32_t> pes_of_machine(std::uint32_t machine) {
  const scheduler::node& n = this_world();
  std::vector<std::uint32_t> all;
  for (const std::uint32_t i : nodes_of_machine(machine)) {
    const auto [first, count] = n.pes_of(i);
    for (std::uint32_t pe = first; pe < first + count; ++pe)
      if (n.takes_work(pe)) all.push_back(pe);
  }
  return all;
}

}  // namespace orrery::storage::internal
