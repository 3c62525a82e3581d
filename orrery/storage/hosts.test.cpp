// SPDX-License-Identifier: Apache-2.0
// Data sets whose folders are on several machines: simulated ones, and the one that is here.
#include <orrery/orrery.hpp>
#include <orrery/storage/data_set.hpp>
#include <orrery/storage/internal/test_support.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace orrery::storage {
namespace hosts_tests {

namespace fs = std::filesystem;
using testing::elements;
using testing::error_text;
using testing::program;
using testing::scratch;

std::string host() {
  char name[256] = {};
  (void)::gethostname(name, sizeof name - 1);
  return name;
}
std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::uint32_t own_machine() { return this_machine(); }

constexpr index3 shape{9, 10, 11};
data_set_description on(std::vector<std::string> folders) {
  return {.shape = shape, .page_shape = {4, 4, 4}, .type = element_type::float64, .folders = std::move(folders)};
}
void fill(const remote<data_set>& set) {
  const array a = set->contents();
  a.write(a.whole(), std::span<const double>(elements<double>(product(shape))));
  set->finish();
}
void expect_filled(const remote<data_set>& set) {
  const array a = set->contents();
  std::vector<double> v(static_cast<std::size_t>(product(shape)));
  a.read(a.whole(), std::span(v));
  EXPECT_EQ(v, elements<double>(product(shape)));
}

void on_machines(int machines, const std::function<void()>& body) {
  std::string name = "storage.test";
  std::string sim = "--orrery-sim=machines=" + std::to_string(machines) + ",nodes=2,jitter=3us,seed=5";
  char* argv[] = {name.data(), sim.data(), nullptr};
  EXPECT_EQ(run(2, argv, [&](const args&) { return body(), 0; }), 0);
}

TEST(data_set_hosts, a_folder_on_this_machine_may_name_it) {
  const scratch folder;
  fs::create_directory(folder / "d");
  program([&] {
    auto set =
        spawn<data_set>(here(), folder / "x", on({host() + ":" + folder / "d", folder / "d"}), data_set_options{});
    fill(set);
    EXPECT_EQ(set->info().folders(), (std::vector{host() + ":" + folder / "d", folder / "d"}));
    destroy(set);
  });
  EXPECT_TRUE(contains(text_of_file(folder / "x/orrery.json"), "\"version\": 2"));
  program([&] {
    expect_filled(spawn<data_set>(here(), folder / "x", data_set_options{}));
    data_set::remove(folder / "x");
  });
  EXPECT_TRUE(fs::is_empty(folder.path));
}
TEST(data_set_hosts, without_a_machine_in_a_folder_the_header_is_that_of_earlier_programs) {
  const scratch folder;
  program([&] { destroy(spawn<data_set>(here(), folder / "x", on({folder / "d"}), data_set_options{})); });
  EXPECT_TRUE(contains(text_of_file(folder / "x/orrery.json"), "\"version\": 1"));
  EXPECT_FALSE(contains(text_of_file(folder / "x/orrery.json"), "host"));
}
TEST(data_set_hosts, a_machine_that_is_not_in_the_world_is_named_with_the_folder) {
  const scratch folder;
  program([&] {
    const std::string text = error_text(EHOSTDOWN, [&] {
      (void)spawn<data_set>(here(), folder / "x", on({folder / "d", "node99:/disk1/x"}), data_set_options{});
    });
    EXPECT_TRUE(contains(text, "the folder /disk1/x of the data set " +
                                   folder / "x is on the machine node99, which is not in this world"))
        << text;
  });
  EXPECT_TRUE(fs::is_empty(folder.path));
}
TEST(data_set_hosts, a_machine_needs_an_absolute_path) {
  const scratch folder;
  program([&] {
    const std::string text = error_text(
        EINVAL, [&] { (void)spawn<data_set>(here(), folder / "x", on({host() + ":d"}), data_set_options{}); });
    EXPECT_TRUE(contains(text, "'" + host() + ":d': a HOST:PATH needs a path that begins with '/'")) << text;
    destroy(spawn<data_set>(here(), folder / "x", on({folder / "a:b"}), data_set_options{}));
  });
  EXPECT_TRUE(fs::exists(folder / "a:b"));
}
TEST(data_set_hosts, a_set_that_was_made_on_more_machines_is_refused_on_fewer) {
  const scratch folder;
  on_machines(2, [&] {
    fill(spawn<data_set>(here(), folder / "x", on({folder / "a", host() + "#2:" + folder / "b"}), data_set_options{}));
  });
  program([&] {
    const std::string text =
        error_text(EHOSTDOWN, [&] { (void)spawn<data_set>(here(), folder / "x", data_set_options{}); });
    EXPECT_TRUE(contains(text, folder / "b")) << text;
    EXPECT_TRUE(contains(text, host() + "#2")) << text;
    (void)error_text(EHOSTDOWN, [&] { data_set::remove(folder / "x"); });
  });
  EXPECT_TRUE(fs::exists(folder / "x/orrery.json"));
}
TEST(data_set_hosts, devices_live_where_their_folders_are_for_all_nodes) {
  const scratch folder;
  for (const bool each : {false, true}) {
    on_machines(3, [&] {
      auto set = spawn<data_set>(here(), folder / "x",
                                 on({host() + "#3:" + folder / "c", folder / "a", host() + "#2:" + folder / "b"}),
                                 data_set_options{.on_each_node = each});
      const array a = set->contents();
      for (std::uint32_t n = 0; n < world_nodes(); ++n) {
        const auto& devices = a.devices_of(n);
        for (std::size_t i = 0; i < 3; ++i)
          EXPECT_EQ(call<&own_machine>(near(devices[i])), (std::vector{2U, 0U, 1U})[i]);
        // On its machine a node has devices of its own.
        if (each) {
          EXPECT_EQ(devices[(std::vector{1, 2, 0})[n / 2]].address().pe, n);
        }
      }
      fill(set);
      expect_filled(set);
      EXPECT_TRUE(set->verify().empty());
      destroy(set);
      data_set::remove(folder / "x");
    });
    EXPECT_TRUE(fs::is_empty(folder.path));
  }
}
TEST(data_set_hosts, what_was_made_on_other_machines_goes_when_it_cannot_be_completed) {
  const scratch folder;
  on_machines(2, [&] {
    const std::string text = error_text(ENOENT, [&] {
      (void)spawn<data_set>(here(), folder / "x",
                            on({folder / "a", host() + "#2:" + folder / "b", host() + "#2:" + folder / "no/such"}),
                            data_set_options{});
    });
    EXPECT_TRUE(contains(text, "cannot make the folder " + host() + "#2:" + folder / "no/such")) << text;
  });
  on_machines(2, [&] {
    fs::create_directory(folder / "b");
    std::ofstream(folder / "b/x-1.pages") << "there before";
    const std::string text = error_text(EEXIST, [&] {
      (void)spawn<data_set>(here(), folder / "x", on({folder / "a", host() + "#2:" + folder / "b"}),
                            data_set_options{});
    });
    EXPECT_TRUE(contains(text, host() + "#2:" + folder / "b/x-1.pages")) << text;
  });
  EXPECT_EQ(text_of_file(folder / "b/x-1.pages"), "there before");
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_FALSE(fs::exists(folder / "x"));
}

}  // namespace hosts_tests
}  // namespace orrery::storage
