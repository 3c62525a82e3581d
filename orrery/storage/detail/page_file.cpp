// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/detail/page_file.hpp>

#include <orrery/process/runtime.hpp>
#include <orrery/storage/internal/hosts.hpp>
#include <orrery/storage/internal/patience.hpp>
#include <orrery/storage/page.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace orrery::storage {
namespace detail {

void throw_errno(int code, const std::string& about) { throw std::system_error(code, std::system_category(), about); }

io::descriptor open_regular(const std::string& path, int flags, bool devices) {
  io::descriptor file(path, flags | O_NONBLOCK);  // which does not wait for the other end of a FIFO
  struct stat st{};
  if (::fstat(file.get(), &st) != 0) throw_errno(errno, fmt::format("cannot look at {}", internal::file_text(path)));
  const bool device = S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode);
  if (!S_ISREG(st.st_mode) && !(device && devices))
    throw_errno(EINVAL, fmt::format("{} is no regular file but {}: put the file that was there back, or remove it",
                                    internal::file_text(path),
                                    S_ISFIFO(st.st_mode)  ? "a FIFO"
                                    : S_ISDIR(st.st_mode) ? "a folder"
                                                          : "a device"));
  // Transfers of a file with O_NONBLOCK might end with EAGAIN.
  const int now = ::fcntl(file.get(), F_GETFL);
  if (now < 0 || ::fcntl(file.get(), F_SETFL, now & ~O_NONBLOCK) != 0)
    throw_errno(errno, fmt::format("cannot open {}", internal::file_text(path)));
  return file;
}

void reserve(int fd, std::uint64_t bytes) {
  try {
    io::fallocate(fd, 0, bytes);
  } catch (const std::system_error& e) {
    if (e.code().value() != EOPNOTSUPP) throw;
    if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) throw_errno(errno, "truncate");
  }
}

std::string tidy_path(const std::string& path) {
  if (path.empty()) throw std::invalid_argument("the name of a file or folder is empty");
  std::string p = std::filesystem::absolute(path).lexically_normal().string();
  if (p.size() > 1 && p.ends_with('/')) p.pop_back();
  return p;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::string_view units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double n = static_cast<double>(bytes);
  int u = 0;
  for (; n >= 1024 && u < 6; ++u) n /= 1024;
  return u == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.4g} {}", n, units[u]);
}

}  // namespace detail

namespace {

using detail::bytes_text;
using detail::throw_errno;

// Said once in each OS process: whoever has one such file system mostly has all files there.
void say_buffered(const std::string& path) {
  static std::atomic<bool> said{false};
  if (said.exchange(true, std::memory_order_relaxed)) return;
  const std::string line = fmt::format(
      "orrery: the file system of {} has no O_DIRECT: pages go through the system's page cache, whose memory is in no "
      "budget\n",
      path);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string advice(int code, const std::string& path) {
  switch (code) {
    case ENOSPC:
    case EDQUOT: {
      struct statvfs fs{};
      const bool known = statvfs(folder_of(path).c_str(), &fs) == 0;
      return known ? fmt::format("; {} are free there: make room or choose another folder",
                                 bytes_text(std::uint64_t{fs.f_bavail} * fs.f_frsize))
                   : "; make room or choose another folder";
    }
    case EIO:
      return "; the drive or its connection has failed: see the system's log, and restore this page from a copy";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; it may only be read: open it read-only, or change its permissions";
    default:
      return {};
  }
}

[[noreturn]] void fail(const std::system_error& e, const std::string& what, const std::string& path) {
  throw_errno(e.code().value(), what + advice(e.code().value(), path));
}

// A device that opens a file `beside` has no lock of the first kind, but this, so that it is seen
// when the first one has gone and its world is not yet at its end.
struct flock range(short type) {
  struct flock l{};
  l.l_type = type;
  l.l_whence = SEEK_SET;
  l.l_len = 1;
  return l;
}
bool used_beside(int fd) {
  struct flock l = range(F_WRLCK);
  return ::fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}
void use_beside(int fd) {
  struct flock l = range(F_RDLCK);
  // where there is none, as on some network drives, nobody sees it
  (void)::fcntl(fd, F_OFD_SETLK, &l);
}

}  // namespace

page_file::page_file(std::string path, std::uint64_t pages, std::uint64_t page_bytes, open_mode mode,
                     transfer_mode transfers)
    : path_(std::move(path)), shown_(internal::file_text(path_)), pages_(pages), mode_(mode) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  if (page_bytes == 0 || page_bytes > most || (pages != 0 && page_bytes > most / pages))
    throw_errno(EINVAL, fmt::format("{} pages of {} bytes in {} cannot be", pages, page_bytes, shown_));
  slot_bytes_ = (page_bytes + page_alignment - 1) / page_alignment * page_alignment;
  const int flags = mode == open_mode::create      ? O_RDWR | O_CREAT | O_EXCL
                    : mode == open_mode::read_only ? O_RDONLY
                                                   : O_RDWR;
  file_ = open_as(flags, transfers);
  mode == open_mode::create ? create(slot_bytes_ * pages) : open_existing(slot_bytes_ * pages);
}

io::descriptor page_file::open_as(int flags, transfer_mode transfers) {
  try {
    if (transfers != transfer_mode::buffered) {
      try {
        io::descriptor fd = detail::open_regular(path_, flags | O_DIRECT, true);
        direct_ = true;
        return fd;
      } catch (const std::system_error& e) {
        if (e.code().value() != EINVAL || transfers == transfer_mode::direct) throw;
        // throws, if that was the reason
        if ((flags & O_CREAT) == 0) (void)detail::open_regular(path_, flags, true);
        // open(2) made it before it refused
        if ((flags & O_CREAT) != 0) (void)::unlink(path_.c_str());
        say_buffered(path_);
      }
    }
    return detail::open_regular(path_, flags, true);
  } catch (const std::system_error& e) {
    switch (e.code().value()) {
      case EEXIST:
        throw_errno(EEXIST, fmt::format("cannot create {}: open what is there, or remove it first", shown_));
      case ENOENT:
        throw_errno(ENOENT, (flags & O_CREAT) != 0
                                ? fmt::format("cannot create {}: make its folder first", shown_)
                                : fmt::format("the device file {} is missing: restore it, or mount the drive it is on",
                                              shown_));
      default:
        fail(e, fmt::format("cannot {} {}", (flags & O_CREAT) != 0 ? "create" : "open", shown_), path_);
    }
  }
}

void page_file::create(std::uint64_t bytes) {
  try {
    lock();
    if (bytes == 0) return;
    // Asked first: a file system may fill itself up before it finds that there is not enough, and
    // others write there too.
    if (struct statvfs fs{}; ::fstatvfs(file_.get(), &fs) == 0 && fs.f_blocks != 0 && bytes / fs.f_frsize > fs.f_bavail)
      throw std::system_error(ENOSPC, std::generic_category());
    detail::reserve(file_.get(), bytes);
  } catch (const std::system_error& e) {
    (void)::unlink(path_.c_str());
    fail(e, fmt::format("cannot make {} with {} pages, {}", shown_, pages_, bytes_text(bytes)), path_);
  }
}

void page_file::open_existing(std::uint64_t bytes) {
  if (mode_ == open_mode::read_write) lock();
  if (mode_ == open_mode::beside) use_beside(file_.get());
  struct stat st{};
  if (::fstat(file_.get(), &st) != 0) throw_errno(errno, fmt::format("cannot look at {}", shown_));
  if (static_cast<std::uint64_t>(st.st_size) < bytes)
    throw_errno(
        EINVAL,
        fmt::format("the device file {} was truncated: it has {} bytes and its {} pages take {}, so that page {} "
                    "and those behind it are lost: restore it from a copy",
                    shown_, st.st_size, pages_, bytes, static_cast<std::uint64_t>(st.st_size) / slot_bytes_));
}

// The requests of a program that was killed hold the file, and with it its lock, until the kernel
// is done with them: some time after the program's end. Its nodes on other machines see later that
// it was killed, and write until then.
void page_file::lock() {
  using namespace std::chrono_literals;
  const auto limit = internal::longest_after_kill();
  const auto take = [&] {
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return false;
    errno = EWOULDBLOCK;
    return !used_beside(file_.get());
  };
  internal::patience waiting;
  bool taken = take();
  while (!taken && errno == EWOULDBLOCK && waiting.waited() < limit) {
    waiting.say(
        [&] { return fmt::format("a program that has {} open for writing to end, {} s at most", shown_, limit / 1s); });
    sleep_for(10ms);
    taken = take();
  }
  if (taken) return;
  if (errno == EWOULDBLOCK)
    throw_errno(EBUSY,
                fmt::format("{} is open for writing, here or in another program: wait until it has ended, or open "
                            "it read-only",
                            shown_));
  if (errno != ENOLCK && errno != EOPNOTSUPP) throw_errno(errno, fmt::format("cannot lock {}", shown_));
}

void page_file::read(std::span<std::byte> into, std::uint64_t index) const {
  std::size_t got = 0;
  try {
    got = io::read_all(file_.get(), into, index * slot_bytes_);
  } catch (const std::system_error& e) {
    fail(e,
         fmt::format("cannot read page {} of {} ({} at offset {})", index, shown_, bytes_text(into.size()),
                     index * slot_bytes_),
         path_);
  }
  if (got < into.size())
    throw_errno(EINVAL,
                fmt::format("cannot read page {} of {}: the file was truncated and ends {} bytes into the page: "
                            "restore it from a copy",
                            index, shown_, got));
}

void page_file::write(std::span<const std::byte> from, std::uint64_t index) {
  try {
    io::write_all(file_.get(), from, index * slot_bytes_);
  } catch (const std::system_error& e) {
    fail(e,
         fmt::format("cannot write page {} of {} ({} at offset {})", index, shown_, bytes_text(from.size()),
                     index * slot_bytes_),
         path_);
  }
}

void page_file::sync() {
  try {
    io::fdatasync(file_.get());
  } catch (const std::system_error& e) {
    fail(e, fmt::format("cannot bring {} to its drive; any page written since it was flushed may be lost", shown_),
         path_);
  }
}

void page_file::close() { file_.close(); }

}  // namespace orrery::storage
