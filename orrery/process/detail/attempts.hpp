// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <utility>

namespace orrery::detail {

/// Things to do of which one may fail, and the others are to be done all the same.
class attempts {
 public:
  template <class F>
  void operator()(F&& f) {
    try {
      std::forward<F>(f)();
    } catch (...) {
      if (first_ == nullptr) first_ = std::current_exception();
    }
  }
  [[nodiscard]] bool failed() const noexcept { return first_ != nullptr; }
  [[noreturn]] void rethrow_first() const { std::rethrow_exception(first_); }
  void require_all() const {
    if (failed()) rethrow_first();
  }

 private:
  std::exception_ptr first_;
};

}  // namespace orrery::detail
