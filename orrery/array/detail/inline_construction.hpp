// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/core.hpp>

namespace orrery::detail {

/// An element is constructed on the stack of who asks for it: its process runs meanwhile. Does not
/// park itself.
class inline_construction {
 public:
  inline_construction(pe& self, slot& s, array_core& part, const array_handler& constructor);
  inline_construction(const inline_construction&) = delete;
  inline_construction& operator=(const inline_construction&) = delete;
  ~inline_construction();

 private:
  pe& self_;
  slot& slot_;
  scheduler::activation frame_;
  activity_end end_;
};

}  // namespace orrery::detail
