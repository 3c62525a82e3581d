// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/access_record.hpp>
#include <orrery/shared/detail/shared_id.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

namespace orrery::detail {

struct shared_object;

/// The arithmetic type of an element, for what is done to it where it lies.
enum class scalar : std::uint8_t { none, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64 };

/// The one of integers of so many bytes; none of other sizes, as of __int128.
[[nodiscard]] constexpr scalar integer_scalar(std::size_t size, bool is_signed) noexcept {
  switch (size) {
    case 1:
      return is_signed ? scalar::i8 : scalar::u8;
    case 2:
      return is_signed ? scalar::i16 : scalar::u16;
    case 4:
      return is_signed ? scalar::i32 : scalar::u32;
    case 8:
      return is_signed ? scalar::i64 : scalar::u64;
    default:
      return scalar::none;
  }
}

template <class T>
inline constexpr scalar scalar_of = [] {
  if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T> || !std::is_arithmetic_v<T>) {
    return scalar::none;
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? scalar::f32 : sizeof(T) == 8 ? scalar::f64 : scalar::none;
  } else {
    return integer_scalar(sizeof(T), std::is_signed_v<T>);
  }
}();

/// The changes of an element that are atomic.
enum class element_change : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  least,
  greatest,
  exchange,
  bit_and,  ///< this one and those behind it: of integers
  bit_or,
  bit_xor
};

/// The checker and the adviser, where they run, are told of an access by default.
void note_access(const shared_object& o, std::uint64_t row, std::uint64_t column, access_kind k,
                 std::source_location where);

/// The checker, where it runs: who changes an element as a whole at its owner comes after those who
/// did so before, and, if it `gives`, before those who will; who reads it comes after them, too.
void order_change(const void* element, bool gives);

// Access by default: one element, complete when the function returns. In this domain it is memory,
// elsewhere a call to the owner. Elements of 1, 2, 4 and 8 bytes are read and written whole, others
// under a lock. A vector has only the column 0. All may park, unless the element lies in this
// domain and the PE knows the object. They throw std::out_of_range, usage_error (destroyed),
// node_lost, stopped. `where` is for the checker.

void read_element(const shared_id& id, std::uint64_t row, std::uint64_t column, void* out, std::source_location where);
void write_element(const shared_id& id, std::uint64_t row, std::uint64_t column, const void* value,
                   std::source_location where);
/// `old` gets what it was.
void change_element(const shared_id& id, std::uint64_t row, std::uint64_t column, element_change what, scalar type,
                    const void* operand, void* old, std::source_location where);
/// Writes `desired` if the element's bytes are those of `expected`, which gets what they were. True
/// if it did.
bool compare_exchange_element(const shared_id& id, std::uint64_t row, std::uint64_t column, void* expected,
                              const void* desired, std::source_location where);

// The same of an element in this domain that is known to be inside. They do not park.

void load_here(const shared_object& o, const std::byte* at, void* out);
void store_here(const shared_object& o, std::byte* at, const void* value);
/// Throws std::domain_error (an integer divided by 0).
void change_here(const shared_object& o, std::byte* at, element_change what, scalar type, const void* operand,
                 void* old);
bool compare_exchange_here(const shared_object& o, std::byte* at, void* expected, const void* desired);

/// The PE that owns the element.
[[nodiscard]] std::uint32_t owner_of_element(const shared_id& id, std::uint64_t row, std::uint64_t column);

}  // namespace orrery::detail
