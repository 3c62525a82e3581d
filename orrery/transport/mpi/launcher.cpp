// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/launcher.hpp>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>

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

std::optional<mpi_launch> find_mpi_launch() {
  return find_mpi_launch([](std::string_view name) -> std::optional<std::string> {
    const char* const value = std::getenv(std::string(name).c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  });
}

void forget_mpi_launch() noexcept {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT", "PMIX_RANK", "PMIX_NAMESPACE"})
    ::unsetenv(name);
}

void let_launcher_hear() noexcept {
  using namespace std::chrono_literals;
  if (std::getenv("PMI_FD") != nullptr && std::getenv("MPI_LOCALNRANKS") != nullptr) std::this_thread::sleep_for(200ms);
}

}  // namespace orrery::transport
