// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/inline_construction.hpp>

#include <orrery/process/spawn.hpp>

namespace orrery::detail {

inline_construction::inline_construction(pe& self, slot& s, array_core& part, const array_handler& constructor)
    : self_(self), slot_(s), frame_{&s, &constructor, nullptr}, end_(&part) {
  note_class(self, *part.element_class);
  part.begins();
  self.push_activation(frame_);
  s.active = &frame_;
  s.depth = 1;
}

inline_construction::~inline_construction() {
  self_.pop_activation(frame_);
  slot_.active = nullptr;
  slot_.depth = 0;
  if (!slot_.has_object) {
    self_.free_slot(slot_);
  } else {
    self_.settle(slot_);
  }
}

}  // namespace orrery::detail
