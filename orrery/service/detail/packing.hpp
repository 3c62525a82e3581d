// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/serialize.hpp>
#include <orrery/wire/type_description.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

// How requests to a service and its answers become bytes.
//
// Problem: a message type for each pair of key and value costs seconds at every compile, and
// a batch of requests of many kinds is no type at all.
// So the messages of a service carry bytes, and the two ends pack and unpack typed values there.
// A value that travels as its bytes takes no more than these; any other one follows its length, so
// that code without types can pass it by.
namespace orrery::service {

using bytes = std::vector<std::byte>;

/// Throws usage_error: a single key or value has 4 GiB or more.
[[noreturn]] void fail_too_large(std::size_t size);

/// Bytes to which much is appended, little at a time.
///
/// A vector of bytes calls a function for each insertion. A packer keeps room behind its bytes, and
/// an insertion is a compare and a store. It keeps its memory when it is cleared.
class packer {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return used_; }
  [[nodiscard]] bool empty() const noexcept { return used_ == 0; }
  [[nodiscard]] std::span<const std::byte> all() const noexcept { return {room_.data(), used_}; }
  void clear() noexcept { used_ = 0; }
  void shrink(std::size_t to) noexcept { used_ = to; }
  /// n more bytes, to be written by the caller.
  [[nodiscard]] std::byte* extend(std::size_t n) {
    if (n > room_.size() - used_) [[unlikely]]
      grow(n);
    std::byte* const at = room_.data() + used_;
    used_ += n;
    return at;
  }
  void append(std::span<const std::byte> more) {
    std::byte* const at = extend(more.size());
    if (!more.empty()) std::memcpy(at, more.data(), more.size());
  }
  void drop_front(std::size_t n);
  /// The bytes as a vector; none are left.
  [[nodiscard]] bytes take();

 private:
  [[gnu::noinline]] void grow(std::size_t n);

  bytes room_;
  std::size_t used_ = 0;
};

inline std::byte* extend(packer& to, std::size_t n) { return to.extend(n); }
inline std::byte* extend(bytes& to, std::size_t n) {
  to.resize(to.size() + n);
  return to.data() + to.size() - n;
}

/// Appends the bytes of `x`. Throws usage_error, std::bad_alloc; then `to` may have grown. Does not
/// park.
template <class To, class T>
void pack(To& to, const T& x) {
  if constexpr (trivially_serializable<T>) {
    std::memcpy(extend(to, sizeof(T)), &x, sizeof(T));
  } else {
    const std::size_t size = wire_size(x);
    if (size > 0xffff'ffffU) [[unlikely]]
      fail_too_large(size);
    pack(to, static_cast<std::uint32_t>(size));
    writer w{std::span<std::byte>(extend(to, size), size)};
    write(w, x);
  }
}

/// Takes values out of packed bytes, in the order in which they were packed.
///
/// Does not own the bytes. Throws bad_message where they end too early.
class unpacker {
 public:
  explicit unpacker(std::span<const std::byte> all) noexcept
      : begin_(all.data()), at_(all.data()), end_(all.data() + all.size()) {}

  template <class T>
  [[nodiscard]] T take() {
    if constexpr (trivially_serializable<T>) {
      T x;
      std::memcpy(&x, claim(sizeof(T)), sizeof(T));
      return x;
    } else {
      reader r(take_bytes(take<std::uint32_t>()));
      return read<T>(r);
    }
  }
  /// Passes a T by.
  template <class T>
  void skip() {
    if constexpr (trivially_serializable<T>) {
      (void)claim(sizeof(T));
    } else {
      (void)claim(take<std::uint32_t>());
    }
  }
  [[nodiscard]] std::span<const std::byte> take_bytes(std::size_t n) { return {claim(n), n}; }
  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return {at_, end_}; }
  [[nodiscard]] bool empty() const noexcept { return at_ == end_; }
  [[nodiscard]] const std::byte* position() const noexcept { return at_; }

 private:
  const std::byte* claim(std::size_t n) {
    if (n > static_cast<std::size_t>(end_ - at_)) [[unlikely]]
      wire::fail_truncated(static_cast<std::size_t>(at_ - begin_), n, static_cast<std::size_t>(end_ - at_));
    const std::byte* const here = at_;
    at_ += n;
    return here;
  }

  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
};

/// The shapes of types on the wire, as text. Two programs can use one service only if their texts
/// are the same.
template <class... T>
[[nodiscard]] std::string types_in_words() {
  wire::type_description s;
  (s.describe<T>(), ...);
  return s.text();
}

}  // namespace orrery::service
