// SPDX-License-Identifier: Apache-2.0
// `orrery data`, as a user runs it.
#include "data_support.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

namespace fs = std::filesystem;
using namespace testing;

std::string bytes_of(std::size_t n) {
  std::string s(n, ' ');
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(i * 7 + i / 256);
  return s;
}
// As NumPy writes it.
std::string npy(const std::string& dictionary, const std::string& elements) {
  std::string d = dictionary;
  d.append(63 - (10 + d.size()) % 64, ' ');
  d += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(d.size() & 0xff) + static_cast<char>(d.size() >> 8) +
         d + elements;
}

TEST(orrery_data, imports_and_exports_bare_elements) {
  const scratch folder;
  const std::string elements = bytes_of(9 * 10 * 11 * 8);
  write_text(folder / "in.raw", elements);
  expect_good("import " + folder / "in.raw" + " " + folder / "x" +
              " --shape 9,10,11 --type float64 --pages 4,4,4 --folder " + folder / "x" + " --folder " + folder.path);
  expect_good("verify " + folder / "x");
  expect_good("export " + folder / "x" + " " + folder / "out.raw");
  EXPECT_EQ(text_of(folder / "out.raw"), elements);
}
TEST(orrery_data, imports_and_exports_what_numpy_reads_and_writes) {
  const scratch folder;
  const std::string file =
      npy("{'descr': '<c16', 'fortran_order': False, 'shape': (3, 5, 7), }", bytes_of(3 * 5 * 7 * 16));
  write_text(folder / "in.npy", file);
  expect_good("import " + folder / "in.npy" + " " + folder / "x" + " --pages 2,3,4");
  expect_good("export " + folder / "x" + " " + folder / "out.npy");
  EXPECT_EQ(text_of(folder / "out.npy"), file);
  const outcome info = orrery_data("info --json " + folder / "x");
  const auto j = nlohmann::json::parse(info.text, nullptr, false);
  EXPECT_EQ(j.value("shape", std::vector<int>()), (std::vector<int>{3, 5, 7})) << info.text;
  EXPECT_EQ(j.value("type", ""), "complex128");
  EXPECT_TRUE(j.value("finished", false));
}
TEST(orrery_data, works_in_a_world_of_several_nodes) {
  const scratch folder;
  const std::string elements = bytes_of(9 * 10 * 11 * 8);
  write_text(folder / "in.raw", elements);
  const std::string nodes = "ORRERY_NODES=2 ORRERY_PES=1 " + program_path() + " data ";
  const outcome in =
      shell(nodes + "import " + folder / "in.raw" + " " + folder / "x" +
            " --shape 9,10,11 --type float64 --pages 4,4,4 --folder " + folder / "x" + " --folder " + folder / "x");
  EXPECT_EQ(in.code, 0) << in.text;
  const outcome out = shell(nodes + "export " + folder / "x " + folder / "out.raw");
  EXPECT_EQ(out.code, 0) << out.text;
  EXPECT_EQ(text_of(folder / "out.raw"), elements);
}
TEST(orrery_data, takes_no_part_in_the_world_of_the_environment) {
  const scratch folder;
  // No world can have such a name.
  const outcome o = shell("ORRERY_WORLD='no/world' ORRERY_NODES=2 ORRERY_PES=1 " + program_path() + " data create " +
                          folder / "x --shape 8,8,8");
  EXPECT_EQ(o.code, 0) << o.text;
  expect_good("verify " + folder / "x");
}
TEST(orrery_data, says_that_there_is_no_folder_for_a_file) {
  const scratch folder;
  expect_good("create " + folder / "x --shape 8,8,8 --type float32");
  for (const std::string file : {"no/out.raw", "no/out.npy", "no/out.h5", "no/out.nii", "no/out.nii.gz"})
    EXPECT_EQ(orrery_data("export " + folder / "x " + folder / file).text,
              "orrery: cannot write " + folder / file + ": No such file or directory\n");
}
TEST(orrery_data, exports_to_what_stdout_is_and_to_where_a_link_leads) {
  if (!fs::is_symlink("/dev/stdout")) GTEST_SKIP() << "/dev/stdout is no link here";
  const scratch folder;
  const std::string elements = bytes_of(8 * 8 * 8 * 4);
  write_text(folder / "in.raw", elements);
  expect_good("import " + folder / "in.raw " + folder / "x --shape 8,8,8 --type float32");
  const std::string data = "ORRERY_PES=2 " + program_path() + " data ";
  fs::create_symlink("/dev/stdout", folder / "out");
  for (const std::string& target : {std::string("/dev/stdout"), folder / "out"}) {
    const outcome o = shell(data + "export " + folder / "x " + target + " > " + folder / "file");
    EXPECT_EQ(o.code, 0) << o.text;
    EXPECT_EQ(text_of(folder / "file"), elements) << target;
  }
  EXPECT_TRUE(fs::is_symlink("/dev/stdout"));
  EXPECT_TRUE(fs::is_symlink(folder / "out"));
  fs::create_directory(folder / "there");
  fs::create_symlink("there/file", folder / "link");
  for (int again = 0; again < 2; ++again) {
    expect_good("export " + folder / "x " + folder / "link");
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_EQ(text_of(folder / "there/file"), elements);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "there"), fs::directory_iterator()), 1);
  }
}
TEST(orrery_data, imports_an_array_in_fortrans_order) {
  const scratch folder;
  std::string c_order(2 * 3 * 4 * 4, ' ');
  std::string fortran(c_order.size(), ' ');
  for (std::uint32_t i = 0; i < 2; ++i)
    for (std::uint32_t j = 0; j < 3; ++j)
      for (std::uint32_t k = 0; k < 4; ++k) {
        const std::uint32_t x = 100 * i + 10 * j + k;
        std::copy_n(reinterpret_cast<const char*>(&x), 4, c_order.begin() + ((i * 3 + j) * 4 + k) * 4);
        std::copy_n(reinterpret_cast<const char*>(&x), 4, fortran.begin() + ((k * 3 + j) * 2 + i) * 4);
      }
  write_text(folder / "in.npy", npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 4), }", fortran));
  expect_good("import " + folder / "in.npy" + " " + folder / "x" + " --pages 2,2,2");
  expect_good("export " + folder / "x" + " " + folder / "out.raw");
  EXPECT_EQ(text_of(folder / "out.raw"), c_order);
}
TEST(orrery_data, creates_zeros) {
  const scratch folder;
  expect_good("create " + folder / "x" + " --shape 5,6,7 --type float32 --pages 4,4,4");
  expect_good("export " + folder / "x" + " " + folder / "out.raw");
  EXPECT_EQ(text_of(folder / "out.raw"), std::string(5 * 6 * 7 * 4, '\0'));
  EXPECT_NE(orrery_data("info " + folder / "x").text.find("5 x 6 x 7 elements of type float32 in pages of 4 x 4 x 4"),
            std::string::npos);
}
TEST(orrery_data, info_says_that_a_header_was_changed) {
  const scratch folder;
  expect_good("create " + folder / "x" + " --shape 5,6,7 --type float32 --pages 4,4,4");
  std::string header = text_of(folder / "x/orrery.json");
  const std::size_t at = header.find("float32");
  ASSERT_NE(at, std::string::npos) << header;
  write_text(folder / "x/orrery.json", header.replace(at, 7, "float64"));
  EXPECT_NE(orrery_data("info " + folder / "x").text.find("its header was changed"), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(orrery_data("info --json " + folder / "x").text).value("intact", true));
}
TEST(orrery_data, names_damaged_pages) {
  const scratch folder;
  write_text(folder / "in.raw", bytes_of(512 * 8));
  expect_good("import " + folder / "in.raw" + " " + folder / "x" + " --shape 8,8,8 --type float64 --pages 8,8,8");
  {
    std::fstream f(folder / "x/device-0.pages", std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(1000);
    f.put('!');
  }
  expect_bad("verify " + folder / "x", "(0, 0, 0): page 0 of " + folder / "x/device-0.pages is damaged");
  expect_bad("export " + folder / "x" + " " + folder / "out.raw",
             "page 0 of " + folder / "x/device-0.pages is damaged");
}
TEST(orrery_data, exports_nothing_over_a_device_file) {
  const scratch folder;
  write_text(folder / "in.raw", bytes_of(512 * 8));
  expect_good("import " + folder / "in.raw" + " " + folder / "x" + " --shape 8,8,8 --type float64 --pages 8,8,8");
  expect_bad("export " + folder / "x " + folder / "x/device-0.pages", "would be in the data set " + folder / "x");
  expect_good("verify " + folder / "x");
}
TEST(orrery_data, says_what_is_wrong) {
  const scratch folder;
  write_text(folder / "in.raw", bytes_of(100));
  expect_bad("info " + folder / "x", "there is no data set at " + folder / "x");
  expect_bad("import " + folder / "in.raw" + " " + folder / "x", "give --shape and --type");
  expect_bad("import " + folder / "in.raw" + " " + folder / "x --shape 2,2,2 --type int8", "there is no type 'int8'");
  expect_bad("import " + folder / "in.raw" + " " + folder / "x --shape 2,2,2 --type float64",
             "has 100 bytes, and that array would take 64");
  EXPECT_FALSE(fs::exists(folder / "x"));
  write_text(folder / "a.npy", "nonsense nonsense");
  expect_bad("import " + folder / "a.npy" + " " + folder / "x", "it is not a file in NumPy's format");
  write_text(folder / "a.npy", npy("{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", bytes_of(24)));
  expect_bad("import " + folder / "a.npy" + " " + folder / "x", "convert them with a.astype('float64')");
  write_text(folder / "a.npy",
             npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3, 4), }", bytes_of(24 * 8)));
  expect_bad("import " + folder / "a.npy" + " " + folder / "x", "it has 4 dimensions");
}

TEST(orrery_data, control_characters_in_paths_do_not_reach_a_terminal) {
  const scratch folder;
  const std::string red = "'" + folder / "\x1b[31mred" + "'";
  expect_good("create " + red + " --shape 8,8,8");
  for (const std::string& command : {"info " + red, "info " + red + "/none"}) {
    const std::string said = orrery_data(command).text;
    EXPECT_NE(said.find("?[31mred"), std::string::npos) << said;
    EXPECT_EQ(said.find('\x1b'), std::string::npos) << said;
  }
}

TEST(orrery_data, a_wrong_word_ends_with_2_and_what_fails_with_1) {
  const scratch folder;
  write_text(folder / "in.raw", "8 bytes.");
  expect_good("create " + folder / "x --shape 8,8,8");
  for (const std::string& wrong :
       {"create " + folder / "y --shape 0,8,8", "create " + folder / "y --shape 8,8,8 --pages 0,8,8",
        "copy " + folder / "x " + folder / "y --pages 8,0,8", "copy " + folder / "x " + folder / "y --memory +0100M",
        "create " + folder / "y --shape 8,8,8 --type int8", "copy " + folder / "x " + folder / "y --type int8",
        "copy " + folder / "x " + folder / "y --map square", "read " + folder / "x --box 1",
        "read " + folder / "x --box a,:,:", "read " + folder / "x --box 9,:,:",
        "import " + folder / "in.raw " + folder / "y", "export " + folder / "x " + folder / "out.npy --dataset /a"})
    EXPECT_EQ(orrery_data(wrong).code, 2) << wrong;
  EXPECT_EQ(orrery_data("info " + folder / "y").code, 1);
}

TEST(orrery_data, imports_numpy_arrays_with_sides_of_one_behind_the_third) {
  const scratch folder;
  write_text(folder / "a.npy",
             npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4, 1, 1), }", bytes_of(24 * 8)));
  expect_good("import " + folder / "a.npy" + " " + folder / "x");
  expect_good("export " + folder / "x" + " " + folder / "b.npy");
  EXPECT_EQ(text_of(folder / "b.npy"),
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4), }", bytes_of(24 * 8)));
  write_text(folder / "a.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", bytes_of(8)));
  expect_bad("import " + folder / "a.npy" + " " + folder / "y", "a single number");
}

TEST(orrery_data, prints_a_part_of_an_array) {
  const scratch folder;
  std::vector<double> elements(3 * 4 * 5);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<double>(i) / 2;
  write_text(folder / "in.raw", {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(double)});
  expect_good("import " + folder / "in.raw" + " " + folder / "x" + " --shape 3,4,5 --type float64 --pages 2,2,2");
  EXPECT_EQ(orrery_data("read " + folder / "x" + " --box 0:2,1,-3:").text,
            "(0,1,2): 3.5 4 4.5\n(1,1,2): 13.5 14 14.5\n");
  EXPECT_EQ(orrery_data("read " + folder / "x" + " --box=-1,-1,-1").text, "(2,3,4): 29.5\n");
  EXPECT_EQ(std::ranges::count(orrery_data("read " + folder / "x").text, '\n'), 12);
}
TEST(orrery_data, prints_complex_numbers_as_python_does) {
  const scratch folder;
  const std::vector<float> elements{1, -2, 0.5F, 0.25F};
  write_text(folder / "in.raw", {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(float)});
  expect_good("import " + folder / "in.raw" + " " + folder / "x" + " --shape 1,1,2 --type complex64");
  EXPECT_EQ(orrery_data("read " + folder / "x").text, "(0,0,0): 1-2j 0.5+0.25j\n");
}
TEST(orrery_data, writes_a_part_of_an_array_to_a_file) {
  const scratch folder;
  const std::string elements = bytes_of(4 * 5 * 6 * 4);
  write_text(folder / "in.raw", elements);
  expect_good("import " + folder / "in.raw" + " " + folder / "x" + " --shape 4,5,6 --type float32 --pages 3,2,4");
  expect_good("read " + folder / "x" + " --box 1:3,:,: --out " + folder / "out.raw");
  EXPECT_EQ(text_of(folder / "out.raw"), elements.substr(1 * 5 * 6 * 4, 2 * 5 * 6 * 4));
  expect_good("read " + folder / "x" + " --box 3,4,2:5 --out " + folder / "out.npy");
  EXPECT_EQ(text_of(folder / "out.npy"), npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 3), }",
                                             elements.substr(((3 * 5 + 4) * 6 + 2) * 4, 12)));
}
TEST(orrery_data, says_what_is_wrong_with_a_box) {
  const scratch folder;
  expect_good("create " + folder / "x" + " --shape 128,128,128 --type float32");
  const std::string read = "read " + folder / "x" + " --box ";
  expect_bad(read + "0:2,5", "three slices are needed");
  expect_bad(read + "0:2,5,6,7", "--box 0:2,5,6,7");
  expect_bad(read + "0:129,:,:", "'0:129' is nothing inside of 0:128");
  expect_bad(read + "5:5,:,:", "'5:5' is nothing inside of 0:128");
  expect_bad(read + "a,:,:", "'a' is no number");
  expect_bad(read + "0,,0", "nothing is between two commas");
  expect_bad("read " + folder / "x", "too many to print: write them to a file with --out");
  expect_bad("read " + folder / "x --out " + folder / "out.npy --dataset /x", "is no HDF5 file by its name");
}
TEST(orrery_data, finds_an_edited_shape_and_an_edited_device) {
  const scratch folder;
  expect_good("create " + folder / "x" + " --shape 8,6,4 --type float64 --pages 4,4,4");
  const std::string good = text_of(folder / "x/orrery.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write_text(folder / "x/orrery.json", text);
  };
  with("8,", "7,");
  expect_bad("verify " + folder / "x", "was changed or damaged");
  write_text(folder / "victim", "mine");
  for (const std::string& name : {std::string("../victim"), folder / "victim"}) {
    with("device-0.pages", name);
    expect_bad("verify " + folder / "x", "which no data set makes");
    expect_bad("remove " + folder / "x", "which no data set makes");
  }
  EXPECT_EQ(text_of(folder / "victim"), "mine");
  write_text(folder / "x/orrery.json", good);
  expect_good("verify " + folder / "x");
}
TEST(orrery_data, refuses_to_import_what_is_no_file) {
  const scratch folder;
  for (const char* name : {"a.npy", "a.raw", "a.nii", "a.nii.gz", "a.h5"}) {
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
    expect_bad("import " + folder / name + " " + folder / "x --shape 2,2,2 --type float64", "is no regular file");
  }
  EXPECT_FALSE(fs::exists(folder / "x"));
}
TEST(orrery_data, refuses_shapes_whose_bytes_cannot_be_counted) {
  const scratch folder;
  // 2^61 x 8 x 1 numbers of 8 bytes are 2^67, which is 0 in 64 bits.
  for (const char* shape : {"(2305843009213693952, 8)", "(4294967296, 4294967296)", "(9223372036854775807,)"}) {
    write_text(folder / "a.npy",
               npy(std::string("{'descr': '<f8', 'fortran_order': False, 'shape': ") + shape + ", }", {}));
    expect_bad("import " + folder / "a.npy" + " " + folder / "x", "more than 2^63 bytes");
  }
  EXPECT_FALSE(fs::exists(folder / "x"));
}
TEST(orrery_data, makes_pages_no_longer_than_a_thin_array) {
  const scratch folder;
  std::ofstream(folder / "in.raw") << std::string(10'000 * 8, 'x');
  expect_good("import " + folder / "in.raw " + folder / "x --shape 1,1,10000 --type float64");
  EXPECT_NE(orrery_data("info " + folder / "x").text.find("pages of 1 x 1 x 10000"), std::string::npos);
  expect_good("create " + folder / "y --shape 2,300000,5");
  EXPECT_NE(orrery_data("info " + folder / "y").text.find("pages of 2 x 16384 x 5"), std::string::npos)
      << orrery_data("info " + folder / "y").text;
  EXPECT_LT(std::filesystem::file_size(folder / "x/device-0.pages"), 90'000U);
  expect_bad("copy " + folder / "x " + folder / "z --memory -1", "-1 is negative");
  expect_bad("copy " + folder / "x " + folder / "z --memory -1B", "-1B is negative");
  for (const char* const size : {"0100M", "0x4000000"})
    expect_bad("copy " + folder / "x " + folder / "z --memory " + size, "sizes are decimal and do not begin with 0");
  expect_bad("create " + folder / "z --shape 0,9223372036854775807,1", "shape");
  expect_bad("info ''", "the name of a file or folder is empty");
}
TEST(orrery_data, forgets_a_copy_that_was_interrupted_with_what_it_was_to_make) {
  const scratch folder;
  std::ofstream(folder / "in.raw") << std::string(std::size_t{8} << 18, 'x');
  expect_good("import " + folder / "in.raw " + folder / "x --shape 64,64,64 --type float64");
  std::fstream page(folder / "x/device-0.pages", std::ios::in | std::ios::out | std::ios::binary);
  page.seekp(100) << "damaged";
  page.close();
  expect_bad("copy " + folder / "x " + folder / "y --pages 8,8,8", "page 0 of");
  EXPECT_TRUE(std::filesystem::exists(folder / "y.copy/job.json"));
  expect_bad("read " + folder / "y --box 9,9,60:64", "is unfinished");
  const outcome o = orrery_data("read " + folder / "y --box 9,9,60:64 --unfinished");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_NE(o.text.find(" 0 0 0 0"), std::string::npos) << o.text;
  expect_bad("copy " + folder / "x " + folder / "y --pages 16,16,16", "forget it: orrery data remove " + folder / "y");
  expect_good("remove " + folder / "y");
  EXPECT_FALSE(std::filesystem::exists(folder / "y.copy"));
  EXPECT_FALSE(std::filesystem::exists(folder / "y"));
  expect_bad("remove " + folder / "y", "there is no data set");
}
TEST(orrery_data, a_folder_is_one_path_and_those_behind_it_are_others) {
  const scratch folder;
  expect_good("create --folder " + folder / "one --folder " + folder / "two " + folder / "x --shape 8,8,8");
  for (const char* const made : {"one", "two", "x"}) EXPECT_TRUE(fs::exists(folder / made)) << made;
  expect_good("copy --folder " + folder / "three " + folder / "x " + folder / "y");
  EXPECT_TRUE(fs::exists(folder / "three"));
  expect_good("verify " + folder / "y");
}
TEST(orrery_data, removes_a_data_set) {
  const scratch folder;
  const scratch other;
  expect_good("create " + folder / "x" + " --shape 8,8,8 --folder " + folder / "x" + " --folder " + other / "y");
  EXPECT_TRUE(fs::exists(other / "y"));
  expect_good("remove " + folder / "x");
  EXPECT_FALSE(fs::exists(other / "y"));
  EXPECT_FALSE(fs::exists(folder / "x"));
  expect_bad("remove " + folder / "x", "there is no data set at " + folder / "x");
}
}  // namespace
}  // namespace orrery
