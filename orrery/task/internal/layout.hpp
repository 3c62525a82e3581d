// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/task/task.h>
#include <orrery/task/internal/mail.hpp>

#include <cstddef>

namespace orrery::task_detail {

// A message type in its linear form: the structure, then what its pointers point to, each at a multiple of 16 bytes, in the order of the fields;
// behind an element what its own pointers point to. Instead of a pointer stands the number of its bytes plus one; 0 is NULL.

/// What the linear form takes. Throws usage_error if a count is negative, or the structure is deeper than 64 pointers.
[[nodiscard]] std::size_t linear_size(const orrery_message_type& type, const void* value);

/// Writes what linear_size has measured.
class linear_writer final : public mail_writer {
 public:
  linear_writer(const orrery_message_type& type, const void* value) noexcept : type_(type), value_(value) {}
  void write(std::byte* to) const noexcept override;

 private:
  const orrery_message_type& type_;
  const void* value_;
};

/// Puts addresses where the linear form has sizes. Throws bad_message if it is not one of that type; nothing outside of it is touched.
void open_linear(const orrery_message_type& type, std::byte* data, std::size_t size);

}  // namespace orrery::task_detail
