// SPDX-License-Identifier: Apache-2.0
// The paper's own program: on threads, on nodes, over machines, and simulated with drives that are not there.
#include "../machines/launch.hpp"

#include <fstream>
#include <sstream>

namespace orrery {
namespace {

using namespace testing;
namespace fs = std::filesystem;

std::string program_file() { return fs::path(folder_of_program()).parent_path() / "apps/fft_servers"; }

class fft_servers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(program_file())) GTEST_SKIP() << program_file() << " was not built";
  }
  /// What the program prints, and how it ends.
  std::string output_of(const std::string& launcher, const std::string& words) {
    const std::string file = folder_.path + "/out";
    const std::string ended = program({"-c", "exec " + launcher + " '" + program_file() + "' " + words + " --folder '" +
                                                 folder_.path + "/files' >'" + file + "' #"},
                                      "/bin/sh")
                                  .end();
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str() + ended;
  }
  void expect_right(const std::string& said, int servers, int clients) {
    EXPECT_TRUE(said.ends_with("good\ngood")) << said;
    EXPECT_EQ(count_of(said, "compared with FFTW: relative error"), 1) << said;
    for (int dimension = 1; dimension <= 3; ++dimension)
      EXPECT_EQ(count_of(said, fmt::format("dimension {}: ", dimension)), 1) << said;
    // All five tables of section 5.3, and the servers' writes: a row for each.
    for (const char* table :
         {"client: Array::read,", "client: Array::read_into_cache", "client: FFTW", "client: Array::write"})
      EXPECT_EQ(rows(said, table), clients) << table << " in " << said;
    for (const char* table : {"server: ArrayDevice::read_into_cache", "server: ArrayDevice::write"})
      EXPECT_EQ(rows(said, table), servers) << table << " in " << said;
    EXPECT_FALSE(fs::exists(folder_.path + "/files")) << "files of servers were left";
  }
  static int rows(const std::string& said, const std::string& table) {
    const std::size_t at = said.find(table);
    if (at == std::string::npos) return -1;
    return count_of(said.substr(at, said.find("\n\n", at) - at), "\n");
  }
  scratch_folder folder_;
};

constexpr const char* small = "--shape 18,20,22 --pages 4,6,5 --servers 5 --clients 3";

TEST_F(fft_servers, transform_on_threads_as_fftw_does) {
  expect_right(output_of("", std::string(small) + " --orrery-pes=2"), 5, 3);
}
TEST_F(fft_servers, transform_on_nodes_as_fftw_does) {
  expect_right(output_of("", std::string(small) + " --orrery-pes=2 --orrery-nodes=3"), 5, 3);
}
TEST_F(fft_servers, transform_over_machines_as_fftw_does) {
  const mpi_launcher& l = launcher_named("openmpi");
  if (const auto why = missing(l)) GTEST_SKIP() << *why;
  const std::string said = output_of(std::string(l.file) + " -q --oversubscribe -n 4",
                                     std::string(small) + " --orrery-pes=2 --orrery-machine-ranks=1");
  expect_right(said, 5, 3);
  EXPECT_EQ(count_of(said, "5 servers on 2 of 4 machines, 3 clients"), 1) << said;
}
TEST_F(fft_servers, without_a_machine_for_the_clients_are_refused) {
  const std::string said = output_of("", std::string(small) + " --orrery-sim=machines=2,pes=2 --storage-machines 2");
  EXPECT_EQ(count_of(said, "--storage-machines 2 of 2 leaves none for the clients"), 1) << said;
}

// The paper's 64 TB, of which nothing is touched: what network and drives allow.
double seconds_of_iteration(const std::string& said) {
  const std::size_t at = said.find("dimension 3: 4 iterations of ");
  return at == std::string::npos ? -1 : std::stod(said.substr(at + 29));
}
TEST_F(fft_servers, simulated_take_what_the_network_and_then_the_drives_allow) {
  const auto at = [&](const std::string& net) {
    const std::string said =
        output_of("", "--orrery-sim=machines=8,pes=24,drive=100M:13ms,net=" + net +
                          " --phantom --shape 16384,16384,16384 --pages 128,128,128 --servers 96 --clients 16 "
                          "--fftw-seconds 6 --iterations 4");
    EXPECT_TRUE(said.ends_with("good")) << said;
    EXPECT_EQ(rows(said, "client: Array::write"), 16) << said;
    EXPECT_EQ(rows(said, "server: ArrayDevice::write"), 96) << said;
    return seconds_of_iteration(said);
  };
  // 16 GiB each way through each machine's interface of 1.25 GB/s are 27.5 s; drives alone take 14.3 s for 21.3 pages each way.
  const double ethernet = at("10g");
  EXPECT_GT(ethernet, 27.4);
  EXPECT_LT(ethernet, 32);
  const double four_times = at("15us:2us:1us:4768M");
  EXPECT_GT(four_times, 14.2);
  EXPECT_LT(four_times, 20);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  orrery::testing::prepare_for_launchers();
  return orrery::testing::run_tests_or_scenario(argc, argv, {});
}
