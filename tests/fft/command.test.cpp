// SPDX-License-Identifier: Apache-2.0
// The program fft3d as one uses it: what it prints, writes and returns; and that --verify sees what is wrong.
#include "support.hpp"

#include <apps/fft3d/command_line/report.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

namespace {

using namespace fft3d;
using namespace fft3d::testing;

const index3 shape{20, 18, 16};

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct folder_with_set : scratch {
  explicit folder_with_set(element_type type = element_type::complex128) {
    program([&] {
      make_set(*this / "x", {.shape = shape, .page_shape = {4, 8, 8}, .type = type},
               random_numbers(product(shape), !is_complex(type)));
    });
  }
  // The exit code of fft3d with these words, run here.
  int fft(const std::string& words, const std::string& environment = "") const {
    const auto program_file =
        std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "apps/fft3d";
    const int status = std::system(
        ("cd " + path + " && " + environment + program_file.string() + " " + words + " >out 2>err").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST(fft3d_command, verifies_what_it_has_done) {
  for (const element_type type : {element_type::float32, element_type::complex128}) {
    const folder_with_set f(type);
    EXPECT_EQ(f.fft("forward x y --passes 2 --verify"), 0) << text_of(f / "err");
    EXPECT_NE(text_of(f / "err").find("there and back again"), std::string::npos);
    EXPECT_EQ(f.fft("inverse y z --verify --orrery-nodes=2"), 0) << text_of(f / "err");
    EXPECT_EQ(f.fft("inverse y r --real --verify"), 0) << text_of(f / "err");
    EXPECT_EQ(f.fft("filter x s --band-pass 0.1 0.3 --verify --passes 3"), 0) << text_of(f / "err");
  }
}
TEST(fft3d_command, verifies_what_lies_in_other_folders_and_leaves_nothing_else_there) {
  const folder_with_set f;
  EXPECT_EQ(f.fft("forward x y --passes 2 --verify --folder d0 --folder d1"), 0) << text_of(f / "err");
  EXPECT_NE(text_of(f / "err").find("there and back again"), std::string::npos);
  EXPECT_EQ(f.fft("inverse --passes 3 --verify --folder d1 --folder d0 y z"), 0) << text_of(f / "err");
  for (const char* d : {"d0", "d1"})  // a device and its checksums, of both
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(f / d), std::filesystem::directory_iterator()), 4);
}
TEST(fft3d_command, says_how_much_of_the_time_drives_and_processors_were_in_use) {
  const folder_with_set f;
  ASSERT_EQ(f.fft("forward x y --passes 3 --json - -q"), 0) << text_of(f / "err");
  const auto j = nlohmann::json::parse(text_of(f / "out"));
  for (const auto& pass : j["passes"])
    for (const char* what : {"read_drives_in_use", "write_drives_in_use", "processors_in_use"}) {
      EXPECT_GT(pass[what].get<double>(), 0) << what;
      EXPECT_LE(pass[what].get<double>(), 1) << what;
    }
}
TEST(fft3d_command, gives_all_figures_as_json) {
  const folder_with_set f;
  ASSERT_EQ(f.fft("forward x y --passes 2 --json - -q"), 0) << text_of(f / "err");
  const auto j = nlohmann::json::parse(text_of(f / "out"));
  EXPECT_EQ(j["operation"], "forward");
  EXPECT_EQ(j["passes"].size(), 2U);
  EXPECT_DOUBLE_EQ(j["bytes_read"].get<double>(), 2.0 * 5 * 3 * 2 * 4096);  // pages of 4 KiB
  EXPECT_GT(j["memory_peak"].get<std::uint64_t>(), 0U);
  EXPECT_EQ(text_of(f / "err"), "");
}
TEST(fft3d_command, writes_a_report_that_needs_no_other_file) {
  const folder_with_set f;
  ASSERT_EQ(f.fft("forward x y --passes 2 --report r.html"), 0) << text_of(f / "err");
  const std::string page = text_of(f / "r.html");
  EXPECT_NE(page.find("Chart.js v"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("<link"), std::string::npos);
  EXPECT_EQ(page.find("/*data*/"), std::string::npos);
  const auto begin = page.find("spans} = ") + 9;
  const auto data = nlohmann::json::parse(page.substr(begin, page.find(";\n", begin) - begin));
  // Each unit was read, transformed and written in each of its passes: 5 slabs, and 3 x 2 lines.
  EXPECT_EQ(data["spans"].size(), 3U * (5 + 6));
  for (const auto& s : data["spans"]) EXPECT_LE(s["begin"].get<double>(), s["end"].get<double>());
}
TEST(fft3d_command, says_the_plan_and_does_nothing) {
  const folder_with_set f;
  EXPECT_EQ(f.fft("forward x y --plan --passes 2"), 0) << text_of(f / "err");
  EXPECT_NE(text_of(f / "out").find("pass 2: 6 units"), std::string::npos) << text_of(f / "out");
  EXPECT_FALSE(std::filesystem::exists(f / "y"));
}
TEST(fft3d_command, refuses_what_makes_no_sense) {
  const folder_with_set f;
  for (const char* words :
       {"forward x", "forward x y --in-place", "forward x --in-place --verify", "filter x y", "sideways x y",
        "forward x y --passes 7", "filter x y --low-pass 1 --gaussian 1", "forward x y --memory 1K",
        "forward nothing y", "filter x y --low-pass nan", "filter x y --low-pass -1", "filter x y --gaussian 0",
        "filter x y --band-pass 0.3 0.1", "forward x y --passes 0", "forward x y --report nowhere/r.html",
        "forward x y --json nowhere/r.json", "forward x y --report .", "forward x y --json ."}) {
    EXPECT_NE(f.fft(words), 0) << words;
    EXPECT_NE(text_of(f / "err"), "") << words;
    EXPECT_FALSE(std::filesystem::exists(f / "y")) << words;
    EXPECT_FALSE(std::filesystem::exists(f / "y.fft3d")) << words;
  }
}
TEST(fft3d_command, that_has_failed_after_the_work_finds_it_done) {
  const folder_with_set f;
  std::filesystem::create_symlink(f / "nowhere/j", f / "broken");
  for (const std::string words : {"forward x y", "forward x --in-place"}) {
    EXPECT_EQ(f.fft(words + " --passes 3 --json broken"), 1);
    EXPECT_NE(text_of(f / "err").find("cannot write broken"), std::string::npos) << text_of(f / "err");
    EXPECT_EQ(f.fft(words + " --passes 3 --json j"), 0) << text_of(f / "err");
    EXPECT_NE(text_of(f / "err").find("it had been done already"), std::string::npos) << text_of(f / "err");
    EXPECT_EQ(nlohmann::json::parse(text_of(f / "j"))["passes"].size(), 3U);
  }
  for (const char* rest : {"x.fft3d", "y.fft3d"}) EXPECT_FALSE(std::filesystem::exists(f / rest));
  EXPECT_EQ(f.fft("forward x --in-place --passes 3"), 0) << text_of(f / "err");  // that is another one
  EXPECT_EQ(text_of(f / "err").find("already"), std::string::npos) << text_of(f / "err");
}
TEST(fft3d_command, whose_files_take_no_more_fails) {
  const folder_with_set f;
  std::filesystem::create_symlink("/dev/full", f / "full");
  for (const std::string option : {"--json", "--report"}) {
    EXPECT_EQ(f.fft("forward x y " + option + " full"), 1) << option;
    EXPECT_NE(text_of(f / "err").find("cannot write full: No space left on device"), std::string::npos)
        << text_of(f / "err");
    EXPECT_TRUE(std::filesystem::exists(f / "y.fft3d"));
  }
  EXPECT_EQ(f.fft("forward x y --json j"), 0) << text_of(f / "err");
}
TEST(fft3d_command, whose_figures_cannot_be_written_fails) {
  const folder_with_set f;
  std::filesystem::create_symlink("/dev/full", f / "out");
  EXPECT_EQ(f.fft("forward x y --json -"), 1);
  EXPECT_NE(text_of(f / "err").find("the output cannot be written"), std::string::npos) << text_of(f / "err");
}
TEST(fft3d_command, keeps_what_fftw_has_learnt_for_the_next_run) {
  const folder_with_set f;
  const auto learnt = [&] {  // FFTW writes its lines in any order
    std::istringstream all(text_of(f / "cache/orrery/fftw-wisdom"));
    std::multiset<std::string> lines;
    for (std::string line; std::getline(all, line);) lines.insert(line);
    return lines;
  };
  const std::string environment = "XDG_CACHE_HOME=" + (f / "cache") + " ";
  ASSERT_EQ(f.fft("forward x y --passes 2", environment), 0) << text_of(f / "err");
  const auto before = learnt();
  EXPECT_GT(before.size(), 2U);
  ASSERT_EQ(f.fft("forward x z --passes 2", environment), 0) << text_of(f / "err");
  EXPECT_EQ(learnt(), before);  // nothing was planned anew
}
TEST(fft3d_command, takes_paths_with_a_slash_at_the_end) {
  const folder_with_set f;
  EXPECT_EQ(f.fft("forward x/ y/ --passes 2 --verify"), 0) << text_of(f / "err");
  EXPECT_EQ(f.fft("filter y/ --in-place --gaussian 0.2 --passes 3"), 0) << text_of(f / "err");
}
// The exit code of forward --verify for these numbers, and what it says.
std::pair<int, std::string> verified(const std::vector<number>& x) {
  const folder_with_set f;
  program([&] { make_set(f / "z", {.shape = shape, .page_shape = {4, 8, 8}}, x); });
  const int code = f.fft("forward z y --passes 2 --verify");
  return {code, text_of(f / "err")};
}
TEST(fft3d_verify, finds_zeros_right) { EXPECT_EQ(verified(std::vector<number>(product(shape))).first, 0); }
TEST(fft3d_verify, finds_right_what_is_the_same_everywhere) {
  const scratch f;
  const index3 many{80, 80, 80};
  program(
      [&] {
        make_set(f / "x", {.shape = many, .page_shape = {20, 20, 20}, .type = element_type::float64},
                 std::vector<number>(static_cast<std::size_t>(product(many)), number(0.1)));
        const request r{.input = f / "x", .output = f / "y", .passes = 2};
        (void)perform(r, nobody);
        for (const finding& found : verify(r, 1)) EXPECT_TRUE(found.good()) << found.what << " " << found.error;
      },
      "--orrery-pes=1");
}
// Killed while it compares what came back with its input, or before.
TEST(fft3d_verify, that_was_interrupted_goes_on_or_begins_anew) {
  const folder_with_set f;
  program([&] {
    const request r{.input = f / "x", .output = f / "y", .passes = 2};
    request back{.input = r.output, .output = f / "y.verify", .what = operation::inverse, .passes = 2};
    const auto leave = [&] {
      std::string folder;
      (void)perform(back, nobody, &folder);
      EXPECT_TRUE(std::filesystem::exists(folder));
    };
    const auto expect_verified = [&] {
      for (const finding& found : verify(r, 1)) EXPECT_TRUE(found.good()) << found.what << " " << found.error;
      for (const char* rest : {"y.verify", "y.verify.fft3d"}) EXPECT_FALSE(std::filesystem::exists(f / rest));
    };
    (void)perform(r, nobody);
    leave();
    expect_verified();
    leave();
    data_set::remove(r.output);  // and it is made again
    (void)perform(r, nobody);
    expect_verified();
    leave();
    data_set::remove(back.output);
    make_set(back.output, {.shape = {1, 1, 1}, .page_shape = {1, 1, 1}}, {1.0});  // by somebody else
    (void)error_text(EEXIST, [&] { (void)verify(r, 1); });
    EXPECT_EQ(read_set(back.output).size(), 1U);
  });
}
TEST(fft3d_verify, says_that_it_cannot_tell_where_numbers_are_not_finite) {
  auto x = random_numbers(product(shape), false);
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    x[7] = bad;
    const auto [code, text] = verified(x);
    EXPECT_EQ(code, 1);
    EXPECT_NE(text.find("cannot be verified"), std::string::npos) << text;
    EXPECT_EQ(text.find("WRONG"), std::string::npos) << text;
  }
}
TEST(fft3d_verify, sees_numbers_that_are_not_finite_in_the_output_only) {
  const folder_with_set f;
  program([&] {
    const request r{.input = f / "x", .output = f / "y", .passes = 2};
    (void)perform(r, nobody);
    auto set = spawn<data_set>(here(), r.output, data_set_options{.mode = open_mode::read_write});
    const std::vector<number> v{{std::nan(""), 0}};
    set->contents().write(domain{{3, 4, 5}, {4, 5, 6}}, std::span<const number>(v));
    set->finish();
    destroy(set);
    for (const finding& found : verify(r, 1))
      EXPECT_FALSE(found.good() && found.what != "4096 coefficients by direct summation (seed 1)") << found.what;
  });
}
TEST(fft3d_verify, sees_one_wrong_element) {
  const folder_with_set f;
  program([&] {
    const request r{.input = f / "x", .output = f / "y", .passes = 2};
    (void)perform(r, nobody);
    for (const finding& found : verify(r, 1)) EXPECT_TRUE(found.good()) << found.what << " " << found.error;
    auto set = spawn<data_set>(here(), r.output, data_set_options{.mode = open_mode::read_write});
    const storage::array a = set->contents();
    const domain one{{3, 4, 5}, {4, 5, 6}};
    std::vector<number> v(1);
    a.read(one, std::span(v));
    v[0] += 1e-3;
    a.write(one, std::span<const number>(v));
    set->finish();
    destroy(set);
    const auto found = verify(r, 1);
    EXPECT_FALSE(found.back().good());  // there and back again
    EXPECT_GT(found.back().error, 1e-9);
  });
}
TEST(fft3d_verify, sees_a_transform_with_the_other_sign) {
  const folder_with_set f;
  program([&] {
    request r{.input = f / "x", .output = f / "y", .what = operation::inverse};
    (void)perform(r, nobody);
    r.what = operation::forward;
    EXPECT_FALSE(verify(r, 1).at(1).good());  // coefficients
  });
}

}  // namespace

int main(int argc, char** argv) {
  return test_main(argc, argv, [](const std::vector<std::string>&) { return 0; });
}
