// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests of worlds over MPI: each test starts its own program again as the ranks of an mpirun.

#include "../support/scenario.hpp"
#include "../support/scratch_folder.hpp"

#include <optional>

namespace orrery::testing {

/// A launcher of MPI programs on this machine.
struct mpi_launcher {
  const char* name = "";
  const char* file = "";
  std::vector<std::string> options;
  std::vector<std::string> survives_loss;  ///< options with which the others live on when a rank is killed
};

inline const mpi_launcher& launcher_named(std::string_view name) {
  static const mpi_launcher open_mpi{"openmpi", "/usr/bin/mpirun.openmpi", {"--oversubscribe"}, {"--enable-recovery"}};
  static const mpi_launcher mpich{"mpich", "/usr/bin/mpirun.mpich", {}, {"-disable-auto-cleanup"}};
  return name == "mpich" ? mpich : open_mpi;
}

/// How many ranks, of how many PEs, and how many of them are taken for one machine.
struct ranks {
  int count = 2;
  int pes = 1;
  int in_machine = 1;
};

inline std::string folder_of_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

/// Why there can be no test with that launcher; nothing if there can.
inline std::optional<std::string> missing(const mpi_launcher& l) {
  if (!std::filesystem::exists(l.file)) return fmt::format("{} is not installed", l.file);
  const auto plugin =
      std::filesystem::path(folder_of_program()).parent_path() / "mpi" / fmt::format("orrery_mpi_{}.so", l.name);
  if (!std::filesystem::exists(plugin))
    return fmt::format("{} was not built: its headers are not installed", plugin.string());
  return std::nullopt;
}

/// What `mpirun` is given for a scenario of this program.
inline std::vector<std::string> command(const mpi_launcher& l, ranks r, std::string_view scenario,
                                        std::vector<std::string> more = {}, bool survives_loss = false) {
  std::vector<std::string> all = l.options;
  if (survives_loss) all.insert(all.end(), l.survives_loss.begin(), l.survives_loss.end());
  all.insert(all.end(), {"-n", std::to_string(r.count), std::filesystem::read_symlink("/proc/self/exe").string(),
                         fmt::format("--scenario={}", scenario), fmt::format("--orrery-pes={}", r.pes),
                         fmt::format("--orrery-machine-ranks={}", r.in_machine)});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Of what a scenario has said: nothing if it was good, and no rank had to wait for the end of others in vain.
inline std::string wrong_in(std::string said) {
  return said.ends_with("good") && !said.contains("ends without MPI_Finalize") ? std::string{} : said;
}

/// This program on hosts with networks and memory of their own, as tests/machines/hosts makes them: `options` are the
/// script's, up to the number of ranks.
struct on_hosts {
  on_hosts(std::vector<std::string> options, std::string_view scenario, const std::vector<std::string>& more = {}) {
    const auto script = std::filesystem::path(folder_of_program()) / "../../../tests/machines/hosts";
    if (!std::filesystem::exists(script)) {
      missing = script.string() + " does not exist";
      return;
    }
    options.insert(options.end(), {std::filesystem::read_symlink("/proc/self/exe").string(),
                                   fmt::format("--scenario={}", scenario), "--orrery-pes=1"});
    options.insert(options.end(), more.begin(), more.end());
    said = program(options, script.string()).end();
    if (said.ends_with("exit status 77")) missing = "this system lets nobody make network namespaces here";
  }
  std::string said;
  std::optional<std::string> missing;  ///< why there can be no such test
};

/// True if the launch ended with 1. A rank that ends with an error asks MPICH's launcher to end all of
/// them, as MPI_Abort does. That gives its 1, and now and then the 9 of one that it has killed.
inline bool ended_with_1(const mpi_launcher& l, std::string_view said) {
  return said.ends_with("exit status 1") || (l.name == std::string_view("mpich") && said.ends_with("exit status 9"));
}

/// For main, before anything else: launchers refuse to run as root in a container, unless they are told; MPI libraries free
/// little of what they have when they end; and Open MPI 4 takes ranks for failed that have ended while its launcher was late
/// (docs/lab/mpi.md).
inline void prepare_for_launchers() {
  ::setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
  ::setenv("OMPI_MCA_orte_allowed_exit_without_sync", "1", 1);
  for (const char* const of : {"OMPI", "PRTE"}) {
    ::setenv(fmt::format("{}_ALLOW_RUN_AS_ROOT", of).c_str(), "1", 1);
    ::setenv(fmt::format("{}_ALLOW_RUN_AS_ROOT_CONFIRM", of).c_str(), "1", 1);
  }
}

/// The tests of a launcher, whose name is the parameter's, skip where it is not there.
class under_mpi : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto why = missing(launcher())) GTEST_SKIP() << *why;
#ifdef ORRERY_TSAN
    GTEST_SKIP() << "MPI libraries are not compiled with ThreadSanitizer, which reports their locks";
#endif
    if (slowed_down && GetParam() == "mpich") GTEST_SKIP() << "MPICH's UCX replaces malloc, as sanitizers do";
  }
  [[nodiscard]] static const mpi_launcher& launcher() { return launcher_named(GetParam()); }
  static std::string outcome(std::string_view scenario, ranks r, std::vector<std::string> more = {}) {
    return program(command(launcher(), r, scenario, std::move(more)), launcher().file).end();
  }
};

}  // namespace orrery::testing
