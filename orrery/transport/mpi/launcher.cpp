// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/launcher.hpp>

#include <orrery/transport/mpi/launcher_barrier.hpp>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

namespace orrery::transport {
namespace {

std::uint32_t number(const std::optional<std::string>& text) {
  std::uint32_t n = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), n);
  return n;
}

// Slurm listens there, too, but the library may speak another version with it.
int hydra_of(const environment_lookup& environment) {
  const auto fd = environment("PMI_FD");
  return fd && environment("MPI_LOCALNRANKS") ? static_cast<int>(number(fd)) : -1;
}

std::optional<std::string> own_environment(std::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

std::string_view to_string(mpi_kind kind) noexcept {
  switch (kind) {
    case mpi_kind::open_mpi:
      return "Open MPI";
    case mpi_kind::mpich:
      return "MPICH";
    default:
      return "an MPI library";
  }
}

std::optional<mpi_launch> find_mpi_launch(const environment_lookup& environment) {
  if (const auto size = environment("OMPI_COMM_WORLD_SIZE"))
    return mpi_launch{mpi_kind::open_mpi, number(size), "OMPI_COMM_WORLD_SIZE"};
  if (environment("PMI_RANK") && (environment("PMI_FD") || environment("PMI_PORT")))
    return mpi_launch{mpi_kind::mpich, number(environment("PMI_SIZE")), "PMI_RANK", hydra_of(environment)};
  if (environment("PMIX_RANK") && environment("PMIX_NAMESPACE")) return mpi_launch{mpi_kind::unknown, 0, "PMIX_RANK"};
  return std::nullopt;
}

std::optional<mpi_launch> find_mpi_launch() { return find_mpi_launch(own_environment); }

std::optional<std::string> missed_launch(const environment_lookup& environment) {
  const std::uint32_t ranks = number(environment("SLURM_STEP_NUM_TASKS"));
  if (ranks < 2 || environment("SLURM_PROCID") != "0" || find_mpi_launch(environment)) return std::nullopt;
  return fmt::format(
      "srun has started {} ranks without PMI, so each is a world of its own; say srun --mpi=pmix or --mpi=pmi2, as the MPI "
      "library was built (srun --mpi=list shows what there is), or --orrery-mpi=off if that is meant",
      ranks);
}
std::optional<std::string> missed_launch() { return missed_launch(own_environment); }

void forget_mpi_launch() noexcept {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT", "PMIX_RANK", "PMIX_NAMESPACE",
                           "SLURM_STEP_NUM_TASKS"})
    ::unsetenv(name);
}

void let_launcher_end() noexcept {
  using namespace std::chrono_literals;
  const int launcher = hydra_of(own_environment);
  if (launcher < 0) return;
  std::this_thread::sleep_for(200ms);
  end_all_at_launcher(launcher);
}

}  // namespace orrery::transport
