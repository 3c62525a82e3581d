// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/activity.hpp>

#include <orrery/process/runtime.hpp>

namespace orrery::detail {

namespace {

void end_one_of(std::uint32_t array) noexcept {
  if (array == 0 || scheduler::current_pe == nullptr) return;
  if (array_core* part = array_directory::of(*scheduler::current_pe).find(array)) part->over();
}

}  // namespace

late_activity_end::~late_activity_end() { end_one_of(array_); }
counted_activity::~counted_activity() { end_one_of(array_); }

bool counted_activity::lost(pe&, const scheduler::handler&, std::span<const std::byte> payload, std::uint32_t,
                            const scheduler::unknown_message* unknown) noexcept try {
  orrery::reader r(payload);
  if (unknown != nullptr) (void)orrery::read<counted_activity>(r);
  return false;
} catch (...) {
  return false;
}

slot* counted_activity::route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t) noexcept {
  if (slot* s = self.find(e.slot, e.generation)) return s;
  auto why = scheduler::gone_error(*d.method, {self.id(), e.slot, e.generation});
  if (d.form != wire::payload_form::owned) try {  // else it ends with its message
      orrery::reader r({d.payload, d.payload_bytes});
      (void)orrery::read<counted_activity>(r);
    } catch (...) {
      why = std::current_exception();
    }
  d.fail(std::move(why));
  return nullptr;
}

}  // namespace orrery::detail
