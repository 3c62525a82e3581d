// SPDX-License-Identifier: Apache-2.0
// What may go wrong with a transform, and what it says then.
#include "support.hpp"

#include <apps/fft3d/transform.hpp>
#include <orrery/scheduler/sanitizers.hpp>
#include <orrery/storage/internal/test_devices.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <nlohmann/json.hpp>

namespace {

using namespace fft3d;
using namespace fft3d::testing;
namespace fs = std::filesystem;

#if defined(ORRERY_ASAN) || defined(ORRERY_TSAN)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

const index3 shape{12, 10, 9};
const index3 pages{4, 5, 3};

struct place_with_set : scratch {
  request r{.input = path + "/x", .output = path + "/y", .passes = 2};
  std::vector<number> x = random_numbers(product(shape), false);
  void make(element_type type = element_type::complex128) {
    make_set(r.input, {.shape = shape, .page_shape = pages, .type = type}, x);
  }
};

std::string refusal(const request& r) {
  try {
    (void)perform(r, nobody);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "it was done";
}

TEST(fft3d_budget, that_is_too_small_is_refused_with_the_smallest_that_works) {
  place_with_set p;
  program([&] {
    p.make();
    p.r.memory = 10 << 20;
    const std::string text = refusal(p.r);
    const auto at = text.find("at least ");
    ASSERT_NE(at, std::string::npos) << text;
    p.r.memory = std::stoull(text.substr(at + 9)) << 20;  // and that works
    (void)perform(p.r, nobody);
    EXPECT_LT(difference(read_set(p.r.output), expected(p.r, shape, p.x)), 1e-13);
  });
}
TEST(fft3d_budget, is_kept) {
  if (sanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  const scratch folder;
  program([&] {
    make_set(folder / "x", {.shape = {256, 128, 128}, .page_shape = {16, 32, 32}},
             random_numbers(256 * 128 * 128, false));
  });
  for (const char* passes : {"2", "3"}) {  // 64 MiB
    const child c({"--scenario", "transform", folder / "x", folder / "y", passes, "52"});
    EXPECT_EQ(c.outcome(), 0) << passes;
    fs::remove_all(folder / "y");
  }
}
// Pages as large as the system's huge ones, and elements of which each becomes another one.
TEST(fft3d_budget, is_kept_with_large_pages_that_are_converted) {
  if (sanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  const scratch folder;
  program([&] {
    make_set(folder / "x", {.shape = {128, 256, 256}, .page_shape = {16, 128, 128}, .type = element_type::float32},
             random_numbers(128 * 256 * 256, true));
  });
  const child c({"--scenario", "transform", folder / "x", folder / "y", "2", "84"});  // units of 16 MiB
  EXPECT_EQ(c.outcome(), 0);
}
// What all OS processes of the world have at one moment, pages that they share counted once: as the kernel says, as often as it can be asked.
std::uint64_t memory_of_world(pid_t first) {
  std::uint64_t sum = 0;
  const std::string own = "/proc/" + std::to_string(first);
  std::ifstream children(own + "/task/" + std::to_string(first) + "/children");
  for (std::string p = std::to_string(first); !p.empty(); p.clear(), children >> p) {
    std::ifstream rollup("/proc/" + p + "/smaps_rollup");
    for (std::string word; rollup >> word;)
      if (std::uint64_t kib = 0; word == "Pss:" && rollup >> kib) sum += kib << 10;
  }
  return sum;
}
TEST(fft3d_budget, is_that_of_all_nodes_together) {
  if (sanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  const scratch folder;
  program([&] {
    make_set(folder / "x", {.shape = {256, 256, 128}, .page_shape = {64, 64, 64}},
             random_numbers(256 * 256 * 128, false));
  });
  for (const char* passes : {"2", "3"}) {  // 128 MiB in units of 32 or 16
    const child c(
        {"--scenario", "transform", folder / "x", folder / "y", passes, "340", "--orrery-nodes=3", "--orrery-pes=1"});
    std::uint64_t most = 0;
    int status = 0;
    while (waitpid(c.pid, &status, WNOHANG) == 0) most = std::max(most, memory_of_world(c.pid));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << passes;  // what it says itself is within the budget
    std::printf("%s passes: at most %llu MiB\n", passes, static_cast<unsigned long long>(most >> 20));
    EXPECT_GT(most, 64U << 20);
    EXPECT_LE(static_cast<double>(most), 1.1 * (340 << 20)) << passes;
    fs::remove_all(folder / "y");
  }
}
TEST(fft3d_input, of_another_type_is_refused) {
  place_with_set p;
  program([&] {
    p.make(element_type::float64);
    p.r.what = operation::inverse;
    EXPECT_NE(refusal(p.r).find("holds float64"), std::string::npos);
    p.r.what = operation::forward;
    p.r.output = "";
    EXPECT_NE(refusal(p.r).find("OUTPUT"), std::string::npos) << refusal(p.r);
  });
}
TEST(fft3d_input, that_is_unfinished_is_refused) {
  place_with_set p;
  program([&] {
    auto set = spawn<data_set>(here(), p.r.input, data_set_description{.shape = shape, .page_shape = pages},
                               data_set_options{});
    destroy(set);
    (void)error_text(EBADMSG, [&] { (void)perform(p.r, nobody); });
  });
}
TEST(fft3d_input, that_is_missing_or_truncated_is_named) {
  place_with_set p;
  program([&] {
    (void)error_text(ENOENT, [&] { (void)perform(p.r, nobody); });
    p.make();
    const std::string file = p.r.input + "/device-0.pages";
    fs::resize_file(file, fs::file_size(file) - 1);
    EXPECT_NE(error_text(EINVAL, [&] { (void)perform(p.r, nobody); }).find(file), std::string::npos);
    fs::remove(file);
    EXPECT_NE(error_text(ENOENT, [&] { (void)perform(p.r, nobody); }).find(file), std::string::npos);
  });
}
void flip(const std::string& file, std::streamoff at) {
  std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
  f.seekg(at);
  const auto c = static_cast<char>(f.get() ^ 1);
  f.seekp(at);
  f.put(c);
}
TEST(fft3d_input, with_a_flipped_byte_stops_it_and_it_goes_on_once_that_is_repaired) {
  place_with_set p;
  program([&] {
    p.make();
    flip(p.r.input + "/device-0.pages", 4096 * 7 + 100);
    EXPECT_NE(error_text(EBADMSG, [&] { (void)perform(p.r, nobody); }).find("page 7 of"), std::string::npos);
    flip(p.r.input + "/device-0.pages", 4096 * 7 + 100);
    EXPECT_TRUE(perform(p.r, nobody).resumed);
    EXPECT_LT(difference(read_set(p.r.output), expected(p.r, shape, p.x)), 1e-13);
  });
}
TEST(fft3d_input, with_nan_is_transformed_and_they_are_counted) {
  place_with_set p;
  program([&] {
    p.x[17] = {NAN, 0};
    p.x[400] = {NAN, NAN};
    p.make();
    EXPECT_EQ(perform(p.r, nobody).counted, 3U);
    EXPECT_TRUE(std::isnan(read_set(p.r.output)[0].real()));
  });
}
TEST(fft3d_output, that_exists_is_not_overwritten) {
  place_with_set p;
  program([&] {
    p.make();
    fs::create_directory(p.r.output);
    (void)error_text(EEXIST, [&] { (void)perform(p.r, nobody); });
  });
}
TEST(fft3d_output, needs_room_and_says_how_much_before_it_starts) {
  const scratch folder;
  program([&] {
    make_set(folder / "x", {.shape = {1, 1, 1}, .page_shape = {1, 1, 1}}, {1.0});
    nlohmann::json header = nlohmann::json::parse(std::ifstream(folder / "x/orrery.json"));
    header["shape"] = {16384, 8192, 8192};  // 16 TiB
    header["page_shape"] = {64, 64, 64};
    header["devices"][0]["pages"] = 4194304;
    std::ofstream(folder / "x/orrery.json") << header;
    const request r{.input = folder / "x", .output = folder / "y", .memory = 64ULL << 30};
    EXPECT_NE(error_text(ENOSPC, [&] { (void)perform(r, nobody); }).find("32 TiB"), std::string::npos);
    EXPECT_FALSE(fs::exists(folder / "y"));
  });
}
// The child fills a small file system of its own, ever less, so that it is full at another moment each time: while data sets are made, in the middle of a
// pass, at the end.
TEST(fft3d_output, whose_drive_is_full_goes_on_once_there_is_room) {
  const scratch folder;
  const child c({"--scenario", "full", folder.path});
  const int outcome = c.outcome();
  if (outcome == 77) GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_EQ(outcome, 0);
}
TEST(fft3d_output, in_a_folder_that_may_only_be_read_is_refused) {
  const scratch folder;
  program(
      [&] { make_set(folder / "x", {.shape = shape, .page_shape = pages}, random_numbers(product(shape), false)); });
  fs::permissions(folder.path, fs::perms(0555));
  const child c({"--scenario", "unprivileged", folder / "x", folder / "y"});
  EXPECT_EQ(c.outcome(), EACCES);
  fs::permissions(folder.path, fs::perms(0755));
}
TEST(fft3d_twice, the_second_is_refused) {
  place_with_set p;
  program([&] {
    p.make();
    int tried = 0;
    const auto again = [&] {
      ++tried;
      EXPECT_NE(error_text(EBUSY, [&] { (void)perform(p.r, nobody); }).find("another program"), std::string::npos);
    };
    (void)perform(p.r, {[&](const auto&...) { again(); }, [&](const sweep_status&) { again(); }});
    EXPECT_GE(tried, 2);
  });
}
TEST(fft3d_twice, at_once_to_two_outputs_in_the_same_folders_both_are_right) {
  place_with_set p;
  program([&] {
    p.make();
    p.r.folders = {p / "d"};
    request other = p.r;
    other.output = p / "z";
    bool done = false;
    (void)perform(p.r, {[](const auto&...) {},
                        [&](const sweep_status&) {
                          if (!std::exchange(done, true)) (void)perform(other, nobody);
                        }});
    EXPECT_TRUE(done);
    for (const request& r : {p.r, other}) EXPECT_LT(difference(read_set(r.output), expected(r, shape, p.x)), 1e-13);
  });
}
TEST(fft3d_twice, another_request_does_not_go_on_with_what_was_interrupted) {
  place_with_set p;
  program([&] {
    p.make();
    flip(p.r.input + "/device-0.pages", 100);
    (void)error_text(EBADMSG, [&] { (void)perform(p.r, nobody); });
    flip(p.r.input + "/device-0.pages", 100);
    request other = p.r;
    other.passes = 3;
    EXPECT_NE(refusal(other).find("interrupted"), std::string::npos);
    (void)perform(p.r, nobody);
  });
}

// --- drives that fail -----------------------------------------------------------------------------------------------

using storage::testing::test_device;

// As slow as can be: it writes nothing until it is told to.
TEST(fft3d_drive, that_is_slow_is_waited_for_while_its_pe_works_on) {
  const scratch folder;
  program([&] {
    const auto x = random_numbers(product(shape), false);
    make_set(folder / "x", {.shape = shape, .page_shape = pages}, x);
    request r{.input = folder / "x", .output = folder / "y", .passes = 3};
    const plan p = make_plan(r, data_set::read_info(r.input), 2, 1);
    const page_grid& g = p.work.grid;
    const auto slow = spawn<test_device>(pe(1), folder / "slow", static_cast<std::uint64_t>(g.page_count()), pages,
                                         element_type::complex128, device_options{}, cache_options{0, 0});
    const auto input = spawn<data_set>(here(), r.input, data_set_options{});
    const storage::array to(g, element_type::complex128, circulant_map(g.pages(), 1), {slow});
    auto units = spawn<ledger>(pe(1), folder / "progress",
                               std::vector<std::int64_t>{p.work.units(0), p.work.units(1), p.work.units(2)});
    auto workers = spawn_group<transformer>(everywhere(), 2, p, units);
    slow->hold_writes();
    units->begin(0);
    auto running = start(workers)->run(std::size_t{0}, input->contents(), to);
    for (int i = 0; i < 20; ++i) {
      EXPECT_FALSE(running.wait_for(std::chrono::milliseconds(5)));
      EXPECT_EQ(units->units_done(), 0);  // it answers, on the PE of the drive
    }
    slow->release_writes();
    (void)running.get();
    EXPECT_TRUE(units->finished(0));
  });
}

TEST(fft3d_drive, that_fails_is_named_and_the_units_that_were_done_stay_done) {
  const scratch folder;
  program([&] {
    const auto x = random_numbers(product(shape), false);
    make_set(folder / "x", {.shape = shape, .page_shape = pages}, x);
    request r{.input = folder / "x", .output = folder / "y", .passes = 3};
    const plan p = make_plan(r, data_set::read_info(r.input), 2, 1);
    const page_grid& g = p.work.grid;
    const auto drive = [&](const char* name) {
      return spawn<test_device>(pe(1), folder / name, static_cast<std::uint64_t>(g.page_count()), pages,
                                element_type::complex128, device_options{}, cache_options{0, 0});
    };
    const auto bad = drive("bad");
    const auto input = spawn<data_set>(here(), r.input, data_set_options{});
    const storage::array from = input->contents();
    const storage::array to(g, element_type::complex128, circulant_map(g.pages(), 1), {bad});
    auto units = spawn<ledger>(here(), folder / "progress",
                               std::vector<std::int64_t>{p.work.units(0), p.work.units(1), p.work.units(2)});
    auto workers = spawn_group<transformer>(everywhere(), 2, p, units);
    const auto fails_once_and_then_goes_on = [&](std::size_t pass, const storage::array& a, const storage::array& b) {
      units->begin(pass);
      EXPECT_NE(error_text(EIO, [&] { (void)workers->run(pass, a, b); }).find("page"), std::string::npos);
      EXPECT_FALSE(units->finished(pass));
      const std::int64_t done = units->units_done();
      units->begin(pass);
      std::int64_t now = 0;
      for (const work_log& l : workers->run(pass, a, b)) now += std::ssize(l.spans) / 3;
      EXPECT_TRUE(units->finished(pass));
      EXPECT_EQ(done + now, units->units_done());
    };
    bad->fail_writes(1, EIO);
    fails_once_and_then_goes_on(0, from, to);
    bad->fail_reads(1, EIO);
    const storage::array other(g, element_type::complex128, circulant_map(g.pages(), 1), {drive("other")});
    fails_once_and_then_goes_on(1, to, other);
    auto again = spawn<ledger>(here(), folder / "progress",
                               std::vector<std::int64_t>{p.work.units(0), p.work.units(1), p.work.units(2)});
    EXPECT_TRUE(again->finished(0));
    EXPECT_TRUE(again->finished(1));
    EXPECT_FALSE(again->finished(2));
  });
}

}  // namespace

namespace {

// True if a file system of this size is at that place now, for this OS process only.
bool mount_small(const std::string& place) {
  const int spaces = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
  return unshare(spaces) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", place.c_str(), "tmpfs", 0, "size=32m") == 0;
}

// 0 if a transform to a drive that is full up to `room` bytes is an error, leaves nothing that seems finished, and goes on; 1: there was room enough.
int try_full(const std::string& folder, const std::string& drive, std::uint64_t room,
             const std::vector<number>& right) {
  const request r{.input = folder + "/x", .output = drive + "/y", .passes = 2};
  const auto fill = [&](const plan&, bool) {
    const auto bytes = fs::space(drive).available - room;
    const io::descriptor file(drive + "/filler", O_WRONLY | O_CREAT);
    io::fallocate(file.get(), 0, bytes);
  };
  bool full = false;
  try {
    (void)perform(r, {fill, [](const sweep_status&) {}});
  } catch (const std::system_error& e) {
    full = e.code().value() == ENOSPC;
    EXPECT_TRUE(full && std::string_view(e.what()).find(drive) != std::string_view::npos) << room << ": " << e.what();
  }
  EXPECT_TRUE(!full || !fs::exists(r.output + "/orrery.json") || !data_set::read_info(r.output).finished) << room;
  fs::remove(drive + "/filler");
  if (full) (void)perform(r, nobody);
  EXPECT_LT(difference(read_set(r.output), right), 1e-13) << room;
  EXPECT_FALSE(fs::exists(r.output + ".fft3d")) << room;
  data_set::remove(r.output);
  return full ? 0 : 1;
}

int try_all_full(const std::string& folder) {
  const index3 many{20, 20, 20};  // in 1,000 pages, whose checksums take four blocks
  const auto x = random_numbers(product(many), false);
  make_set(folder + "/x", {.shape = many, .page_shape = {2, 2, 2}}, x);
  const auto right = expected({}, many, x);
  constexpr std::uint64_t block = 4096;
  int failed = 0;
  for (std::uint64_t room = 0; try_full(folder, folder + "/small", room, right) == 0; room += block) {
    if (::testing::Test::HasFailure()) return 2;
    if (++failed == 1) room = 1000 * block;  // before that each is the same: the first data set does not fit
    if (room == 1010 * block) room = 1998 * block;  // nor does the second
  }
  std::fprintf(stderr, "it was full %d times\n", failed);
  return ::testing::Test::HasFailure() || failed < 10 ? 2 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 0; i < argc; ++i)
    if (std::string_view(argv[i]) == "unprivileged" && geteuid() == 0 && setuid(65534) != 0) return 99;
  if (argc > 3 && std::string_view(argv[2]) == "full") {
    fs::create_directory(argv[3] + std::string("/small"));
    if (!mount_small(argv[3] + std::string("/small"))) return 77;
  }
  return test_main(argc, argv, [](const std::vector<std::string>& words) {
    if (words.at(0) == "full") return try_all_full(words.at(1));
    request r{.input = words.at(1), .output = words.at(2)};
    if (words.size() > 3) r.passes = std::stoi(words.at(3));
    if (words.size() > 4) r.memory = std::stoull(words.at(4)) << 20;
    try {
      std::map<std::uint32_t, std::uint64_t> peaks;
      for (const sweep_record& p : perform(r, nobody).sweeps)
        for (const work_log& l : p.logs) peaks[l.node] = std::max(peaks[l.node], l.node_peak);
      std::uint64_t peak = 0;
      for (const auto& [node, bytes] : peaks) peak += bytes;
      std::fprintf(stderr, "peak memory %llu KiB\n", static_cast<unsigned long long>(peak >> 10));
      return peak > 0 && static_cast<double>(peak) <= 1.1 * static_cast<double>(r.memory) ? 0 : 200;
    } catch (const std::system_error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      return e.code().value();
    }
  });
}
