// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/runtime.hpp>

#include <orrery/process/function.hpp>
#include <orrery/process/placement.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/node.hpp>

#include <cstdio>

#include <fmt/format.h>

namespace orrery {

namespace detail {
void note_class(pe& self, const scheduler::class_info& cls) noexcept {
  if (cls.reentrant) self.owner().set_reentrant();
}
}  // namespace detail

std::uint32_t this_pe() { return detail::here_pe().id(); }
std::uint32_t this_node() { return 0; }
std::uint32_t this_machine() { return 0; }
std::uint32_t world_pes() { return detail::here_pe().owner().world_pes(); }
std::uint32_t world_nodes() { return 1; }
std::uint32_t world_machines() { return 1; }

void sleep_for(std::chrono::nanoseconds d) {
  detail::pe& self = detail::here_pe();
  self.require_process();
  (void)self.park_until(detail::deadline_after(d));
  if (self.stopping()) throw stopped("sleep_for");
}

void yield() {
  detail::pe& self = detail::here_pe();
  self.require_process();
  self.yield();
}

std::uint32_t placement::resolve() const {
  detail::pe& self = detail::here_pe();
  scheduler::node& n = self.owner();
  switch (what) {
    case kind::here:
      return self.id();
    case kind::pe:
      if (index >= n.world_pes())
        throw usage_error(errc::no_such_place, fmt::format("pe({}) in a world of {} PEs", index, n.world_pes()));
      return index;
    default:
      return 0;
  }
}

int run(int argc, char** argv, const std::function<int(args)>& main) {
  scheduler::freeze_handlers();
  scheduler::node_settings settings;
  args rest(argv, argv + argc);
  for (auto it = rest.begin(); it != rest.end();) {
    if (it->starts_with("--orrery-pes=")) {
      settings.pes = static_cast<std::uint32_t>(std::stoul(it->substr(13)));
      it = rest.erase(it);
    } else {
      ++it;
    }
  }
  scheduler::node n(settings);
  int result = 1;
  n.run([&](scheduler::pe& first) {
    detail::start_function(first, [&, rest] {
      try {
        result = main(rest);
      } catch (const std::exception& e) {
        const std::string line = fmt::format("orrery: the main function ended with an exception: {}\n", e.what());
        std::fputs(line.c_str(), stderr);
      }
      n.stop();
    });
  });
  return result;
}

}  // namespace orrery
