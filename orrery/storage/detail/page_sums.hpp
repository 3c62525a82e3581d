// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/io.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace orrery::storage {

/// The known state of a page on disk.
enum class page_state : std::uint32_t {
  never_written = 0,  ///< it is all zeros
  writing = 1,        ///< a write of it has begun; if nobody is writing, it was interrupted
  written = 2,        ///< it has the checksum that is kept
};

/// The checksums of a device's pages, kept in a file beside the device's.
///
/// Problem: a program that is killed, or a machine that loses power, in the middle of a write
/// leaves a page that is half old and half new; a drive or a cable may change bytes. Neither must
/// be taken for data, and neither may be noticed only by the whole array's end. So each page has a
/// record of 16 bytes: a checksum (XXH3 of the page and its index), the page's state, and a check
/// of the record. A record says `writing` before the drive is given the page, and `written`, with
/// the sum, after it has taken it; so whatever stops the program in between leaves a record that
/// says so. A reader compares.
///
/// The content of the file survives the death of the program at once, and that of the machine after
/// sync(): until then a page may be newer than its record. The page's sum is wrong then, or, where
/// that was its first write, the record says that there was none, and the page reads as zeros. A
/// computation that has noted the write elsewhere asks for such pages (`unwritten`).
///
/// Owned by one device process and used in its methods; may park. A writer that is `alone` keeps
/// all records in memory (16 bytes for each page); others look into the file each time, since
/// somebody else may be writing. Throws std::system_error.
class page_sums {
 public:
  struct record {
    std::uint64_t sum = 0;
    page_state state = page_state::never_written;
    std::uint32_t check = 0;
    friend bool operator==(const record&, const record&) = default;
  };

  page_sums() = default;
  /// Creates the file (`create`), or opens one for writing or reading. `owner`: a number of whoever
  /// it belongs to, kept in it; 0: nobody's. `number`: of its device among the owner's, from 1,
  /// kept in it, too; 0: not known. Throws EINVAL if it is no such file, of another number of
  /// pages, another owner or another device.
  page_sums(std::string path, std::uint64_t pages, bool create, bool writable, bool alone = true,
            std::uint64_t owner = 0, std::uint32_t number = 0);
  /// The owner that a file of checksums names, 0 if it names none; nothing if it is no such file.
  /// May park.
  [[nodiscard]] static std::optional<std::uint64_t> owner_of(const std::string& path);

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Throws EBADMSG if the record itself is damaged.
  [[nodiscard]] record get(std::uint64_t index) const;
  /// The pages whose records say that they were never written, in their order.
  [[nodiscard]] std::vector<std::uint64_t> unwritten() const;
  void begin_write(std::uint64_t index);
  void end_write(std::uint64_t index, std::uint64_t sum);
  void sync();
  void close();

  /// The checksum of a page at its place: equal pages at different places have different sums, so
  /// that misplaced ones are found.
  [[nodiscard]] static std::uint64_t sum_of(std::span<const std::byte> bytes, std::uint64_t index) noexcept;

 private:
  void put(std::uint64_t index, std::uint64_t sum, page_state state);

  std::string path_;
  std::string shown_;  // as errors name it
  io::descriptor file_;
  std::uint64_t pages_ = 0;
  bool kept_ = false;
  std::vector<record> records_;  // of a writer that is alone
};

}  // namespace orrery::storage
