// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::scheduler {
class pe;
}

namespace orrery::detail {

class group_part;

/// The collectives of members. One static object for each; all members of a group call the same
/// ones in the same order.
struct collective {
  const char* name;
  /// Called when the last member of the PE has arrived.
  void (*all_here)(scheduler::pe&, group_part&);
  /// The types of what is combined, and of what combines it; empty: nothing is.
  std::string_view value = {};
  std::string_view operation = {};

  /// For errors: "barrier", "all_gather of int", "all_reduce of int with std::plus<void>".
  [[nodiscard]] std::string text() const;
};

/// Which collective the members of a group are in, as one of its parts knows.
///
/// Problem: members that call different collectives at the same point would wait for each other for
/// ever. Collectives of a group are numbered, the same on all its PEs, and each message of one
/// carries its number. So the part of each PE notes here what it hears and what its own members
/// call, and finds two different ones with one number. Each difference is found by some part: in a
/// barrier parts tell their neighbours in a circle, for a reduction all tell the first.
///
/// Owned by a group_part. Invariant: nobody is more than one collective ahead of another part, so
/// one note suffices.
class collective_order {
 public:
  /// The collective with this number is `what`. Returns the other one that was noted as that
  /// before, or null.
  [[nodiscard]] const collective* note(std::uint64_t number, const collective& what) noexcept {
    if (what_ == nullptr || number > number_) {
      number_ = number;
      what_ = &what;
      return nullptr;
    }
    return number < number_ || what_ == &what ? nullptr : what_;
  }

 private:
  std::uint64_t number_ = 0;
  const collective* what_ = nullptr;
};

/// The error for members that called these at the same point.
[[nodiscard]] std::string disagreement(const collective& one, const collective& other);
/// Members do not name the same root.
[[noreturn]] void throw_other_root(const char* name, std::uint64_t one, std::uint64_t other);

}  // namespace orrery::detail
