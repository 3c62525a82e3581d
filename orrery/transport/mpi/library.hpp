// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/mpi/engine.hpp>
#include <orrery/transport/mpi/launcher.hpp>
#include <orrery/transport/mpi/library_watch.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct orrery_mpi_plugin;

namespace orrery::transport {

/// An MPI library that was loaded at run time.
///
/// Problem: one program is to run on threads, where no MPI is installed, and under each MPI; and
/// each MPI has its own binary interface. So the runtime is not linked with MPI. It loads the
/// library of the launcher that has started it, and then the plug-in that was compiled for the
/// interface of that library (mpi/plugin/plugin.cpp).
///
/// One for each OS process, owned by the world; the library itself stays loaded. One thread at a
/// time may call.
class mpi_library final : public engine {
 public:
  /// `path`: of a library; empty: the one of the launcher. Starts MPI, which blocks until all ranks
  /// have come. Fails with a sentence if there is no such library or no plug-in for it, or if the
  /// program has started MPI for one thread only. `patience`, `startup`: a call that does not
  /// return for so long ends this OS process with a line; see library_watch.
  [[nodiscard]] static result<wire::unique_ptr<mpi_library>> start(const mpi_launch& launch, const std::string& path,
                                                                   std::chrono::nanoseconds patience,
                                                                   std::chrono::nanoseconds startup);

  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t ranks() const noexcept { return ranks_; }
  /// The line by which the library names itself.
  [[nodiscard]] std::string version() const;
  /// Blocks until all ranks have called it. `all` has the bytes of rank i at i * own.size().
  [[nodiscard]] result<std::vector<std::byte>> gather(std::span<const std::byte> own);
  /// Blocks until all ranks have called it: what `root` gives.
  [[nodiscard]] result<std::vector<std::byte>> broadcast(std::vector<std::byte> own, std::uint32_t root);
  /// MPI_Finalize, if start() has started MPI. Blocks until all ranks have called it. No request is
  /// open any more.
  void finish() noexcept;

  [[nodiscard]] bool send(std::uint32_t to, int tag, std::span<const std::byte> data, request& begun) override;
  [[nodiscard]] bool receive(std::uint32_t from, int tag, std::span<std::byte> into, request& begun) override;
  [[nodiscard]] outcome test(request& begun, std::uint32_t& from, std::uint64_t& bytes) override;
  void cancel(request& begun) override;
  [[nodiscard]] std::span<const std::uint32_t> failures() override;
  [[nodiscard]] std::string error() const override;

 private:
  mpi_library(std::chrono::nanoseconds patience, std::chrono::nanoseconds startup);
  [[nodiscard]] std::string text_of(int code) const;

  const orrery_mpi_plugin* calls_ = nullptr;
  library_watch watch_;
  std::uint32_t rank_ = 0;
  std::uint32_t ranks_ = 0;
  std::vector<std::uint32_t> failed_;  // with room for all
  int code_ = 0;  // of the call that failed last
  int launcher_ = -1;  // its connection for a barrier, as mpi_launch has it
  bool started_here_ = false;
};

}  // namespace orrery::transport
