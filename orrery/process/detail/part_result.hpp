// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/group_data.hpp>
#include <orrery/wire/exception.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// The answers of the parts of a group to a broadcast or reduction, and how a caller combines them.
namespace orrery::detail {

/// The answer of a part to a broadcast or reduction: the results of its members by rank (for a
/// reduction: of runs of consecutive ranks), or the exception of the lowest rank.
template <class R>
struct part_result {
  using values_type = std::vector<std::conditional_t<std::is_void_v<R>, char, R>>;
  values_type values;
  std::uint32_t failed = group_data::none;  ///< the lowest rank that threw
  std::exception_ptr error;
  const scheduler::handler* method = nullptr;

  template <class A>
  void serialize(A& a) {
    a & failed;
    if (failed == group_data::none) {
      a & values;
      return;
    }
    wire_exception form;
    where at;
    if constexpr (A::is_saving::value) {
      form = encode_exception(error);
      if (method != nullptr) at = {std::string(method->class_name), std::string(method->method), 0};
      at.pe = here_pe().id();
    }
    a & form & at.class_name & at.method & at.pe;
    if constexpr (A::is_loading::value) error = decode_exception(form, at);
  }
};

/// For serialize(): a value with its size before it. If reading it throws, `unread` gets the
/// exception, and the rest of the message can be read.
template <class A, class V>
void serialize_or_note(A& a, V& value, std::exception_ptr& unread) {
  std::uint64_t size = 0;
  A own = a;
  if constexpr (A::is_loading::value) {
    own & size;
    a = own;
    (void)a.take(size);
    try {
      own & value;
      if (own.position() != a.position()) own.fail("the end of a value");
    } catch (...) {
      unread = std::current_exception();
    }
  } else {
    a & size & value;
    size = a.position() - own.position() - sizeof size;
    own & size;
  }
}

/// The result of a part for another part, which is to answer whatever becomes of it. If it cannot
/// be read, it is the exception that says why.
template <class R>
struct sent_result : part_result<R> {
  template <class A>
  void serialize(A& a) {
    std::exception_ptr unread;
    serialize_or_note(a, static_cast<part_result<R>&>(*this), unread);
    if (unread == nullptr) return;
    this->failed = 0;
    this->error = std::move(unread);
  }
};

/// Throws the exception of the lowest rank, if there is one.
template <class Results>
void rethrow_first(const Results& results) {
  std::uint32_t rank = group_data::none;
  const std::exception_ptr* first = nullptr;
  for (const auto& r : results) {
    if (r.failed >= rank) continue;
    rank = r.failed;
    first = &r.error;
  }
  if (first != nullptr) std::rethrow_exception(*first);
}

/// Combines the results of runs in the order of the ranks. `results` are by part.
template <class R, class Results, class Op>
R fold_runs(const group_data& d, Results& results, const Op& op) {
  std::vector<std::size_t> next(d.parts.size());
  auto take = [&](std::size_t rank) -> R {
    const std::uint32_t p = d.part_of[rank];
    return std::move(results[p].values.at(next[p]++));
  };
  R all = take(0);
  for (std::size_t rank = 1; rank < d.members.size(); ++rank)
    if (d.begins_run(rank)) all = op(std::move(all), take(rank));
  return all;
}

}  // namespace orrery::detail
