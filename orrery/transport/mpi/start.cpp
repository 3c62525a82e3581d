// SPDX-License-Identifier: Apache-2.0
// How a world of several machines starts: who is where, the memory of each machine, and then the
// carrier. Ranks tell each other by all-gathers, so that all go on, or all fail.
#include <orrery/transport/mpi/clock_comparison.hpp>
#include <orrery/transport/mpi/fixed_text.hpp>
#include <orrery/transport/mpi/world.hpp>

#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/peer.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

namespace orrery::transport {

using internal::fail;

namespace {

constexpr std::uint64_t protocol = 7;

/// The introduction of a rank.
struct introduction {
  std::uint64_t version = protocol;
  std::uint64_t host = 0;  // the same for ranks that can share memory
  std::uint64_t vocabulary = 0;
  std::uint32_t cores = 0;
  std::uint32_t is_bound = 0;  // to some of the cores, by the launcher
  std::uint32_t pes = 0;  // that the user wants; 0: by the cores
  std::uint32_t machine_ranks = 0;
  std::uint32_t is_traced = 0;
  std::uint64_t number = 0;  // the first rank's is that of the world
  std::uint64_t memory = 0;  // of its segment
  std::uint64_t ring = 0;
  std::uint64_t piece = 0;  // of a block
  std::int32_t pid = 0;
  fixed_text<64> name;  // of the world: the first rank's counts
  fixed_text<64> program;
  fixed_text<64> host_name;
};

/// Where the shared memory of a machine is: said by its first rank.
struct memory_place {
  std::int32_t pid = 0;
  std::int32_t fd = -1;
  std::uint64_t start_time = 0;
};

struct verdict {
  std::uint32_t failed = 0;
  fixed_text<508> text;
};

template <class T>
result<std::vector<T>> gather(mpi_library& library, const T& own) {
  auto bytes = library.gather(std::as_bytes(std::span(&own, 1)));
  if (!bytes) return internal::pass(bytes);
  std::vector<T> all(library.ranks());
  std::memcpy(all.data(), bytes->data(), bytes->size());
  return all;
}

std::uint64_t host_number(std::string_view name) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  boot += '/';
  boot += name;
  const std::uint64_t parts[] = {XXH3_64bits(boot.data(), boot.size()), pid_namespace(), ::geteuid()};
  return XXH3_64bits(parts, sizeof parts);
}

introduction introduce(const mpi_config& config) {
  introduction own;
  const std::string name = own_host();
  own.host_name.set(name);
  own.program.set(config.node.program);
  own.host = host_number(name);
  own.vocabulary = config.node.words != nullptr ? config.node.words->id : config.node.build_id;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  own.cores = ::sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? static_cast<std::uint32_t>(CPU_COUNT(&cpus)) : 1;
  own.is_bound = own.cores < static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN)) ? 1 : 0;
  own.pes = config.node.pe_count;
  own.machine_ranks = config.machine_ranks;
  own.ring = config.ring_bytes;
  own.piece = config.piece;
  own.is_traced = config.traced ? 1 : 0;
  own.pid = ::getpid();
  own.name.set(config.name);
  std::random_device random;
  own.number = std::uint64_t{random()} << 32 | random();
  own.memory = arena::segment_bytes(config.node.memory_limit != 0 ? config.node.memory_limit : arena::default_limit());
  return own;
}

result<void> check(const std::vector<introduction>& all, std::uint32_t own) {
  for (std::uint32_t r = 0; r < all.size(); ++r) {
    if (all[r].version != all[own].version || all[r].machine_ranks != all[own].machine_ranks ||
        all[r].piece != all[own].piece || all[r].is_traced != all[own].is_traced ||
        all[r].name.view() != all[own].name.view())
      return fail(transport_errc::different_build, 0,
                  "rank {} (program '{}') and rank {} (program '{}') have another version of Orrery, or other options; "
                  "build them from one version and start them with the same options",
                  r, all[r].program.view(), own, all[own].program.view());
  }
  return {};
}

// Where several machines are one host, as in tests, those behind the first have numbers there.
std::string name_on_host(const std::vector<introduction>& all, const std::vector<cluster_map::place>& places,
                         std::uint32_t own) {
  std::set<std::uint32_t> before;
  for (std::uint32_t r = 0; r < all.size(); ++r)
    if (all[r].host == all[own].host && places[r].machine < places[own].machine) before.insert(places[r].machine);
  const std::string name = all[own].name.str();
  return name.empty() || before.empty() ? name : fmt::format("{}.{}", name, before.size() + 1);
}

// Machines in the order of their first ranks; PEs in the order of ranks.
std::vector<cluster_map::place> place(const std::vector<introduction>& all) {
  std::vector<cluster_map::place> places(all.size());
  std::map<std::uint64_t, std::uint32_t> machines;
  std::map<std::uint64_t, std::uint32_t> ranks_of_host;
  for (const introduction& i : all) ++ranks_of_host[i.host];
  std::vector<std::uint32_t> nodes;  // of each machine
  std::vector<std::uint32_t> pes;
  for (std::uint32_t r = 0; r < all.size(); ++r) {
    const introduction& i = all[r];
    const std::uint64_t key = i.machine_ranks != 0 ? r / i.machine_ranks : i.host;
    const auto [it, is_new] = machines.try_emplace(key, static_cast<std::uint32_t>(machines.size()));
    places[r].machine = it->second;
    if (is_new) {
      nodes.push_back(0);
      pes.push_back(max_pes);
    }
    places[r].local_node = nodes[it->second]++;
    const std::uint32_t share = i.is_bound != 0 ? i.cores : std::max(1U, i.cores / ranks_of_host[i.host]);
    pes[it->second] = std::min(pes[it->second], i.pes != 0 ? i.pes : share);
  }
  std::uint32_t next = 0;
  for (cluster_map::place& p : places) {
    p.pe_count = pes[p.machine];
    const introduction& of = all[static_cast<std::size_t>(&p - places.data())];
    p.memory = of.memory;
    p.ring = of.ring;
    p.first_pe = next;
    p.local_first_pe = p.local_node * p.pe_count;
    next += p.pe_count;
  }
  return places;
}

}  // namespace

result<wire::unique_ptr<mpi_world>> mpi_world::start(const mpi_launch& launch, const mpi_config& config) {
  auto library = mpi_library::start(launch, config.library, config.patience, config.startup);
  if (!library) return internal::pass(library);
  wire::unique_ptr<mpi_world> made{new mpi_world};
  made->library_ = std::move(*library);
  if (auto met = made->meet(config); !met) {
    made->library_->finish();
    return internal::pass(met);
  }
  if (auto watched = made->watch_machine(); !watched) return internal::pass(watched);
  made->tell_tools();
  return made;
}

// The first failure of any rank is that of all.
result<void> mpi_world::agree(const result<void>& own) {
  verdict mine;
  if (!own) {
    mine.failed = 1;
    mine.text.set(own.error().message);
  }
  auto all = gather(*library_, mine);
  if (!all) return internal::pass(all);
  if (!own) return own;
  for (std::uint32_t r = 0; r < all->size(); ++r)
    if ((*all)[r].failed != 0)
      return fail(transport_errc::system, 0, "rank {} cannot start: {}", r, (*all)[r].text.view());
  return {};
}

result<void> mpi_world::meet(const mpi_config& config) {
  node_ = library_->rank();
  auto all = gather(*library_, introduce(config));
  if (!all) return internal::pass(all);
  if (auto good = check(*all, node_); !good) return good;
  if (config.node.words != nullptr) {
    std::vector<program_of_rank> programs;
    for (const introduction& i : *all) programs.push_back({i.program.str(), i.vocabulary});
    if (auto numbered = number_words(*config.node.words, programs); !numbered) return numbered;
  }
  auto places = place(*all);
  first_pe_ = places[node_].first_pe;
  pe_count_ = places[node_].pe_count;
  for (const auto& p : places) machines_ = std::max(machines_, p.machine + 1);
  hosts_.resize(machines_);
  for (std::uint32_t r = 0; r < all->size(); ++r) hosts_[places[r].machine] = (*all)[r].host_name.str();
  crowd_ = {0, 0};
  for (std::uint32_t r = 0; r < all->size(); ++r) {
    if ((*all)[r].host != (*all)[node_].host) continue;
    ++crowd_.first;
    crowd_.second += places[r].pe_count;
  }
  number_ = (*all)[0].number;
  traced_ = config.traced;
  for (const introduction& i : *all) {
    const auto is_same = [&](const introduction& j) {
      return j.vocabulary == i.vocabulary && j.program.view() == i.program.view();
    };
    const auto first = std::ranges::find_if(*all, is_same) - all->begin();
    programs_.push_back({i.program.str(), i.pid, static_cast<std::uint32_t>(first)});
    other_programs_ = other_programs_ || first != 0;
  }
  if (traced_ || !config.name.empty()) {
    std::vector<std::uint64_t> hosts;
    for (const introduction& i : *all) hosts.push_back(i.host);
    if (auto compared = compare_clocks(hosts); !compared) return compared;
  }
  if (auto shared = share_memory(config, places, name_on_host(*all, places, node_)); !shared) return shared;
  map_ = wire::make_unique<cluster_map>(std::move(places), node_, config.piece);
  members_ = wire::make_unique<cluster_members>(map_->nodes(), node_);
  return agree(begin(config));
}

// All ranks of a host share its clock, so they take the best of their estimates.
result<void> mpi_world::compare_clocks(std::span<const std::uint64_t> hosts) {
  constexpr int rounds = 16;
  clock_comparison clocks;
  for (int i = 0; i < rounds; ++i) {
    const std::int64_t before = now_ns();
    auto all = gather(*library_, before);
    if (!all) return internal::pass(all);
    clocks.add(before, all->front(), now_ns());
  }
  auto all = gather(*library_, clocks.best());
  if (!all) return internal::pass(all);
  for (std::size_t n = 0; n < hosts.size(); ++n) {
    clock_comparison::estimate best = (*all)[n];
    for (std::size_t r = 0; r < hosts.size(); ++r)
      if (hosts[r] == hosts[n] && (*all)[r].error < best.error) best = (*all)[r];
    clock_offsets_.push_back(hosts[n] == hosts[0] ? 0 : best.offset);
  }
  return {};
}

// The first rank of each machine makes the memory; the others open it through that OS process.
result<void> mpi_world::share_memory(const mpi_config& config, std::vector<cluster_map::place> places,
                                     const std::string& name) {
  world_config node = config.node;
  node.closed = !name.empty();
  node.pe_count = pe_count_;
  const cluster_map::place& own = places[node_];
  const auto is_beside = [&](const auto& p) { return p.machine == own.machine; };
  node.nodes = static_cast<std::uint32_t>(std::ranges::count_if(places, is_beside));
  memory_place mine;
  result<void> made;
  if (own.local_node == 0) {
    auto world = name.empty() ? shm_world::create(node) : shm_world::create_or_join(name, node);
    if (world) {
      local_ = std::move(*world);
      const peer_id id = local_->info(local_->node()).id;
      mine = {id.pid, local_->world_fd(), id.start_time};
    } else {
      made = internal::pass(world);
    }
  }
  auto all = gather(*library_, mine);
  if (!all) return internal::pass(all);
  if (auto good = agree(made); !good) return good;
  if (own.local_node != 0) {
    const auto first = static_cast<std::size_t>(std::ranges::find_if(places, is_beside) - places.begin());
    const memory_place& there = (*all)[first];
    node.nodes = 1;
    made = [&]() -> result<void> {
      auto owner = peer::open({there.pid, there.start_time});
      if (!owner) return internal::pass(owner);
      auto file = owner->open_file(there.fd, O_RDWR);
      if (!file) return internal::pass(file);
      auto world = shm_world::join_inherited(file->release(), own.local_node, node);
      if (!world) return internal::pass(world);
      local_ = std::move(*world);
      return {};
    }();
  }
  return agree(made);
}

}  // namespace orrery::transport
