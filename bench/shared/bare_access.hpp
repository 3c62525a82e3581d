// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/matrix.hpp>

#include <cstdint>
#include <source_location>

// Access by default as the library has it, without all that the checker and the adviser need: what
// the library's own is compared with when neither runs.
namespace bare {

void read(const orrery::detail::shared_id& id, std::uint64_t row, std::uint64_t column, void* out,
          std::source_location where);
void write(const orrery::detail::shared_id& id, std::uint64_t row, std::uint64_t column, const void* value,
           std::source_location where);

class element {
 public:
  element(const orrery::detail::shared_id& id, std::uint64_t row, std::uint64_t column,
          const std::source_location& where) noexcept
      : id_(id), row_(row), column_(column), where_(where) {}
  operator double() const {  // NOLINT(google-explicit-constructor)
    double x;
    read(id_, row_, column_, &x, where_);
    return x;
  }
  void operator=(double x) const { write(id_, row_, column_, &x, where_); }  // NOLINT: nothing to go on with

 private:
  orrery::detail::shared_id id_;
  std::uint64_t row_;
  std::uint64_t column_;
  std::source_location where_;
};

struct matrix {
  const orrery::shared_matrix<double>& of;
  element operator[](orrery::detail::element_index row, std::uint64_t column) const noexcept {
    return {of.id(), row.at, column, row.where};
  }
};

}  // namespace bare
