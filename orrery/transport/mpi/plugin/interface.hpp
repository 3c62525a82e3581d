// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The runtime's demands on an MPI library. The runtime is not linked with MPI: one source,
// plugin.cpp, is compiled against the headers of each kind of library, and the result is loaded
// after the library that it is for. Names and types here are those of C, as compilers may differ.
//
// Requests are numbers that the plug-in gives out. All functions return 0, or a code of MPI.
extern "C" {

struct orrery_mpi_plugin {
  std::uint32_t version;
  const char* kind;  ///< "Open MPI" or "MPICH"

  /// Starts the library, unless the program has; then `*started` is 0. `*level`: 0 where only the
  /// main thread may call it.
  int (*begin)(int* started, int* level);
  int (*end)();
  /// 1 if end() may be called only when no rank makes progress any more: then settle() and a
  /// barrier outside of the library come before it.
  int (*ends_at_once)();
  /// Each rank has heard from each other one. `*all`: all ranks have given `own` = 1. Blocks until
  /// all ranks have called it.
  int (*settle)(int own, int* all);
  /// A communicator of its own, whose errors are returned.
  int (*place)(std::uint32_t* rank, std::uint32_t* ranks);
  /// Blocks until all ranks have called it; `all` has room for `bytes` of each.
  int (*gather)(const void* own, std::uint32_t bytes, void* all);
  /// The same bytes in all ranks: those of `root`. Less than 2 GiB.
  int (*broadcast)(void* data, std::uint32_t bytes, std::uint32_t root);
  int (*send)(const void* data, std::uint64_t bytes, std::uint32_t to, int tag, std::uint64_t* request);
  /// `from`: a rank, or 0xffffffff for any.
  int (*receive)(void* data, std::uint64_t bytes, std::uint32_t from, int tag, std::uint64_t* request);
  /// `*done` is 1 when the request has ended; then `from` and `bytes` say what came. An error ends
  /// a request too.
  int (*test)(std::uint64_t* request, int* done, std::uint32_t* from, std::uint64_t* bytes);
  void (*cancel)(std::uint64_t* request);  ///< of a receive
  /// If the library has reported a failed rank since the last call: the numbers of all that have
  /// failed, at most `room`, and how many those are. Else 0, for a look at a flag. Until it is
  /// called, receives from any rank may not get what others send.
  std::uint32_t (*failures)(std::uint32_t* ranks, std::uint32_t room);
  void (*explain)(int code, char* text, std::uint32_t room);
  void (*describe)(char* text, std::uint32_t room);  ///< the library's own version line
};

/// Changes with each function that is added, so that a plug-in of another version is not called. A
/// change of what a function means adds 0x1'0000.
inline constexpr std::uint32_t orrery_mpi_plugin_version = 0x2'0000 + sizeof(orrery_mpi_plugin);

/// The symbol of each plug-in: a function without arguments.
using orrery_mpi_plugin_function = const orrery_mpi_plugin* (*)();
}
