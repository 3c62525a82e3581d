// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/array_handler.hpp>
#include <orrery/array/detail/message_sections.hpp>
#include <orrery/array/detail/sequence_number.hpp>

#include <cstdint>

// Broadcasts of an array: on a PE, and on their way with an element.
namespace orrery::detail {

/// A broadcast on one PE: the arguments, until every element here has executed it and none can come
/// that has not.
struct broadcast_record {
  sequence_number number;
  std::uint32_t holders = 0;  ///< messages in mailboxes, and the buffer of past broadcasts
  std::uint32_t left = 0;  ///< messages in mailboxes
  bool ours = false;  ///< begun on this PE
  array_core* part = nullptr;
  const array_handler* member = nullptr;  ///< of the messages to elements
  const array_handler* method = nullptr;  ///< of the broadcast
  virtual ~broadcast_record() = default;
  virtual void append_arguments(bytes& b) const = 0;
};

/// A broadcast that an element has got but not executed, on its way with the element.
struct pending_broadcast {
  std::uint32_t method = 0;  ///< in the table of handlers
  bytes arguments;
};

}  // namespace orrery::detail
