// SPDX-License-Identifier: Apache-2.0
// The program fft3d as one uses it: what it prints, writes and returns; and that --verify sees what is wrong.
#include "support.hpp"

#include <apps/fft3d/command_line/report.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

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
               random_numbers(product(shape), is_real(type)));
    });
  }
  // The exit code of fft3d with these words, run here.
  int fft(const std::string& words) const {
    const auto program_file =
        std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "apps/fft3d";
    const int status =
        std::system(("cd " + path + " && " + program_file.string() + " " + words + " >out 2>err").c_str());
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
  for (const char* words : {"forward x", "forward x y --in-place", "forward x --in-place --verify", "filter x y",
                            "sideways x y", "forward x y --passes 7", "filter x y --low-pass 1 --gaussian 1",
                            "forward x y --memory 1K", "forward nothing y"}) {
    EXPECT_NE(f.fft(words), 0) << words;
    EXPECT_NE(text_of(f / "err"), "") << words;
    EXPECT_FALSE(std::filesystem::exists(f / "y")) << words;
    EXPECT_FALSE(std::filesystem::exists(f / "y.fft3d")) << words;
  }
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
