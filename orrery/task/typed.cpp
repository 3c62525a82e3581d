// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/typed.hpp>

#include <orrery/process/detail/typed_handler.hpp>
#include <orrery/task/internal/convert.hpp>
#include <orrery/task/internal/mail.hpp>
#include <orrery/task/internal/message_faces.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace orrery::tasks {

using task_detail::sent;

bool detail::send(const orrery_task& to, std::uint64_t tag, const orrery_message_type* type, const void* value,
                  bool may_wait) {
  const sent said = type != nullptr ? task_detail::send_message(to, tag, *type, value, may_wait)
                                    : task_detail::send_plain(to, tag, nullptr, 0, may_wait);
  if (said == sent::gone)
    throw process_gone(fmt::format("tasks::send: task {}", to_string(task_detail::address_of(to))));
  return said == sent::yes;
}

mail receive() {
  orrery_message m;
  (void)task_detail::receive_until(nullptr, &m, ORRERY_FOREVER, true);
  return mail(m);
}
mail receive_tag(std::uint64_t number) {
  orrery_message m;
  (void)task_detail::receive_until(&number, &m, ORRERY_FOREVER, true);
  return mail(m);
}
std::optional<mail> receive_for(time_limit d) {
  orrery_message m;
  const std::int64_t ns = std::max<std::int64_t>(d.time().count(), 0);
  if (task_detail::receive_until(nullptr, &m, ns, true) != ORRERY_OK) return std::nullopt;
  return mail(m);
}

void* mail::open_as(const orrery_message_type& type) {
  if (m_.handle_ == nullptr || opened_)
    throw usage_error(errc::bad_argument, fmt::format("mail::open<{}>: it was opened or moved before", type.name));
  if (m_.type != type.id)
    throw bad_message(errc::message_corrupt,
                      fmt::format("mail::open<{}>: the message with tag {} from task {} is of another type", type.name,
                                  m_.tag, to_string(task_detail::address_of(m_.sender))));
  opened_ = true;
  task_detail::open_message(m_, type);
  return m_.data;
}

void mail::expect_none() const {
  if (m_.type != 0)
    throw bad_message(errc::message_corrupt,
                      fmt::format("the message with tag {} from task {} has a type, and its tag carries no message",
                                  m_.tag, to_string(task_detail::address_of(m_.sender))));
}

void wrong_count(std::size_t length, std::uint64_t other, std::string_view array) {
  throw usage_error(errc::bad_argument,
                    fmt::format("tasks::send: the array '{}' has {} elements, but its count in the message is {}: make "
                                "arrays with one count equally long, or give the count a larger type",
                                array, length, other));
}

char* text_of(const std::optional<std::string>& text, std::string_view member) {
  if (!text) return nullptr;
  if (const std::size_t at = text->find('\0'); at != std::string::npos)
    throw usage_error(errc::bad_argument,
                      fmt::format("tasks::send: the text '{}' has a byte 0 at {}, where it would end for C: count its "
                                  "bytes in a member, and send an array",
                                  member, at));
  return const_cast<char*>(text->c_str());
}

}  // namespace orrery::tasks
