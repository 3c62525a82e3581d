// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>
#include <orrery/array/detail/directory.hpp>
#include <orrery/array/detail/part_order.hpp>
#include <orrery/process/promise.hpp>

#include <cstring>

#include <fmt/format.h>

namespace orrery::detail {

constinit thread_local cell_base* constructing_cell = nullptr;

void throw_no_array(std::uint32_t id) {
  if (id == 0)
    throw usage_error(
        errc::null_pointer, verbatim,
        "a null array: it was default-constructed, or is not part of what was restored; use what create_array returned");
  if (is_guest_of(here_pe(), id)) throw_guest(id, "this concerns the whole array");
  const std::string_view name = array_directory::of(here_pe()).name_of_gone(id);
  throw process_gone(verbatim,
                     fmt::format("{}: the array was destroyed, or could not be made; make another with create_array",
                                 name.empty() ? fmt::format("array number {}", id) : std::string(name)));
}
std::string name_of_array(std::uint32_t id) {
  if (pe* self = scheduler::current_pe; self != nullptr)
    if (const array_core* core = array_directory::of(*self).find(id)) return core->about().name;
  return fmt::format("array {}", id);
}
void throw_own_array(const std::string& name) {
  throw deadlock_error(name + ": destroy() of the array, called by one of its elements, which it would wait for");
}
bool lost_on_its_way(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t to,
                     const scheduler::unknown_message* unknown) noexcept {
  route_head head;
  if (unknown != nullptr)
    if (array_core* part = array_directory::of(self).find(unknown->slot)) part->over();
  if (payload.size() < sizeof head) return false;
  std::memcpy(&head, payload.data(), sizeof head);
  if (head.call == 0) return false;
  answer_error(self, {head.origin, head.call}, &h,
               unknown != nullptr
                   ? unknown->why
                   : std::make_exception_ptr(node_lost(fmt::format(
                         "{}::{} to an element of an array was on its way to PE {}", h.class_name, h.method, to))));
  return true;
}
void throw_taken(const std::string& element) {
  throw usage_error(errc::bad_argument, fmt::format("{}: there is an element at this index already", element));
}
void report_no_creation(pe& self, const std::string& element, const std::exception_ptr& why) noexcept {
  self.failures().report(element + " was not created, as its constructor threw", why);
}
std::exception_ptr too_many_early(const std::string& element, std::uint64_t limit) {
  return make_error(
      errc::mailbox_full, verbatim,
      fmt::format("{}: no such element was created yet, and {} bytes wait on its home PE for elements to be created; "
                  "create them sooner, or raise array_options::early_bytes",
                  element, limit));
}
void throw_parked(const std::string& element) {
  throw usage_error(errc::method_parked, fmt::format("{} cannot move", element));
}
void throw_not_packed(const std::string& element, std::string_view type) {
  throw usage_error(errc::bad_argument,
                    fmt::format("{} cannot move to another node: its class, {}, needs a public default constructor and "
                                "`template <class A> void serialize(A& a)`",
                                element, type));
}
void throw_other_class(const std::string& element, std::string_view type) {
  throw usage_error(errc::bad_argument,
                    fmt::format("{} cannot be made as a {}: the elements of this array are of a class derived from it; "
                                "insert it through a pointer to the array of that class",
                                element, type));
}
std::string promise_of(pe& self, const slot& element) { return open_promise_of(self, self.address_of(element)); }
void throw_promised(const std::string& element, const std::string& promise) {
  throw usage_error(errc::bad_argument,
                    fmt::format("{} cannot move: {} is not kept yet, and belongs to this PE; keep it before, or let a "
                                "process that stays hold it",
                                element, promise));
}
void throw_no_pe(const std::string& element, std::uint32_t to, std::uint32_t pes) {
  throw usage_error(
      errc::no_such_place, verbatim,
      fmt::format("{} cannot be on PE {}: the array is on the PE{} of its program that {} there when it was "
                  "made ({}), and on none of other programs or of lost nodes",
                  element, to, pes == 1 ? "" : "s", pes == 1 ? "was" : "were", pes));
}

}  // namespace orrery::detail
