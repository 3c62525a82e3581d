// SPDX-License-Identifier: Apache-2.0
// Programs that use MPI themselves: Orrery takes it as it is, leaves its end to the program, and stays out of its messages.
#include "launch.hpp"

#include <array>
#include <cstdlib>

#include <dlfcn.h>

namespace orrery {
namespace {

using namespace testing;

std::string value_of(int argc, char** argv, std::string_view option) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with(option)) return argv[i] + option.size();
  return {};
}

/// With --own-mpi=FILE --threads=LEVEL: MPI, as the program's own main starts and ends it. These functions are the same in
/// all MPI libraries; handles are pointers in one, and numbers in the other.
class own_mpi {
 public:
  own_mpi(int argc, char** argv) {
    const std::string file = value_of(argc, argv, "--own-mpi=");
    if (file.empty()) return;
    library_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    int given = 0;
    if (library_ == nullptr || get<int(int*, char***, int, int*)>("MPI_Init_thread")(
                                   nullptr, nullptr, std::stoi(value_of(argc, argv, "--threads=")), &given) != 0)
      std::abort();
    if (given < serialized) return;
    if (is_open_mpi()) {
      listen(::dlsym(library_, "ompi_mpi_comm_world"), ::dlsym(library_, "ompi_mpi_byte"), -1);
    } else {
      listen(mpich_world, mpich_byte, -2);
    }
  }
  /// The exit code: 1 if MPI has been ended already.
  int end(int code) {
    if (library_ == nullptr) return code;
    int has_come = 0;
    if (heard_.request != 0 &&
        (get<int(void*, int*, void*)>("MPI_Test")(&heard_.request, &has_come, heard_.status.data()) != 0 ||
         has_come != 0)) {
      fmt::print(stderr, "a receive of the program has got a message that is not its own\n");
      code = 1;
    } else if (heard_.request != 0) {
      get<int(void*)>("MPI_Cancel")(&heard_.request);
      get<int(void*, void*)>("MPI_Wait")(&heard_.request, heard_.status.data());
    }
    int is_over = 0;
    get<int(int*)>("MPI_Finalized")(&is_over);
    if (is_over != 0) fmt::print(stderr, "MPI was ended, which the program had started\n");
    return is_over != 0 || get<int()>("MPI_Finalize")() != 0 ? 1 : code;
  }
  /// An error of MPI_COMM_WORLD still ends the program, as it did before Orrery has started.
  [[nodiscard]] bool errors_are_fatal() const {
    if (is_open_mpi()) {
      void* handler = nullptr;
      return get<int(void*, void**)>("MPI_Comm_get_errhandler")(::dlsym(library_, "ompi_mpi_comm_world"), &handler) ==
                 0 &&
             handler == ::dlsym(library_, "ompi_mpi_errors_are_fatal");
    }
    int handler = 0;
    return get<int(int, int*)>("MPI_Comm_get_errhandler")(mpich_world, &handler) == 0 &&
           handler == mpich_errors_are_fatal;
  }
  /// Blocks the thread until all ranks are here.
  void meet() const {
    const int error = is_open_mpi() ? get<int(void*)>("MPI_Barrier")(::dlsym(library_, "ompi_mpi_comm_world"))
                                    : get<int(int)>("MPI_Barrier")(mpich_world);
    check(error == 0, "a barrier of the program fails");
  }

 private:
  static constexpr int serialized = 2;
  static constexpr int mpich_world = 0x4400'0000;
  static constexpr int mpich_byte = 0x4c00'010d;
  static constexpr int mpich_errors_are_fatal = 0x5400'0000;

  template <class F>
  [[nodiscard]] F* get(const char* name) const {
    return reinterpret_cast<F*>(::dlsym(library_, name));
  }
  [[nodiscard]] bool is_open_mpi() const { return ::dlsym(library_, "ompi_mpi_comm_world") != nullptr; }
  // A receive from any source, with any tag, that is open while the world runs.
  template <class Handle>
  void listen(Handle world, Handle byte, int any_source) {
    constexpr int any_tag = -1;
    if (get<int(void*, int, Handle, int, int, Handle, void*)>("MPI_Irecv")(
            heard_.bytes.data(), static_cast<int>(heard_.bytes.size()), byte, any_source, any_tag, world,
            &heard_.request) != 0)
      std::abort();
  }
  struct receive {
    std::array<char, 64 << 10> bytes{};
    std::array<char, 256> status{};
    std::uint64_t request = 0;
  };
  void* library_ = nullptr;
  receive heard_;
};
own_mpi* the_mpi = nullptr;

int one_more(int n) { return n + 1; }
std::size_t letters(const std::string& text) { return text.size(); }

bool errors_are_fatal() { return the_mpi->errors_are_fatal(); }

// Between all PEs, small and large.
void talk() {
  for (std::uint32_t n = 0; n < world_nodes(); ++n)
    check(call<&errors_are_fatal>(node(n)), "errors of the program's own communicator are handled otherwise");
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    for (int i = 0; i < 20; ++i) check(call<&one_more>(pe(p), i) == i + 1, "a call comes back with another result");
    check(call<&letters>(pe(p), std::string(1'000'000, 'x')) == 1'000'000, "a large argument came otherwise");
  }
}

// The first PE of each node waits in the program's own barriers, while the second ones call each other.
void meet_often() {
  for (int i = 0; i < 20; ++i) the_mpi->meet();
}
void talk_as_node() {
  for (std::uint32_t p = 1; p < world_pes(); p += 2)
    for (int i = 0; i < 20; ++i) check(call<&one_more>(pe(p), i) == i + 1, "a call comes back with another result");
}
void call_mpi() {
  check(world_pes() == 2 * world_nodes(), "nodes do not have two PEs");
  std::vector<future<void>> all;
  for (std::uint32_t n = 0; n < world_nodes(); ++n) all.push_back(start_call<&talk_as_node>(pe(2 * n + 1)));
  for (std::uint32_t n = 0; n < world_nodes(); ++n) all.push_back(start_call<&meet_often>(pe(2 * n)));
  for (auto& f : all) f.get();
}

class a_program_with_mpi : public under_mpi {
 protected:
  static std::string outcome_with(const std::string& scenario, int threads, ranks r) {
    const std::string file = GetParam() == "mpich" ? "libmpich.so.12" : "libmpi.so.40";
    return outcome(scenario, r, {"--own-mpi=" + file, fmt::format("--threads={}", threads)});
  }
};
INSTANTIATE_TEST_SUITE_P(of, a_program_with_mpi, ::testing::Values("openmpi", "mpich"),
                         [](const auto& i) { return i.param; });

TEST_P(a_program_with_mpi, may_start_and_end_it_itself_and_receive_from_any_source) {
  EXPECT_EQ(wrong_in(outcome_with("talk", 2, {3, 1, 1})), "");
  EXPECT_EQ(wrong_in(outcome_with("talk", 3, {4, 1, 2})), "");
}
TEST_P(a_program_with_mpi, may_call_it_from_processes_if_it_is_for_several_threads) {
  EXPECT_EQ(wrong_in(outcome_with("call MPI", 3, {2, 2, 1})), "");
}
TEST_P(a_program_with_mpi, for_the_main_thread_only_is_refused) {
  for (const int threads : {0, 1}) {
    const std::string said = outcome_with("talk", threads, {2, 1, 1});
    EXPECT_GE(count_of(said, "MPI runs for one thread only, and PEs are threads; call MPI_Init_thread"), 1) << said;
    EXPECT_TRUE(ended_with_1(launcher(), said)) << said;
  }
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  using namespace orrery;
  orrery::testing::prepare_for_launchers();
  own_mpi mpi(argc, argv);
  the_mpi = &mpi;
  return mpi.end(orrery::testing::run_tests_or_scenario(argc, argv, {{"talk", talk}, {"call MPI", call_mpi}}));
}
