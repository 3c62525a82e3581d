// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/io_pool.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/transport/thread_limits.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace orrery::scheduler {
namespace {

constexpr std::size_t most_helpers = 8;

std::int64_t result_of(std::int64_t r) noexcept { return r >= 0 ? r : -errno; }

// The buffers of a transfer, whatever its form.
struct buffers {
  iovec one;
  const iovec* all;
  int count;
  explicit buffers(const io_request& r) noexcept
      : one{const_cast<void*>(r.memory), static_cast<std::size_t>(r.length)}, all(&one), count(1) {
    if (r.call == io_call::readv || r.call == io_call::writev) {
      all = static_cast<const iovec*>(r.memory);
      count = static_cast<int>(std::min<std::uint64_t>(r.length, std::numeric_limits<int>::max()));
    }
  }
};

std::int64_t transfer_at(const io_request& r) noexcept {
  const buffers b(r);
  const auto at = static_cast<off_t>(r.offset);
  return result_of(r.reads() ? preadv(r.fd, b.all, b.count, at) : pwritev(r.fd, b.all, b.count, at));
}

// As read(2) and write(2), but -EAGAIN where those would block.
std::int64_t transfer_now(const io_request& r) noexcept {
  const buffers b(r);
  struct stat status{};
  if (fstat(r.fd, &status) != 0) return -errno;
  if (S_ISSOCK(status.st_mode)) {
    msghdr m{};
    m.msg_iov = const_cast<iovec*>(b.all);
    m.msg_iovlen = static_cast<std::size_t>(b.count);
    return result_of(r.reads() ? recvmsg(r.fd, &m, MSG_DONTWAIT) : sendmsg(r.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL));
  }
  const auto plain = [&](const iovec* v, int n) {
    return result_of(r.reads() ? ::readv(r.fd, v, n) : ::writev(r.fd, v, n));
  };
  if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) || S_ISDIR(status.st_mode)) return plain(b.all, b.count);
  const std::int64_t n = result_of(r.reads() ? preadv2(r.fd, b.all, b.count, -1, RWF_NOWAIT)
                                             : pwritev2(r.fd, b.all, b.count, -1, RWF_NOWAIT));
  if (n != -EOPNOTSUPP && n != -ENOSYS && n != -EINVAL && n != -ESPIPE) return n;
  // Some devices and older kernels do not know how to not wait: ask first, and write no more than
  // what a pipe that is ready takes.
  pollfd p{r.fd, static_cast<short>(r.reads() ? POLLIN : POLLOUT), 0};
  if (::poll(&p, 1, 0) == 0) return -EAGAIN;
  if (r.reads() || b.count == 0) return plain(b.all, b.count);
  const iovec* v = b.all;
  while (v->iov_len == 0 && v != b.all + b.count - 1) ++v;
  const iovec some{v->iov_base, std::min<std::size_t>(v->iov_len, PIPE_BUF)};
  return plain(&some, 1);
}

std::int64_t make_call(const io_request& r) noexcept {
  const auto offset = static_cast<off_t>(r.offset);
  switch (r.call) {
    case io_call::fsync:
      return result_of(::fsync(r.fd));
    case io_call::fdatasync:
      return result_of(::fdatasync(r.fd));
    case io_call::fallocate:
      return result_of(::fallocate(r.fd, static_cast<int>(r.flags), offset, static_cast<off_t>(r.length)));
    case io_call::open:
      return result_of(
          ::open(static_cast<const char*>(r.memory), static_cast<int>(r.flags), static_cast<mode_t>(r.length)));
    case io_call::close:
      return result_of(::close(r.fd));
    default:
      return r.offset == io_request::stream ? transfer_now(r) : transfer_at(r);
  }
}

}  // namespace

// --- the pool ------------------------------------------------------------------------------------

io_pool::io_pool() noexcept {
  CPU_ZERO(&cores_);
  if (sched_getaffinity(0, sizeof cores_, &cores_) != 0) CPU_ZERO(&cores_);
}

void io_pool::explain(std::string_view why) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(explained_, true)) return;
  const std::string line = fmt::format("orrery: {}\n", why);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

io_pool::~io_pool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& t : helpers_) t.join();
  if (!watcher_.joinable()) return;
  wake_watcher();
  watcher_.join();
  ::close(wake_fd_);
}

void io_pool::begin_thread() noexcept {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // the program's signals are for the program's threads
  if (CPU_COUNT(&cores_) != 0) pthread_setaffinity_np(pthread_self(), sizeof cores_, &cores_);
}

namespace {
std::system_error no_thread(const std::system_error& why) {
  return {why.code(), "no thread for I/O can be started; " + transport::more_threads_advice()};
}
}  // namespace

void io_pool::submit(io_pool_engine& from, io_request& r) {
  if (r.call == io_call::poll || r.awaits_readiness) {
    wait_for_readiness({&from, &r});
    return;
  }
  const std::lock_guard lock(mutex_);
  r.where = io_request::stage::queued;
  queue_.push_back({&from, &r});
  if (idle_ >= queue_.size() || helpers_.size() == most_helpers) {
    work_.notify_one();
    return;
  }
  try {
    helpers_.emplace_back([this] { help(); });
  } catch (const std::system_error& e) {
    if (!helpers_.empty()) return;  // those that are there get to it
    queue_.pop_back();
    throw no_thread(e);
  }
}

void io_pool::wait_for_readiness(const job& j) {
  {
    const std::lock_guard lock(mutex_);
    j.request->where = io_request::stage::waiting;
    if (wake_fd_ < 0) wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd_ < 0) throw std::system_error(errno, std::system_category(), "eventfd");
    try {
      if (!watcher_.joinable()) watcher_ = std::thread([this] { watch(); });
    } catch (const std::system_error& e) {
      throw no_thread(e);
    }
    waiting_.push_back(j);
  }
  wake_watcher();
}

bool io_pool::cancel(io_request& r) {
  const std::lock_guard lock(mutex_);
  if (r.where == io_request::stage::queued)
    return std::erase_if(queue_, [&](const job& j) { return j.request == &r; }) != 0;
  if (r.where == io_request::stage::waiting) {
    r.where = io_request::stage::withdrawn;
    wake_watcher();
  }
  return false;
}

void io_pool::wake_watcher() noexcept { (void)eventfd_write(wake_fd_, 1); }

void io_pool::help() {
  begin_thread();
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    work_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;
    const job j = queue_.front();
    queue_.pop_front();
    j.request->where = io_request::stage::executing;
    lock.unlock();
    carry_out(j);
    lock.lock();
  }
}

void io_pool::carry_out(const job& j) {
  const std::int64_t result = make_call(*j.request);
  {
    const std::lock_guard lock(mutex_);
    j.request->where = io_request::stage::finished;
  }
  j.from->completed(*j.request, result);
}

namespace {

short events_of(const io_request& r) noexcept {
  return static_cast<short>(r.call == io_call::poll ? r.flags : r.reads() ? POLLIN : POLLOUT);
}

// Waits until one of them is ready. A limit on open files that was lowered holds for poll, too:
// then it looks at so many at a time, every so often.
void wait_for_any(std::vector<pollfd>& fds) {
  if (::poll(fds.data(), fds.size(), -1) >= 0 || errno == EINTR) return;
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
  ::nanosleep(&pause, nullptr);
  rlimit limit{};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  const auto most = std::clamp<std::size_t>(limit.rlim_cur, 1, fds.size());
  for (std::size_t at = 0; at < fds.size(); at += most)
    (void)::poll(fds.data() + at, std::min(most, fds.size() - at), 0);
}

}  // namespace

void io_pool::watch() {
  begin_thread();
  std::vector<pollfd> fds;  // one for each descriptor, whatever waits for it
  boost::unordered_flat_map<int, std::size_t> place_of;
  std::vector<std::pair<job, std::int64_t>> done;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    fds.assign(1, {wake_fd_, POLLIN, 0});
    place_of.clear();
    const std::size_t known = waiting_.size();
    for (const job& j : waiting_) {
      const auto [at, is_new] = place_of.try_emplace(j.request->fd, fds.size());
      if (is_new) fds.push_back({j.request->fd, 0, 0});
      fds[at->second].events = static_cast<short>(fds[at->second].events | events_of(*j.request));
    }
    lock.unlock();
    wait_for_any(fds);
    if (fds[0].revents != 0) {
      eventfd_t n = 0;
      (void)eventfd_read(wake_fd_, &n);
    }
    lock.lock();
    // Those that came meanwhile lie behind the ones that were polled.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const job j = waiting_[i];
      constexpr int always = POLLERR | POLLHUP | POLLNVAL;
      const auto events = static_cast<short>(
          i < known ? fds[place_of.at(j.request->fd)].revents & (events_of(*j.request) | always) : 0);
      if (events == 0 && j.request->where == io_request::stage::waiting) {
        waiting_[kept++] = j;
        continue;
      }
      j.request->where = io_request::stage::finished;
      done.emplace_back(j, events == 0 ? -ECANCELED : (events & POLLNVAL) != 0 ? -EBADF : events);
    }
    waiting_.resize(kept);
    lock.unlock();
    for (const auto& [j, result] : done) j.from->completed(*j.request, result);
    done.clear();
    lock.lock();
  }
}

// --- the engine ----------------------------------------------------------------------------------

void io_pool_engine::completed(io_request& r, std::int64_t result) noexcept {
  {
    const std::lock_guard lock(mutex_);
    r.result = result;
    r.link = nullptr;
    (first_ != nullptr ? last_->link : first_) = &r;
    last_ = &r;
    // SYNC: published before the doorbell is looked at (Dekker with pe::idle, as a record in a
    // ring); the list itself is the mutex's.
    ready_.store(true, std::memory_order_release);
    transport::notify(owner().bell(), owner().owner().shares_memory());
  }
}

bool io_pool_engine::poll() {
  if (!ready()) return false;
  io_request* r = nullptr;
  {
    const std::lock_guard lock(mutex_);
    r = first_;
    first_ = last_ = nullptr;
    ready_.store(false, std::memory_order_relaxed);
  }
  while (r != nullptr) {
    io_request* next = r->link;
    finish(*r, r->result);
    r = next;
  }
  return true;
}

void io_pool_engine::submit_cancel(io_request& r) {
  if (pool_.cancel(r)) finish(r, -ECANCELED);
}

}  // namespace orrery::scheduler
