// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/checkpoint_item.hpp>

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
