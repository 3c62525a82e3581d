// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/array.hpp>
#include <orrery/storage/ledger.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::storage {

/// How a copy is made: units, and how many processes share them.
struct copy_plan {
  page_grid from = {};
  page_grid to = {};
  element_type from_type = element_type::complex128;
  element_type to_type = element_type::complex128;
  index3 unit = {};  ///< in pages of the output; whatever the memory
  std::uint64_t window = 0;  ///< bytes of pages that a process has under way
  std::uint64_t pool_bytes = 0;  ///< of pages that each node keeps for later ones
  std::uint32_t processes = 0;
  std::uint64_t peak_bytes = 0;  ///< of memory

  [[nodiscard]] std::int64_t units() const { return page_grid{to.pages(), unit}.page_count(); }
  [[nodiscard]] domain unit_pages(std::int64_t n) const;
  [[nodiscard]] domain unit_elements(std::int64_t n) const;
};

/// Converts elements to another type: single and double precision, real to complex. Returns how
/// many finite numbers have become infinite. Throws std::invalid_argument for complex numbers that
/// are to become real ones. Any thread.
std::uint64_t convert_elements(std::span<const std::byte> from, element_type from_type, std::span<std::byte> to,
                               element_type to_type);

/// A process that takes units of a copy, one after the other: reads the elements of one, converts
/// them and writes them in pages of the output. copy_job makes several, so that reading and writing
/// overlap.
class copier {
 public:
  copier(const copy_plan& plan, const remote<ledger>& units);
  /// Returns when no unit is left. The ledger counts the numbers that have become infinite. Throws
  /// what the devices throw; the others then end, too.
  void copy(array from, array to);
  /// The same of units that are read again and verified by their checksums: those that are wrong,
  /// or have not come to their drives, are copied once more. Throws EBADMSG if that does not help.
  void verify(array from, array to);

 private:
  template <class F>
  void each_unit(F&& f);
  std::uint64_t copy_unit(std::int64_t unit, const array& from, const array& to);

  copy_plan plan_;
  remote<ledger> ledger_;
  page read_;  // memory for a unit, kept from one to the next
  page converted_;
};
ORRERY_PROCESS(copier, copy, verify);

}  // namespace orrery::storage
