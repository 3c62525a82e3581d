// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/io.hpp>

#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

namespace orrery::io {
namespace {

using detail::pe;
using scheduler::io_call;
using scheduler::io_request;

constexpr std::uint64_t stream = io_request::stream;

// The subject of a request. Only made when it has failed, so it may take its time.
std::string describe(const io_request& r) {
  std::string text(to_string(r.call));
  if (r.call == io_call::open) return fmt::format("open of {}", static_cast<const char*>(r.memory));
  if (r.call == io_call::readv || r.call == io_call::writev) {
    text += fmt::format(" of {} buffers", r.length);
  } else if (r.transfers() || r.call == io_call::fallocate) {
    text += fmt::format(" of {} bytes", r.length);
  }
  if (r.offset != stream && (r.transfers() || r.call == io_call::fallocate))
    text += fmt::format(" at offset {}", r.offset);
  text += fmt::format(" of descriptor {}", r.fd);
  std::array<char, 512> path;
  const ssize_t n = readlink(fmt::format("/proc/self/fd/{}", r.fd).c_str(), path.data(), path.size());
  if (n > 0) text += fmt::format(" ({})", std::string_view(path.data(), static_cast<std::size_t>(n)));
  if (r.result == -EINVAL && r.transfers() && (fcntl(r.fd, F_GETFL) & O_DIRECT) != 0)
    text += " (with O_DIRECT memory, offset and length must be multiples of the device's block size)";
  return text;
}

std::exception_ptr error_of(const io_request& r) {
  if (r.result == -ECANCELED && scheduler::current_pe->refusing()) return std::make_exception_ptr(stopped(describe(r)));
  return std::make_exception_ptr(std::system_error(static_cast<int>(-r.result), std::system_category(), describe(r)));
}

template <class T>
T value_of(const io_request& r) {
  if (r.result < 0) std::rethrow_exception(error_of(r));
  if constexpr (!std::is_void_v<T>) return static_cast<T>(r.result);
}

// Nothing begins while the runtime shuts down. (When it destroys the objects that are left, their
// destructors may begin requests again.)
void admit(pe& self, const io_request& r) {
  if (self.refusing()) [[unlikely]]
    self.shutdown().refuse(describe(r).c_str());
}

// The request, carried out.
std::size_t complete(io_request& r) {
  pe& self = detail::here_pe();
  self.require_process();
  admit(self, r);
  self.io().run(r);
  return value_of<std::size_t>(r);
}

// An offset as a caller may give it. (Inside of a request the greatest one means a stream.)
std::uint64_t in_file(std::uint64_t offset) {
  if (offset > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    throw std::system_error(EINVAL, std::system_category(), fmt::format("no file has an offset {}", offset));
  return offset;
}

io_request read_request(int fd, std::span<std::byte> into, std::uint64_t offset) {
  return {.call = io_call::read, .fd = fd, .memory = into.data(), .length = into.size(), .offset = offset};
}
io_request write_request(int fd, std::span<const std::byte> from, std::uint64_t offset) {
  return {.call = io_call::write, .fd = fd, .memory = from.data(), .length = from.size(), .offset = offset};
}
std::size_t transfer(io_call call, int fd, std::span<const iovec> buffers, std::uint64_t offset) {
  io_request r{.call = call, .fd = fd, .memory = buffers.data(), .length = buffers.size(), .offset = offset};
  return complete(r);
}
// As many transfers as it takes; fewer bytes only where a file ends that is read.
std::size_t transfer_all(io_request wanted) {
  const auto* const begin = static_cast<const std::byte*>(wanted.memory);
  std::size_t done = 0;
  while (done < wanted.length) {
    io_request r = wanted;
    r.memory = begin + done;
    r.length = wanted.length - done;
    if (wanted.offset != stream) r.offset = wanted.offset + done;
    const std::size_t n = complete(r);
    // some devices say it so
    if (n == 0 && r.call == io_call::write) throw std::system_error(ENOSPC, std::system_category(), describe(r));
    if (n == 0) break;
    done += n;
  }
  return done;
}
io_request plain(io_call call, int fd) { return {.call = call, .fd = fd}; }

// A request that goes on while its process does something else, and the future that it will make
// ready.
template <class T>
struct started final : io_request {
  typename detail::future_access<T>::owner state;
};

template <class T>
future<T> start(const io_request& wanted) {
  pe& self = detail::here_pe();
  admit(self, wanted);
  auto state = detail::future_access<T>::make_local(self);
  if (!wanted.open_ended()) self.io().wait_for_room();
  auto r = wire::make_unique<started<T>>();
  static_cast<io_request&>(*r) = wanted;
  r->on_done = [](pe& at, io_request& ended) {
    const wire::unique_ptr<started<T>> mine(static_cast<started<T>*>(&ended));
    detail::resolve<T>(at, mine->state.release(), [&] { return value_of<T>(ended); });
  };
  r->state = detail::future_access<T>::make_hold(state);
  self.io().start(*r);
  (void)r.release();  // on_done's
  return detail::future_access<T>::wrap(std::move(state));
}

}  // namespace

std::size_t read(int fd, std::span<std::byte> into, std::uint64_t offset) {
  io_request r = read_request(fd, into, in_file(offset));
  return complete(r);
}
std::size_t write(int fd, std::span<const std::byte> from, std::uint64_t offset) {
  io_request r = write_request(fd, from, in_file(offset));
  return complete(r);
}
std::size_t readv(int fd, std::span<const iovec> into, std::uint64_t offset) {
  return transfer(io_call::readv, fd, into, in_file(offset));
}
std::size_t writev(int fd, std::span<const iovec> from, std::uint64_t offset) {
  return transfer(io_call::writev, fd, from, in_file(offset));
}
std::size_t read(int fd, std::span<std::byte> into) {
  io_request r = read_request(fd, into, stream);
  return complete(r);
}
std::size_t write(int fd, std::span<const std::byte> from) {
  io_request r = write_request(fd, from, stream);
  return complete(r);
}
std::size_t readv(int fd, std::span<const iovec> into) { return transfer(io_call::readv, fd, into, stream); }
std::size_t writev(int fd, std::span<const iovec> from) { return transfer(io_call::writev, fd, from, stream); }

std::size_t read_all(int fd, std::span<std::byte> into, std::uint64_t offset) {
  return transfer_all(read_request(fd, into, in_file(offset)));
}
void write_all(int fd, std::span<const std::byte> from, std::uint64_t offset) {
  (void)transfer_all(write_request(fd, from, in_file(offset)));
}
std::size_t read_all(int fd, std::span<std::byte> into) { return transfer_all(read_request(fd, into, stream)); }
void write_all(int fd, std::span<const std::byte> from) { (void)transfer_all(write_request(fd, from, stream)); }

void fsync(int fd) {
  io_request r = plain(io_call::fsync, fd);
  (void)complete(r);
}
void fdatasync(int fd) {
  io_request r = plain(io_call::fdatasync, fd);
  (void)complete(r);
}
void fallocate(int fd, std::uint64_t offset, std::uint64_t length, int mode) {
  io_request r = plain(io_call::fallocate, fd);
  r.flags = static_cast<std::uint32_t>(mode);
  r.offset = offset;
  r.length = length;
  (void)complete(r);
}

int open(const std::string& path, int flags, unsigned mode) {
  io_request r{.call = io_call::open,
               .flags = static_cast<std::uint32_t>(flags | O_CLOEXEC),
               .memory = path.c_str(),
               .length = mode};
  return static_cast<int>(complete(r));
}
void close(int fd) {
  io_request r = plain(io_call::close, fd);
  pe& self = detail::here_pe();
  if (self.refusing()) {
    if (::close(fd) != 0) r.result = -errno;  // parking would not do: this may be a destructor
  } else {
    self.require_process();
    self.io().run(r);
  }
  value_of<void>(r);
}

unsigned poll(int fd, unsigned events, time_limit limit) {
  const std::chrono::nanoseconds timeout = limit.time();
  io_request r = plain(io_call::poll, fd);
  r.flags = events;
  if (timeout <= std::chrono::nanoseconds::zero()) {
    pollfd p{fd, static_cast<short>(events), 0};
    const int n = ::poll(&p, 1, 0);
    r.result = n < 0 ? -errno : (p.revents & POLLNVAL) != 0 ? -EBADF : p.revents;
    return value_of<unsigned>(r);
  }
  constexpr std::chrono::nanoseconds as_good_as_forever = std::chrono::hours(24 * 365 * 100);
  if (timeout >= as_good_as_forever) return static_cast<unsigned>(complete(r));
  pe& self = detail::here_pe();
  self.require_process();
  admit(self, r);
  self.io().run_until(r, detail::deadline_after(timeout));
  if (r.result == -ECANCELED && !self.refusing()) return 0;
  return value_of<unsigned>(r);
}
bool wait_readable(int fd, time_limit timeout) { return poll(fd, POLLIN, timeout) != 0; }
bool wait_writable(int fd, time_limit timeout) { return poll(fd, POLLOUT, timeout) != 0; }

future<std::size_t> start_read(int fd, std::span<std::byte> into, std::uint64_t offset) {
  return start<std::size_t>(read_request(fd, into, in_file(offset)));
}
future<std::size_t> start_write(int fd, std::span<const std::byte> from, std::uint64_t offset) {
  return start<std::size_t>(write_request(fd, from, in_file(offset)));
}
future<std::size_t> start_read(int fd, std::span<std::byte> into) {
  return start<std::size_t>(read_request(fd, into, stream));
}
future<std::size_t> start_write(int fd, std::span<const std::byte> from) {
  return start<std::size_t>(write_request(fd, from, stream));
}
future<void> start_fsync(int fd) { return start<void>(plain(io_call::fsync, fd)); }
future<void> start_fdatasync(int fd) { return start<void>(plain(io_call::fdatasync, fd)); }

descriptor::~descriptor() {
  if (fd_ < 0) return;
  const pe* self = scheduler::current_pe;
  try {
    if (self != nullptr && self->active() != nullptr && !self->refusing()) {
      io::close(fd_);
      return;
    }
  } catch (const std::exception&) {  // nobody to tell; whoever wants to know calls close()
    return;
  }
  ::close(fd_);
}

}  // namespace orrery::io
