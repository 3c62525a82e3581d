// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/data_set.hpp>
#include <orrery/storage/internal/file_agent.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace orrery::storage::internal {

/// The files and folders of a data set on all its machines, for as long as it is made, opened or
/// removed.
///
/// Owned by one process; where no folder names a host, any thread may have one. Methods may park;
/// they throw what file_agent says, and the constructor EHOSTDOWN if a folder's machine is not in
/// the world.
class set_files {
 public:
  explicit set_files(const data_set_info& info);
  set_files(const set_files&) = delete;
  set_files& operator=(const set_files&) = delete;
  /// Removes again what was made, unless `keep` was called.
  ~set_files();

  /// Makes all folders, that of the header first.
  void make_folders();
  void require_absent();
  /// From here on header and files are this data set's, and count as made.
  void claim();
  void keep();
  void require_regular();
  void require_removable();
  void remove_files();
  void remove_folders();
  /// The id of each file.
  [[nodiscard]] const std::vector<std::uint32_t>& machines() const noexcept { return machines_; }

 private:
  struct place {
    std::uint32_t machine = 0;
    std::vector<std::string> files = {};
    std::vector<std::string> folders = {};
    wire::unique_ptr<file_agent> here = {};  // on the caller's machine
    remote<file_agent> there = {};
  };
  template <class F>
  void each(F&& f);

  const data_set_info& info_;
  std::vector<std::uint32_t> machines_;
  std::vector<place> places_;  // the caller's machine, with the header, first
};

}  // namespace orrery::storage::internal
