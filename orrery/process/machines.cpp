// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/machines.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/transport/mpi/cluster.hpp>
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/world.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <mntent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace orrery {
namespace {

const scheduler::node& this_world() { return detail::here_pe().owner(); }

// The text behind "key :" in a file of the kernel; empty if it is not there.
std::string value_in(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin != std::string::npos ? line.substr(begin) : std::string{};
  }
  return {};
}

std::uint64_t kib_in_meminfo(std::string_view key) {
  return std::strtoull(value_in("/proc/meminfo", key).c_str(), nullptr, 10) * 1024;
}

// A partition has its drive's folder around its own.
bool rotates(dev_t device) {
  const std::string folder = fmt::format("/sys/dev/block/{}:{}", major(device), minor(device));
  for (const char* queue : {"/queue/rotational", "/../queue/rotational"}) {
    int flag = 0;
    if (std::ifstream(folder + queue) >> flag) return flag != 0;
  }
  return false;
}

// A device that is mounted twice counts once: at the shortest path.
std::vector<file_system> find_file_systems() {
  std::map<std::pair<std::string, dev_t>, file_system> found;
  const std::unique_ptr<FILE, int (*)(FILE*)> table(::setmntent("/proc/self/mounts", "r"), ::endmntent);
  if (table == nullptr) return {};
  mntent entry{};
  std::array<char, 8192> text{};
  while (::getmntent_r(table.get(), &entry, text.data(), static_cast<int>(text.size())) != nullptr) {
    struct statvfs room{};
    struct stat at{};
    if (::statvfs(entry.mnt_dir, &room) != 0 || room.f_blocks == 0 || ::stat(entry.mnt_dir, &at) != 0) continue;
    file_system f{entry.mnt_dir,
                  entry.mnt_fsname,
                  entry.mnt_type,
                  room.f_blocks * room.f_frsize,
                  room.f_bavail * room.f_frsize,
                  rotates(at.st_dev)};
    const auto [it, is_new] = found.try_emplace({f.device, at.st_dev}, f);
    if (!is_new && f.folder.size() < it->second.folder.size()) it->second = std::move(f);
  }
  std::vector<file_system> all;
  for (auto& [key, f] : found) all.push_back(std::move(f));
  std::ranges::sort(all, {}, &file_system::folder);
  return all;
}

// The facts that only a node of that machine knows.
machine_state describe_here() {
  machine_state s;
  utsname names{};
  if (::uname(&names) == 0) s.system = fmt::format("{} {} {}", names.sysname, names.release, names.machine);
  s.processor = value_in("/proc/cpuinfo", "model name");
  s.cores = static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  double loads[1] = {};
  if (::getloadavg(loads, 1) == 1) s.load = loads[0];
  s.memory = kib_in_meminfo("MemTotal");
  s.free_memory = kib_in_meminfo("MemAvailable");
  s.file_systems = find_file_systems();
  return s;
}

}  // namespace

std::uint64_t detail::free_memory_here() {
  return std::min(kib_in_meminfo("MemAvailable"), transport::arena::machine_memory());
}

std::vector<std::string> machine_names() {
  const transport::world* const world = this_world().world();
  std::vector<std::string> hosts;
  for (std::uint32_t m = 0; m < world_machines(); ++m)
    hosts.push_back(world != nullptr ? world->host_of(m) : transport::own_host());
  return transport::distinct_names(std::move(hosts));
}

machine_state describe_machine(std::uint32_t machine) {
  const scheduler::node& n = this_world();
  machine_state s = call<&describe_here>(orrery::machine(machine));
  s.number = machine;
  s.name = machine_names()[machine];
  for (const std::uint32_t pe : reachable_pes())
    if (n.world() == nullptr || n.world()->machine_of(n.world()->pe_node(pe)) == machine) s.pes.push_back(pe);
  std::set<std::uint32_t> nodes;
  for (const std::uint32_t pe : s.pes) nodes.insert(n.world() != nullptr ? n.world()->pe_node(pe) : 0);
  s.nodes.assign(nodes.begin(), nodes.end());
  if (detail::here_pe().simulated() != nullptr) s.cores = static_cast<std::uint32_t>(s.pes.size());
  return s;
}

placement machine(std::string_view host) {
  const std::vector<std::string> names = machine_names();
  if (const auto m = detail::find_machine(names, host)) return machine(*m);
  throw usage_error(errc::no_such_place,
                    fmt::format("machine(\"{}\"): the machines of this world are {}", host, fmt::join(names, ", ")));
}

std::optional<std::uint32_t> detail::find_machine(std::span<const std::string> names, std::string_view host) {
  auto at = std::ranges::find(names, host);
  if (at == names.end())
    at = std::ranges::find_if(names, [&](std::string_view n) { return n.substr(0, n.find('.')) == host; });
  return at != names.end() ? std::optional(static_cast<std::uint32_t>(at - names.begin())) : std::nullopt;
}

}  // namespace orrery
