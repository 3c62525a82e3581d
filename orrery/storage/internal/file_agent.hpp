// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/data_set.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orrery::storage::internal {

/// Does to the files of a data set what can only be done on their machine: makes and removes them,
/// and looks at them.
///
/// Problem: the folders of a data set may be on several machines, and each machine sees its own
/// drives only. So there is one of these on each of them, for as long as a data set is made, opened
/// or removed; set_files calls them.
///
/// As a process it is made by spawn; where all files are on the caller's machine it is a plain
/// object, and no process of Orrery is needed. Its methods may park. They throw std::system_error,
/// whose text names the file or folder.
class file_agent {
 public:
  file_agent() = default;
  /// `host`: how the data set calls its machine, for texts.
  explicit file_agent(std::string host) : named_(std::move(host)) {}
  file_agent(const file_agent&) = delete;
  file_agent& operator=(const file_agent&) = delete;
  /// Removes again what was made, unless `keep` was called.
  ~file_agent();

  /// Makes those folders that are not there; their parents must be.
  void make_folders(const std::vector<std::string>& folders);
  /// Throws EEXIST if one of these files of the data set is there.
  void require_absent(const std::string& data_set, const std::vector<std::string>& files) const;
  /// From here on these files count as made.
  void claim(const std::vector<std::string>& files) { made_.insert(made_.end(), files.begin(), files.end()); }
  /// Files that were made stay.
  void keep() { made_.clear(); }
  void require_regular(const std::vector<std::string>& files) const;
  /// Throws if one of these files of the data set may not be removed: EPERM, EBUSY, ELOOP.
  void require_removable(const data_set_info& info, const std::vector<std::string>& files) const;
  void remove_files(const std::vector<std::string>& files) const;
  /// Removes those folders in which nothing is left.
  void remove_folders(const std::vector<std::string>& folders) const;
  /// Bytes that are free where the folder is or will be; nothing where the file system does not
  /// say.
  [[nodiscard]] std::optional<std::uint64_t> free_bytes(const std::string& folder) const;

 private:
  std::string named_;
  std::vector<std::string> made_;
};
ORRERY_PROCESS(file_agent, make_folders, require_absent, claim, keep, require_regular, require_removable, remove_files,
               remove_folders, free_bytes);

}  // namespace orrery::storage::internal
