// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/array_handler.hpp>

#include <orrery/array/detail/core.hpp>

namespace orrery::detail {

void birth_handler::forget(array_core& part, cell_base&, scheduler::message* m) { part.self().messages().release(m); }

slot* refuse_route(pe&, scheduler::delivery& d, const wire::envelope&, std::uint32_t) noexcept {
  d.fail(std::make_exception_ptr(bad_message(errc::unknown_handler, "a message that does not leave its PE")));
  return nullptr;
}

}  // namespace orrery::detail
