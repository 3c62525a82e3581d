// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/runtime.hpp>

#include <functional>
#include <map>
#include <string>

namespace orrery {

/// The functions, by name, that nodes which run no main may run by themselves.
using roles = std::map<std::string, std::function<void(args)>>;

/// The same as `run` without roles. Moreover, a node that was started with `--orrery-role=NAME` and
/// runs no main runs that role, as a process on its first PE, while it serves. Such are the ranks
/// of an MPI launch but the first, also those of other programs, and the other nodes of
/// --orrery-nodes. The first node of a launch runs main, whatever it is told.
///
/// The world ends when main returns: calls of a role that still wait throw `stopped` then. A node
/// whose role returns serves on. An exception that leaves a role is one line on stderr. A name that
/// is not in `with` is refused before the world starts, with those that are.
///
///     mpirun -n 2 ./storage : -n 6 ./transform --orrery-role=work
///
///     int main(int argc, char** argv) {  // of transform
///       return orrery::run(argc, argv, main_program,
///                          {{"work", [](orrery::args) { transform_with(await_name...); }}});
///     }
int run(int argc, char** argv, const std::function<int(args)>& main, const roles& with);

}  // namespace orrery
