// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/shm/peer.hpp>
#include <orrery/transport/shm/unique_fd.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace orrery::transport {

// Memory that several OS processes share.
//
// Problem: shared memory that has a name outlives those who use it, belongs to whoever made the
// name first, and can be cut short by any of its users, which kills the others with SIGBUS. A page
// that cannot be had when it is first touched kills with SIGBUS too.
//
// So a segment is an anonymous file (memfd) of a fixed, large and sparse size: the kernel frees it
// when the last user is gone, however it went; it is sealed against every change of its size;
// ranges are given memory before they are used (`back`), so that "no space" is an error and not a
// signal; and those who open it through /proc check whose it is.
//
// Ownership: RAII, moved but not copied. The mapping is at one address for life. Thread-safe but
// for moving.
//
// Invariants
//   I1  size() never changes and the file is at least that long, as long as the mapping exists.
//   I2  Memory in a range that was backed can be touched without failing.
class segment {
 public:
  segment() = default;
  segment(segment&& other) noexcept;
  segment& operator=(segment&& other) noexcept;
  ~segment();

  /// A new one, all zero and sparse. `label` is what /proc/<pid>/maps shows; `bytes` a multiple of
  /// the page size.
  [[nodiscard]] static result<segment> create(std::string_view label, std::uint64_t bytes);

  /// One that another node made, whose file descriptor there is `fd`. Checks that `owner` runs,
  /// that the file belongs to this user and to nobody else, that it is sealed, and that it is
  /// `bytes` long (0: any length). The descriptor is not kept open. `what` names it in errors.
  [[nodiscard]] static result<segment> open_peer(const peer& owner, int fd, std::uint64_t bytes, access mode,
                                                 std::string_view what);

  /// One whose descriptor was inherited at exec. Checks the same; keeps the descriptor and makes it
  /// close-on-exec.
  [[nodiscard]] static result<segment> adopt(unique_fd fd, std::uint64_t bytes, std::string_view what);

  /// Gives memory to a range. Cheap where it has it already. The system locks the file meanwhile,
  /// so a large range has it in parts. If that fails, one above 64 MiB may lose what it had.
  [[nodiscard]] result<void> back(std::uint64_t offset, std::uint64_t bytes) const;
  /// Takes the memory of a range of whole pages away again; it reads as zero afterwards.
  bool discard(std::uint64_t offset, std::uint64_t bytes) const noexcept;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// -1 if it is another node's.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  segment(unique_fd fd, std::byte* data, std::uint64_t size) noexcept : fd_(std::move(fd)), data_(data), size_(size) {}
  static result<segment> map(unique_fd fd, std::uint64_t bytes, access mode, std::string_view what);

  unique_fd fd_;
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace orrery::transport
