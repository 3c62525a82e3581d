// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/directory.hpp>
#include <orrery/process/io.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <string>
#include <vector>

// A checkpoint on disk: a folder with a file of states for each PE, and `checkpoint.json`, which is
// written last and names what is there: without it the checkpoint was not finished.
namespace orrery::detail {

/// The entry of an array, a group or a process in the header.
struct checkpoint_item {
  std::string type;  ///< as C++ writes it: array<Block, int>
  std::string name;  ///< of an array
  std::uint32_t id = 0;  ///< the number that the array had
  std::vector<address> processes;  ///< that there were: the members by rank, the process
  [[nodiscard]] bool operator==(const checkpoint_item&) const = default;
};
/// The entry of a file in the header.
struct checkpoint_part {
  std::string file;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  ///< XXH3
};
struct checkpoint_header {
  std::vector<checkpoint_item> items;
  std::vector<checkpoint_part> parts;
};

/// The state of one element, member or process.
struct checkpoint_record {
  std::uint32_t item = 0;  ///< its number in the header
  bytes data;  ///< index or rank, and behind it, as a section of its own, the state
};

/// Writes a file of states. Used by one process.
class checkpoint_writer {
 public:
  checkpoint_writer(const std::string& folder, std::string file);
  checkpoint_writer(const checkpoint_writer&) = delete;
  checkpoint_writer& operator=(const checkpoint_writer&) = delete;
  ~checkpoint_writer();
  /// May park.
  void add(const checkpoint_record& r);
  /// Everything is on the disk. May park.
  [[nodiscard]] checkpoint_part finish();

 private:
  void flush();
  struct file;
  wire::unique_ptr<file> file_;
};

/// Goes through a file of states, some MiB of it in memory at a time. Used by one process.
class checkpoint_reader {
 public:
  /// Reads it once to see whether it is what was written. Parks. Throws std::system_error: EBADMSG
  /// if it is not.
  checkpoint_reader(const std::string& folder, const checkpoint_part& part);
  checkpoint_reader(const checkpoint_reader&) = delete;
  checkpoint_reader& operator=(const checkpoint_reader&) = delete;
  ~checkpoint_reader();
  /// False at the end. Parks. Throws std::system_error.
  [[nodiscard]] bool next(checkpoint_record& r);

 private:
  struct file;
  wire::unique_ptr<file> file_;
};

/// Makes the folder, and keeps other checkpoints out of it as long as what this returns is open.
/// Throws usage_error if there is a checkpoint already, somebody writes one, or one of the
/// processes is there twice.
[[nodiscard]] io::descriptor begin_checkpoint(const std::string& folder, const std::vector<checkpoint_item>& items);
void write_checkpoint_header(const std::string& folder, const checkpoint_header& h);
/// Throws usage_error if that is no finished checkpoint, or one of items of other types;
/// std::system_error, EBADMSG if it is damaged.
[[nodiscard]] checkpoint_header read_checkpoint_header(const std::string& folder,
                                                       const std::vector<std::string>& types);

}  // namespace orrery::detail
