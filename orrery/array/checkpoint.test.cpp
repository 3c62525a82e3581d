// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/checkpoint.hpp>
#include <orrery/orrery.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace {

namespace fs = std::filesystem;
using testing::in_world;
using testing::what_is_thrown;

struct Note;
ORRERY_PROCESS(Note, set, get, born, hold);
struct Note : element<Note, std::string> {
  void set(const std::string& t) { text = t; }
  std::string get() const { return text; }
  std::string born() const { return index(); }
  void hold(remote<function> tell) {
    send(tell, 1);
    while (!open) yield();
  }
  inline static std::atomic<bool> open = false;
  template <class A>
  void serialize(A& a) {
    a & text;
  }
  std::string text;
};
struct Other : element<Other, std::string> {
  int get() const { return 0; }
  template <class A>
  void serialize(A&) {}
};
ORRERY_PROCESS(Other, get);

// Large enough for several batches and pieces.
constexpr int notes = 300;
std::string name_of(int k) { return "note " + std::to_string(k); }
std::string text_of(int k) { return std::string(static_cast<std::size_t>(k * 50), static_cast<char>('a' + k % 26)); }

class checkpoints : public ::testing::Test {
 protected:
  checkpoints() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~checkpoints() override { fs::remove_all(path_); }
  [[nodiscard]] std::string folder() const { return path_ + "/saved"; }

  void save(std::uint32_t pes) const {
    in_world(pes, [&] {
      auto a = create_array<Note>({.name = "notes"});
      for (int k = 0; k < notes; ++k) {
        a.insert(name_of(k));
        a[name_of(k)]->set(text_of(k));
        if (k % 3 == 0) post_migrate(a[name_of(k)], static_cast<std::uint32_t>(k) % pes);
      }
      quiescence();
      checkpoint(a, folder());
      destroy(a);
    });
  }
  // What restoring throws.
  template <class Error, class T = Note>
  std::string refused() const {
    std::string what;
    in_world(2, [&] { what = what_is_thrown<Error>([&] { (void)restore_array<T>(folder()); }); });
    return what;
  }
  void overwrite(const std::string& file, std::size_t at, char with) const {
    std::fstream f(folder() + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(static_cast<std::streamoff>(at));
    f.put(with);
  }

 private:
  std::string path_ = "/tmp/orrery-checkpoint-XXXXXX";
};

TEST_F(checkpoints, come_back_on_any_number_of_pes) {
  save(2);
  for (const std::uint32_t pes : {1U, 2U, 5U})
    in_world(pes, [&] {
      auto a = restore_array<Note>(folder());
      for (int k = 0; k < notes; ++k) {
        ASSERT_EQ(a[name_of(k)]->get(), text_of(k));
        ASSERT_EQ(a[name_of(k)]->born(), name_of(k));
      }
      EXPECT_NE(what_is_thrown<usage_error>([&] { a.insert(name_of(1)); }).find("notes[\"note 1\"]"),
                std::string::npos);
      destroy(a);
    });
}

TEST_F(checkpoints, of_an_empty_array_are_empty) {
  in_world(2, [&] {
    auto a = create_array<Note>();
    checkpoint(a, folder());
    destroy(a);
    auto b = restore_array<Note>(folder());
    EXPECT_EQ(b.local_size(), 0U);
    b.insert("one");
    destroy(b);
  });
}

TEST_F(checkpoints, are_not_overwritten) {
  save(1);
  in_world(1, [&] {
    auto a = create_array<Note>();
    EXPECT_NE(what_is_thrown<usage_error>([&] { checkpoint(a, folder()); }).find(folder()), std::string::npos);
    destroy(a);
  });
}

TEST_F(checkpoints, that_were_not_finished_are_refused) {
  save(1);
  fs::remove(folder() + "/array.json");  // written last
  EXPECT_NE(refused<usage_error>().find("not finished"), std::string::npos);
}

TEST_F(checkpoints, of_another_class_are_refused) {
  save(1);
  const std::string what = refused<usage_error, Other>();
  EXPECT_NE(what.find("Note"), std::string::npos) << what;
  EXPECT_NE(what.find("Other"), std::string::npos) << what;
}

TEST_F(checkpoints, with_a_flipped_byte_are_refused) {
  save(2);
  overwrite("part-1", 1000, '\1');
  EXPECT_NE(refused<bad_message>().find("part-1"), std::string::npos);
}

TEST_F(checkpoints, with_a_truncated_part_are_refused) {
  save(2);
  fs::resize_file(folder() + "/part-0", 100);
  EXPECT_NE(refused<bad_message>().find("part-0"), std::string::npos);
}

TEST_F(checkpoints, with_a_missing_part_are_refused) {
  save(2);
  fs::remove(folder() + "/part-0");
  EXPECT_NE(refused<std::system_error>().find("part-0"), std::string::npos);
}

TEST_F(checkpoints, with_a_damaged_header_are_refused) {
  save(1);
  overwrite("array.json", 3, '\0');
  EXPECT_NE(refused<bad_message>().find("array.json"), std::string::npos);
}

TEST_F(checkpoints, of_a_working_array_are_refused) {
  Note::open = false;
  in_world(2, [&] {
    auto a = create_array<Note>({.name = "notes"});
    a.insert("busy");
    post(a[std::string("busy")])->hold(this_process<function>());
    (void)receive<int>();
    EXPECT_NE(what_is_thrown<usage_error>([&] { checkpoint(a, folder()); }).find("notes[\"busy\"]"), std::string::npos);
    Note::open = true;
    quiescence();
    checkpoint(a, folder());  // what was begun in vain is no hindrance
    destroy(a);
  });
}

TEST_F(checkpoints, say_why_they_cannot_be_written) {
  std::ofstream(folder()) << "a file";
  in_world(1, [&] {
    auto a = create_array<Note>();
    EXPECT_NE(what_is_thrown<std::system_error>([&] { checkpoint(a, folder()); }).find(folder()), std::string::npos);
    destroy(a);
  });
}

}  // namespace
}  // namespace orrery
