// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_message.hpp>
#include <orrery/array/detail/part_order.hpp>

#include <new>
#include <utility>

// Messages to elements where they are routed, and where they are not executed.
namespace orrery::detail {

template <class Index>
template <bool Ordered>
slot* index_messages<Index>::route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  const auto& method = static_cast<const array_handler&>(*d.method);
  route_head h;
  array_core* const core = array_directory::of(self).find(e.slot);
  auto* const part = static_cast<index_part<Index>*>(core);
  try {
    if (d.form == wire::payload_form::owned) {
      const auto& p = *reinterpret_cast<const routed_prefix<Index, Ordered>*>(d.payload);
      h = p.head;
      if (core == nullptr) reject_ended(self, e.slot, h, p.index);
      const order_tag tag = tag_in<Ordered>(p.tag);
      if (part->find_local(p.index) == nullptr) {
        const Index i = p.index;  // the payload moves
        return part->route(*method.kind, d, e, size, h, i, tag);
      }
      return part->route(*method.kind, d, e, size, h, p.index, tag);
    }
    orrery::reader r(wire_payload(d, e, size));
    h = orrery::read<route_head>(r);
    const auto i = orrery::read<Index>(r);
    const order_tag tag = read_tag<Ordered>(r);
    if (core == nullptr) reject_ended(self, e.slot, h, i);
    return part->route(*method.kind, d, e, size, h, i, tag);
  } catch (...) {
    const activity_end end(core);
    reject_routed(self, method, *method.kind, d, h, std::current_exception());
    return nullptr;
  }
}

template <class Index>
void index_messages<Index>::reject_ended(pe& self, std::uint32_t array, const route_head& h, const Index& i) {
  index_part<Index>::tell_ended(self, array, h, i);
  throw_no_array(array);
}

template <class Index>
Index index_messages<Index>::index_of(const scheduler::delivery& d) {
  constexpr std::size_t at = (sizeof(route_head) + alignof(Index) - 1) / alignof(Index) * alignof(Index);
  if (d.form == wire::payload_form::owned) return *std::launder(reinterpret_cast<const Index*>(d.payload + at));
  orrery::reader r({d.payload, d.payload_bytes});
  (void)orrery::read<route_head>(r);
  return orrery::read<Index>(r);
}

template <class Index>
void index_messages<Index>::fail_caller(pe& self, array_core* core, cell_base* c, scheduler::delivery& d,
                                        std::exception_ptr why) noexcept {
  const activity_end end(core);
  const auto& method = static_cast<const array_handler&>(*d.method);
  if ((head_of(d.payload).flags & route_head::from_home) != 0) try {
      end_turn(core, head_of(d.payload), index_of(d));
    } catch (...) {  // it cannot be read; then it has not come here
    }
  // Else, if those around it go on their way again, it would be waited for.
  if (method.tag_of != nullptr && c != nullptr) c->order_of().in.failed(method.tag_of(*d.heap));
  reject_routed(self, method, *method.kind, d, head_of(d.payload), std::move(why));
}

}  // namespace orrery::detail
