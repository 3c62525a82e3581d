// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>

#include <exception>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// Work of many PEs that ends as a whole.
namespace orrery::detail {

/// Does some work, which lets others begin theirs, and waits for all of them, even if something
/// fails: who gets the exception, the first one, then finds nobody at work. The results of the
/// others are the result, in their order; of those that give nothing so many std::monostate. (Any
/// sequence of the standard library.)
template <template <class...> class Sequence, class R, class... A, class F>
auto finish(Sequence<future<R>, A...>& others, F work) {
  std::vector<std::conditional_t<std::is_void_v<R>, std::monostate, R>> results;
  std::exception_ptr failed;
  try {
    work();
  } catch (...) {
    failed = std::current_exception();
  }
  for (auto& f : others) try {
      if constexpr (std::is_void_v<R>) {
        f.get();
        results.emplace_back();
      } else {
        results.push_back(f.get());
      }
    } catch (...) {
      if (failed == nullptr) failed = std::current_exception();
    }
  others.clear();
  if (failed != nullptr) std::rethrow_exception(failed);
  return results;
}

}  // namespace orrery::detail
