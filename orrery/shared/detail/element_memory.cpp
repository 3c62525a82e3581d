// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/internal/element_memory.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

namespace orrery::detail::element_memory {

namespace {

/// Integers wrap around, as those of std::atomic do.
template <class T>
T combine(element_change what, T before, T x) {
  using number = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  const auto a = static_cast<number>(before);
  const auto b = static_cast<number>(x);
  switch (what) {
    case element_change::add:
      return static_cast<T>(a + b);
    case element_change::subtract:
      return static_cast<T>(a - b);
    case element_change::multiply:
      return static_cast<T>(a * b);
    case element_change::divide:
      if constexpr (std::is_integral_v<T>) {
        if (x == 0) throw std::domain_error("an integer of shared data was to be divided by 0; it is as it was");
        // the least number has no opposite
        if (x == static_cast<T>(-1)) return static_cast<T>(number{0} - a);
      }
      return static_cast<T>(before / x);
    case element_change::least:
      return std::min(before, x);
    case element_change::greatest:
      return std::max(before, x);
    case element_change::exchange:
      break;
    default:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(what == element_change::bit_and ? a & b : what == element_change::bit_or ? a | b : a ^ b);
      break;  // a message that makes no sense
  }
  return x;
}

template <class T>
void change_scalar(const shared_object& o, std::byte* at, element_change what, const void* operand, void* old) {
  // The type comes in messages. Another size would be copied beyond what is here.
  if (o.element_bytes() != sizeof(T))
    throw bad_message(errc::message_corrupt, o.about.label + ": a change of elements of another size");
  T x;
  std::memcpy(&x, operand, sizeof x);
  T before;
  load(o, at, &before);
  for (;;) {
    const T after = combine(what, before, x);
    if (exchange(o, at, &before, &after)) break;
  }
  std::memcpy(old, &before, sizeof before);
}

}  // namespace

void change(const shared_object& o, std::byte* at, element_change what, scalar type, const void* operand, void* old) {
  switch (type) {
    case scalar::i8:
      return change_scalar<std::int8_t>(o, at, what, operand, old);
    case scalar::i16:
      return change_scalar<std::int16_t>(o, at, what, operand, old);
    case scalar::i32:
      return change_scalar<std::int32_t>(o, at, what, operand, old);
    case scalar::i64:
      return change_scalar<std::int64_t>(o, at, what, operand, old);
    case scalar::u8:
      return change_scalar<std::uint8_t>(o, at, what, operand, old);
    case scalar::u16:
      return change_scalar<std::uint16_t>(o, at, what, operand, old);
    case scalar::u32:
      return change_scalar<std::uint32_t>(o, at, what, operand, old);
    case scalar::u64:
      return change_scalar<std::uint64_t>(o, at, what, operand, old);
    case scalar::f32:
      return change_scalar<float>(o, at, what, operand, old);
    case scalar::f64:
      return change_scalar<double>(o, at, what, operand, old);
    case scalar::none:
      break;
  }
  load(o, at, old);  // exchange: the only change of what is no number
  while (!exchange(o, at, old, operand)) {
  }
}

}  // namespace orrery::detail::element_memory
