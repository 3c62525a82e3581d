// SPDX-License-Identifier: Apache-2.0
// Arrays on the drives of several machines: programs that use them, as a user starts them.
#include "launch.hpp"

#include <orrery/storage/storage.hpp>

#include <complex>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>

namespace orrery {
namespace {

using namespace testing;
namespace fs = std::filesystem;
using storage::index3;
using number = std::complex<double>;

std::string host_of_machine() {
  char name[256] = {};
  (void)::gethostname(name, sizeof name - 1);
  return name;
}
std::uint32_t own_machine() { return this_machine(); }
std::string scenario_folder;  // the folder of a scenario

// On hosts with names of their own: what is written from all machines is read from all, and lies where it should.
bool write_slab(const storage::array& a, std::int64_t i) {
  const storage::domain slab{{i, 0, 0}, {i + 1, a.shape()[1], a.shape()[2]}};
  const std::vector<double> x(static_cast<std::size_t>(slab.size()), static_cast<double>(i));
  a.write(slab, std::span(x));
  return true;
}
void hosts() {
  check(world_machines() == 2 && world_nodes() == 4, "four ranks on two hosts are not two machines of two nodes");
  std::vector<std::string> folders;
  for (std::uint32_t m = 0; m < 2; ++m)
    folders.push_back(fmt::format("{}:{}/on-{}", call<&host_of_machine>(machine(m)), scenario_folder, m));
  check(folders[0] != folders[1], "two hosts have one name");
  for (const bool each : {false, true}) {
    auto set = spawn<storage::data_set>(here(), scenario_folder + "/x",
                                        storage::data_set_description{.shape = {12, 40, 50},
                                                                      .page_shape = {5, 16, 16},
                                                                      .type = storage::element_type::float64,
                                                                      .folders = folders},
                                        storage::data_set_options{.on_each_node = each});
    const storage::array a = set->contents();
    for (std::uint32_t n = 0; n < world_nodes(); ++n)
      for (std::uint32_t i = 0; i < 2; ++i)
        check(call<&own_machine>(near(a.devices_of(n)[i])) == i, "a device is on another machine than its folder");
    // One after the other: pages are shared by slabs, and nodes that have devices of their own do not wait for each other.
    for (std::int64_t i = 0; i < 12; ++i) check(call<&write_slab>(anywhere(), a, i), "a slab");
    std::vector<double> x(12 * 40 * 50);
    a.read(a.whole(), std::span(x));
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] != static_cast<double>(i / 2000)) return check(false, fmt::format("element {} is {}", i, x[i]));
    check(set->verify().empty(), "a page is damaged");
    destroy(set);
    storage::data_set::remove(scenario_folder + "/x");
    check(!fs::exists(scenario_folder + "/on-1"), "a folder was left");
  }
}

// As after a kill: the file of another machine is held for longer than on one machine it would be waited for.
void held_file() {
  const std::string file = scenario_folder + "/held";
  spawn<storage::page_device>(machine(1), file, 2, 4096)->close();
  int held = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  check(held >= 0 && ::flock(held, LOCK_EX) == 0, "the file cannot be held");
  auto device = start_spawn<storage::page_device>(machine(1), file, 2, 4096,
                                                  storage::device_options{.mode = storage::open_mode::read_write});
  check(!device.wait_for(std::chrono::milliseconds(2'500)), "a file that is held was opened");
  ::close(held);
  check(device.get()->geometry().writable, "a file that was given back cannot be written");
}

// --- the tests -----------------------------------------------------------------------------------------------------

std::string bytes_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

const std::string& open_mpi() {
  static const std::string file = launcher_named("openmpi").file;
  return file;
}
std::string built(const std::string& name) { return fs::path(folder_of_program()).parent_path() / name; }

/// What a program of several ranks, each a machine or two of them one, is started with.
std::vector<std::string> over_machines(ranks r, const std::string& name, std::vector<std::string> words) {
  std::vector<std::string> all{
      "-q",       "--oversubscribe", "-n", std::to_string(r.count),
      "-x",       "ORRERY_PES=1",    "-x", fmt::format("ORRERY_MACHINE_RANKS={}", r.in_machine),
      built(name)};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

class data_on_machines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = missing(launcher_named("openmpi"))) GTEST_SKIP() << *why;
    for (const char* name : {"orrery", "apps/fft3d"})
      if (!fs::exists(built(name))) GTEST_SKIP() << built(name) << " was not built";
    ::setenv("XDG_CACHE_HOME", folder.path.c_str(), 1);  // what FFTW learns is not taken from other tests
    std::mt19937 random(1);
    std::normal_distribution<double> normal;
    std::ofstream file(folder / "in.raw", std::ios::binary);
    for (int i = 0; i < 2 * 24 * 20 * 18; ++i) {
      const double x = normal(random);
      file.write(reinterpret_cast<const char*>(&x), sizeof x);
    }
    file.close();
    good({"data", "import", folder / "in.raw", folder / "one", "--shape", "24,20,18", "--type", "complex128", "--pages",
          "3,5,6"});
    good({"forward", folder / "one", folder / "one-y", "--passes", "2", "-q"}, "apps/fft3d");
    good({"data", "export", folder / "one-y", folder / "one.raw"});
  }
  static void good(std::vector<std::string> words, const std::string& name = "orrery") {
    const std::string said = shell(built(name), words);
    EXPECT_TRUE(said.ends_with("good")) << words[1] << ": " << said;
  }
  static void good_on(ranks r, std::vector<std::string> words, const std::string& name = "orrery") {
    const std::string said = shell(open_mpi(), over_machines(r, name, words));
    EXPECT_TRUE(said.ends_with("good")) << words[1] << ": " << said;
  }
  /// Without the words that `program` adds for scenarios.
  static std::string shell(const std::string& file, const std::vector<std::string>& words) {
    std::string line = "exec >/dev/null; exec '" + file + "'";
    for (const std::string& w : words) line += " '" + w + "'";
    return program({"-c", line + " #"}, "/bin/sh").end();
  }
  /// In four folders, on as many machines as there are.
  void make(ranks r) {
    const int machines = r.count / r.in_machine;
    std::vector<std::string> words{"data",     "import", folder / "in.raw", folder / "x", "--shape",
                                   "24,20,18", "--type", "complex128",      "--pages",    "3,5,6"};
    for (int i = 0; i < 4; ++i) {
      const int m = i % machines;
      words.insert(words.end(), {"--folder", fmt::format("{}{}:{}/d{}", host_of_machine(),
                                                         m == 0 ? "" : fmt::format("#{}", m + 1), folder.path, i)});
    }
    good_on(r, words);
  }
  void expect_as_on_one(ranks r) {
    good_on(r, {"data", "export", folder / "y", folder / "y.raw"});
    EXPECT_TRUE(bytes_of(folder / "y.raw") == bytes_of(folder / "one.raw"))
        << "the transform is not the same, bit by bit";
    EXPECT_EQ(bytes_of(folder / "y.raw").size(), 16U * 24 * 20 * 18);
  }
  const scratch_folder folder;
};

TEST_F(data_on_machines, is_transformed_as_on_one_and_the_result_lies_beside_it) {
  for (const ranks r : {ranks{4, 1, 1}, ranks{4, 1, 2}}) {
    make(r);
    good_on(r, {"forward", folder / "x", folder / "y", "--passes", "2", "-q", "--verify"}, "apps/fft3d");
    expect_as_on_one(r);
    for (int i = 0; i < 4; ++i)
      EXPECT_TRUE(fs::exists(fmt::format("{}/d{}/y-{}.pages", folder.path, i, i))) << "device " << i;
    EXPECT_FALSE(fs::exists(folder / "y.fft3d"));
    for (const char* set : {"x", "y"}) good_on(r, {"data", "remove", folder / set});
    EXPECT_FALSE(fs::exists(folder / "d3"));
    fs::remove(folder / "y.raw");
  }
}
TEST_F(data_on_machines, is_refused_where_a_machine_is_missing) {
  make({2, 1, 1});
  const std::string said = shell(built("apps/fft3d"), {"forward", folder / "x", folder / "y", "-q"});
  EXPECT_EQ(count_of(said, fmt::format("the folder {}/d1 of the data set {}/", folder.path, folder.path)), 1) << said;
  EXPECT_EQ(count_of(said, fmt::format("is on the machine {}#2, which is not in this world", host_of_machine())), 1)
      << said;
  EXPECT_FALSE(fs::exists(folder / "y"));
}

TEST_F(data_on_machines, names_the_machine_of_a_drive_that_fails) {
  constexpr ranks r{2, 1, 1};
  make(r);
  fs::remove(folder / "d1/x-1.pages");
  const std::string said = shell(open_mpi(), over_machines(r, "orrery", {"data", "verify", folder / "x"}));
  EXPECT_GE(
      count_of(said, fmt::format("the device file {}#2:{}/d1/x-1.pages is missing", host_of_machine(), folder.path)), 1)
      << said;
}
TEST(a_device, waits_for_nodes_of_a_killed_program_on_its_machine_and_says_so) {
  const mpi_launcher& l = launcher_named("openmpi");
  if (const auto why = missing(l)) GTEST_SKIP() << *why;
  const scratch_folder folder;
  const std::string said = program(command(l, {2, 1, 1}, "held", {"--folder=" + folder.path}), l.file).end();
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(
      count_of(said,
               fmt::format("orrery: waiting for a program that has {}#2:{}/held open for writing to end, 12 s at most",
                           host_of_machine(), folder.path)),
      1)
      << said;
}

// Ranks of programs that have the folder's name on their command lines.
std::vector<pid_t> ranks_at(const std::string& folder, const std::string& program) {
  std::vector<pid_t> all;
  for (const auto& e : fs::directory_iterator("/proc")) {
    const std::string name = e.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = bytes_of(e.path() / "cmdline");
    const std::size_t end = words.find('\0');
    if (end != std::string::npos && words.substr(0, end).ends_with(program) && words.find(folder) != std::string::npos)
      all.push_back(std::stoi(name));
  }
  return all;
}

// Later and later, so that it is killed in each of its parts, and comes to its end; twice soon after it has begun its job. A kill may hit the program when its
// `result` is whole already: what the job keeps for a later run is gone then, and the result is there. Gives how often
// `job`, the file of an interrupted job, was there after a kill.
int kill_until_it_ends(const std::function<std::string()>& run, const std::string& folder, const std::string& name,
                       const fs::path& result, const fs::path& job) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  int interrupted = 0;
  std::string said;
  const auto ended_before_its_kill = [&] { return fs::exists(result) && !fs::exists(job.parent_path()); };
  for (int kills = 0; !said.ends_with("good") && !ended_before_its_kill(); ++kills) {
    std::atomic<bool> ended = false;
    std::thread killer([&] {
      while (!ended && ranks_at(folder, name).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (kills != 1 && kills != 3) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200 + 300 * kills + static_cast<int>(random() % 60)));
      } else {
        while (!ended && !fs::exists(job)) std::this_thread::sleep_for(std::chrono::microseconds(200));
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
      }
      const auto victims = ranks_at(folder, name);
      if (!victims.empty()) ::kill(victims[random() % victims.size()], SIGKILL);
    });
    said = run();
    ended = true;
    killer.join();
    interrupted += fs::exists(job) ? 1 : 0;
    if (kills == 60) {
      ADD_FAILURE() << "it does not come to its end: " << said;
      break;
    }
  }
  return interrupted;
}

TEST_F(data_on_machines, transforms_that_are_killed_go_on) {
  constexpr ranks r{4, 1, 1};
  make(r);
  const auto words = over_machines(r, "apps/fft3d", {"forward", folder / "x", folder / "y", "--passes", "2", "-q"});
  const int interrupted = kill_until_it_ends([&] { return shell(open_mpi(), words); }, folder.path, "apps/fft3d",
                                             folder / "y", folder / "y.fft3d/job.json");
  EXPECT_GT(interrupted, 0);
  expect_as_on_one(r);
  EXPECT_FALSE(fs::exists(folder / "y.fft3d"));
}
TEST_F(data_on_machines, copies_that_are_killed_go_on) {
  constexpr ranks r{3, 1, 1};
  const std::string host = host_of_machine();
  const auto words = over_machines(
      r, "orrery",
      {"data", "copy", folder / "one", folder / "x", "--pages", "7,20,4", "--folder",
       fmt::format("{}#3:{}/d0", host, folder.path), "--folder", fmt::format("{}#2:{}/d1", host, folder.path)});
  (void)kill_until_it_ends([&] { return shell(open_mpi(), words); }, folder.path, "orrery", folder / "x",
                           folder / "x.copy/job.json");
  good_on(r, {"data", "verify", folder / "x"});
  good_on(r, {"data", "export", folder / "x", folder / "x.raw"});
  EXPECT_TRUE(bytes_of(folder / "x.raw") == bytes_of(folder / "in.raw"));
  EXPECT_TRUE(fs::exists(folder / "d0/x-0.pages") && fs::exists(folder / "d1/x-1.pages"));
  EXPECT_FALSE(fs::exists(folder / "x.copy"));
}

class data_on_hosts : public under_mpi {};
INSTANTIATE_TEST_SUITE_P(of, data_on_hosts, ::testing::Values("openmpi", "mpich"),
                         [](const auto& i) { return i.param; });
TEST_P(data_on_hosts, has_devices_where_their_folders_say) {
  const scratch_folder folder;
  const on_hosts run({GetParam(), "4"}, "hosts", {"--folder=" + folder.path});
  if (run.missing) GTEST_SKIP() << *run.missing;
  EXPECT_TRUE(run.said.ends_with("good")) << run.said;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  orrery::testing::prepare_for_launchers();
  for (int i = 1; i < argc; ++i)
    if (const std::string_view a = argv[i]; a.starts_with("--folder=")) orrery::scenario_folder = a.substr(9);
  return orrery::testing::run_tests_or_scenario(argc, argv, {{"hosts", orrery::hosts}, {"held", orrery::held_file}});
}
