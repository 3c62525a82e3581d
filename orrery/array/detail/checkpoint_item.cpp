// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/checkpoint_item.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::detail {

std::string type_text(std::string_view name, std::initializer_list<std::string_view> arguments) {
  return fmt::format("{}<{}>", name, fmt::join(arguments, ", "));
}

void throw_not_quiescent(const std::string& whose) {
  throw usage_error(errc::bad_argument, fmt::format("checkpoint: {} has messages, or a method of it runs; wait for "
                                                    "quiescence() first",
                                                    whose));
}
void throw_derived(const std::string& array, std::string_view base) {
  throw usage_error(errc::bad_argument,
                    fmt::format("checkpoint: the elements of {} are of a class derived from {}, whose part of them "
                                "would be lost; give the array of that class",
                                array, base));
}

std::vector<array_core::activity> activity_of(const std::vector<checkpoint_item>& items) {
  std::vector<array_core::activity> all;
  for (const auto& i : items) all.push_back(i.id != 0 ? activity_of(i.id) : array_core::activity{});
  return all;
}

void require_rest_since(const std::vector<array_core::activity>& before, const std::vector<checkpoint_item>& items) {
  const auto now = activity_of(items);
  for (std::size_t k = 0; k < items.size(); ++k)
    if (now[k] != before[k] || now[k].begun != now[k].over)
      throw usage_error(
          errc::bad_argument,
          fmt::format(
              "checkpoint: elements of {} moved, came, ended or got messages while they were written, so that it "
              "is not whole; wait for quiescence() first, and stop what goes on by itself (balance_every)",
              items[k].name));
}

std::string saved_process::text(std::string_view class_name) const {
  return rank == alone ? fmt::format("{} at {}", class_name, to_string(at))
                       : fmt::format("member {} of a group, {} at {},", rank, class_name, to_string(at));
}

void* object_of_class(const saved_process& p, const scheduler::class_info& cls) {
  slot* s = here_pe().find(p.at.slot, p.at.generation);
  if (s == nullptr || !s->has_object) throw process_gone(p.text(cls.name));
  if (s->class_number != cls.number)
    throw usage_error(errc::bad_argument,
                      fmt::format("checkpoint: {} is of class {}: name it by a pointer to that class (remote_cast)",
                                  p.text(cls.name), s->cls() != nullptr ? s->cls()->name : "function"));
  return s->object();
}

void* idle_object(const saved_process& p, const scheduler::class_info& cls) {
  void* object = object_of_class(p, cls);
  const slot* s = here_pe().find(p.at.slot, p.at.generation);
  if (s->state != scheduler::process_state::idle || s->depth != 0) throw_not_quiescent(p.text(cls.name));
  return object;
}

}  // namespace orrery::detail
