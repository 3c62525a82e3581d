// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orrery::scheduler {

class node;
class pe;
struct fiber;

/// The system call that a request stands for.
enum class io_call : std::uint8_t { read, write, readv, writev, fsync, fdatasync, fallocate, open, close, poll };

/// As in the messages of errors: "read".
[[nodiscard]] std::string_view to_string(io_call call) noexcept;

/// One system call that the kernel (or a helper thread) makes for a process.
///
/// It lies on the stack of the process that waits for it, or on the heap when it was started and
/// something else goes on. Its maker keeps it, and the memory it names, until `done`: the kernel
/// writes there. The PE owns nothing of it; between start and done it is linked into the engine's
/// list, so it must not move.
struct io_request {
  /// The value of `offset` for pipes, sockets and terminals, which have none, and for a file's
  /// current position.
  static constexpr std::uint64_t stream = ~std::uint64_t{0};

  // The request; read by the engine only.
  io_call call = io_call::read;
  int fd = -1;
  std::uint32_t flags = 0;        ///< of open; events of poll; mode of fallocate
  const void* memory = nullptr;   ///< buffer; iovecs of readv and writev; path of open
  std::uint64_t length = 0;       ///< bytes; number of iovecs; mode of open
  std::uint64_t offset = stream;  ///< of read, write and their kin, and of fallocate

  // The outcome; written on the PE's thread.
  std::int64_t result = 0;  ///< as the kernel's: 0 or more, or a negative errno
  bool done = false;

  /// Called on the PE's thread between methods when `done` was set; it must not park and may free
  /// the request. Null: the process that waits in io_engine::run goes on.
  void (*on_done)(pe&, io_request&) = nullptr;

  [[nodiscard]] bool transfers() const noexcept { return call <= io_call::writev; }
  [[nodiscard]] bool reads() const noexcept { return call == io_call::read || call == io_call::readv; }
  /// It may wait for the world outside, and for ever. All others end by themselves.
  [[nodiscard]] bool open_ended() const noexcept { return call == io_call::poll || (transfers() && offset == stream); }

  // The engine's own.
  enum class stage : std::uint8_t { queued, waiting, withdrawn, executing, finished };
  fiber* waiter = nullptr;
  io_request* next = nullptr;  ///< of all that are outstanding at the PE
  io_request* previous = nullptr;
  io_request* link = nullptr;  ///< in a queue of the back end
  stage where = stage::queued;  ///< with helper threads; theirs, under their mutex
  bool awaits_readiness = false;  ///< a stream said EAGAIN: poll it first, then try again
  bool cancelled = false;
};

/// The I/O of one PE.
///
/// Problem: a method that reads a file must not stop the thousand other processes of its PE.
/// So the call becomes a request, which the kernel carries out while the PE goes on; the process
/// parks until it is done. There are two back ends: io_uring (io_ring.hpp), and helper threads
/// where io_uring is not to be had (io_pool.hpp); ORRERY_IO chooses one.
///
/// Made by its PE at the first request, so that programs without I/O pay one branch in pe::poll;
/// used on the PE's thread only, except where a back end says so. It ends with the PE, after the
/// last request: a buffer is never written to after its owner is gone, since a PE that shuts down
/// cancels what is outstanding and waits, however long it takes, for the kernel to let go of it
/// before any object is destroyed.
///
/// Invariants: (1) a request is in the list iff it was started and is not done; (2) outstanding()
/// is the length of the list, and the PE polls the engine iff it is not 0.
///
///     io_request r{.call = io_call::read, .fd = fd, .memory = buffer, .length = bytes};
///     self.io().run(r);  // parks
///     if (r.result < 0) ...
class io_engine {
 public:
  /// The back end that ORRERY_IO names ("threads", "uring", or "uring-basic", which does without
  /// what kernels before 6.7 lack), else the best there is. Throws usage_error if that cannot be
  /// had.
  [[nodiscard]] static wire::unique_ptr<io_engine> make(pe& owner);

  io_engine(const io_engine&) = delete;
  io_engine& operator=(const io_engine&) = delete;
  virtual ~io_engine();

  /// Hands a request over; never parks. Throws std::bad_alloc, std::system_error.
  void start(io_request& r);
  /// Starts the request and parks the calling process until it is done.
  void run(io_request& r);
  /// The same until a deadline (CLOCK_MONOTONIC, ns): then the request is cancelled, and its result
  /// is what came of that, mostly -ECANCELED.
  void run_until(io_request& r, std::int64_t deadline_ns);
  /// Asks for an early end. The request is done later, with -ECANCELED or with its result,
  /// whichever came first.
  void cancel(io_request& r);
  /// Cancels everything, for a PE that shuts down. To be called until outstanding() is 0.
  void cancel_all();

  /// Parks the calling process while more than enough file requests are on their way. Those that
  /// wait for the outside world do not count: holding them back might hold back what they wait for.
  /// Throws stopped.
  void wait_for_room();
  [[nodiscard]] std::uint32_t outstanding() const noexcept { return outstanding_; }
  /// The number of these that end by themselves.
  [[nodiscard]] std::uint32_t bounded() const noexcept { return bounded_; }

  // For pe::poll and pe::idle.
  /// Hands over what was collected, and ends what is done. True if a request ended.
  virtual bool poll() = 0;
  /// True if poll would find something; cheap enough to spin on.
  [[nodiscard]] virtual bool ready() const noexcept = 0;
  /// True if the PE must sleep in sleep() and not on its doorbell's futex, since completions do not
  /// ring the doorbell.
  [[nodiscard]] virtual bool sleeps() const noexcept = 0;
  /// Sleeps until a request is done, the doorbell rings (its futex was `word` before the PE said
  /// that it sleeps), or the deadline (-1: none). Wakes spuriously.
  virtual void sleep(std::uint32_t word, std::int64_t deadline_ns) noexcept = 0;

 protected:
  explicit io_engine(pe& owner) noexcept : owner_(owner) {}
  [[nodiscard]] pe& owner() noexcept { return owner_; }
  /// Takes a request over; it does not end within the call. Throws std::bad_alloc,
  /// std::system_error, having done nothing.
  virtual void submit(io_request& r) = 0;
  virtual void submit_cancel(io_request& r) = 0;
  /// The kernel is through with the request.
  void finish(io_request& r, std::int64_t result);

 private:
  void unlink(io_request& r) noexcept;
  bool submit_again(io_request& r) noexcept;
  void wake_for_room();

  pe& owner_;
  io_request* all_ = nullptr;
  fiber* room_waiters_ = nullptr;
  fiber* last_room_waiter_ = nullptr;
  std::uint32_t outstanding_ = 0;
  std::uint32_t bounded_ = 0;
};

}  // namespace orrery::scheduler
