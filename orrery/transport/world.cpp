// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/world.hpp>

#include <unistd.h>

namespace orrery::transport {

std::string_view to_string(node_state state) noexcept {
  switch (state) {
    case node_state::empty:
      return "empty";
    case node_state::reserved:
      return "reserved";
    case node_state::joining:
      return "joining";
    case node_state::alive:
      return "alive";
    case node_state::leaving:
      return "leaving";
    case node_state::left:
      return "left";
    case node_state::dead:
      return "dead";
  }
  return "unknown";
}

std::string_view to_string(world_state state) noexcept {
  switch (state) {
    case world_state::running:
      return "running";
    case world_state::ending:
      return "ending";
    case world_state::lost:
      return "lost";
  }
  return "unknown";
}

std::string own_host() {
  char name[256] = {};
  (void)::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace orrery::transport
