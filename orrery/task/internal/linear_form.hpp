// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/task/task.h>
#include <orrery/task/internal/mail.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace orrery::task_detail {

// A message type in its linear form: the structure, then what its pointers point to, each at a
// multiple of 16 bytes, in the order of the fields; behind an element what its own pointers point
// to. Instead of a pointer stands the number of its bytes plus one; 0 is NULL. Instead of a
// buffer's address stands its number among the message's buffers, from 1 on.

/// The size of the linear form. The buffers that the message has are appended to `buffers`. Throws
/// usage_error if the table of the type makes no sense (check_table), a count is negative, the
/// structure is deeper than 64 messages, or it has buffers and `buffers` is null.
[[nodiscard]] std::size_t linear_size(const orrery_message_type& type, const void* value,
                                      std::vector<orrery_buffer>* buffers = nullptr);

/// Writes what linear_size has measured.
class linear_writer final : public mail_writer {
 public:
  linear_writer(const orrery_message_type& type, const void* value) noexcept : type_(type), value_(value) {}
  void write(std::byte* to) const noexcept override;

 private:
  const orrery_message_type& type_;
  const void* value_;
};

/// Puts addresses where the linear form has sizes, and the buffers where it has their numbers.
/// Throws bad_message if it is not one of that type, usage_error as linear_size; nothing outside of
/// it is touched.
void open_linear(const orrery_message_type& type, std::byte* data, std::size_t size,
                 std::span<const orrery_buffer> buffers = {});

}  // namespace orrery::task_detail
