// SPDX-License-Identifier: Apache-2.0
// Another OS process of the same user writes into the shared memory of one node of a running world: the other nodes neither
// crash nor hang, and what they say to each other is right.
#include "../support/scenario.hpp"

#include <orrery/array/array.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/shm/internal/table.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace orrery::faults {
namespace hostile_tests {

using namespace testing;

constexpr std::uint32_t victim_node = 2;

// --- the world ---------------------------------------------------------------------------------------------------------

std::atomic<bool> over = false;  // on each node
void end_traffic() { over = true; }

struct talker {
  std::vector<char> give(const std::vector<char>& v) { return v; }
  void take(const std::vector<char>& v) { bytes += v.size(); }
  int fail() { throw std::out_of_range("as asked"); }
  std::size_t bytes = 0;
};
ORRERY_PROCESS(talker, give, take, fail);

struct wanderer;
ORRERY_PROCESS(wanderer, hop, add);
struct wanderer : element<wanderer, int> {
  void hop(std::uint32_t to) { migrate_to(to); }
  int add(int n) { return total += n; }
  template <class A>
  void serialize(A& a) {
    a & total;
  }
  int total = 0;
};

void say_all(const remote<talker>& t, std::size_t round) {
  const std::vector<char> v(round % 3 == 0 ? 100 : round % 3 == 1 ? 3'000 : 9'000, static_cast<char>(round));
  auto later = start(t)->give(v);
  post(t)->take(v);
  if (t->give(v) != v || later.get() != v) throw std::logic_error("a wrong answer");
  try {
    (void)t->fail();
  } catch (const std::out_of_range&) {
  }
}
// Returns when the traffic is to end. What the node that is written to says may be anything.
void talk(std::uint32_t to) {
  for (std::size_t round = 0; !over;) try {
      const auto t = spawn<talker>(pe(to));
      for (; !over; ++round) say_all(t, round);
    } catch (const std::exception& e) {
      if (to != victim_node) check(false, fmt::format("what PE {} said: {}", to, e.what()));
      yield();
    }
}
void wander() {
  try {
    const auto a = create_array<wanderer>(range<int>{12}, {.name = "wanderers"});
    for (int round = 0; !over; ++round) {
      (void)start(a[round % 12])->add(1);
      post(a[round % 12])->hop(static_cast<std::uint32_t>(round) % world_pes());
      (void)a[(round + 5) % 12]->add(1);
    }
  } catch (const std::exception&) {  // elements may be lost, or what leads to them
  }
}

void world_under_attack() {
  std::vector<future<void>> all;
  for (std::uint32_t from = 0; from < world_pes(); ++from)
    for (std::uint32_t to = 0; to < world_pes(); ++to)
      if (from != to && from != victim_node) all.push_back(start_call<&talk>(pe(from), to));
  (void)spawn(here(), &wander);
  post_call<&talk>(pe(victim_node), 0U);
  post_call<&talk>(pe(victim_node), 1U);
  const int victim = call<&own_pid>(node(victim_node));
  fmt::print(stderr, "victim\n{}\n", victim);
  const transport::world& w = *scheduler::current_pe->owner().world();
  while (w.alive(victim_node) && ::kill(victim, 0) == 0) yield();
  ::kill(victim, SIGKILL);  // if it is only no member any more
  call<&end_traffic>(pe(1));
  over = true;
  for (auto& f : all) f.get();
  const auto t = spawn<talker>(pe(1));
  for (std::size_t round = 0; round < 20; ++round) say_all(t, round);
}

// --- who writes --------------------------------------------------------------------------------------------------------

// Shared memory of another OS process.
class foreign_memory {
 public:
  foreign_memory(int pid, std::string_view name) {
    std::error_code e;
    for (const auto& f : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid), e)) {
      if (std::filesystem::read_symlink(f.path(), e).string().find(name) == std::string::npos) continue;
      fd_ = ::open(f.path().c_str(), O_RDWR | O_CLOEXEC);
      struct stat s{};
      if (fd_ < 0 || ::fstat(fd_, &s) != 0) continue;
      void* at = ::mmap(nullptr, static_cast<std::size_t>(s.st_size), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE, fd_, 0);
      if (at != MAP_FAILED) bytes_ = {static_cast<std::byte*>(at), static_cast<std::size_t>(s.st_size)};
      return;
    }
  }
  foreign_memory(const foreign_memory&) = delete;
  foreign_memory& operator=(const foreign_memory&) = delete;
  ~foreign_memory() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] std::byte* data() const noexcept { return bytes_.data(); }
  /// The parts that have memory behind them.
  [[nodiscard]] std::vector<std::span<std::byte>> used() const {
    std::vector<std::span<std::byte>> parts;
    for (off_t at = 0; !bytes_.empty() && (at = ::lseek(fd_, at, SEEK_DATA)) >= 0;) {
      off_t end = ::lseek(fd_, at, SEEK_HOLE);
      if (end < 0) end = static_cast<off_t>(bytes_.size());
      parts.push_back(bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(end - at)));
      at = end;
    }
    return parts;
  }

 private:
  int fd_ = -1;
  std::span<std::byte> bytes_;
};

class hostile_writer {
 public:
  hostile_writer(int pid, std::uint64_t seed)
      : random_(seed), memory_(pid, "orrery-node"), board_(pid, "orrery-board"), world_(pid, "orrery-world") {}

  void write(std::uint64_t region) {
    switch (region % 4) {
      case 0:
        return write_somewhere(memory_.used());
      case 1:
        return write_into_rings();
      case 2:
        return write_somewhere(board_.used());
      default:
        return write_into_tables();
    }
  }

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  // Random bytes, or what is there with a bit changed, or a number that could be one that is there.
  void damage(std::byte* at, std::size_t n) {
    if (n == 0) return;
    switch (below(3)) {
      case 0:
        for (std::size_t i = 0; i < n; ++i) at[i] = static_cast<std::byte>(below(256));
        break;
      case 1:
        at[below(n)] ^= static_cast<std::byte>(1U << below(8));
        break;
      default:
        at[below(n)] = static_cast<std::byte>(below(12));
    }
  }
  void write_somewhere(const std::vector<std::span<std::byte>>& parts) {
    if (parts.empty()) return;
    const auto part = parts[below(parts.size())];
    const std::size_t n = std::min(part.size(), 1 + below(64));
    damage(part.data() + below(part.size() - n + 1), n);
  }
  // Headers, and the records near the positions that they name.
  void write_into_rings() {
    for (const auto part : memory_.used())
      for (std::size_t at = 0; at + sizeof(transport::ring_header) <= part.size(); at += transport::layout::page) {
        auto* ring = reinterpret_cast<transport::ring_header*>(part.data() + at);
        if (ring->magic != transport::ring_header::magic_value) continue;
        const std::uint64_t head = ring->head.load(std::memory_order_relaxed) & 0x7fff;
        const std::size_t place = below(8) == 0 ? below(sizeof *ring) : sizeof *ring + head + below(4'096);
        if (at + place + 8 <= part.size()) damage(part.data() + at + place, 1 + below(8));
      }
  }
  // What the tables of the world say of that node and its PE.
  void write_into_tables() {
    if (world_.data() == nullptr) return;
    const transport::world_table tables(world_.data());
    switch (below(4)) {
      case 0:
        return damage(reinterpret_cast<std::byte*>(&tables.entry(victim_node)), sizeof(transport::layout::node_entry));
      case 1:
        return damage(reinterpret_cast<std::byte*>(&tables.pe(victim_node)), sizeof(transport::layout::pe_entry));
      case 2:
        return damage(reinterpret_cast<std::byte*>(tables.counters() + victim_node * transport::counters_per_pe),
                      transport::counters_per_pe * sizeof(transport::layout::counter));
      default:
        return damage(reinterpret_cast<std::byte*>(&tables.ring(static_cast<std::uint32_t>(below(2)), victim_node)),
                      sizeof(transport::layout::ring_entry));
    }
  }

  std::mt19937_64 random_;
  foreign_memory memory_;
  foreign_memory board_;
  foreign_memory world_;
};

void attack(std::uint64_t seed) {
  SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
  program world({"--scenario=attacked", "--orrery-nodes=3", "--orrery-pes=1", "--orrery-ring=32K"});
  world.hear("victim");
  std::string line = world.hear_line();
  const int victim = std::stoi(line);
  {
    hostile_writer writer(victim, seed);
    for (std::uint64_t i = 0; i < 300; ++i) {
      writer.write(seed);
      ::sched_yield();
    }
  }
  ::kill(victim, SIGKILL);
  const std::string said = world.end();
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "node 1 was killed"), 0) << said;
  EXPECT_EQ(count_of(said, "node 1 exited"), 0) << said;
}

class a_hostile_writer : public ::testing::TestWithParam<std::uint64_t> {};
TEST_P(a_hostile_writer, in_the_memory_of_one_node_harms_no_other_node) {
  const std::uint64_t first = number_from("ORRERY_TEST_SEED", 0);
  const std::uint64_t runs = number_from("ORRERY_TEST_RUNS", 20) / 4;
  for (std::uint64_t i = 0; i < runs && !HasFailure(); ++i) attack(first + 4 * i + GetParam());
}
std::string name_of_region(const ::testing::TestParamInfo<std::uint64_t>& i) {
  constexpr std::array names{"segment", "rings", "board", "tables"};
  return names[i.param];
}
INSTANTIATE_TEST_SUITE_P(region, a_hostile_writer, ::testing::Values(0, 1, 2, 3), name_of_region);

const orrery::testing::scenarios_of_file of_this({{"attacked", world_under_attack}});

}  // namespace hostile_tests
}  // namespace orrery::faults
