// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/segment.hpp>
#include <orrery/transport/thread_limits.hpp>

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3
#endif

namespace orrery::transport {

using internal::fail;
using internal::fail_os;
using internal::retry;

namespace {

// SEAL: so that nobody adds F_SEAL_FUTURE_WRITE, which would shut out nodes that come later.
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The system locks a file while it makes memory for it or takes it back. Other threads that want
// some have their turn after so many bytes.
constexpr std::uint64_t part = std::uint64_t{64} << 20;

int make_memfd(const char* label) noexcept {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const auto fd = static_cast<int>(::syscall(SYS_memfd_create, label, flags | MFD_NOEXEC_SEAL));
  if (fd >= 0 || errno != EINVAL) return fd;
  return static_cast<int>(::syscall(SYS_memfd_create, label, flags));
}

result<std::uint64_t> check_file(int fd, std::uint64_t bytes, std::string_view what) {
  struct stat s{};
  if (::fstat(fd, &s) != 0) return fail_os(errno, "{} cannot be examined", what);
  if (s.st_uid != ::geteuid()) {
    return fail(transport_errc::foreign_owner, 0, "{} belongs to user {}, this node runs as user {}", what, s.st_uid,
                ::geteuid());
  }
  if (!S_ISREG(s.st_mode)) {
    return fail(transport_errc::damaged, 0, "{} is not shared memory", what);
  }
  if ((s.st_mode & 07777) != 0600) {
    return fail(transport_errc::foreign_owner, 0, "{} has mode {:o} instead of 600, so that others could change it",
                what, s.st_mode & 07777U);
  }
  const int found = ::fcntl(fd, F_GET_SEALS);
  if (found < 0 || (found & F_SEAL_SHRINK) == 0) {
    return fail(transport_errc::damaged, 0, "{} is not a sealed memory file", what);
  }
  const auto size = static_cast<std::uint64_t>(s.st_size);
  if (size == 0 || (bytes != 0 && size != bytes)) {
    return fail(transport_errc::damaged, 0, "{} is {} bytes long instead of {}", what, size, bytes);
  }
  return size;
}

// Large ones begin with a huge page, so that those of the file can be such of the mapping.
void* map_aligned(int fd, std::uint64_t bytes, int protection) noexcept {
  constexpr std::uint64_t huge_page = 2U << 20U;
  if (bytes < huge_page) return ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  void* const all = ::mmap(nullptr, bytes + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return MAP_FAILED;
  auto* const begin = static_cast<std::byte*>(all);
  const std::uint64_t before = (huge_page - reinterpret_cast<std::uintptr_t>(all) % huge_page) % huge_page;
  void* const at = ::mmap(begin + before, bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  const int why = errno;
  const std::uint64_t used = (bytes + 4095) / 4096 * 4096;
  if (before != 0) (void)::munmap(begin, before);
  if (before + used < bytes + huge_page) (void)::munmap(begin + before + used, bytes + huge_page - before - used);
  // Where it has failed, others may have what is between by now: the system may have let go of it.
  errno = why;
  return at;
}

}  // namespace

segment::segment(segment&& other) noexcept
    : fd_(std::move(other.fd_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

segment& segment::operator=(segment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

segment::~segment() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

result<segment> segment::create(std::string_view label, std::uint64_t bytes) {
  // Beyond this limit ftruncate would not only fail but send SIGXFSZ, which kills.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes) {
    return fail(transport_errc::no_space, EFBIG,
                "shared memory of {} bytes (sparse) is over the file size limit of {} bytes; "
                "raise it (ulimit -f) or lower the memory limit of the node",
                bytes, limit.rlim_cur);
  }
  unique_fd fd{make_memfd(std::string{label}.c_str())};
  if (!fd) return fail_os(errno, "shared memory cannot be created (memfd_create)");
  if (::fchmod(fd.get(), 0600) != 0) {
    return fail_os(errno, "shared memory cannot be made private (fchmod)");
  }
  if (retry([&] { return ::ftruncate(fd.get(), static_cast<off_t>(bytes)); }) != 0) {
    return fail_os(errno, "shared memory cannot be made {} bytes long (sparse)", bytes);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) {
    return fail_os(errno, "shared memory cannot be sealed");
  }
  return map(std::move(fd), bytes, access::read_write, label);
}

result<segment> segment::open_peer(const peer& owner, int fd, std::uint64_t bytes, access mode, std::string_view what) {
  auto file = owner.open_file(fd, mode == access::read ? O_RDONLY : O_RDWR);
  if (!file) return internal::pass(file);
  const auto size = check_file(file->get(), bytes, what);
  if (!size) return std::unexpected(size.error());
  auto mapped = map(std::move(*file), *size, mode, what);
  if (mapped) mapped->fd_.reset();  // a mapping needs no descriptor, and those are few
  return mapped;
}

result<segment> segment::adopt(unique_fd fd, std::uint64_t bytes, std::string_view what) {
  if (::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return fail_os(errno, "{} is not open", what);
  }
  const auto size = check_file(fd.get(), bytes, what);
  if (!size) return std::unexpected(size.error());
  return map(std::move(fd), *size, access::read_write, what);
}

result<segment> segment::map(unique_fd fd, std::uint64_t bytes, access mode, std::string_view what) {
  if (fd.get() <= STDERR_FILENO) {
    // The program was started without standard files: whoever writes to them must not find memory
    // there.
    fd = unique_fd{::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
    if (!fd) return fail_os(errno, "there is no file descriptor for {}", what);
  }
  const int protection = mode == access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* at = map_aligned(fd.get(), bytes, protection);
  if (at == MAP_FAILED) {
    const int why = errno;
    const auto limit = address_space_limit();
    return fail(internal::code_of(why), why,
                "{} bytes of address space for {} are not to be had ({}); {}ask for less memory of nodes "
                "(--orrery-memory)",
                bytes, what, internal::os_text(why),
                limit ? fmt::format("the limit of it (ulimit -v) is {} KiB: raise it, or ", *limit / 1024) : "");
  }
  // A core dump would walk all of every sparse segment, for minutes, while others wait to be told.
  (void)::madvise(at, bytes, MADV_DONTDUMP);
  return segment{std::move(fd), static_cast<std::byte*>(at), bytes};
}

result<void> segment::back(std::uint64_t offset, std::uint64_t bytes) const {
  assert(fd_ && offset <= size_ && bytes <= size_ - offset);
  const auto backed = [&](std::uint64_t at, std::uint64_t n) {
    return retry([&] { return ::fallocate(fd_.get(), 0, static_cast<off_t>(offset + at), static_cast<off_t>(n)); }) ==
           0;
  };
  for (std::uint64_t at = 0; at < bytes; at += part) {
    if (backed(at, std::min(part, bytes - at))) continue;
    const int error = errno;
    if (at != 0) (void)discard(offset, at);
    return fail(internal::code_of(error), error,
                "{} bytes of shared memory are not to be had ({}); free memory, raise the limit of "
                "the container, or lower the memory limit of the node",
                bytes, internal::os_text(error));
  }
  return {};
}

bool segment::discard(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  assert(fd_ && offset <= size_ && bytes <= size_ - offset);
  for (std::uint64_t at = 0; at < bytes; at += part) {
    const std::uint64_t n = std::min(part, bytes - at);
    if (retry([&] {
          return ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset + at),
                             static_cast<off_t>(n));
        }) != 0)
      return false;
  }
  return true;
}

}  // namespace orrery::transport
