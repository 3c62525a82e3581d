// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/job_folder.hpp>

#include <orrery/orrery.hpp>
#include <orrery/storage/internal/test_support.hpp>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::storage {
namespace job_folder_tests {

using testing::error_text;
using testing::program;
using testing::scratch;
namespace fs = std::filesystem;

TEST(job_folder, is_taken_by_one_at_a_time_and_is_gone_if_nothing_has_begun) {
  const scratch folder;
  program([&] {
    {
      const job_folder f(folder / "job", "it");
      EXPECT_NE(error_text(EBUSY, [&] { job_folder(folder / "job", "it"); }).find("it"), std::string::npos);
      EXPECT_FALSE(f.begun("a"));
    }
    EXPECT_FALSE(fs::exists(folder / "job"));
  });
}
TEST(job_folder, leaves_what_is_no_folder_of_a_job_as_it_is) {
  const scratch f;
  program([&] {
    fs::create_directory(f / "job");
    std::ofstream(f / "job/notes") << "mine";
    const std::string said = error_text(EEXIST, [&] { job_folder(f / "job", "it"); });
    EXPECT_NE(said.find("move that away"), std::string::npos) << said;
    EXPECT_EQ(std::distance(fs::directory_iterator(f / "job"), fs::directory_iterator()), 1);
    std::ofstream(f / "job/lock") << "mine, too";
    (void)error_text(EEXIST, [&] { job_folder(f / "job", "it"); });
    EXPECT_EQ(fs::file_size(f / "job/lock"), 9U);
    fs::create_directory(f / "empty");
    job_folder(f / "empty", "it").begin("a");
    EXPECT_TRUE(fs::exists(f / "empty/job.json"));
  });
}
void make_empty(const std::string& file) { std::ofstream(file).close(); }
TEST(job_folder, leaves_what_has_other_names_than_those_of_jobs_as_it_is) {
  const scratch f;
  program([&] {
    for (const char* const name : {"notes", "y-scratch.old", "other-scratch"}) {
      const std::string job = f / name;
      fs::create_directory(job);
      make_empty(job + "/lock");
      make_empty(job + "/made");
      make_empty(job + "/" + name);
      (void)error_text(EEXIST, [&] { job_folder(job, f / "y"); });
      EXPECT_EQ(std::distance(fs::directory_iterator(job), fs::directory_iterator()), 3) << name;
    }
  });
}
// By former versions, which removed the lock before other files; and at any step by this one.
TEST(job_folder, that_a_program_was_killed_in_while_it_removed_it_is_taken_over) {
  const scratch f;
  program([&] {
    for (const char* const left : {"job.json", "finished", "progress", "nodes", "input-id.new", "y-second"}) {
      fs::create_directory(f / "job");
      if (left == std::string("y-second"))
        fs::create_directories(f / "job/y-second/part");
      else
        std::ofstream(f / "job/" + left) << "a";
      {
        job_folder folder(f / "job", f / "y");
        EXPECT_FALSE(folder.begun("a")) << left;  // what was noted may have gone
        folder.clear();
      }
      EXPECT_FALSE(fs::exists(f / "job")) << left;
    }
    fs::create_directory(f / "job");
    for (const char* const left : {"lock", "job.removed", "one"}) make_empty(f / "job/" + left);
    EXPECT_FALSE(job_folder(f / "job", f / "y").begun("a"));
    EXPECT_FALSE(fs::exists(f / "job"));
  });
}
// NFS keeps the lock by such a name until whoever has it open closes it.
TEST(job_folder, with_a_file_that_nfs_keeps_is_empty) {
  const scratch f;
  program([&] {
    fs::create_directory(f / "job");
    make_empty(f / "job/.nfs00000000018");
    {
      job_folder folder(f / "job", f / "y");
      folder.begin("a");
      folder.clear();
    }
    EXPECT_TRUE(fs::exists(f / "job/.nfs00000000018"));
    EXPECT_FALSE(fs::exists(f / "job/lock"));
    EXPECT_FALSE(job_folder(f / "job", f / "y").begun("a"));
  });
}
TEST(job_folder, knows_its_job_and_refuses_another) {
  const scratch folder;
  program([&] {
    {
      job_folder f(folder / "job", "it");
      f.begin("a");
      f.pass("one");
    }
    job_folder f(folder / "job", "it");
    EXPECT_TRUE(f.begun("a"));
    EXPECT_TRUE(f.passed("one"));
    EXPECT_FALSE(f.passed("two"));
    EXPECT_THROW((void)f.begun("b"), std::invalid_argument);
    job_folder::remove(f.path());
    EXPECT_FALSE(fs::exists(folder / "job"));
  });
}

TEST(job_folder, knows_that_its_job_is_finished) {
  const scratch folder;
  program([&] {
    {
      job_folder f(folder / "job", "it");
      f.begin("a");
      EXPECT_FALSE(f.finished());
      f.finish("7");
    }
    job_folder f(folder / "job", "it");
    EXPECT_TRUE(f.begun("a"));
    EXPECT_EQ(f.finished(), "7");
    EXPECT_FALSE(f.begun("b"));  // is no hindrance to another one
  });
}

// Output to stderr while this lives is in a file.
class said {
 public:
  explicit said(std::string file) : file_(std::move(file)), before_(::dup(2)) {
    const io::descriptor to(file_, O_WRONLY | O_CREAT | O_APPEND);
    (void)::dup2(to.get(), 2);
  }
  said(const said&) = delete;
  said& operator=(const said&) = delete;
  ~said() {
    (void)::dup2(before_, 2);
    (void)::close(before_);
  }
  void await(const std::string& text) const {
    while (text_of().find(text) == std::string::npos) sleep_for(std::chrono::milliseconds(5));
  }

 private:
  std::string text_of() const {
    std::ifstream f(file_);
    return {std::istreambuf_iterator<char>(f), {}};
  }
  std::string file_;
  int before_;
};

bool take_folder(const std::string& path) {
  const job_folder f(path, "it");
  return true;
}
// A folder as a program leaves it, one of whose two nodes was killed. `locked` is what the other
// one still has.
struct left_folder : scratch {
  std::string job = *this / "job";
  int held = -1;
  explicit left_folder(const std::string& locked) {
    fs::create_directory(job);
    std::ofstream(job + "/lock").close();  // which a program makes first
    const pid_t gone = ::fork();
    if (gone == 0) ::_exit(0);
    (void)::waitpid(gone, nullptr, 0);
    std::ofstream(job + "/nodes") << "nodes 2\n" << gone << " 1\n1 0\n";
    held = ::open((job + "/" + locked).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    EXPECT_EQ(::flock(held, LOCK_SH), 0);
  }
  void release() { (void)::close(held); }
};
TEST(job_folder, is_waited_for_while_nodes_of_a_killed_program_may_write) {
  for (const char* locked : {"nodes", "lock"}) {  // of another node, of the first one
    left_folder f(locked);
    program([&] {
      const said errors(f / "err");
      auto taken = start_call<&take_folder>(pe(1), f.job);
      errors.await("waiting for ");
      EXPECT_FALSE(taken.ready()) << locked;
      f.release();
      EXPECT_TRUE(taken.get()) << locked;
    });
  }
}
TEST(job_folder, that_another_program_has_taken_over_is_left_to_it) {
  left_folder f("lock");
  std::ofstream(f.job + "/job.json") << "a";
  job_folder::remove(f.job);
  EXPECT_TRUE(fs::exists(f.job));
  f.release();
  job_folder::remove(f.job);
  EXPECT_FALSE(fs::exists(f.job));
}
TEST(job_folder, that_is_cleared_has_neither_begun_nor_finished) {
  const scratch folder;
  program([&] {
    {
      job_folder f(folder / "job", "it");
      f.begin("a");
      f.finish("7");
      f.pass("one");
      f.clear();
      EXPECT_FALSE(f.begun("a"));
      EXPECT_FALSE(f.finished());
    }
    EXPECT_FALSE(fs::exists(folder / "job"));
  });
}

}  // namespace job_folder_tests
}  // namespace orrery::storage
