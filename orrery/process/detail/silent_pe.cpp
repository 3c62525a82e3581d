// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/silent_pe.hpp>

#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/world.hpp>

#include <fstream>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace orrery::detail {
namespace {

// "node 2, program 'tiny', pid 1234"
std::string node_in_words(const scheduler::node& n, std::uint32_t node) {
  std::string text = fmt::format("node {}", node);
  transport::world* const w = n.world();
  if (w == nullptr) return text;
  if (const std::string program = w->program_of(node); !program.empty()) text += fmt::format(", program '{}'", program);
  if (const transport::shm_world* shared = w->shared(); shared != nullptr)
    if (const pid_t pid = shared->info(node).id.pid; pid != 0) text += fmt::format(", pid {}", pid);
  return text;
}

bool is_stopped_node(const scheduler::node& n, std::uint32_t node) {
  if (n.world() == nullptr) return false;
  const transport::shm_world* const shared = n.world()->shared();
  return shared != nullptr && shared->alive(node) && is_stopped(shared->info(node).id);
}

}  // namespace

bool is_stopped(const transport::peer_id& id) {
  if (id.pid <= 0 || transport::find_peer(id.pid) != id) return false;
  std::ifstream file(fmt::format("/proc/{}/stat", id.pid));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t close = text.rfind(')');  // of the command's name, which may hold anything
  if (close == std::string::npos || close + 2 >= text.size()) return false;
  return text[close + 2] == 'T' || text[close + 2] == 't';
}

std::string pe_in_words(const scheduler::node& n, std::uint32_t pe) {
  const std::uint32_t node = n.node_of(pe);
  if (node == transport::no_node) return fmt::format("PE {}", pe);
  return fmt::format("PE {} ({})", pe, node_in_words(n, node));
}

std::string why_silent(const scheduler::node& n, std::uint32_t pe) {
  const std::uint32_t node = n.node_of(pe);
  if (node != transport::no_node && is_stopped_node(n, node))
    return "has not answered: its OS process is stopped; let it go on (kill -CONT), or end it";
  for (std::uint32_t place = 0; place < n.world_nodes(); ++place)
    if (const std::uint32_t other = n.node_at(place); other != transport::no_node && is_stopped_node(n, other))
      return fmt::format(
          "has not answered; it may wait for {}, which is stopped: let that go on (kill -CONT), or end it",
          node_in_words(n, other));
  return "has not answered; is it stopped, or does a method there compute for long? Allow more time, or see 'orrery top'";
}

}  // namespace orrery::detail
