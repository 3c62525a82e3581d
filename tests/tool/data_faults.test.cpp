// SPDX-License-Identifier: Apache-2.0
// `orrery data` when something fails, how much memory it takes, and what it shows meanwhile.
#include "data_support.hpp"

#include <orrery/scheduler/sanitizers.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery {
namespace {

namespace fs = std::filesystem;
using namespace testing;

std::vector<std::string> command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {program_path(), "data"});
  return arguments;
}
[[noreturn]] void become(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  (void)::setenv("ORRERY_PES", "2", 1);
  (void)::execv(argv[0], argv.data());
  ::_exit(127);
}
// A file of zeros that takes no room.
void make_sparse(const std::string& path, std::uint64_t bytes) {
  write_text(path, "");
  fs::resize_file(path, bytes);
}

// --- a terminal ---------------------------------------------------------------------------------------------------

struct seen {
  int code;
  std::string screen;
};
seen on_a_terminal(const std::vector<std::string>& words, unsigned short columns) {
  int terminal = -1;
  struct winsize size{};
  size.ws_col = columns;
  size.ws_row = 24;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) become(words);
  std::string screen;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t n = ::read(terminal, buffer.data(), buffer.size());
    if (n <= 0) break;  // EIO: nobody has it open any more
    screen.append(buffer.data(), static_cast<std::size_t>(n));
  }
  int status = 0;
  (void)::waitpid(child, &status, 0);
  (void)::close(terminal);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), screen};
}

TEST(orrery_data_progress, is_shown_on_a_terminal) {
  const scratch folder;
  make_sparse(folder / "in.raw", 64 << 20);
  const std::string x = folder / "x";
  const auto expect_bar = [&](const std::string& what, const std::vector<std::string>& words) {
    const seen s = on_a_terminal(command(words), 100);
    EXPECT_EQ(s.code, 0) << s.screen;
    const std::size_t last = s.screen.rfind('\r', s.screen.size() - 4);
    ASSERT_NE(last, std::string::npos) << s.screen;
    const std::string at_the_end = s.screen.substr(s.screen.rfind("\r" + what));
    EXPECT_EQ(at_the_end.find("\r" + what + " 100 % [########"), 0U) << at_the_end;
    EXPECT_NE(at_the_end.find("] 64 MiB of 64 MiB, "), std::string::npos) << at_the_end;
    EXPECT_NE(at_the_end.find("/s, "), std::string::npos) << at_the_end;
    EXPECT_NE(at_the_end.find('\n'), std::string::npos) << at_the_end;
    EXPECT_NE(s.screen.find(" left"), std::string::npos) << s.screen;
  };
  expect_bar("import", {"import", folder / "in.raw", x, "--shape", "128,256,256", "--type", "float64"});
  expect_bar("verify", {"verify", x});
  expect_bar("export", {"export", x, folder / "out.npy"});
}
TEST(orrery_data_progress, fits_into_a_narrow_terminal) {
  const scratch folder;
  make_sparse(folder / "in.raw", 1 << 20);
  const seen s = on_a_terminal(
      command({"import", folder / "in.raw", folder / "x", "--shape", "64,64,64", "--type", "float32"}), 30);
  EXPECT_EQ(s.code, 0) << s.screen;
  for (std::size_t at = s.screen.find('\r'); at != std::string::npos; at = s.screen.find('\r', at + 1)) {
    const std::size_t end = s.screen.find_first_of("\x1b\r\n", at + 1);
    EXPECT_LT(end - at - 1, 30U) << s.screen;
  }
}
TEST(orrery_data_progress, leaves_a_line_of_its_own_to_an_error) {
  const scratch folder;
  make_sparse(folder / "in.raw", 1 << 20);
  expect_good("import " + folder / "in.raw " + folder / "y --shape 64,64,64 --type float32");
  ASSERT_EQ(shell("printf '!!!!' | dd of=" + folder / "y/device-0.pages bs=1 seek=0 conv=notrunc").code, 0);
  const seen s = on_a_terminal(command({"export", folder / "y", folder / "out.raw"}), 100);
  EXPECT_NE(s.code, 0);
  EXPECT_NE(s.screen.find("\norrery: page 0 of " + folder / "y/device-0.pages is damaged"), std::string::npos)
      << s.screen;
}
TEST(orrery_data_progress, is_silent_where_nobody_looks) {
  const scratch folder;
  make_sparse(folder / "in.raw", 1 << 20);
  EXPECT_EQ(orrery_data("import " + folder / "in.raw " + folder / "x --shape 64,64,64 --type float32").text, "");
  EXPECT_EQ(orrery_data("export " + folder / "x " + folder / "out.npy").text, "");
  EXPECT_EQ(orrery_data("verify " + folder / "x").text, "0 of 1 pages cannot be trusted\n");
}

// --- no room ------------------------------------------------------------------------------------------------------

TEST(orrery_data_faults, without_room_for_a_data_set_says_so_and_leaves_nothing) {
  if (!can_mount()) GTEST_SKIP() << "may not mount a small file system";
  const scratch folder;
  make_sparse(folder / "in.raw", 32 << 20);
  const outcome o = with_small_disk(
      folder.path, "$O import in.raw small/x --shape 128,256,256 --type float32; echo code $?; ls -A small; echo end");
  EXPECT_NE(o.text.find(" MiB are free there: make room or choose another folder"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("No space left on device\ncode 1\nend\n"), std::string::npos) << o.text;
}
TEST(orrery_data_faults, without_room_for_a_file_says_so_and_leaves_nothing) {
  if (!can_mount()) GTEST_SKIP() << "may not mount a small file system";
  const scratch folder;
  make_sparse(folder / "in.raw", 32 << 20);
  // Numbers that cannot be compressed.
  ASSERT_EQ(shell("head -c 33554432 /dev/urandom > " + folder / "in.raw").code, 0);
  expect_good("import " + folder / "in.raw " + folder / "x --shape 128,256,256 --type float32");
  for (const std::string file : {"out.raw", "out.npy", "out.h5", "out.nii", "out.nii.gz"}) {
    SCOPED_TRACE(file);
    const outcome o =
        with_small_disk(folder.path, "$O export x small/" + file + "; echo code $?; ls -A small; echo end");
    EXPECT_NE(o.text.find("No space left on device"), std::string::npos) << o.text;
    EXPECT_NE(o.text.find("code 1\nend\n"), std::string::npos) << o.text;
  }
}
TEST(orrery_data_faults, over_the_limit_of_a_files_size_says_so) {
  const scratch folder;
  make_sparse(folder / "in.raw", 8 << 20);
  const outcome o = shell("ulimit -f 1024; ORRERY_PES=2 " + program_path() + " data import " + folder / "in.raw " +
                          folder / "x --shape 128,128,128 --type float32");
  expect_bad(o, "File too large");
  EXPECT_FALSE(fs::exists(folder / "x"));
}
TEST(orrery_data_faults, says_that_a_device_is_full) {
  const scratch folder;
  expect_good("create " + folder / "x --shape 8,8,8 --type float32");
  expect_bad("export " + folder / "x /dev/full", "No space left on device");
  expect_bad(shell("ORRERY_PES=2 " + program_path() + " data read " + folder / "x > /dev/full"),
             "cannot print: No space left on device");
  for (const char* command : {" data info ", " data verify "})
    expect_bad(shell("ORRERY_PES=2 " + program_path() + command + folder / "x > /dev/full"),
               "the output cannot be written: No space left on device");
}

// --- ends in the middle -------------------------------------------------------------------------------------------

TEST(orrery_data_faults, an_import_that_was_killed_leaves_an_unfinished_data_set) {
  const scratch folder;
  make_sparse(folder / "in.raw", 64 << 20);
  const std::string x = folder / "x";
  // It is killed as soon as the header is there. Should it have come to its end before, that is no killed import: once more.
  for (int attempt = 0; attempt < 50; ++attempt) {
    const pid_t child = ::fork();
    if (child == 0) become(command({"import", folder / "in.raw", x, "--shape", "128,256,256", "--type", "float64"}));
    while (!fs::exists(x + "/orrery.json") && ::waitpid(child, nullptr, WNOHANG) == 0) {
    }
    (void)::kill(child, SIGKILL);
    (void)::waitpid(child, nullptr, 0);
    if (text_of(x + "/orrery.json").find("\"unfinished\"") != std::string::npos) break;
    fs::remove_all(x);
  }
  ASSERT_TRUE(fs::exists(x + "/orrery.json"));
  EXPECT_NE(orrery_data("info " + x).text.find("unfinished: its last writer is still at work, or was interrupted"),
            std::string::npos);
  expect_bad("export " + x + " " + folder / "out.raw", "is unfinished");
  expect_bad("read " + x + " --box 0,0,0", "is unfinished");
  expect_bad("import " + folder / "in.raw " + x + " --shape 128,256,256 --type float64",
             "there is a data set at " + x + " already");
  expect_good("remove " + x);
  expect_good("import " + folder / "in.raw " + x + " --shape 128,256,256 --type float64");
}
TEST(orrery_data_faults, an_export_that_was_killed_leaves_no_file_of_that_name) {
  const scratch folder;
  expect_good("create " + folder / "x --shape 256,256,256 --type float64");
  for (int attempt = 0; attempt < 50; ++attempt) {
    const pid_t child = ::fork();
    if (child == 0) become(command({"export", folder / "x", folder / "out.npy"}));
    bool begun = false;
    while (!begun && ::waitpid(child, nullptr, WNOHANG) == 0)
      for (const auto& f : fs::directory_iterator(folder.path))
        begun = begun || f.path().filename().string().starts_with(".part-");
    (void)::kill(child, SIGKILL);
    (void)::waitpid(child, nullptr, 0);
    if (!fs::exists(folder / "out.npy")) return;
    fs::remove(folder / "out.npy");
  }
  FAIL() << "every export had ended before it was killed";
}
TEST(orrery_data_faults, says_that_a_folder_may_only_be_read) {
  const scratch folder;
  make_sparse(folder / "in.raw", 2048);
  expect_good("create " + folder / "x --shape 8,8,8 --type float32");
  fs::create_directory(folder / "target");
  fs::permissions(folder.path, fs::perms(0755));
  fs::permissions(folder / "target", fs::perms(0555));
  const std::string as_nobody =
      (::geteuid() == 0 ? "setpriv --reuid=65534 --clear-groups env ORRERY_PES=2 " : "ORRERY_PES=2 ") + program_path() +
      " data ";
  if (shell(as_nobody + "--help").code != 0) GTEST_SKIP() << "nobody may not run " << program_path();
  expect_bad(shell(as_nobody + "import " + folder / "in.raw " + folder / "target/x --shape 8,8,8 --type float32"),
             "cannot make the folder " + folder / "target/x; the one around it may only be read");
  for (const std::string file : {"out.raw", "out.npy", "out.h5", "out.nii", "out.nii.gz"}) {
    const outcome o = shell(as_nobody + "export " + folder / "x " + folder / "target/" + file);
    expect_bad(o, "ermission denied");
    expect_bad(o, file);
  }
  expect_bad(shell(as_nobody + "remove " + folder / "x"), "may only be read");
}

// --- memory -------------------------------------------------------------------------------------------------------

struct cost {
  int code;
  std::uint64_t peak;  // resident, in bytes
};
cost cost_of(const std::vector<std::string>& words) {
  const pid_t child = ::fork();
  if (child == 0) become(words);
  int status = 0;
  struct rusage used{};
  (void)::wait4(child, &status, 0, &used);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), static_cast<std::uint64_t>(used.ru_maxrss)
                                                                           << 10};
}

#if defined(ORRERY_ASAN) || defined(ORRERY_TSAN)
constexpr bool instrumented = true;
#else
constexpr bool instrumented = false;
#endif

// An array of 512 MiB, which is nowhere whole: its file is sparse or compressed, its data set in the memory of a file system.
TEST(orrery_data_memory, is_bounded_whatever_the_size_of_the_array) {
  ORRERY_NEEDS_H5PY();
  if (instrumented) GTEST_SKIP() << "memory is counted in a program as it is delivered";
  constexpr std::uint64_t most = std::uint64_t{256} << 20;
  const scratch files;
  const scratch folder("/dev/shm");
  if (fs::space(folder.path).available < std::uint64_t{800} << 20) GTEST_SKIP() << "/dev/shm is too small";
  make_sparse(files / "in.raw", std::uint64_t{512} << 20);
  python(files.path, R"(
s = (256, 512, 512); h = bytearray(352); struct.pack_into('<i', h, 0, 348); struct.pack_into('<8h', h, 40, 3, *s, 1, 1, 1, 1)
struct.pack_into('<2h', h, 70, 64, 64); struct.pack_into('<8f', h, 76, *[1] * 8); struct.pack_into('<f', h, 108, 352); h[344:347] = b'n+1'
open('in.nii', 'wb').write(h); os.truncate('in.nii', 352 + 512 * 2**20)
g = gzip.open('in.nii.gz', 'wb', 1); g.write(h)
for k in range(512): g.write(bytes(2**20))
g.close()
f = h5py.File('in.h5', 'w'); f.create_dataset('plain', shape=s, dtype='f8'); f['plain'][0] = 1
f.create_dataset('planes', shape=s, dtype='f8', chunks=(1, 512, 512), compression='gzip'); f['planes'][7] = 1
)");
  const std::string x = folder / "x";
  const auto expect_bounded = [&](const std::vector<std::string>& words) {
    const cost c = cost_of(command(words));
    EXPECT_EQ(c.code, 0) << words[1];
    EXPECT_LT(c.peak, most) << words[0] << " " << words[1] << " " << words[2];
  };
  for (const auto& more :
       std::vector<std::vector<std::string>>{{"in.raw", "--shape", "256,512,512", "--type", "float64"},
                                             {"in.nii"},
                                             {"in.nii.gz"},
                                             {"in.h5", "--dataset", "plain"},
                                             {"in.h5", "--dataset", "planes"}}) {
    std::vector<std::string> words{"import", files / more[0], x};
    words.insert(words.end(), more.begin() + 1, more.end());
    expect_bounded(words);
    if (more[0] == "in.raw") {
      expect_bounded({"verify", x});
      expect_bounded({"export", x, "/dev/null"});
      expect_bounded({"export", x, files / "out.nii.gz"});
      expect_bounded({"read", x, "--box", "0:16,:,:", "--out", files / "out.h5"});
    }
    expect_good("remove " + x);
  }
}

}  // namespace
}  // namespace orrery
