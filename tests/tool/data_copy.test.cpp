// SPDX-License-Identifier: Apache-2.0
// `orrery data copy`: other pages, drives and elements, killed at any moment, without room, of damaged data.
#include "data_support.hpp"

#include <orrery/scheduler/sanitizers.hpp>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>

namespace orrery {
namespace {

namespace fs = std::filesystem;
using namespace testing;

// Bytes of which no two pages are alike; small numbers, as floats.
void make_numbers(const std::string& path, std::size_t count) {
  std::string bytes;
  std::mt19937 random(7);
  for (std::size_t i = 0; i < count; ++i) {
    const float x = static_cast<float>(random() % 100'000) / 8;
    bytes.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  write_text(path, bytes);
}

class orrery_data_copy : public ::testing::Test {
 protected:
  void make(const std::string& shape = "60,50,70", std::size_t count = 60 * 50 * 70,
            const std::string& pages = "16,8,32") {
    make_numbers(folder / "in.raw", count);
    expect_good("import " + folder / "in.raw " + folder / "x --shape " + shape + " --type float32 --pages " + pages);
  }
  void expect_same(const std::string& set) {
    fs::remove(folder / "out.raw");
    expect_good("verify " + folder / set);
    expect_good("export " + folder / set + " " + folder / "out.raw");
    EXPECT_TRUE(text_of(folder / "in.raw") == text_of(folder / "out.raw")) << set << " is another array";
  }
  const scratch folder;
};

TEST_F(orrery_data_copy, has_the_pages_drives_and_map_that_are_wished_and_the_same_numbers) {
  make();
  fs::create_directory(folder / "d");
  const std::string x = folder / "x ";
  expect_good("copy " + x + folder / "y");
  expect_same("y");
  expect_good("copy " + x + folder / "z --pages 7,64,5 --map blocked --folder " + folder / "d --folder " +
              folder / "e");
  expect_same("z");
  const std::string info = orrery_data("info " + folder / "z").text;
  EXPECT_NE(info.find("pages of 7 x 64 x 5"), std::string::npos) << info;
  EXPECT_NE(info.find(folder / "e/z-1.pages"), std::string::npos) << info;
  EXPECT_NE(info.find("(blocked map)"), std::string::npos) << info;
  for (const char* rest : {"y.copy", "z.copy"}) EXPECT_FALSE(fs::exists(folder / rest));
}
TEST_F(orrery_data_copy, has_the_elements_that_are_wished) {
  make();
  const auto round = [&](const std::string& type) {
    expect_good("copy " + folder / "x " + folder / type + " --type " + type);
    const std::string info = orrery_data("info " + folder / type).text;
    EXPECT_NE(info.find("elements of type " + type), std::string::npos) << info;
  };
  round("float64");
  expect_good("copy " + folder / "float64 " + folder / "back --type float32 --pages 9,9,9");
  expect_same("back");
  round("complex128");
  const std::string one = orrery_data("read " + folder / "complex128 --box 1,2,3:5").text;
  EXPECT_NE(one.find("0j"), std::string::npos) << one;
  expect_bad("copy " + folder / "complex128 " + folder / "no --type float64", "the imaginary parts would be lost");
  EXPECT_FALSE(fs::exists(folder / "no"));
  EXPECT_FALSE(fs::exists(folder / "no.copy"));
}
TEST_F(orrery_data_copy, says_how_many_numbers_are_too_large_for_it) {
  std::string bytes;
  for (const double x : {1.0, 1e300, -1e300, 2.0}) bytes.append(reinterpret_cast<const char*>(&x), sizeof x);
  write_text(folder / "in.raw", bytes);
  expect_good("import " + folder / "in.raw " + folder / "x --shape 1,1,4 --type float64");
  const outcome o = orrery_data("copy " + folder / "x " + folder / "y --type float32");
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.text, "warning: 2 numbers are too large for float32, and infinite in the copy\n");
}
TEST_F(orrery_data_copy, goes_on_when_it_was_killed_at_any_moment) {
  make("128,128,128", 128 * 128 * 128);
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  int killed = 0;
  bool begun = false;  // A run that was killed has left something to go on with.
  bool went_on = false;
  const auto says_that_it_goes_on = [](const outcome& o) {
    return o.text.find("going on with the copy that was interrupted") != std::string::npos;
  };
  for (double least = 0.005; least < 2; least *= 1.1) {
    const double seconds = least + static_cast<double>(random() % 1000) * 1e-5;
    const outcome o = shell(fmt::format("ORRERY_PES=2 timeout -s KILL {:.4f} {} data copy {} {} --pages 24,40,56",
                                        seconds, program_path(), folder / "x", folder / "y"));
    went_on = went_on || says_that_it_goes_on(o);
    if (o.code == 0) break;
    ++killed;
    begun = begun || fs::exists(folder / "y.copy/progress");
    // Killed after its last act, it is whole; what it is compared with is below.
    if (fs::exists(folder / "y/orrery.json") &&
        orrery_data("info " + folder / "y").text.find("unfinished") == std::string::npos)
      break;
  }
  if (fs::exists(folder / "y.copy") || !fs::exists(folder / "y")) {
    // It was killed while it removed its notes: the next one removes the rest of them.
    const bool done = fs::exists(folder / "y") && !fs::exists(folder / "y.copy/job.json");
    const outcome o = orrery_data("copy " + folder / "x " + folder / "y --pages 24,40,56");
    EXPECT_EQ(o.code, done ? 1 : 0) << o.text;
    went_on = went_on || says_that_it_goes_on(o);
  }
  EXPECT_GT(killed, 0);
  EXPECT_TRUE(went_on || !begun);
  expect_same("y");
  EXPECT_FALSE(fs::exists(folder / "y.copy"));
}
TEST_F(orrery_data_copy, that_was_interrupted_is_not_taken_for_another) {
  make();
  ASSERT_EQ(shell("printf '!!!!' | dd of=" + folder / "x/device-0.pages bs=1 seek=40000 conv=notrunc").code, 0);
  expect_bad("copy " + folder / "x " + folder / "y", "is damaged");
  expect_bad("copy " + folder / "x " + folder / "y --pages 5,5,5",
             "a job that was interrupted has begun " + folder / "y, and was another one than this");
}
TEST_F(orrery_data_copy, names_a_damaged_page_and_goes_on_when_that_is_repaired) {
  make();
  fs::copy_file(folder / "x/device-0.pages", folder / "good.pages");
  ASSERT_EQ(shell("printf '!!!!' | dd of=" + folder / "x/device-0.pages bs=1 seek=40000 conv=notrunc").code, 0);
  expect_bad("copy " + folder / "x " + folder / "y --pages 8,50,70",
             "page 2 of " + folder / "x/device-0.pages is damaged");
  EXPECT_TRUE(fs::exists(folder / "y.copy/progress"));
  expect_bad("export " + folder / "y " + folder / "no.raw", "is unfinished");
  fs::copy_file(folder / "good.pages", folder / "x/device-0.pages", fs::copy_options::overwrite_existing);
  const outcome o = orrery_data("copy " + folder / "x " + folder / "y --pages 8,50,70");
  EXPECT_EQ(o.text, "going on with the copy that was interrupted\n");
  expect_same("y");
}
TEST_F(orrery_data_copy, without_room_leaves_nothing) {
  if (!can_mount()) GTEST_SKIP() << "may not mount a small file system";
  make("128,128,256", 128 * 128 * 256);
  const outcome o =
      with_small_disk(folder.path,
                      "$O copy x small/y; echo code $?; ls -A small; $O copy x small/y --folder small/d; echo code $?\n"
                      "ls -A small; echo end\n");
  EXPECT_NE(o.text.find("16 MiB are needed at "), std::string::npos) << o.text;
  EXPECT_EQ(o.text.find("code 1\norrery: "), o.text.find("code 1")) << o.text;
  EXPECT_NE(o.text.find("code 1\nend\n"), std::string::npos) << o.text;
}
// Two folders on one drive that has room for one of them: only the device file finds that out.
TEST_F(orrery_data_copy, without_room_for_its_last_device_leaves_nothing) {
  if (!can_mount()) GTEST_SKIP() << "may not mount a small file system";
  make("64,128,320", 64 * 128 * 320);
  const outcome o = with_small_disk(
      folder.path, "$O copy x small/y --folder small/a --folder small/b; echo code $?; ls -A small; echo end\n");
  EXPECT_NE(o.text.find("No space left on device\ncode 1\nend\n"), std::string::npos) << o.text;
}
TEST_F(orrery_data_copy, keeps_to_its_memory) {
  if (scheduler::slowed_down) GTEST_SKIP() << "memory is counted in a program as it is delivered";
  make("256,256,512", 256 * 256 * 512, "32,64,64");
  expect_bad("copy " + folder / "x " + folder / "y --memory 10M",
             "--memory 10M is too little for " + folder / "x: at least ");
  const std::string report = folder / "report";
  const outcome o = shell(
      "ORRERY_PES=2 /usr/bin/python3 -c \"import resource, subprocess, sys; subprocess.check_call(sys.argv[1:]);"
      " print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\" " +
      program_path() + " data copy " + folder / "x " + folder / "y --pages 40,50,60 --memory 64M");
  ASSERT_EQ(o.code, 0) << o.text;
  EXPECT_LT(std::stol(o.text), 66L << 10) << "KiB, of an array of 128 MiB";
}

}  // namespace
}  // namespace orrery
