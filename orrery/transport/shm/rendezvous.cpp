// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/rendezvous.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace orrery::transport {

using internal::fail;
using internal::fail_os;
using internal::retry;

namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint64_t file_magic = 0x5241'4c4c'4552'524f;  // "ORRELLAR"
constexpr std::uint32_t file_version = 1;

struct file_record {
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t pid;
  std::uint64_t start_time;
  std::uint64_t nonce;
  std::uint64_t pid_namespace;
  std::int32_t fd;
  std::uint32_t pad;
};
static_assert(sizeof(file_record) == 48);

// NONBLOCK and NOCTTY: whatever somebody has put there, to open it must neither wait nor have
// effects.
constexpr int open_flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::string user_name(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  char text[4096];
  if (::getpwuid_r(uid, &entry, text, sizeof text, &found) == 0 && found != nullptr)
    return fmt::format("{} ({})", uid, entry.pw_name);
  return std::to_string(uid);
}

std::unexpected<transport_error> foreign(const std::string& path, uid_t owner) {
  return fail(transport_errc::foreign_owner, 0,
              "{} belongs to user {}, this program runs as user {}; a world is private to its "
              "user: choose another name or set ORRERY_SHM_DIR to a directory of your own",
              path, user_name(owner), user_name(::geteuid()));
}

result<void> check_file(int fd, const std::string& path) {
  struct stat s{};
  if (::fstat(fd, &s) != 0) return fail_os(errno, "{} cannot be examined", path);
  if (s.st_uid != ::geteuid()) return foreign(path, s.st_uid);
  if (!S_ISREG(s.st_mode)) {
    return fail(transport_errc::damaged, 0, "{} is not a regular file, so it is not the file of a world; remove it",
                path);
  }
  if ((s.st_mode & 077) != 0) {
    return fail(transport_errc::foreign_owner, 0,
                "{} has mode {:o}, so that other users could have changed it; remove it if no "
                "world of that name is running",
                path, s.st_mode & 07777U);
  }
  return {};
}

std::unexpected<transport_error> open_failed(const std::string& path, int error) {
  struct stat s{};
  const bool there = ::lstat(path.c_str(), &s) == 0;
  if (there && S_ISLNK(s.st_mode)) {
    return fail(transport_errc::damaged, error, "{} is a symbolic link, which Orrery does not follow; remove it", path);
  }
  if (there && s.st_uid != ::geteuid()) return foreign(path, s.st_uid);
  if (there && !S_ISREG(s.st_mode)) {
    return fail(transport_errc::damaged, error, "{} is not a regular file, so it is not the file of a world; remove it",
                path);
  }
  if (error == ENOSPC || error == EDQUOT) {
    return fail(transport_errc::no_space, error,
                "{} cannot be made ({}); free space there or set ORRERY_SHM_DIR to another directory", path,
                internal::os_text(error));
  }
  return fail_os(error, "{} cannot be opened; set ORRERY_SHM_DIR to a directory that you may write to", path);
}

// The file, made if need be; not locked.
result<unique_fd> open_or_make(const std::string& path) {
  for (;;) {
    unique_fd fd{retry([&] { return ::open(path.c_str(), O_RDWR | open_flags); })};
    if (!fd && errno == ENOENT) {
      fd = unique_fd{retry([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | open_flags, 0600); })};
      if (!fd && errno == EEXIST) continue;  // somebody was faster
      if (fd) (void)::fchmod(fd.get(), 0600);  // whatever the umask took away
    }
    if (!fd) return open_failed(path, errno);
    return fd;
  }
}

}  // namespace

result<void> check_world_name(std::string_view name) {
  const bool good = !name.empty() && name.size() <= 48 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
  if (good) return {};
  return fail(transport_errc::bad_argument, 0,
              "'{}' cannot be the name of a world; use 1 to 48 of the characters A-Z a-z 0-9 . _ -",
              name.substr(0, 60));
}

std::string rendezvous_directory(std::string_view configured) {
  if (!configured.empty()) return std::string{configured};
  const char* set = std::getenv("ORRERY_SHM_DIR");
  return set != nullptr && *set != '\0' ? set : "/dev/shm";
}

std::string rendezvous_prefix() { return fmt::format("orrery-{}-", ::geteuid()); }

rendezvous::rendezvous(std::string path, unique_fd fd) noexcept : path_(std::move(path)), fd_(std::move(fd)) {}

rendezvous::~rendezvous() { unlock(); }

result<wire::unique_ptr<rendezvous>> rendezvous::enter(std::string_view name, std::string_view directory,
                                                       std::chrono::milliseconds patience) {
  if (auto good = check_world_name(name); !good) return internal::pass(good);
  const std::string path = fmt::format("{}/{}{}", rendezvous_directory(directory), rendezvous_prefix(), name);
  for (;;) {
    auto fd = open_or_make(path);
    if (!fd) return internal::pass(fd);
    if (auto good = check_file(fd->get(), path); !good) return internal::pass(good);
    wire::unique_ptr<rendezvous> door{new rendezvous{path, std::move(*fd)}};
    const bool locked = door->lock(patience);
    const int error = errno;
    if (locked && door->path_is_this()) return door;
    if (!locked && error != EWOULDBLOCK) {
      return fail_os(error, "{} cannot be locked; set ORRERY_SHM_DIR to a directory of this machine", path);
    }
    if (!locked && door->path_is_this()) {
      return fail(transport_errc::timed_out, 0,
                  "another node has held the lock of {} for {} ms; it may be stopped (see /proc/locks): continue it or "
                  "end it",
                  path, patience.count());
    }
    // It was removed between open and lock: whoever did it has ended that world. Patience begins
    // anew.
  }
}

result<wire::unique_ptr<rendezvous>> rendezvous::look(std::string_view name, std::string_view directory) {
  if (auto good = check_world_name(name); !good) return internal::pass(good);
  std::string path = fmt::format("{}/{}{}", rendezvous_directory(directory), rendezvous_prefix(), name);
  unique_fd fd{retry([&] { return ::open(path.c_str(), O_RDONLY | open_flags); })};
  if (!fd && errno == ENOENT) {
    return fail(transport_errc::not_found, ENOENT, "no world '{}' of this user is running ({} does not exist)", name,
                path);
  }
  if (!fd) return open_failed(path, errno);
  if (auto good = check_file(fd.get(), path); !good) return internal::pass(good);
  return wire::unique_ptr<rendezvous>{new rendezvous{std::move(path), std::move(fd)}};
}

bool rendezvous::remove_file(std::string_view name, std::string_view directory, std::uint64_t nonce,
                             std::chrono::milliseconds patience) noexcept try {
  auto door = look(name, directory);  // and not enter(), which would make it
  if (!door || !(*door)->lock(patience) || !(*door)->path_is_this()) return false;
  const auto address = (*door)->read();
  if (nonce != 0) {
    if (!address || !*address || (*address)->nonce != nonce) return false;
  } else {
    if ((*door)->held_by_others()) return false;
    if (address && *address && (*address)->pid_namespace == pid_namespace() &&
        find_peer((*address)->creator.pid) == (*address)->creator) {
      return false;
    }
  }
  return (*door)->remove();
} catch (...) {
  return false;  // no memory: the file is left for the next who comes
}

result<std::optional<world_address>> rendezvous::read() const {
  file_record r{};
  const ssize_t n = retry([&] { return ::pread(fd_.get(), &r, sizeof r, 0); });
  if (n < 0) return fail_os(errno, "{} cannot be read", path_);
  if (n == 0) return std::nullopt;
  if (n != sizeof r || r.magic != file_magic || r.pid <= 0 || r.fd < 0 || r.nonce == 0) {
    return fail(transport_errc::damaged, 0,
                "{} is not what Orrery writes there; remove it if no world of that name is running", path_);
  }
  if (r.version != file_version) {
    return fail(transport_errc::different_build, 0,
                "{} was written by another version of Orrery (format {}, this is {}); build all "
                "programs with the same version",
                path_, r.version, file_version);
  }
  return world_address{{r.pid, r.start_time}, r.fd, r.nonce, r.pid_namespace};
}

result<void> rendezvous::write(const world_address& address) {
  const file_record r{.magic = file_magic,
                      .version = file_version,
                      .pid = address.creator.pid,
                      .start_time = address.creator.start_time,
                      .nonce = address.nonce,
                      .pid_namespace = address.pid_namespace,
                      .fd = address.fd,
                      .pad = 0};
  const ssize_t n = retry([&] { return ::pwrite(fd_.get(), &r, sizeof r, 0); });
  if (n == sizeof r) return {};
  const int error = n < 0 ? errno : ENOSPC;
  return fail(internal::code_of(error), error,
              "{} cannot be written ({}); free space there or set ORRERY_SHM_DIR to another directory", path_,
              internal::os_text(error));
}

bool rendezvous::remove() noexcept {
  if (!locked_ || !path_is_this()) {
    errno = ENOENT;
    return false;
  }
  return ::unlink(path_.c_str()) == 0;
}

namespace {

// Far from what read and write touch: where locks are mandatory they would be in the way.
struct flock hold_range(short type) noexcept {
  struct flock range{};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = off_t{1} << 30;
  range.l_len = 1;
  return range;
}

}  // namespace

void rendezvous::hold() noexcept {
  // A lock of the open file and not of the OS process (F_SETLK): that one goes with any close() of
  // the file.
  auto range = hold_range(F_RDLCK);
  (void)retry([&] { return ::fcntl(fd_.get(), F_OFD_SETLK, &range); });
}

bool rendezvous::held_by_others() const noexcept {
  auto range = hold_range(F_WRLCK);
  if (retry([&] { return ::fcntl(fd_.get(), F_OFD_GETLK, &range); }) != 0) return true;
  return range.l_type != F_UNLCK;
}

// Not a blocking flock() with an alarm: signals are the program's. It is held for less than a
// millisecond at a time.
bool rendezvous::lock(std::chrono::milliseconds patience) noexcept {
  if (locked_) return true;
  // Tries are counted too: when the whole machine stood still, the time that has passed says
  // nothing of the holder.
  constexpr int enough_tries = 100;
  const auto deadline = clock::now() + patience;
  long pause_us = 100;
  for (int tries = 1;; ++tries) {
    if (retry([&] { return ::flock(fd_.get(), LOCK_EX | LOCK_NB); }) == 0) {
      locked_ = true;
      return true;
    }
    if (errno != EWOULDBLOCK) return false;
    const bool over = clock::now() >= deadline && (tries >= enough_tries || patience.count() <= 0);
    if (over || !path_is_this()) {
      errno = EWOULDBLOCK;
      return false;
    }
    const timespec pause{.tv_sec = 0, .tv_nsec = pause_us * 1000};
    ::nanosleep(&pause, nullptr);
    pause_us = std::min(pause_us * 2, 2000L);
  }
}

void rendezvous::unlock() noexcept {
  // Not left to close(): a child that was forked meanwhile would keep the lock.
  if (std::exchange(locked_, false)) ::flock(fd_.get(), LOCK_UN);
}

bool rendezvous::path_is_this() const noexcept {
  struct stat open{};
  struct stat named{};
  return ::fstat(fd_.get(), &open) == 0 && ::lstat(path_.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

}  // namespace orrery::transport
