// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/io.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace orrery::storage {

/// How a file of pages is opened.
enum class open_mode : std::uint8_t {
  create,      ///< makes it, with room for all its pages; it must not be there yet
  read_write,  ///< it is there; one program at a time
  read_only,   ///< it is there; any number of programs
  /// As read_write, beside another device process, whose lock it shares (see
  /// device_options::alone).
  beside,
};

/// Through which door bytes go to the drive.
enum class transfer_mode : std::uint8_t {
  /// Directly where the file system can, else through the page cache, which is then said once.
  automatic,
  direct,     ///< O_DIRECT, or an error
  buffered,   ///< through the system's page cache
};

/// One file of pages of equal size, as the device processes use it: page n begins at n *
/// slot_bytes().
///
/// Problem: a drive runs at its full rate only with large aligned transfers that bypass the page
/// cache, and where those are not to be had (some file systems, some containers) the program should
/// still run. Errors (no space, a file that is missing, too short, in use) have to be said in terms
/// of the file and the page. So this opens, preallocates and locks the file, and moves whole pages
/// by orrery::io, which parks the calling process and keeps its PE going (io_uring, else helper
/// threads; the runtime says which when it matters).
///
/// Owned by one process and used in its methods, any number of which may be transferring at once.
/// The lock (flock) is held until the file is closed: one writer at a time, and readers at any
/// time. Invariants: offsets and lengths of transfers are multiples of page_alignment.
///
/// Everything here may park and throws std::system_error, whose what() says the file (in a world of
/// several machines with its host), the page, the cause and what to do.
class page_file {
 public:
  page_file() = default;
  /// `create`: throws EEXIST if it is there, ENOSPC if there is no room for all pages (it is then
  /// removed again). Else: throws ENOENT; EINVAL if it is shorter than its pages; EBUSY (a writer)
  /// if another program has it open for writing, and still has after two seconds; in a world of
  /// several machines after twice the time-out for nodes more, which a program that was killed may
  /// take to end. A wait is said on stderr.
  page_file(std::string path, std::uint64_t pages, std::uint64_t page_bytes, open_mode mode, transfer_mode transfers);

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Bytes from one page to the next: the page's, rounded up to page_alignment.
  [[nodiscard]] std::uint64_t slot_bytes() const noexcept { return slot_bytes_; }
  /// True if transfers go past the page cache.
  [[nodiscard]] bool direct() const noexcept { return direct_; }
  [[nodiscard]] bool writable() const noexcept { return mode_ != open_mode::read_only; }

  /// Reads page `index` whole; `into` has slot_bytes() and is aligned to page_alignment.
  void read(std::span<std::byte> into, std::uint64_t index) const;
  void write(std::span<const std::byte> from, std::uint64_t index);
  /// Returns when what was written before is on the drive.
  void sync();
  void close();

 private:
  void create(std::uint64_t bytes);
  void open_existing(std::uint64_t bytes);
  [[nodiscard]] io::descriptor open_as(int flags, transfer_mode transfers);
  void lock();

  std::string path_;
  std::string shown_;  // as errors name it
  std::uint64_t slot_bytes_ = 0;
  std::uint64_t pages_ = 0;
  open_mode mode_ = open_mode::read_only;
  bool direct_ = false;
  io::descriptor file_;
};

namespace detail {
/// Throws the error with one text for all of the layer: "<about>: <strerror>".
[[noreturn]] void throw_errno(int code, const std::string& about);
/// Opens a file as open(2) does, which must be a regular one (or a device, if they are allowed). A
/// FIFO would be waited for, and a device might do what nobody wants: they are refused with EINVAL.
/// May park. Throws std::system_error.
[[nodiscard]] io::descriptor open_regular(const std::string& path, int flags, bool devices = false);
/// Makes the file that long, with room for all of it where the file system can reserve some. Throws
/// std::system_error.
void reserve(int fd, std::uint64_t bytes);
/// The absolute path, without dots and without a slash at the end.
[[nodiscard]] std::string tidy_path(const std::string& path);
/// How many bytes, for people: "4 MiB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
}  // namespace detail

}  // namespace orrery::storage
