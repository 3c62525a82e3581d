// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/array_pes.hpp>
#include <orrery/process/detail/send.hpp>
#include <orrery/process/future.hpp>

#include <cstdint>
#include <exception>
#include <vector>

namespace orrery::detail {

/// The calls of a PE that wait for something of an array.
///
/// Problem: a call is answered by whatever PE its element has moved to; if that one is lost, nobody
/// answers. So each call says which array it asks, and ends with an error when a PE of that array
/// is lost, or the node of another program that made it.
///
/// A part of the PE's array_directory; used on the PE's thread. Nothing here parks.
class array_waits {
 public:
  explicit array_waits(pe& self) noexcept : self_(self) {}

  /// Registers a sink until its answer comes, or until a PE of that array is lost; 0: of any array
  /// on this PE.
  [[nodiscard]] std::uint64_t expect(scheduler::sink& s, std::uint32_t array);
  /// The same for an array of another program, until a node of that program is gone.
  [[nodiscard]] std::uint64_t expect_as_guest(scheduler::sink& s, std::uint32_t array);
  /// This PE has begun something with an array of another program whose result it may wait for:
  /// what waits for no array in particular ends when a node of that program is gone.
  void note_guest(std::uint32_t array) noexcept;
  /// The sink behind a call, which is registered no more; null if it is not known.
  [[nodiscard]] scheduler::sink* take(std::uint64_t call) noexcept { return calls_.take(call); }

  void fail_all(const std::exception_ptr& why) noexcept;
  /// Ends what waits for something of this array; 0: of no array in particular.
  void fail_of(std::uint32_t array, const std::exception_ptr& why) noexcept;
  /// Ends what waits for arrays of other programs that have lost a node since.
  void fail_guests() noexcept;
  /// Ends what waits for arrays that have ended here, if all their PEs are gone: the word of their
  /// end may be lost with these.
  void fail_for_ended() noexcept;
  /// An array has ended here.
  void note_end(std::uint32_t array, const array_pes& pes) noexcept;

 private:
  /// The target that a call waits for.
  struct asked {
    std::uint32_t array = 0;  ///< 0: none in particular
    /// For an array of another program: 1 more than the nodes of that one that were gone.
    std::uint32_t guest = 0;
    std::uint32_t began = 0;  ///< `ends_` then
  };
  /// An array that ended here while calls were waiting, which it may have been asked for.
  struct ended_array {
    std::uint32_t id;
    std::uint32_t number;  ///< of its end
    array_pes pes;
    [[nodiscard]] bool concerns(const asked& a) const noexcept {
      return a.guest == 0 && a.began < number && (a.array == 0 || a.array == id);
    }
  };
  [[nodiscard]] std::uint64_t expect(scheduler::sink& s, asked about);

  pe& self_;
  scheduler::call_table<std::uint64_t, 32, asked> calls_;
  std::uint32_t ends_ = 0;  // of arrays
  std::vector<asked> guests_;  // what note_guest() was told; `guest`: nodes that were gone
  std::vector<ended_array> ended_;  // with calls that were waiting then and still are
};

/// Takes a sink out again, unless what leads to its answer has been sent: for what throws before.
class expected_answer {
 public:
  expected_answer(array_waits& w, scheduler::sink& s, std::uint32_t array) : expected_answer(w, w.expect(s, array)) {}
  expected_answer(array_waits& w, std::uint64_t call) : waits_(w), call_(call) {}
  expected_answer(const expected_answer&) = delete;
  expected_answer& operator=(const expected_answer&) = delete;
  ~expected_answer() {
    if (call_ != 0) (void)waits_.take(call_);
  }
  [[nodiscard]] std::uint64_t call() const noexcept { return call_; }
  void sent() noexcept { call_ = 0; }

 private:
  array_waits& waits_;
  std::uint64_t call_;
};

/// Ends a wait: with an error, or, if that is null, with the value that its sink holds already.
void end_wait(pe& self, scheduler::sink& s, std::exception_ptr error) noexcept;

}  // namespace orrery::detail
