// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/sequence_number.hpp>
#include <orrery/array/reduction.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <exception>
#include <string>

// A reduction that is under way, its parts, and its end.
namespace orrery::detail {

/// A reduction that is not over. (Paper: "Reductions", figure 7.)
struct open_reduction {
  sequence_number number;
  std::uint32_t have = 0;  ///< elements that live here and have contributed
  bool here_done = false;  ///< all that lived here had
  bool tree_done = false;  ///< at the root: the parts of all PEs are in
  std::uint32_t children_left = 0;
  std::uint64_t contributions = 0;
  std::int64_t births = 0;  ///< created less destroyed
  wire::unique_ptr<accumulator> value;
  wire::unique_ptr<reduction_target> target;
  std::exception_ptr error;
};

/// Elements contributed values of different kinds: that is its result.
void mixed(open_reduction& r);

/// The contribution of a child, or of a late element.
struct partial_result {
  static constexpr std::uint32_t no_child = ~0U;
  std::uint64_t section = 0;  ///< 0: of the whole array
  sequence_number number;
  std::uint32_t child = no_child;  ///< PE
  std::uint64_t contributions = 0;
  std::int64_t births = 0;
  bool late = false;
  bool has_empty_pes = false;
  bool has_target = false;
  bool failed = false;  ///< an exception comes instead of a value
  template <class A>
  void serialize(A& a) {
    a & section & number & child & contributions & births & late & has_empty_pes & has_target & failed;
  }
};

/// Adds a value, or an exception that came instead, to a reduction; a value of another kind makes
/// it fail.
void add_up(open_reduction& r, wire::unique_ptr<accumulator> value, std::exception_ptr error);
/// A reduction will never be over, as what it was over was destroyed: who waits for its result is
/// told.
void fail_unfinished(pe& self, const std::string& what, const reduction_target* target) noexcept;
/// Elements were lost before a reduction was over: who waits for its result is told.
void answer_lost(pe& self, const std::string& what, const reduction_target* target) noexcept;
/// The same, for those who do not wait: a line, if contributions have come.
void report_lost(pe& self, const std::string& what, const open_reduction& r) noexcept;
/// The result goes where it has to.
void deliver_reduction(pe& self, const accumulator* value, const reduction_target* target,
                       std::exception_ptr error) noexcept;

}  // namespace orrery::detail
