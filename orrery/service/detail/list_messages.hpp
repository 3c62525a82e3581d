// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/packing.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/exception.hpp>

#include <cstdint>
#include <exception>
#include <string>

// The messages between the sessions of an ordered list and its ranges.
namespace orrery::service {

enum class list_operation : std::uint8_t {
  find,
  insert,
  erase,
  update,
  insert_or_update,
  compare_and_update,
  after,  ///< the first item with a greater key
  first,
  last,
  size,
  last_of_all,  ///< last, asked of the first range: the last one was empty
  unreadable,   ///< for the range: the key or a value could not be unpacked
};

[[nodiscard]] constexpr bool has_key(list_operation o) noexcept { return o <= list_operation::after; }
[[nodiscard]] constexpr bool has_value(list_operation o) noexcept {
  return o == list_operation::insert || o == list_operation::update || o == list_operation::insert_or_update ||
         o == list_operation::compare_and_update;
}
[[nodiscard]] constexpr bool may_write(list_operation o) noexcept {
  return (o >= list_operation::insert && o <= list_operation::compare_and_update) || o == list_operation::unreadable;
}

/// A request: the operation, its key, its value, and what compare_and_update expects.
template <class Key, class Value>
struct list_request {
  list_operation operation = list_operation::find;
  Key key{};
  Value value{};
  Value expected{};
  // For the range: where the key is to be looked for, and where the packed request lies.
  std::size_t leaf = 0;
  std::size_t hint = 0;
  const std::byte* begin = nullptr;
};

template <class Key, class Value>
void unpack(unpacker& u, list_request<Key, Value>& r) {
  r.operation = u.take<list_operation>();
  if (has_key(r.operation)) r.key = u.take<Key>();
  if (has_value(r.operation)) r.value = u.take<Value>();
  if (r.operation == list_operation::compare_and_update) r.expected = u.take<Value>();
}

/// The head of the answer to each request. Behind all answers, if some say `moved`, stands how many
/// intervals of keys have other owners, and these (owned_keys).
enum class list_answer : std::uint8_t {
  no,
  yes,
  value,  ///< yes; a value follows
  item,  ///< yes; a key and a value follow
  number,  ///< 8 bytes follow
  moved,  ///< not executed: it belongs to another range. The request follows, behind its length
  behind,  ///< not executed: one before it has moved. The request follows, behind its length
  before,  ///< last: nothing here or in what follows; a range before may have it
  failed,  ///< a wire_exception follows
};

/// Passes a request by, whatever its key and its values are.
template <class Key, class Value>
void skip_request(unpacker& u) {
  const auto o = u.take<list_operation>();
  if (has_key(o)) u.skip<Key>();
  if (has_value(o)) u.skip<Value>();
  if (o == list_operation::compare_and_update) u.skip<Value>();
}

/// Passes by what follows an answer.
template <class Key, class Value>
void skip_answer(list_answer what, unpacker& u) {
  if (what == list_answer::item) u.skip<Key>();
  if (what == list_answer::item || what == list_answer::value) u.skip<Value>();
  if (what == list_answer::number) u.skip<std::uint64_t>();
  if (what == list_answer::failed) u.skip<wire_exception>();
}

/// The answer `failed`, with this exception.
template <class To>
void pack_failure(To& answer, const std::exception_ptr& why) {
  pack(answer, list_answer::failed);
  pack(answer, encode_exception(why));
}
template <class To>
void pack_failure(To& answer, const error& why) {
  pack_failure(answer, make_error(why.code(), verbatim, why.what()));
}

}  // namespace orrery::service
