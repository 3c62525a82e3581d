// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/io_ring.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>

namespace orrery::scheduler {
namespace {

constexpr unsigned sq_entries = 128;
// what is more lies in the kernel's memory until there is room
constexpr unsigned cq_entries = 2048;
constexpr unsigned batch = 32;         // requests that are collected at most
// from here on a transfer costs far more than its system call
constexpr std::uint64_t prompt_bytes = 32 << 10;
constexpr std::uint64_t largest_transfer = 0x7ffff000;  // as read(2)
constexpr std::int64_t shortest_nap_ns = 64'000;
constexpr std::int64_t longest_nap_ns = 4'000'000;

// user_data of what is not a request; those are aligned.
constexpr std::uint64_t futex_tag = 1;
constexpr std::uint64_t ignored_tag = 2;

// The operation of Linux 6.7; the headers may be older. See io_futex_prep in the kernel: fd takes
// the flags of futex2, off the value, addr3 the mask.
constexpr std::uint8_t op_futex_wait = 51;
constexpr std::uint32_t futex_size_u32 = 2;
constexpr std::uint32_t futex_private = 128;

unsigned clamp_length(std::uint64_t bytes) noexcept { return static_cast<unsigned>(std::min(bytes, largest_transfer)); }

}  // namespace

std::expected<wire::unique_ptr<io_engine>, std::string> io_ring_engine::make(pe& owner, bool basic) {
  constexpr unsigned common = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  constexpr unsigned since_5_19 =
      common | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
  constexpr unsigned since_6_1 = since_5_19 | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  wire::unique_ptr<io_ring_engine> e(new io_ring_engine(owner));
  int error = -EINVAL;
  for (const unsigned flags : {since_6_1, since_5_19, common}) {
    if (basic && flags != common) continue;
    io_uring_params params{};
    params.flags = flags;
    params.cq_entries = cq_entries;
    error = io_uring_queue_init_params(sq_entries, &e->ring_, &params);
    if (error != -EINVAL) break;
  }
  if (error < 0) {
    e->ring_.ring_fd = -1;
    return std::unexpected(fmt::format("io_uring_setup: {}", std::strerror(-error)));
  }
  constexpr unsigned needed = IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_RW_CUR_POS |
                              IORING_FEAT_FAST_POLL | IORING_FEAT_EXT_ARG;
  if ((e->ring_.features & needed) != needed) return std::unexpected("it is older than Linux 5.11");
  io_uring_ring_dontfork(&e->ring_);
  (void)io_uring_register_ring_fd(&e->ring_);  // saves a look-up; without it all works as well
  if (io_uring_probe* probe = io_uring_get_probe_ring(&e->ring_); probe != nullptr) {
    e->has_futex_ = !basic && io_uring_opcode_supported(probe, op_futex_wait) != 0;
    io_uring_free_probe(probe);
  }
  e->block_sigpipe();
  return e;
}

io_ring_engine::~io_ring_engine() {
  if (ring_.ring_fd < 0) return;
  if (armed_) {
    // The kernel must not look at the doorbell any more.
    if (io_uring_sqe* sqe = take_sqe(); sqe != nullptr) {
      io_uring_prep_cancel64(sqe, futex_tag, 0);
      sqe->user_data = ignored_tag;
      while (armed_) {
        (void)io_uring_submit_and_wait(&ring_, 1);
        (void)reap();
      }
    }
  }
  io_uring_queue_exit(&ring_);
  if (sigpipe_blocked_) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    const timespec now{};
    while (sigtimedwait(&pipe, nullptr, &now) > 0) {  // those that came are not to be delivered now
    }
    pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
  }
}

void io_ring_engine::block_sigpipe() noexcept {
  sigset_t pipe;
  sigset_t before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigemptyset(&before);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  sigpipe_blocked_ = sigismember(&before, SIGPIPE) == 0;
}

// --- submission ----------------------------------------------------------------------------------

void io_ring_engine::prepare(io_uring_sqe& sqe, io_request& r) noexcept {
  void* memory = const_cast<void*>(r.memory);
  if (r.awaits_readiness) {
    io_uring_prep_poll_add(&sqe, r.fd, r.reads() ? POLLIN : POLLOUT);
  } else {
    switch (r.call) {
      case io_call::read:
        io_uring_prep_read(&sqe, r.fd, memory, clamp_length(r.length), r.offset);
        break;
      case io_call::write:
        io_uring_prep_write(&sqe, r.fd, memory, clamp_length(r.length), r.offset);
        break;
      case io_call::readv:
        io_uring_prep_readv(&sqe, r.fd, static_cast<const iovec*>(r.memory), clamp_length(r.length), r.offset);
        break;
      case io_call::writev:
        io_uring_prep_writev(&sqe, r.fd, static_cast<const iovec*>(r.memory), clamp_length(r.length), r.offset);
        break;
      case io_call::fsync:
        io_uring_prep_fsync(&sqe, r.fd, 0);
        break;
      case io_call::fdatasync:
        io_uring_prep_fsync(&sqe, r.fd, IORING_FSYNC_DATASYNC);
        break;
      case io_call::fallocate:
        io_uring_prep_rw(IORING_OP_FALLOCATE, &sqe, r.fd, nullptr, r.flags, r.offset);
        sqe.addr = r.length;
        break;
      case io_call::open:
        io_uring_prep_openat(&sqe, AT_FDCWD, static_cast<const char*>(r.memory), static_cast<int>(r.flags),
                             static_cast<mode_t>(r.length));
        break;
      case io_call::close:
        io_uring_prep_close(&sqe, r.fd);
        break;
      case io_call::poll:
        io_uring_prep_poll_add(&sqe, r.fd, r.flags);
        break;
    }
  }
  sqe.user_data = reinterpret_cast<std::uint64_t>(&r);
}

io_uring_sqe* io_ring_engine::take_sqe() noexcept {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  if (sqe == nullptr && enter()) sqe = io_uring_get_sqe(&ring_);
  return sqe;
}

// Hands the collected requests to the kernel. False if it would take none: it is out of memory just
// now.
bool io_ring_engine::enter() noexcept {
  bool any = false;
  while (io_uring_sq_ready(&ring_) != 0) {
    ++owner().count().io_enters;
    const int n = io_uring_submit(&ring_);
    if (n == -EINTR) continue;
    if (n <= 0) break;
    any = true;
  }
  return any;
}

void io_ring_engine::put_unsent(io_request& r) noexcept {
  r.link = nullptr;
  (unsent_ != nullptr ? last_unsent_->link : unsent_) = &r;
  last_unsent_ = &r;
}

void io_ring_engine::submit(io_request& r) {
  io_uring_sqe* sqe = unsent_ == nullptr ? take_sqe() : nullptr;
  if (sqe == nullptr) {
    put_unsent(r);
    return;
  }
  prepare(*sqe, r);
  const unsigned collected = io_uring_sq_ready(&ring_);
  const bool large = r.transfers() && r.length >= prompt_bytes && r.call <= io_call::write;
  if (large || collected >= batch || outstanding() <= collected) {
    (void)enter();
  } else {
    owner().poll_within(8);
  }
}

void io_ring_engine::flush() noexcept {
  while (unsent_ != nullptr) {
    io_uring_sqe* sqe = take_sqe();
    if (sqe == nullptr) break;
    io_request& r = *unsent_;
    unsent_ = r.link;
    r.link = nullptr;
    prepare(*sqe, r);
  }
  if (io_uring_sq_ready(&ring_) != 0) (void)enter();
}

void io_ring_engine::submit_cancel(io_request& r) {
  io_request** at = &unsent_;
  io_request* before = nullptr;
  while (*at != nullptr && *at != &r) {
    before = *at;
    at = &before->link;
  }
  if (*at == &r) {
    *at = r.link;
    if (last_unsent_ == &r) last_unsent_ = before;
    finish(r, -ECANCELED);
    return;
  }
  io_uring_sqe* sqe = take_sqe();
  if (sqe == nullptr) {
    r.cancelled = false;  // not yet: no memory in the kernel. The caller asks again
    return;
  }
  io_uring_prep_cancel64(sqe, reinterpret_cast<std::uint64_t>(&r), 0);
  sqe->user_data = ignored_tag;
  owner().poll_within(8);
}

// --- completion ----------------------------------------------------------------------------------

bool io_ring_engine::reap() {
  bool any = false;
  if (must_enter()) (void)io_uring_get_events(&ring_);
  // Each completion leaves the ring before it is acted upon: what runs then may poll, too.
  io_uring_cqe* cqe = nullptr;
  while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
    const std::uint64_t what = cqe->user_data;
    const int result = cqe->res;
    io_uring_cqe_seen(&ring_, cqe);
    if (what == futex_tag) {
      armed_ = false;
    } else if (what != ignored_tag) {
      any = true;
      finish(*reinterpret_cast<io_request*>(what), result);
    }
  }
  if (any) nap_ns_ = 0;
  return any;
}

bool io_ring_engine::poll() {
  if (unsent_ != nullptr || io_uring_sq_ready(&ring_) != 0) flush();
  return ready() && reap();
}

// --- sleeping ------------------------------------------------------------------------------------

bool io_ring_engine::arm(std::uint32_t word) noexcept {
  io_uring_sqe* sqe = take_sqe();
  if (sqe == nullptr) return false;
  std::memset(sqe, 0, sizeof *sqe);
  const std::uint32_t scope = owner().owner().shares_memory() ? 0 : futex_private;
  sqe->opcode = op_futex_wait;
  sqe->fd = static_cast<int>(futex_size_u32 | scope);
  sqe->addr = reinterpret_cast<std::uint64_t>(&owner().bell().futex);
  sqe->off = word;
  sqe->addr3 = 0xffffffff;  // any waker
  sqe->user_data = futex_tag;
  armed_ = true;
  return true;
}

// Why no ring of the doorbell is lost. The caller has read `word`, set `sleeping`, passed the heavy
// fence and found nothing; so a sender either published early enough to be found then, or sees
// `sleeping`, and the one that is elected increments the word and issues FUTEX_WAKE
// (ring_doorbell). Meanwhile
//   - if no wait is armed, one is submitted here with `word`. The kernel compares and enqueues in
//     one step with respect to FUTEX_WAKE: an increment before makes it end at once with -EAGAIN,
//     a wake after ends it;
//   - if one is armed, it has been enqueued since an earlier sleep, and may have been woken since.
//     If not, the elected sender's FUTEX_WAKE finds it. If so, its completion was not yet taken out
//     of the ring (else armed_ were false), and waiting for one completion returns at once. Its
//     present value does not matter: comparing it only closes the gap between reading it and
//     being enqueued.
// Either way a completion is posted and the wait ends. A wake that comes late, when the PE is awake
// already, costs one needless wait request later. The PE never sleeps on the plain futex while a
// wait is armed: FUTEX_WAKE wakes one waiter, and that one could be the ring's (pe::idle asks
// sleeps()).
void io_ring_engine::sleep(std::uint32_t word, std::int64_t deadline_ns) noexcept {
  if (has_futex_ && !armed_ && !arm(word)) return;
  std::int64_t wait = deadline_ns >= 0 ? std::max<std::int64_t>(deadline_ns - transport::now_ns(), 0) : -1;
  if (!has_futex_) {
    nap_ns_ = std::clamp(nap_ns_ * 2, shortest_nap_ns, longest_nap_ns);
    wait = wait < 0 ? nap_ns_ : std::min(wait, nap_ns_);
  }
  __kernel_timespec timeout{wait / 1'000'000'000, wait % 1'000'000'000};
  io_uring_cqe* cqe = nullptr;  // stays in the ring
  ++owner().count().io_enters;
  (void)io_uring_submit_and_wait_timeout(&ring_, &cqe, 1, wait >= 0 ? &timeout : nullptr, nullptr);
  if (outstanding() == 0) (void)reap();  // the doorbell's; nobody polls for it
}

}  // namespace orrery::scheduler
