// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Machines of the world as folders of data sets name them: by the names of their hosts.
namespace orrery::storage::internal {

/// "node7:/disk1/x" is the folder /disk1/x on the host node7; "/disk1/x" is one on the machine
/// where the data set's header is. A host's name has letters, digits and .-_# and is followed by a
/// colon and an absolute path.
struct host_folder {
  std::string host = {};
  std::string folder = {};
};
/// The folder's path is made absolute and tidy. Any thread.
[[nodiscard]] host_folder parse_folder(const std::string& text);
/// The same of what a program or a user gives: HOST: with a path that is not absolute is an error
/// (EINVAL), not a folder here with a colon in its name.
[[nodiscard]] host_folder parse_given_folder(const std::string& text);
/// The reverse.
[[nodiscard]] std::string folder_text(const std::string& host, const std::string& folder);

/// A file of the caller's machine as errors name it: "node7:/disk1/x" in a world of several
/// machines, else as it is.
[[nodiscard]] std::string file_text(const std::string& path);

/// The machine that is called so among machine_names(); of no name, the caller's. Throws EHOSTDOWN,
/// which names the host, the folder and the data set.
[[nodiscard]] std::uint32_t machine_named(const std::vector<std::string>& names, const std::string& host,
                                          const std::string& folder, const std::string& data_set);

/// How long a writer of a file may go on after its program was killed: another machine sees that
/// when it is silent. For a program with the options of this one.
[[nodiscard]] std::chrono::nanoseconds longest_after_kill();

/// The host of a node; of all nodes and PEs of a machine, in their order, those that can be
/// reached.
[[nodiscard]] std::uint32_t machine_of_node(std::uint32_t node);
[[nodiscard]] std::vector<std::uint32_t> nodes_of_machine(std::uint32_t machine);
[[nodiscard]] std::vector<std::uint32_t> pes_of_machine(std::uint32_t machine);

}  // namespace orrery::storage::internal
