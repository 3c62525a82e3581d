// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/data_set.hpp>

#include <orrery/orrery.hpp>
#include <orrery/storage/internal/data_set_header.hpp>
#include <orrery/storage/internal/test_support.hpp>

#include <cerrno>
#include <complex>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <nlohmann/json.hpp>

namespace orrery::storage {
namespace data_set_tests {

using testing::elements;
using testing::error_text;
using testing::program;
using testing::scratch;
using testing::text_of;

constexpr index3 shape{9, 10, 11};
const std::int64_t count = product(shape);

data_set_description small() { return {.shape = shape, .page_shape = {4, 4, 4}, .type = element_type::float64}; }
const data_set_options writing{.mode = open_mode::read_write};

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}
remote<data_set> create(const std::string& path, const data_set_description& d = small(),
                        const data_set_options& o = {}) {
  return spawn<data_set>(pe(1), path, d, o);
}
remote<data_set> open(const std::string& path, const data_set_options& o = {}) {
  return spawn<data_set>(pe(1), path, o);
}
void fill(const remote<data_set>& set) {
  const array a = set->contents();
  a.write(a.whole(), std::span<const double>(elements<double>(count)));
}
std::vector<double> all_of(const remote<data_set>& set) {
  const array a = set->contents();
  std::vector<double> v(static_cast<std::size_t>(a.whole().size()));
  a.read(a.whole(), std::span(v));
  return v;
}
void make_finished(const std::string& path, const data_set_description& d = small()) {
  auto set = create(path, d);
  fill(set);
  set->finish();
  destroy(set);
}
std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}
void replace_in_file(const std::string& path, const std::string& what, const std::string& by) {
  std::string text = text_of_file(path);
  const std::size_t at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what;
  text.replace(at, what.size(), by);
  std::ofstream(path) << text;
}
void overwrite(const std::string& file, std::uint64_t offset, char c) {
  std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
  f.seekp(static_cast<std::streamoff>(offset));
  f.put(c);
}

// Once with second names, once as on a file system that has none.
TEST(data_set_header, takes_a_name_that_nobody_has) {
  const scratch folder;
  const std::string to = folder / "to";
  const auto refuses = [](const char*, const char*) { return errno = EPERM, -1; };
  for (const internal::link_function link : {internal::link_function(&::link), internal::link_function(refuses)}) {
    std::ofstream(folder / "from") << "mine";
    internal::rename_to_new(folder / "from", to, link);
    EXPECT_FALSE(std::filesystem::exists(folder / "from"));
    std::ofstream(folder / "from") << "another's";
    (void)error_text(EEXIST, [&] { internal::rename_to_new(folder / "from", to, link); });
    EXPECT_EQ(std::filesystem::file_size(to), 4U);
    std::filesystem::remove(to);
  }
}
TEST(data_set, is_found_again_by_the_next_program) {
  const scratch folder;
  program([&] { make_finished(folder / "x"); });
  program([&] {
    auto set = open(folder / "x");
    EXPECT_EQ(all_of(set), elements<double>(count));
    const data_set_info info = set->info();
    EXPECT_EQ(info.shape, shape);
    EXPECT_EQ(info.type, element_type::float64);
    EXPECT_TRUE(info.finished);
    EXPECT_TRUE(set->verify().empty());
  });
}
TEST(data_set, lies_in_as_many_folders_as_it_is_told_with_any_map) {
  const scratch folder;
  const scratch other;
  data_set_description d = small();
  d.folders = {folder / "x", other.path, other / "deeper"};
  const page_grid grid{shape, d.page_shape};
  for (const any_page_map& map : {any_page_map(), any_page_map(blocked_map(grid.pages(), 3)),
                                  any_page_map(table_map(grid.pages(), 3, tabulate(blocked_map(grid.pages(), 3))))}) {
    d.map = map;
    program([&] { make_finished(folder / "x", d); });
    program([&] {
      EXPECT_TRUE(std::filesystem::exists(other / "x-1.pages"));
      EXPECT_TRUE(std::filesystem::exists(other / "deeper/x-2.pages"));
      auto set = open(folder / "x");
      EXPECT_EQ(all_of(set), elements<double>(count));
      EXPECT_EQ(set->info().map, map ? map->kind() : "circulant");
    });
    std::filesystem::remove_all(folder / "x");
    std::filesystem::remove_all(other / "deeper");
    std::filesystem::remove(other / "x-1.pages");
    std::filesystem::remove(other / "x-1.sums");
  }
}
TEST(data_set, is_found_by_its_name) {
  const scratch folder;
  program([&] {
    make_finished(folder / "x");
    publish("/data/x", open(folder / "x"));
    EXPECT_EQ(all_of(lookup<data_set>("/data/x")), elements<double>(count));
  });
}
TEST(data_set, is_read_by_several_and_written_by_one) {
  const scratch folder;
  program([&] {
    const std::string path = folder / "x";
    make_finished(path);
    auto first = open(path);
    auto second = open(path);
    EXPECT_EQ(all_of(first), all_of(second));
    auto writer = open(path, writing);
    expect_in("is open for writing", error_text(EBUSY, [&] { (void)open(path, writing); }));
    expect_in(path + " is unfinished", error_text(EBADMSG, [&] { (void)open(path); }));
    auto curious = open(path, {.unfinished = true});
    EXPECT_EQ(all_of(curious), elements<double>(count));
    writer->contents().write(domain{{0, 0, 0}, {1, 1, 2}}, std::span<const double>(std::vector<double>{-1, -2}));
    writer->finish();
    EXPECT_EQ(all_of(open(path))[1], -2);
  });
}
TEST(data_set, that_was_opened_for_reading_is_not_written) {
  const scratch folder;
  program([&] {
    make_finished(folder / "x");
    auto set = open(folder / "x");
    (void)error_text(EROFS, [&] { fill(set); });
    (void)error_text(EROFS, [&] { set->finish(); });
  });
}
TEST(data_set, is_unfinished_until_it_is_finished) {
  const scratch folder;
  program([&] {
    const std::string path = folder / "x";
    auto set = create(path);
    fill(set);
    EXPECT_FALSE(data_set::read_info(path).finished);
    destroy(set);
    (void)error_text(EBADMSG, [&] { (void)open(path); });
    set = open(path, writing);
    EXPECT_EQ(all_of(set), elements<double>(count));
    set->finish();
    EXPECT_TRUE(data_set::read_info(path).finished);
    set->reopen();
    EXPECT_FALSE(data_set::read_info(path).finished);
  });
}
TEST(data_set, that_is_finished_takes_writes_again_once_it_is_reopened) {
  const scratch folder;
  for (const std::uint32_t behind : {0U, 8U})
    program([&] {
      const std::string path = folder / fmt::format("x{}", behind);
      auto set = create(path, small(), {.cache = {.write_behind_pages = behind}});
      fill(set);
      set->finish();
      expect_in("reopen()", error_text(EROFS, [&] { fill(set); }));
      set->flush();
      EXPECT_EQ(all_of(set), elements<double>(count));
      EXPECT_TRUE(data_set::read_info(path).finished);
      set->reopen();
      fill(set);
      set->finish();
      destroy(set);
      EXPECT_EQ(all_of(open(path)), elements<double>(count));
    });
}
TEST(data_set, names_every_page_that_cannot_be_trusted) {
  const scratch folder;
  program([&] {
    const std::string path = folder / "x";
    make_finished(path);
    overwrite(path + "/device-0.pages", 5 * 4096 + 17, 'x');
    auto set = open(path);
    const auto damage = set->verify();
    ASSERT_EQ(damage.size(), 1);
    EXPECT_EQ(damage[0].page, (index3{0, 1, 2}));
    expect_in("page 5 of " + path + "/device-0.pages is damaged", damage[0].what);
    expect_in("page 5 of", error_text(EBADMSG, [&] { (void)all_of(set); }));
    std::vector<double> v(64);
    set->contents().read(domain{{4, 4, 4}, {8, 8, 8}}, std::span(v));  // the others are good
  });
}
TEST(data_set, verifies_a_box_of_its_pages) {
  const scratch folder;
  program([&] {
    make_finished(folder / "x");
    const index3 pages = open(folder / "x")->contents().grid().pages();
    overwrite(folder / "x/device-0.pages", 0, '!');
    auto set = open(folder / "x");
    EXPECT_EQ(set->verify_part(domain{{0, 0, 0}, {1, 1, 1}}).size(), 1U);
    EXPECT_TRUE(set->verify_part(domain{{0, 0, 1}, {1, 1, pages[2]}}).empty());
    expect_in("the pages", text_of<std::out_of_range>([&] { (void)set->verify_part(domain{{0, 0, 0}, {99, 1, 1}}); }));
  });
}
TEST(data_set, keeps_attributes_in_its_header) {
  const scratch folder;
  data_set_description d = small();
  d.attributes = R"({"voxel_size":[1.5,2.0,0.1],"from":"ch2"})";
  program([&] { make_finished(folder / "x", d); });
  program([&] {
    (void)open(folder / "x", writing);  // which writes the header anew
    const std::string kept = data_set::read_info(folder / "x").attributes;
    expect_in(R"("voxel_size":[1.5,2.0,0.1])", kept);
    expect_in(R"("from":"ch2")", kept);
    d.attributes = "[1]";
    expect_in("are no JSON object", text_of<std::invalid_argument>([&] { make_finished(folder / "y", d); }));
    EXPECT_FALSE(std::filesystem::exists(folder / "y"));
  });
}
TEST(data_set, is_removed_with_all_its_files_while_nobody_writes_it) {
  const scratch folder;
  data_set_description d = small();
  d.folders = {folder / "x", folder / "other"};
  program([&] {
    make_finished(folder / "x", d);
    {
      auto writer = open(folder / "x", writing);
      expect_in("is open for writing", error_text(EBUSY, [&] { data_set::remove(folder / "x"); }));
      destroy(writer);
    }
    std::ofstream(folder / "x/mine") << "not of the data set";
    data_set::remove(folder / "x");
    EXPECT_FALSE(std::filesystem::exists(folder / "other"));
    EXPECT_TRUE(std::filesystem::exists(folder / "x/mine"));
    EXPECT_FALSE(std::filesystem::exists(folder / "x/device-0.pages"));
    expect_in("there is no data set", error_text(ENOENT, [&] { data_set::remove(folder / "x"); }));
  });
}
TEST(data_set, without_checksums_has_no_file_of_them) {
  const scratch folder;
  program([&] {
    data_set_description d = small();
    d.checksums = false;
    make_finished(folder / "x", d);
    EXPECT_FALSE(std::filesystem::exists(folder / "x/device-0.sums"));
    EXPECT_EQ(all_of(open(folder / "x")), elements<double>(count));
  });
}
TEST(data_set, is_not_created_where_there_is_one) {
  const scratch folder;
  program([&] {
    make_finished(folder / "x");
    expect_in("there is a data set at " + folder / "x", error_text(EEXIST, [&] { (void)create(folder / "x"); }));
    EXPECT_EQ(all_of(open(folder / "x")), elements<double>(count));
  });
}
TEST(data_set, leaves_nothing_behind_when_it_cannot_be_created) {
  const scratch folder;
  program([&] {
    data_set_description d = small();
    d.shape = {1 << 14, 1 << 14, 1 << 12};  // 8 TiB
    d.page_shape = {64, 64, 64};
    expect_in("make room", error_text(ENOSPC, [&] { (void)create(folder / "x", d); }));
    EXPECT_FALSE(std::filesystem::exists(folder / "x"));
    expect_in("make the one around it first", error_text(ENOENT, [&] { (void)create(folder / "a/b"); }));
    d.shape = {0, 1, 1};
    EXPECT_THROW((void)create(folder / "x", d), std::invalid_argument);
  });
}
TEST(data_set, cannot_be_created_in_a_folder_that_may_only_be_read) {
  program([&] {
    int code = 0;
    std::string text;
    try {
      (void)create("/sys/orrery-storage-test");  // not even root makes folders there
    } catch (const std::system_error& e) {
      code = e.code().value();
      text = e.what();
    }
    EXPECT_TRUE(code == EACCES || code == EPERM || code == EROFS) << text;
    expect_in("may only be read", text);
  });
}
TEST(data_set, names_a_device_file_that_is_missing_or_truncated) {
  const scratch folder;
  program([&] {
    const std::string path = folder / "x";
    make_finished(path);
    const std::string file = path + "/device-0.pages";
    std::filesystem::resize_file(file, 4096);
    expect_in("the device file " + file + " was truncated", error_text(EINVAL, [&] { (void)open(path); }));
    std::filesystem::remove(file);
    expect_in("the device file " + file + " is missing", error_text(ENOENT, [&] { (void)open(path); }));
  });
}
TEST(data_set, is_not_opened_with_a_header_that_somebody_has_changed) {
  const scratch folder;
  program([&] {
    const std::string path = folder / "x";
    make_finished(path);
    const std::string header = path + "/orrery.json";
    const std::string good = text_of_file(header);
    const auto number = [&](std::int64_t n) { return std::to_string(n); };
    const std::string last = number(small().shape[2]);
    const auto expect_refused = [&] {
      EXPECT_FALSE(data_set::read_info(path).intact);
      expect_in("was changed or damaged", error_text(EBADMSG, [&] { (void)open(path); }));
      expect_in("was changed or damaged", error_text(EBADMSG, [&] { (void)open(path, writing); }));
      expect_in("was changed or damaged", error_text(EBADMSG, [&] { data_set::remove(path); }));
      EXPECT_TRUE(std::filesystem::exists(path + "/device-0.pages"));
    };
    replace_in_file(header, "  " + last + "\n", "  " + number(small().shape[2] - 1) + "\n");
    expect_refused();
    std::ofstream(header) << good;
    replace_in_file(header, "\"finished\"", "\"unfinished\"");
    expect_refused();
    std::ofstream(header) << good;
    replace_in_file(header, "\"checksum\"", "\"checksun\"");
    expect_refused();
    std::ofstream(header) << good;
    EXPECT_TRUE(data_set::read_info(path).intact);
    data_set::remove(path);
  });
}
TEST(data_set, names_no_files_but_those_that_a_data_set_makes) {
  const scratch folder;
  program([&] {
    const std::string path = folder / "x";
    make_finished(path);
    const std::string victim = folder / "victim";
    std::ofstream(victim) << "mine";
    const std::string header = path + "/orrery.json";
    const std::string good = text_of_file(header);
    for (const std::string& name : {victim, std::string("../victim"), std::string("device-1.pages"), std::string(".."),
                                    folder / "x/../victim-0.pages", std::string("a/device-0.pages"), std::string()}) {
      std::ofstream(header) << good;
      replace_in_file(header, "device-0.pages", name);
      expect_in("which no data set makes", error_text(EINVAL, [&] { data_set::remove(path); }));
      expect_in("which no data set makes", error_text(EINVAL, [&] { (void)open(path); }));
    }
    EXPECT_EQ(text_of_file(victim), "mine");
    EXPECT_TRUE(std::filesystem::exists(path + "/device-0.pages"));
  });
}
// A header as somebody could write it who means harm.
TEST(data_set, whose_devices_were_exchanged_is_refused) {
  const scratch folder;
  data_set_description d = small();
  d.folders = {folder / "one", folder / "other", folder / "third"};  // with 9 pages each
  program([&] {
    make_finished(folder / "x", d);
    for (const std::string end : {".pages", ".sums"}) {
      const std::string first = folder / ("one/x-0" + end);
      const std::string second = folder / ("other/x-1" + end);
      std::filesystem::rename(first, folder / "aside");
      std::filesystem::rename(second, first);
      std::filesystem::rename(folder / "aside", second);
    }
    expect_in("belongs to device 1 of the data set, not to device 0",
              error_text(EINVAL, [&] { (void)open(folder / "x"); }));
  });
}

TEST(data_set, removes_no_file_elsewhere_that_it_has_not_made) {
  const scratch folder;
  data_set_description d = small();
  d.folders = {folder / "other"};
  program([&] {
    make_finished(folder / "x", d);
    make_finished(folder / "y", small());
    const std::string header = folder / "y/orrery.json";
    const auto lie = [&](const std::string& name) {
      nlohmann::json j = nlohmann::json::parse(std::ifstream(header));
      j["devices"][0]["file"] = name;
      j.erase("checksum");
      const std::string text = j.dump();
      j["checksum"] = fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
      std::ofstream(header) << j;
    };
    lie(folder / "other/x-0.pages");
    expect_in("is not a file of the data set", error_text(EPERM, [&] { data_set::remove(folder / "y"); }));
    expect_in("belongs to another data set", error_text(EINVAL, [&] { (void)open(folder / "y"); }));
    std::ofstream(folder / "photos-0.pages") << "mine";
    lie(folder / "photos-0.pages");
    expect_in("is not a file of the data set", error_text(EPERM, [&] { data_set::remove(folder / "y"); }));
    EXPECT_TRUE(std::filesystem::exists(folder / "photos-0.pages"));
    data_set::remove(folder / "x");
    EXPECT_FALSE(std::filesystem::exists(folder / "other"));
  });
}
TEST(data_set, follows_no_symbolic_link_when_it_is_removed) {
  const scratch folder;
  program([&] {
    make_finished(folder / "x");
    std::ofstream(folder / "victim") << "mine";
    std::filesystem::rename(folder / "x/device-0.sums", folder / "sums");
    std::filesystem::create_symlink(folder / "sums", folder / "x/device-0.sums");
    std::filesystem::create_directory_symlink(folder / "x", folder / "link");
    expect_in("is a symbolic link", error_text(ELOOP, [&] { data_set::remove(folder / "link"); }));
    EXPECT_TRUE(std::filesystem::exists(folder / "x/device-0.pages"));
    data_set::remove(folder / "x");
    EXPECT_FALSE(std::filesystem::exists(folder / "x"));
    EXPECT_TRUE(std::filesystem::exists(folder / "sums"));
  });
}
TEST(data_set, removes_nothing_if_one_of_its_files_cannot_be_removed) {
  const scratch folder;
  data_set_description d = small();
  d.folders = {folder / "x", folder / "other"};
  program([&] {
    make_finished(folder / "x", d);
    const std::vector<std::string> files{folder / "x/device-0.pages", folder / "x/device-0.sums",
                                         folder / "other/x-1.pages"};
    const auto expect_refused = [&](const std::string& why) {
      expect_in(why, error_text(EPERM, [&] { data_set::remove(folder / "x"); }));
      expect_in("nothing was removed", error_text(EPERM, [&] { data_set::remove(folder / "x"); }));
      for (const std::string& f : files) EXPECT_TRUE(std::filesystem::exists(f)) << f;
    };
    for (const std::string& file : files) {
      std::filesystem::rename(file, folder / "kept");
      std::filesystem::create_directory(file);
      expect_refused(file + " is a folder");
      std::filesystem::remove(file);
      ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
      expect_refused(file + " is a FIFO");
      std::filesystem::remove(file);
      std::filesystem::rename(folder / "kept", file);
    }
    data_set::remove(folder / "x");
    EXPECT_FALSE(std::filesystem::exists(folder / "x"));
    EXPECT_FALSE(std::filesystem::exists(folder / "other"));
  });
}
TEST(data_set, refuses_fifos_and_devices_as_files_without_waiting) {
  const scratch folder;
  program([&] {
    for (const char* name : {"device-0.pages", "device-0.sums", "orrery.json"}) {
      const std::string path = folder / (std::string("of-") + name);
      make_finished(path);
      const std::string file = path + "/" + name;
      std::filesystem::remove(file);
      ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
      expect_in(file + " is a FIFO", error_text(EINVAL, [&] { (void)open(path); }));
      expect_in(file + " is a FIFO", error_text(EINVAL, [&] { (void)open(path, writing); }));
      std::filesystem::remove(file);
      std::filesystem::create_directory(file);
      expect_in(file + " is a folder", error_text(EINVAL, [&] { (void)open(path); }));
      expect_in(file + " is a folder", error_text(EINVAL, [&] { (void)open(path, writing); }));
      std::filesystem::remove(file);
      std::filesystem::create_symlink("/dev/zero", file);
      (void)error_text(EINVAL, [&] { (void)open(path); });
    }
  });
}
TEST(data_set, says_what_is_wrong_with_its_header) {
  const scratch folder;
  program([&] {
    const std::string path = folder / "x";
    expect_in("there is no data set at " + path, error_text(ENOENT, [&] { (void)open(path); }));
    make_finished(path);
    const std::string header = path + "/orrery.json";
    const std::string good = text_of_file(header);
    const std::vector<std::vector<std::string>> cases{
        {"\"version\": 1", "\"version\": 3", "its version is 3, and this program reads version 1 and 2"},
        {"\"type\": \"float64\"", "\"type\": \"int3\"", "its \"type\" is \"int3\""},
        {"\"type\": \"float64\"", "\"type\": 7", "type"},
        {"\"shape\"", "\"shap\"", "key 'shape' not found"},
        {"\"kind\": \"circulant\"", "\"kind\": \"odd\"", "there is no page map of the kind 'odd'"},
        {"\"pages\": 27", "\"pages\": 26", "device 0 has 26 pages, and the page map needs 27"},
        {"{", "", "parse error"},
    };
    for (const auto& c : cases) {
      std::ofstream(header) << good;
      replace_in_file(header, c[0], c[1]);
      const std::string text = error_text(EINVAL, [&] { (void)open(path); });
      expect_in(header, text);
      expect_in(c[2], text);
      expect_in(c[1] == "\"version\": 3" ? "use the version of Orrery that made it" : "restore orrery.json", text);
    }
  });
}

}  // namespace data_set_tests
}  // namespace orrery::storage
