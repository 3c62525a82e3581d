// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/core.hpp>

#include <cstdint>

namespace orrery::detail {

/// Around a method of an element, whose time is measured if that is asked for.
class load_scope {
 public:
  explicit load_scope(const cell_base& c) noexcept {
    if (c.part->measures()) [[unlikely]]
      begin(c);
  }
  load_scope(const load_scope&) = delete;
  load_scope& operator=(const load_scope&) = delete;
  ~load_scope() {
    if (process_ != nullptr) [[unlikely]]
      end();
  }

 private:
  void begin(const cell_base& c) noexcept;
  void end() noexcept;
  pe* self_ = nullptr;
  array_core* part_ = nullptr;
  slot* process_ = nullptr;
  std::uint32_t position_ = 0;
  std::uint64_t parks_ = 0;
  std::int64_t begin_ = 0;
};

}  // namespace orrery::detail
