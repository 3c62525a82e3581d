// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery {

/// From where a walking list takes its free processes (the load balancing of section 3.3 of the
/// paper).
enum class spare_order : std::uint8_t {
  local_first,  ///< the PE of the process that needs one: requests seldom leave the PE
  ring,         ///< all PEs in turn: shortcuts of each PE lead to all parts of the list
  even,         ///< the PE with most free processes, as far as is known
  by_load,      ///< the PE whose list processes had least to do, as far as is known
};

namespace service {

/// A manager's knowledge of a PE: of others, what they said last.
struct spare_place {
  std::uint64_t free = 0;
  std::uint64_t load = 0;  ///< requests that its list processes have had
};

/// Says which manager is asked first for a free process. One that has none passes the request on
/// around the ring.
///
/// Owned by a manager; used by its process only.
class spare_strategy {
 public:
  spare_strategy() = default;
  spare_strategy(const spare_strategy&) = delete;
  spare_strategy& operator=(const spare_strategy&) = delete;
  virtual ~spare_strategy() = default;
  /// One of the places (at least one), for a process at the place `self`.
  [[nodiscard]] virtual std::size_t choose(std::span<const spare_place> places, std::size_t self) = 0;
};

[[nodiscard]] wire::unique_ptr<spare_strategy> make_spare_strategy(spare_order o);

}  // namespace service
}  // namespace orrery
