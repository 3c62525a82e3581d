// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::transport {

/// The library that a launcher of MPI programs belongs to.
enum class mpi_kind : std::uint8_t { unknown, open_mpi, mpich };
[[nodiscard]] std::string_view to_string(mpi_kind kind) noexcept;

/// The launcher that has started this OS process, as the environment says.
struct mpi_launch {
  mpi_kind kind = mpi_kind::unknown;
  std::uint32_t ranks = 0;  ///< that it has started; 0: it does not say
  std::string variable;     ///< by which it was recognized
  /// Where MPICH's hydra listens to the library, in PMI's first version; -1: not known.
  int pmi = -1;
};

/// The environment: as getenv.
using environment_lookup = std::function<std::optional<std::string>(std::string_view variable)>;

/// Nothing if no launcher of MPI programs has started this OS process: SLURM_PROCID alone means
/// nothing, as srun also starts what has nothing to do with MPI.
[[nodiscard]] std::optional<mpi_launch> find_mpi_launch(const environment_lookup& environment);
/// The same of this OS process. To be called before there are threads.
[[nodiscard]] std::optional<mpi_launch> find_mpi_launch();
/// The text for a user whose srun has started several ranks without a way to each other (PMI): each
/// is a world of its own. Nothing in all ranks but the first, and where there is nothing to say.
[[nodiscard]] std::optional<std::string> missed_launch(const environment_lookup& environment);
[[nodiscard]] std::optional<std::string> missed_launch();
/// Removes what find_mpi_launch and missed_launch look at from the environment, so that programs
/// which are started from here are not taken for ranks. To be called before there are threads.
void forget_mpi_launch() noexcept;

/// Before an OS process ends with an error, without having been a rank.
///
/// Problem: MPICH's hydra still writes to its helper on each host when the ranks have begun. If all
/// ranks of a host end before that, their helper ends, too. SIGPIPE then kills hydra, and what the
/// ranks have said is lost. So this waits for 200 ms where the environment is that of hydra. A
/// hundredth of all launches on a busy machine were affected without it, and none with half of that
/// time.
///
/// Hydra takes an OS process that ends before it has become a rank for one that is done, whatever
/// its exit code. The other ranks would wait for it in MPI_Init. So hydra is asked to end them all,
/// as MPI_Abort does.
void let_launcher_end() noexcept;

}  // namespace orrery::transport
