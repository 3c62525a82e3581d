// SPDX-License-Identifier: Apache-2.0
// Arrays on disk in worlds of several nodes, and in programs that are killed. Each test starts this program again (--scenario=NAME
// --folder=FOLDER and the options of the runtime); it exits with 0 if all is well.
#include <orrery/orrery.hpp>
#include <orrery/storage/internal/test_support.hpp>
#include <orrery/storage/storage.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <complex>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace orrery;
using namespace orrery::storage;
using orrery::storage::testing::elements;
using orrery::storage::testing::error_text;
using orrery::storage::testing::program;
using orrery::storage::testing::scratch;
using T = std::complex<double>;

#define REQUIRE(condition)                                             \
  do {                                                                 \
    if (!(condition)) {                                                \
      std::fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
      std::exit(3);                                                    \
    }                                                                  \
  } while (false)

// --- what runs in the worlds ----------------------------------------------------------------------------------------

// Each client reads what its neighbour wrote, transposed, and writes it back.
bool visit(const storage::array& a, std::int64_t first, std::int64_t last) {
  const index3 s = a.shape();
  const domain slab{{first, 0, 0}, {last, s[1], s[2]}};
  const auto all = elements<T>(slab.size(), first * s[1] * s[2]);
  std::vector<T> plain(all.size());
  a.read(slab, std::span(plain));
  std::vector<T> turned(all.size());
  a.read_transpose13(slab, std::span(turned));
  a.write_transpose13(slab, std::span<const T>(turned));
  std::vector<T> again(all.size());
  a.read(slab, std::span(again));
  return plain == all && again == all;
}

int work_from_all_nodes(const std::string& folder) {
  auto set = spawn<data_set>(
      here(), folder + "/x",
      data_set_description{
          .shape = {17, 20, 30}, .page_shape = {8, 8, 16}, .folders = {folder + "/x", folder + "/x", folder + "/x"}},
      data_set_options{});
  publish("/data/x", set);
  const storage::array a = set->contents();
  std::set<std::uint32_t> at;
  for (const auto& d : a.devices()) at.insert(d.address().pe);
  REQUIRE(at.size() == std::min<std::size_t>(3, describe_machine(this_machine()).pes.size()));
  a.write(a.whole(), std::span<const T>(elements<T>(a.whole().size())));
  for (int round = 0; round < 3; ++round) {
    std::vector<future<bool>> answers;
    for (std::uint32_t n = 0; n < world_pes(); ++n) {
      const std::int64_t first = n * 17 / world_pes();
      const std::int64_t last = (n + 1) * 17 / world_pes();
      answers.push_back(start_call<&visit>(pe(n), a, first, last));
    }
    for (auto& f : answers) REQUIRE(f.get());
  }
  set->finish();
  REQUIRE(set->verify().empty());
  return 0;
}

// Programs that have nothing in common but a world and a name: one owns a data set, the others each write a slab of it and read what it had.
struct Visitors {
  void done() { ++done_; }
  int count() const { return done_; }

 private:
  int done_ = 0;
};
ORRERY_PROCESS(Visitors, done, count);

int own(const std::string& folder) {
  auto visitors = spawn<Visitors>(here());
  publish("/visitors", visitors);
  auto set = spawn<data_set>(here(), folder + "/x",
                             data_set_description{.shape = {16, 20, 30}, .page_shape = {8, 8, 16}}, data_set_options{});
  const storage::array a = set->contents();
  a.write(a.whole(), std::span<const T>(elements<T>(a.whole().size())));
  publish("/data/x", set);
  while (visitors->count() < 2) sleep_for(std::chrono::milliseconds(1));
  std::vector<T> v(static_cast<std::size_t>(a.whole().size()));
  a.read(a.whole(), std::span(v));
  const auto before = elements<T>(a.whole().size());
  for (std::size_t i = 0; i < v.size(); ++i) REQUIRE(v[i] == -before[i]);
  set->finish();
  return 0;
}
int visit_by_name(bool upper) {
  const auto set = await_name<data_set>("/data/x", std::chrono::seconds(60));
  const storage::array a = set->contents();
  const domain slab{{upper ? 8 : 0, 0, 0}, {upper ? 16 : 8, 20, 30}};
  std::vector<T> v(static_cast<std::size_t>(slab.size()));
  a.read(slab, std::span(v));
  REQUIRE(v == elements<T>(slab.size(), upper ? 8 * 20 * 30 : 0));
  for (T& x : v) x = -x;
  a.write(slab, std::span<const T>(v));
  post(lookup<Visitors>("/visitors"))->done();
  return 0;
}

bool fails_well(const storage::array& a) {
  std::vector<T> v(static_cast<std::size_t>(a.whole().size()));
  try {
    a.read(a.whole(), std::span(v));
  } catch (const std::system_error& e) {
    return e.code().value() == EBADMSG && std::string_view(e.what()).find("page 0 of") != std::string_view::npos;
  }
  return false;
}
int hear_of_damage_elsewhere(const std::string& folder) {
  const std::string path = folder + "/x";
  auto set = spawn<data_set>(here(), path, data_set_description{.shape = {8, 8, 8}, .page_shape = {8, 8, 8}},
                             data_set_options{});
  storage::array a = set->contents();
  a.write(a.whole(), std::span<const T>(elements<T>(512)));
  set->finish();
  destroy(set);
  {
    std::fstream f(path + "/device-0.pages", std::ios::in | std::ios::out | std::ios::binary);
    f.put('x');
  }
  set = spawn<data_set>(here(), path, data_set_options{});
  REQUIRE(call<&fails_well>(pe(world_pes() - 1), set->contents()));
  return 0;
}

// Writes generation after generation into all pages, until it is killed.
int write_for_ever(const std::string& folder) {
  auto set =
      spawn<data_set>(here(), folder + "/x", data_set_description{.shape = {64, 64, 256}, .page_shape = {32, 32, 64}},
                      data_set_options{.cache = {.cache_pages = 2, .write_behind_pages = 8}});
  const storage::array a = set->contents();
  std::vector<T> v(static_cast<std::size_t>(a.whole().size()));
  for (int generation = 1;; ++generation) {
    std::ranges::fill(v, T(generation, -generation));
    a.write(a.whole(), std::span<const T>(v));
    const char c = 'w';
    if (::write(STDOUT_FILENO, &c, 1) != 1) return 1;
  }
}

bool write_slab(const storage::array& a, std::int64_t first) {
  const domain slab{{first, 0, 0}, {first + 8, 16, 16}};
  a.write(slab, std::span<const T>(elements<T>(slab.size(), first * 256)));
  return true;
}
bool read_all(const storage::array& a) {
  std::vector<T> v(static_cast<std::size_t>(a.whole().size()));
  a.read(a.whole(), std::span(v));
  return v == elements<T>(a.whole().size());
}
// Each node writes a slab and reads all of them, with devices of its own: the same files, the same checksums.
int have_devices_on_each_node(const std::string& folder) {
  const auto nodes = static_cast<std::int64_t>(world_nodes());
  auto set = spawn<data_set>(
      here(), folder + "/x",
      data_set_description{
          .shape = {8 * nodes, 16, 16}, .page_shape = {8, 8, 16}, .folders = {folder + "/a", folder + "/b"}},
      data_set_options{.on_each_node = true});
  const storage::array a = set->contents();
  for (std::uint32_t n = 0; n < world_nodes(); ++n) REQUIRE(call<&write_slab>(node(n), a, std::int64_t{8} * n));
  for (std::uint32_t n = 0; n < world_nodes(); ++n) REQUIRE(call<&read_all>(node(n), a));
  for (std::uint32_t n = 0; n < world_nodes(); ++n) {
    std::uint64_t read = 0;
    std::uint64_t written = 0;
    for (const auto& d : a.devices_of(n)) {
      read += d->statistics().pages_read;
      written += d->statistics().pages_written;
    }
    REQUIRE(written == 2 && read == 2 * static_cast<std::uint64_t>(nodes));
  }
  (void)error_text(EBUSY, [&] {
    (void)spawn<data_set>(here(), folder + "/x", data_set_options{.mode = open_mode::read_write, .on_each_node = true});
  });
  set->finish();
  REQUIRE(set->verify().empty());
  destroy(set);
  set = spawn<data_set>(here(), folder + "/x", data_set_options{});
  REQUIRE(read_all(set->contents()) && set->verify().empty());
  return 0;
}

int scenario(const std::string& name, const std::string& folder) {
  if (name == "each") return have_devices_on_each_node(folder);
  if (name == "work") return work_from_all_nodes(folder);
  if (name == "own") return own(folder);
  if (name == "lower" || name == "upper") return visit_by_name(name == "upper");
  if (name == "damage") return hear_of_damage_elsewhere(folder);
  return write_for_ever(folder);
}

// --- the tests --------------------------------------------------------------------------------------------------------

struct child {
  pid_t pid = -1;
  int out = -1;
};
child begin(const std::string& name, const std::string& folder, std::vector<std::string> options) {
  options.insert(options.begin(), {"nodes.test", "--scenario=" + name, "--folder=" + folder});
  std::vector<char*> argv;
  for (std::string& o : options) argv.push_back(o.data());
  argv.push_back(nullptr);
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  child c{-1, ends[0]};
  EXPECT_EQ(posix_spawn(&c.pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  return c;
}
int outcome(const child& c) {
  int status = 0;
  waitpid(c.pid, &status, 0);
  close(c.out);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(storage_nodes, work_on_one_array_from_all_nodes) {
  for (const char* nodes : {"--orrery-nodes=1", "--orrery-nodes=2", "--orrery-nodes=3"}) {
    const scratch folder;
    EXPECT_EQ(outcome(begin("work", folder.path, {nodes, "--orrery-pes=1"})), 0) << nodes;
  }
}
TEST(storage_nodes, work_on_one_array_with_several_pes_on_each) {
  const scratch folder;
  EXPECT_EQ(outcome(begin("work", folder.path, {"--orrery-nodes=2", "--orrery-pes=2"})), 0);
}
TEST(storage_nodes, of_several_programs_open_one_data_set_by_its_name_at_once) {
  const scratch folder;
  const std::string world = "--orrery-world=storage-" + std::to_string(::getpid());
  const child owner = begin("own", folder.path, {world, "--orrery-pes=1"});
  while (!std::filesystem::exists(folder / "x/orrery.json") &&
         ::kill(owner.pid, 0) == 0) {  // it is the first, and so the world is its
    std::this_thread::yield();
  }
  const child lower = begin("lower", folder.path, {world, "--orrery-pes=1"});
  const child upper = begin("upper", folder.path, {world, "--orrery-pes=1"});
  EXPECT_EQ(outcome(lower), 0);
  EXPECT_EQ(outcome(upper), 0);
  EXPECT_EQ(outcome(owner), 0);
}
TEST(storage_nodes, have_devices_of_their_own_if_they_are_asked_for) {
  for (const char* nodes : {"--orrery-nodes=1", "--orrery-nodes=3"}) {
    const scratch folder;
    EXPECT_EQ(outcome(begin("each", folder.path, {nodes, "--orrery-pes=1"})), 0) << nodes;
  }
}
TEST(storage_nodes, name_damage_to_clients_elsewhere) {
  const scratch folder;
  EXPECT_EQ(outcome(begin("damage", folder.path, {"--orrery-nodes=2", "--orrery-pes=1"})), 0);
}

TEST(storage_killed, leaves_pages_that_are_whole_or_named) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 4; ++round) {
    const scratch folder;
    const child c = begin("write", folder.path, {"--orrery-pes=2"});
    // At least one generation was begun; then at any moment, found by waiting for some generations more and spinning for a while.
    char byte = 0;
    for (auto n = 1 + random() % 3; n > 0; --n) ASSERT_EQ(::read(c.out, &byte, 1), 1);
    std::atomic<std::uint64_t> spins{2 + random() % 3'000'000};
    while (spins.fetch_sub(1, std::memory_order_relaxed) > 1) {
    }
    kill(c.pid, SIGKILL);
    EXPECT_EQ(outcome(c), 1000 + SIGKILL);
    program([&] {
      (void)error_text(EBADMSG, [&] { (void)spawn<data_set>(here(), folder / "x", data_set_options{}); });
      auto set = spawn<data_set>(here(), folder / "x", data_set_options{.mode = open_mode::read_write});
      const storage::array a = set->contents();
      std::set<std::int64_t> named;
      for (const page_damage& d : set->verify()) named.insert(a.grid().number_of(d.page));
      for_each_place(domain::of_shape(a.grid().pages()), [&](const index3& p) {
        const domain d = a.grid().elements_of(p);
        std::vector<T> v(static_cast<std::size_t>(d.size()));
        if (named.contains(a.grid().number_of(p))) {
          (void)error_text(EBADMSG, [&] { a.read(d, std::span(v)); });
        } else {
          a.read(d, std::span(v));
          EXPECT_TRUE(std::ranges::all_of(v, [&](const T& x) { return x == v[0]; }));
        }
      });
      a.write(a.whole(), std::span<const T>(elements<T>(a.whole().size())));  // and all is well again
      set->finish();
      EXPECT_TRUE(set->verify().empty());
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string name;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option.starts_with("--scenario=")) name = option.substr(11);
    if (option.starts_with("--folder=")) folder = option.substr(9);
  }
  if (!name.empty()) return run(argc, argv, [&](const args&) { return scenario(name, folder); });
  if (std::getenv("ORRERY_INTERNAL_JOIN") != nullptr) return run(argc, argv, [](const args&) { return 0; });
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
