// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_message.hpp>
#include <orrery/process/detail/arguments_ref.hpp>

#include <cstdint>

// Sending to one element that is not on this PE, as far as the types of element and arguments do
// not matter.
namespace orrery::detail {

class stream_place;
enum class patience : std::uint8_t { may_wait, must_not };

template <class Index>
struct index_sender {
  /// False if it would have to wait and must not. True in `again` when it has waited: everything
  /// may be different.
  static bool send_remote(pe& self, std::uint32_t array, const Index& to, const message_form& form,
                          scheduler::sink* sink, patience p, bool& again, const arguments_ref& arguments);
  /// Waits while the mailbox of an element of this PE is full; false: it must not wait.
  static bool has_room(pe& self, std::uint32_t array, const Index& to, patience p);

 private:
  // To an element of an array of another program: by way of the PE that made it.
  static bool send_to_other_program(pe& self, std::uint32_t array, const Index& to, const message_form& form,
                                    scheduler::sink* sink, patience p, const arguments_ref& arguments);
  static bool send_from_here(pe& self, index_part<Index>& part, const Index& to, const message_form& form,
                             scheduler::sink* sink, patience p, bool& again, const arguments_ref& arguments);
  // A record of a ring, which was reserved.
  struct space {
    scheduler::outbound* ring = nullptr;
    wire::envelope* record = nullptr;
    std::uint32_t bytes = 0;
  };
  // To the PE that the message is to go to first.
  [[gnu::always_inline]] static inline void write_record(pe& self, index_part<Index>& part, remote_location& way,
                                                         const space& room, const Index& to, const message_form& form,
                                                         scheduler::sink* sink, const arguments_ref& arguments);
  static stream_place next_tag(pe& self, std::uint32_t array, const Index& to, const message_form& form);
  static void pack_arguments(bytes& b, const arguments_ref& arguments);
};

}  // namespace orrery::detail
