// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>
#include <orrery/array/checkpoint.hpp>
#include <orrery/orrery.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace checkpoint_tests {

namespace fs = std::filesystem;
using testing::in_world;
using testing::what_is_thrown;

struct Note;
ORRERY_PROCESS(Note, set, get, born, hold);
struct Note : element<Note, std::string> {
  Note() { ++alive; }
  ~Note() { --alive; }
  void set(const std::string& t) { text = t; }
  std::string get() const { return text; }
  std::string born() const { return this_index(); }
  void hold(remote<function> tell) {
    send(tell, 1);
    while (!open) yield();
  }
  inline static std::atomic<bool> open = false;
  inline static std::atomic<int> alive = 0;
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

struct Worker;
ORRERY_PROCESS(Worker, set, get, my_rank, meet, hold);
struct Worker : member<Worker> {
  Worker() { ++alive; }
  ~Worker() { --alive; }
  void set(const std::string& t) { text = t; }
  std::string get() const { return text; }
  std::size_t my_rank() const { return rank(); }
  std::size_t meet() { return all_reduce(rank()); }
  void hold(remote<function> tell) {
    send(tell, 1);
    while (!Note::open) sleep_for(std::chrono::milliseconds(1));
  }
  template <class A>
  void serialize(A& a) {
    a & text;
  }
  inline static std::atomic<int> alive = 0;
  std::string text;
};
struct Settings;
ORRERY_PROCESS(Settings, set, get, hold, nap);
struct Settings {
  static constexpr bool orrery_reentrant = true;
  virtual ~Settings() = default;
  void set(int n) { number = n; }
  int get() const { return number; }
  void hold(remote<function> tell) {
    send(tell, 1);
    while (!Note::open) sleep_for(std::chrono::milliseconds(1));
  }
  void nap() {}
  template <class A>
  void serialize(A& a) {
    a & number;
  }
  int number = 0;
};
struct Special : Settings {
  template <class A>
  void serialize(A& a) {
    Settings::serialize(a);
  }
};
ORRERY_PROCESS(Special, get);
// Says in its state how long that is, which is not so.
struct Liar {
  int get() const { return 0; }
  template <class A>
  void serialize(A& a) {
    std::string text = A::is_loading::value ? "" : "four";
    a & text;
    if (A::is_loading::value) a & text;
  }
};
ORRERY_PROCESS(Liar, get);

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
      checkpoint(folder(), a);
      destroy(a);
    });
  }
  // The error that restoring throws.
  template <class Error, class T = Note>
  std::string refused() const {
    std::string what;
    in_world(2, [&] { what = what_is_thrown<Error>([&] { (void)restore<array<T>>(folder()); }); });
    return what;
  }
  std::string refused_as_damaged() const {
    const std::string what = refused<std::system_error>();
    EXPECT_NE(what.find("is damaged"), std::string::npos) << what;
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
      auto [a] = restore<array<Note>>(folder());
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
    checkpoint(folder(), a);
    destroy(a);
    auto [b] = restore<array<Note>>(folder());
    EXPECT_EQ(b.local_size(), 0U);
    b.insert("one");
    destroy(b);
  });
}

TEST_F(checkpoints, are_not_overwritten) {
  save(1);
  in_world(1, [&] {
    auto a = create_array<Note>();
    EXPECT_NE(what_is_thrown<usage_error>([&] { checkpoint(folder(), a); }).find(folder()), std::string::npos);
    destroy(a);
  });
}

TEST_F(checkpoints, that_were_not_finished_are_refused) {
  save(1);
  fs::remove(folder() + "/checkpoint.json");  // written last
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
  EXPECT_NE(refused_as_damaged().find("part-1"), std::string::npos);
}

TEST_F(checkpoints, with_a_truncated_part_are_refused) {
  save(2);
  fs::resize_file(folder() + "/part-0", 100);
  EXPECT_NE(refused_as_damaged().find("part-0"), std::string::npos);
}

TEST_F(checkpoints, with_a_missing_part_are_refused) {
  save(2);
  fs::remove(folder() + "/part-0");
  EXPECT_NE(refused<std::system_error>().find("part-0"), std::string::npos);
}

TEST_F(checkpoints, with_a_damaged_header_are_refused) {
  save(1);
  overwrite("checkpoint.json", 3, '\0');
  EXPECT_NE(refused_as_damaged().find("checkpoint.json"), std::string::npos);
}

TEST_F(checkpoints, whose_files_are_none_are_refused) {
  save(2);
  fs::resize_file(folder() + "/checkpoint.json", std::uint64_t{1} << 40);
  EXPECT_NE(refused_as_damaged().find("more than a header can have"), std::string::npos);
  fs::remove(folder() + "/checkpoint.json");
  fs::create_directory(folder() + "/checkpoint.json");
  EXPECT_NE(refused_as_damaged().find("a folder, pipe or device"), std::string::npos);
}

TEST_F(checkpoints, with_a_pipe_as_a_part_are_refused) {
  save(2);
  fs::remove(folder() + "/part-0");
  ASSERT_EQ(::mkfifo((folder() + "/part-0").c_str(), 0600), 0);
  EXPECT_NE(refused_as_damaged().find("a folder, pipe or device"), std::string::npos);
}

TEST_F(checkpoints, with_a_header_of_another_kind_or_version_are_refused) {
  save(1);
  const auto write_header = [&](std::string_view text) { std::ofstream(folder() + "/checkpoint.json") << text; };
  write_header(R"({"orrery": 1})");
  EXPECT_NE(refused_as_damaged().find("not the header of a checkpoint"), std::string::npos);
  write_header(R"({"orrery": "checkpoint", "version": 7})");
  const std::string what = refused<usage_error>();
  EXPECT_NE(what.find("its format is 7, and this one reads 2"), std::string::npos) << what;
}

TEST_F(checkpoints, of_states_larger_than_what_is_read_at_once_come_back) {
  const std::vector<std::size_t> sizes{11 << 20, 0, 3, (4 << 20) - 16, 1, 9 << 20};
  const auto text = [&](std::size_t k) { return std::string(sizes[k], static_cast<char>('a' + k)); };
  in_world(2, [&] {
    const auto a = create_array<Note>(
        {.name = "notes", .home = placement_map<std::string>([](const std::string&, std::uint32_t) { return 1U; })});
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      a.insert(std::to_string(k));
      a[std::to_string(k)]->set(text(k));
    }
    checkpoint(folder(), a);
  });
  in_world(3, [&] {
    const auto [a] = restore<array<Note>>(folder());
    for (std::size_t k = 0; k < sizes.size(); ++k) EXPECT_TRUE(a[std::to_string(k)]->get() == text(k)) << k;
  });
}

TEST_F(checkpoints, of_a_working_array_are_refused) {
  Note::open = false;
  in_world(2, [&] {
    auto a = create_array<Note>({.name = "notes"});
    a.insert("busy");
    post(a[std::string("busy")])->hold(this_process<function>());
    (void)receive<int>();
    EXPECT_NE(what_is_thrown<usage_error>([&] { checkpoint(folder(), a); }).find("notes[\"busy\"]"), std::string::npos);
    Note::open = true;
    quiescence();
    checkpoint(folder(), a);  // what was begun in vain is no hindrance
    destroy(a);
  });
}

// Elements that leave a PE which was not written yet would be missing, and those that come to one
// would be there twice.
TEST_F(checkpoints, of_moving_elements_are_whole_or_refused) {
  int refused = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    const std::string there = folder() + std::to_string(seed);
    testing::in_simulation("machines=4,jitter=20us,seed=" + std::to_string(seed), [&] {
      auto a = create_array<Note>({.name = "notes"});
      for (int i = 0; i < 64; ++i) a.insert(std::to_string(i));
      for (int i = 0; i < 64; ++i) post_migrate(a[std::to_string(i)], static_cast<std::uint32_t>(i * 7) % world_pes());
      post(a["not made"])->set("early");  // does not count
      try {
        checkpoint(there, a);
      } catch (const usage_error& e) {
        EXPECT_NE(std::string(e.what()).find("notes"), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("quiescence()"), std::string::npos) << e.what();
        ++refused;
        quiescence();
        checkpoint(there, a);
      }
      const auto [b] = restore<array<Note>>(there);
      for (int i = 0; i < 64; ++i) EXPECT_EQ(b[std::to_string(i)]->born(), std::to_string(i));
    });
    fs::remove_all(there);
  }
  EXPECT_GT(refused, 0);
}

int write_or_refuse(const array<Note>& all, const std::string& to) {
  try {
    checkpoint(to, all);
    return 1;
  } catch (const usage_error&) {
    return 0;
  }
}
TEST_F(checkpoints, of_two_at_once_in_one_folder_one_is_refused) {
  in_world(2, [&] {
    auto a = create_array<Note>({.name = "notes"});
    a.insert("one");
    auto first = start_call<&write_or_refuse>(pe(0), a, folder());
    auto second = start_call<&write_or_refuse>(pe(1), a, folder());
    EXPECT_EQ(first.get() + second.get(), 1);
    const auto [b] = restore<array<Note>>(folder());
    EXPECT_EQ(b[std::string("one")]->born(), "one");
  });
}

TEST_F(checkpoints, of_a_working_member_are_refused) {
  Note::open = false;
  in_world(2, [&] {
    const auto g = spawn_group<Worker>(everywhere(), 5);
    post(g[3])->hold(this_process<function>());
    (void)receive<int>();
    const std::string what = what_is_thrown<usage_error>([&] { checkpoint(folder(), g); });
    EXPECT_NE(what.find("member 3 of a group"), std::string::npos) << what;
    EXPECT_NE(what.find("Worker"), std::string::npos) << what;
    EXPECT_NE(what.find("quiescence()"), std::string::npos) << what;
    Note::open = true;
    quiescence();
    checkpoint(folder(), g);
  });
}

TEST_F(checkpoints, of_a_working_process_are_refused) {
  Note::open = false;
  in_world(2, [&] {
    const auto p = spawn<Settings>(pe(1));
    post(p)->hold(this_process<function>());
    (void)receive<int>();
    p->nap();  // it is reentrant
    EXPECT_NE(what_is_thrown<usage_error>([&] { checkpoint(folder(), p); }).find("Settings at "), std::string::npos);
    Note::open = true;
    quiescence();
    checkpoint(folder(), p);
  });
}

TEST_F(checkpoints, of_what_is_named_twice_is_gone_or_is_null_are_refused) {
  in_world(2, [&] {
    const auto g = spawn_group<Worker>(everywhere(), 2);
    const auto a = create_array<Note>({.name = "notes"});
    const auto p = spawn<Settings>(pe(1));
    EXPECT_NE(what_is_thrown<usage_error>([&] { checkpoint(folder(), g, g[1]); }).find("twice"), std::string::npos);
    EXPECT_NE(what_is_thrown<usage_error>([&] { checkpoint(folder(), a, a); }).find("notes"), std::string::npos);
    destroy(p);
    EXPECT_NE(what_is_thrown<process_gone>([&] { checkpoint(folder(), p); }).find("Settings"), std::string::npos);
    EXPECT_THROW(checkpoint(folder(), remote<Settings>()), usage_error);
    EXPECT_THROW(checkpoint(folder(), group<Worker>()), usage_error);
    destroy(g[0]);
    EXPECT_NE(what_is_thrown<process_gone>([&] { checkpoint(folder(), g); }).find("member 0"), std::string::npos);
  });
}

TEST_F(checkpoints, of_a_process_by_a_pointer_to_its_base_are_refused) {
  in_world(2, [&] {
    const auto p = spawn<Special>(pe(1));
    const std::string what = what_is_thrown<usage_error>([&] { checkpoint(folder(), remote<Settings>(p)); });
    EXPECT_NE(what.find("Special"), std::string::npos) << what;
    checkpoint(folder(), p);
  });
}

struct Plain {
  virtual ~Plain() = default;
  template <class A>
  void serialize(A&) {}
};
ORRERY_PROCESS(Plain);
struct Richer : Plain, element<Richer> {
  int more = 1;
  template <class A>
  void serialize(A& a) {
    a & more;
  }
};
ORRERY_PROCESS_DERIVED(Richer, (Plain));
TEST_F(checkpoints, of_an_array_as_one_of_its_base_are_refused) {
  in_world(2, [&] {
    const auto a = create_array<Richer>(range<int>{4}, {.name = "riches"});
    const std::string what = what_is_thrown<usage_error>([&] { checkpoint(folder(), array<Plain>(a)); });
    EXPECT_NE(what.find("riches"), std::string::npos) << what;
    checkpoint(folder(), a);
  });
}

TEST_F(checkpoints, say_why_they_cannot_be_written) {
  std::ofstream(folder()) << "a file";
  in_world(1, [&] {
    auto a = create_array<Note>();
    EXPECT_NE(what_is_thrown<std::system_error>([&] { checkpoint(folder(), a); }).find(folder()), std::string::npos);
    destroy(a);
  });
}

// An array, a group, a process, another group that is empty.
class checkpoints_of_all_kinds : public checkpoints {
 protected:
  static constexpr std::size_t members = 40;
  static std::string long_text(std::size_t rank) { return std::string(100'000, static_cast<char>('a' + rank % 26)); }
  void save_all(std::uint32_t pes) const {
    in_world(pes, [&] {
      const auto a = create_array<Note>({.name = "notes"});
      a.insert("one");
      a[std::string("one")]->set("1");
      const auto g = spawn_group<Worker>(in_blocks(), members);
      for (std::size_t k = 0; k < members; ++k) g[k]->set(long_text(k));
      const auto p = spawn<Settings>(pe(pes - 1));
      p->set(17);
      checkpoint(folder(), g, p, a, spawn_group<Worker>(everywhere(), 0));
    });
  }
  template <class Error, class... Item>
  std::string refused_as() const {
    std::string what;
    in_world(2, [&] {
      what = what_is_thrown<Error>([&] { (void)restore<Item...>(folder()); });
      EXPECT_EQ(Worker::alive, 0);  // nothing half restored is left
      EXPECT_EQ(Note::alive, 0);
    });
    return what;
  }
  std::string refused_all() const {
    const std::string what =
        refused_as<std::system_error, group<Worker>, remote<Settings>, array<Note>, group<Worker>>();
    EXPECT_NE(what.find("is damaged"), std::string::npos) << what;
    return what;
  }
};

TEST_F(checkpoints_of_all_kinds, come_back_on_any_number_of_pes) {
  save_all(3);
  for (const std::uint32_t pes : {1U, 2U, 5U})
    in_world(pes, [&] {
      const auto [g, p, a, empty] = restore<group<Worker>, remote<Settings>, array<Note>, group<Worker>>(folder());
      ASSERT_EQ(g.size(), members);
      for (std::size_t k = 0; k < members; ++k) {
        ASSERT_EQ(g[k]->get(), long_text(k));
        ASSERT_EQ(g[k]->my_rank(), k);
        EXPECT_EQ(g[k].address().pe, k % pes);
      }
      EXPECT_EQ(g->meet(), std::vector<std::size_t>(members, members * (members - 1) / 2));
      EXPECT_EQ(p->get(), 17);
      EXPECT_EQ(a[std::string("one")]->get(), "1");
      EXPECT_EQ(empty.size(), 0U);
    });
  EXPECT_EQ(Worker::alive, 0);
}

TEST_F(checkpoints_of_all_kinds, come_back_where_they_are_to) {
  save_all(1);
  in_world(3, [&] {
    const auto [g, p, a, empty] = restore<group<Worker>, remote<Settings>, array<Note>, group<Worker>>(
        folder(), in_blocks({pe(2), pe(1)}), pe(1), {.name = "other"}, everywhere());
    for (std::size_t k = 0; k < members; ++k) EXPECT_EQ(g[k].address().pe, k < members / 2 ? 2U : 1U);
    EXPECT_EQ(p.address().pe, 1U);
    EXPECT_NE(what_is_thrown<usage_error>([&] { a.insert("one"); }).find("other[\"one\"]"), std::string::npos);
  });
}

TEST_F(checkpoints_of_all_kinds, are_refused_as_other_kinds_or_another_number) {
  save_all(1);
  const std::string what = refused_as<usage_error, group<Worker>, remote<Settings>, array<Note>>();
  EXPECT_NE(what.find("array<"), std::string::npos) << what;
  EXPECT_NE(what.find("remote<"), std::string::npos) << what;
  (void)refused_as<usage_error, group<Worker>, remote<Settings>, array<Note>, remote<Worker>>();
  (void)refused_as<usage_error, group<Worker>, remote<Special>, array<Note>, group<Worker>>();
  (void)refused_as<usage_error, remote<Settings>, group<Worker>, array<Note>, group<Worker>>();
  (void)refused_as<usage_error, group<Worker>, remote<Settings>, array<Note>, group<Worker>, group<Worker>>();
}

TEST_F(checkpoints_of_all_kinds, are_refused_when_a_member_is_damaged_or_cut_off) {
  save_all(2);
  overwrite("part-1", 1'500'000, '!');
  EXPECT_NE(refused_all().find("part-1"), std::string::npos);
  fs::resize_file(folder() + "/part-1", 1'500'000);
  EXPECT_NE(refused_all().find("part-1"), std::string::npos);
}

TEST_F(checkpoints_of_all_kinds, are_refused_when_the_header_names_other_processes) {
  save_all(1);
  std::string text;
  std::getline(std::ifstream(folder() + "/checkpoint.json"), text);
  const std::size_t at = text.find("\"processes\":[[0,") + 16;
  overwrite("checkpoint.json", at, text[at] == '9' ? '8' : '9');
  EXPECT_NE(refused_all().find("checkpoint.json"), std::string::npos);
}

TEST_F(checkpoints_of_all_kinds, are_refused_when_a_class_reads_something_else) {
  in_world(2, [&] {
    const auto g = spawn_group<Worker>(everywhere(), 3);
    const auto p = spawn<Liar>(pe(1));
    const auto a = create_array<Note>();
    for (int k = 0; k < 100; ++k) a.insert(name_of(k));
    checkpoint(folder(), a, g, p);
  });
  const std::string what = refused_as<bad_message, array<Note>, group<Worker>, remote<Liar>>();
  EXPECT_NE(what.find("Liar at "), std::string::npos) << what;
  EXPECT_NE(what.find(folder()), std::string::npos) << what;
}

}  // namespace checkpoint_tests
}  // namespace orrery
