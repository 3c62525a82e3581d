// SPDX-License-Identifier: Apache-2.0
// Transforms that are killed at random moments, and go on.
#include "support.hpp"

#include <orrery/scheduler/sanitizers.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

namespace {

using namespace fft3d;
using namespace fft3d::testing;

const index3 shape{48, 40, 36};

request request_for(const std::string& folder, const std::string& what) {
  request r{.input = folder + "/x", .output = folder + "/y", .passes = 2};
  if (what == "in_place") r.output = "";
  if (what == "three_passes") r.passes = 3;
  if (what == "three_passes_in_place") r.passes = 3, r.output = "";
  if (what == "filter_in_place") {
    r.what = operation::filter;
    r.filter = {transfer_function::form::gaussian, 0, 0.2};
    r.output = "";
  }
  if (what == "memory") r.passes = 1;
  return r;
}

// All OS processes of the world that the child has started, itself first.
std::vector<pid_t> nodes_of(pid_t first) {
  std::vector<pid_t> all{first};
  std::ifstream children("/proc/" + std::to_string(first) + "/task/" + std::to_string(first) + "/children");
  for (pid_t p = 0; children >> p;) all.push_back(p);
  return all;
}

class killed : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(killed, goes_on_and_is_right) {
  const auto [what, nodes] = GetParam();
  const auto seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const scratch folder;
  const request r = request_for(folder.path, what);
  const auto x = random_numbers(product(shape), false);
  program([&] { make_set(r.input, {.shape = shape, .page_shape = {6, 7, 8}}, x); });

  const auto words = [&] {
    return std::vector<std::string>{"--scenario", folder.path, what, "--orrery-pes=1",
                                    "--orrery-nodes=" + std::to_string(nodes)};
  };
  const std::string target = r.output.empty() ? r.input : r.output;
  bool begun = false;
  const auto complete = [&] {  // also if it was killed after its last act
    if (std::filesystem::exists(target + ".fft3d/job.json")) return !(begun = true);
    if (begun || (!r.output.empty() && std::filesystem::exists(target))) return true;
    bool changed = false;
    if (r.output.empty()) program([&] { changed = read_set(target) != x; });
    return changed;
  };
  int kills = 0;
  // First early, then ever later, so that it is killed in each of its parts, and comes to its end.
  double latest = 2'000;  // microseconds
  while (!complete()) {
    const child c(words());
    std::this_thread::sleep_for(std::chrono::microseconds(5'000 + random() % static_cast<unsigned>(latest *= 1.15)));
    auto victims = nodes_of(c.pid);
    std::ranges::shuffle(victims, random);
    victims.resize(1 + random() % victims.size());
    for (const pid_t p : victims) kill(p, SIGKILL);
    const int outcome = c.outcome();
    if (outcome == 0) break;
    ++kills;
    ASSERT_NE(outcome, 1000 + SIGABRT) << "it crashes by itself";
    ASSERT_LT(kills, 500) << "it does not come to its end";
  }
  std::printf("killed %d times\n", kills);
  EXPECT_GT(kills, 0);
  program(
      [&] { EXPECT_LT(difference(read_set(r.output.empty() ? r.input : r.output), expected(r, shape, x)), 1e-13); });
}

// How many kills: some in each run of the tests, more by hand.
int kills_wanted() {
  const char* text = std::getenv("ORRERY_TEST_KILLS");
  return text != nullptr ? std::stoi(text) : 20;
}
// Any node, and the same command again at once, while the others of the killed program still live.
TEST(killed_in_place, goes_on_while_nodes_of_the_killed_program_live) {
  const auto seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const scratch folder;
  const request r = request_for(folder.path, "in_place");
  const auto x = random_numbers(product(shape), false);
  program([&] { make_set(r.input, {.shape = shape, .page_shape = {6, 7, 8}}, x); });
  const std::vector<std::string> words{"--scenario", folder.path, "in_place", "--orrery-pes=1", "--orrery-nodes=4"};

  std::vector<std::pair<child, bool>> killed;  // and whether its first node was
  int ended = 0;
  for (int kills = 0; kills < kills_wanted();) {
    const child c(words);
    std::this_thread::sleep_for(std::chrono::microseconds(10'000 + random() % 200'000));
    const auto nodes = nodes_of(c.pid);
    const pid_t victim = nodes[random() % nodes.size()];
    kill(victim, SIGKILL);
    killed.emplace_back(c, victim == c.pid);
    ++kills;
  }
  EXPECT_EQ(child(words).outcome(), 0);
  for (const auto& [c, first] : killed) {
    const int outcome = c.outcome();
    if (outcome == 0) ++ended;
    if (first) {  // else it was refused
      EXPECT_TRUE(outcome == 1000 + SIGKILL || outcome == 0) << outcome;
    }
  }
  // Who came to the end is followed by who does it again: so it is the transform of a transform, so many times, and nothing between.
  program([&] {
    const auto found = read_set(r.input);
    auto right = x;
    bool good = false;
    for (std::size_t times = 1; times <= killed.size() + 1 && !good; ++times) {
      right = expected(r, shape, right);
      good = difference(found, right) < 1e-12;
      if (good) std::printf("%d came to their end, and it is transformed %zu times\n", ended, times);
    }
    EXPECT_TRUE(good);
  });
  EXPECT_FALSE(std::filesystem::exists(r.input + ".fft3d"));
}

INSTANTIATE_TEST_SUITE_P(fft3d, killed,
                         ::testing::Combine(::testing::Values("new", "in_place", "three_passes",
                                                              "three_passes_in_place", "filter_in_place", "memory"),
                                            ::testing::Values(1, 3)),
                         [](const auto& p) {
                           return std::get<0>(p.param) + (std::get<1>(p.param) == 1 ? "" : "_on_nodes");
                         });

}  // namespace

#if defined(ORRERY_ASAN)
// What is killed looks for no leaks: the search has a child of its own, which would be taken for a node, and without which it never ends.
static bool is_victim = false;
extern "C" int __lsan_is_turned_off() { return is_victim ? 1 : 0; }
static void look_for_no_leaks() { is_victim = true; }
#else
static void look_for_no_leaks() {}
#endif

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--scenario") look_for_no_leaks();
  return test_main(argc, argv, [](const std::vector<std::string>& words) {
    (void)perform(request_for(words.at(0), words.at(1)), nobody);
    return 0;
  });
}
