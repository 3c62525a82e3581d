// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/copy_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

// The wire format. All nodes of a world run the same build on the same kind of machine (they
// compare their tables when they join), so a value travels as it lies in memory: native byte order,
// native sizes, no tags, no names, no padding between values.
//
//   arithmetic, enum     its bytes (long double: without its padding)
//   bool                 one byte, 0 or 1
//   length               4 bytes; 0xffffffff and 8 bytes more when it does not fit
//   run                  length, zeros up to the element's alignment, the elements as one block:
//                        strings, views, and vectors of what `trivially_serializable` allows, so a
//                        vector that was sent can be received as a view
//   other containers     length, then the elements one by one; an element that takes no bytes takes
//                        one zero byte, so that a length is never larger than the rest of a message
//   optional, pointers   bool, then the value if there is one
//   variant              number of the alternative (1 byte, 2 from 256 on), then its value
//   aggregate, tuple     field after field
//
// Alignment counts from the start of the buffer, which the transport aligns to `wire_alignment`.

namespace orrery {

/// Every buffer that a `reader` is given views from must be aligned to this many bytes.
inline constexpr std::size_t wire_alignment = 64;

/// How deep containers, smart pointers and classes with serialize() may nest in one value: a value
/// that contains itself is found out on the sending side, and a forged message cannot exhaust the
/// stack of the fiber that reads it.
inline constexpr unsigned max_depth = 128;

class reader;
namespace detail {
class references;  // of the process layer; only passed on here
}

namespace wire {

/// Lengths from here on are written with 8 bytes more.
inline constexpr std::uint32_t long_length = 0xffffffff;

/// Bytes to add to `position` to make it a multiple of `alignment`, a power of two.
constexpr std::size_t padding(std::size_t position, std::size_t alignment) noexcept {
  return (0 - position) & (alignment - 1);
}

// Out of line, so that the checks in the headers cost a compare and a jump.
[[noreturn, gnu::cold]] void fail_truncated(std::size_t position, std::size_t needed, std::size_t left);
[[noreturn, gnu::cold]] void fail_count(std::size_t position, std::size_t count, std::size_t left);
[[noreturn, gnu::cold]] void fail_corrupt(std::size_t position, const char* expected);
[[noreturn, gnu::cold]] void fail_depth(bool reading);
[[noreturn, gnu::cold]] void fail_alignment();
[[noreturn, gnu::cold]] void fail_changed(std::size_t size, std::size_t position);
[[noreturn, gnu::cold]] void fail_valueless();

// Defined with the codecs; static_assert in one sentence if T cannot be sent.
template <class A, class T>
constexpr void save_checked(A& a, const T& x);
template <class T>
constexpr void load_checked(reader& r, T& x);

}  // namespace wire

/// Counts the bytes that values will take. First of the three archives over one traversal: the
/// `template <class A> void serialize(A& a)` of a class sees a sizer, then a writer, then,
/// elsewhere, a reader, and names the same members to each. `A::is_loading` and `A::is_saving` are
/// std::true_type or std::false_type, as in cereal and Boost, for a class that has to tell them
/// apart.
///
/// Owned by whoever sizes, lives for one message. Not thread-safe. Throws usage_error
/// (value_too_deep, value_without_state) on a value that cannot be sent.
class sizer {
 public:
  using is_saving = std::true_type;
  using is_loading = std::false_type;

  template <class T>
  constexpr sizer& operator&(const T& x) {
    wire::save_checked(*this, x);
    return *this;
  }
  template <class... T>
  constexpr sizer& operator()(const T&... x) {
    (wire::save_checked(*this, x), ...);
    return *this;
  }

  /// `count` elements at `data`, without their number, aligned and as one block.
  template <class T>
  constexpr sizer& block(const T*, std::size_t count) {
    put_aligned(nullptr, count * sizeof(T), alignof(T));
    return *this;
  }
  /// Nothing here; see reader::require.
  constexpr void require(std::size_t, std::size_t) const noexcept {}

  [[nodiscard]] constexpr std::size_t position() const noexcept { return size_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }

  constexpr void put(const void*, std::size_t bytes) noexcept { size_ += bytes; }
  constexpr void put_zeros(std::size_t bytes) noexcept { size_ += bytes; }
  constexpr void put_aligned(const void*, std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes != 0) size_ += wire::padding(size_, alignment) + bytes;
  }
  constexpr void put_length(std::size_t n) noexcept { size_ += n < wire::long_length ? 4 : 12; }
  constexpr void enter() {
    if (++depth_ > max_depth) [[unlikely]]
      wire::fail_depth(false);
  }
  constexpr void leave() noexcept { --depth_; }

 private:
  std::size_t size_ = 0;
  unsigned depth_ = 0;
};

/// Writes values into a buffer that the caller made exactly as large as a `sizer` said.
///
/// Does not own the buffer. Not thread-safe. Throws usage_error (value_changed) where the buffer
/// would overrun, which takes a value that another thread changes, or a serialize() that does not
/// name the same parts each time; the buffer's contents are then to be discarded.
class writer {
 public:
  using is_saving = std::true_type;
  using is_loading = std::false_type;

  explicit writer(std::span<std::byte> buffer) noexcept
      : begin_(buffer.data()), at_(begin_), end_(begin_ + buffer.size()) {}

  template <class T>
  writer& operator&(const T& x) {
    wire::save_checked(*this, x);
    return *this;
  }
  template <class... T>
  writer& operator()(const T&... x) {
    (wire::save_checked(*this, x), ...);
    return *this;
  }

  /// `count` elements at `data`, without their number, aligned and as one block.
  template <class T>
  writer& block(const T* data, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "orrery: block() copies bytes");
    put_aligned(data, count * sizeof(T), alignof(T));
    return *this;
  }
  /// Nothing here; see reader::require.
  constexpr void require(std::size_t, std::size_t) const noexcept {}

  [[nodiscard]] std::size_t position() const noexcept { return static_cast<std::size_t>(at_ - begin_); }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }

  /// Throws usage_error (value_changed) unless the buffer is full, as it is after all has been
  /// written that was sized.
  void finish() const {
    if (at_ != end_) [[unlikely]]
      wire::fail_changed(position() + left(), position());
  }

  void put(const void* data, std::size_t bytes) {
    claim(bytes);
    if (bytes != 0) wire::copy_bytes(at_, data, bytes);
    at_ += bytes;
  }
  void put_zeros(std::size_t bytes) {
    claim(bytes);
    if (bytes != 0) std::memset(at_, 0, bytes);
    at_ += bytes;
  }
  void put_aligned(const void* data, std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return;
    put_zeros(wire::padding(position(), alignment));  // zeros: equal values make equal messages
    put(data, bytes);
  }
  void put_length(std::size_t n) {
    const auto small = n < wire::long_length ? static_cast<std::uint32_t>(n) : wire::long_length;
    put(&small, sizeof small);
    if (small == wire::long_length) put(&n, sizeof n);
  }
  void enter() noexcept {}  // the sizer has been there
  void leave() noexcept {}

 private:
  // Always checked, also in release builds: a serialize() written by a user decides how much comes.
  void claim(std::size_t bytes) const {
    if (bytes > left()) [[unlikely]]
      wire::fail_changed(position() + left(), position());
  }

  std::byte* begin_;
  std::byte* at_;
  std::byte* end_;
};

/// Reads values out of a message that may be damaged or forged: every length and offset is checked
/// before it is used, and nothing is allocated that the rest of the message could not fill.
///
/// Does not own the buffer; views that are read (`is_view`) point into it. The buffer must be
/// aligned to `wire_alignment`. Not thread-safe. Throws bad_message; what was read so far is then
/// to be discarded, and the reader with it.
class reader {
 public:
  using is_saving = std::false_type;
  using is_loading = std::true_type;

  explicit reader(std::span<const std::byte> buffer) noexcept
      : begin_(buffer.data()), at_(begin_), end_(begin_ + buffer.size()) {}

  template <class T>
  reader& operator&(T& x) {
    wire::load_checked(*this, x);
    return *this;
  }
  template <class... T>
  reader& operator()(T&... x) {
    (wire::load_checked(*this, x), ...);
    return *this;
  }

  /// Fills `count` elements at `data`, which the caller has made room for after `require`.
  template <class T>
  reader& block(T* data, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "orrery: block() copies bytes");
    require(count, sizeof(T));
    const std::byte* from = take_aligned(count * sizeof(T), alignof(T));
    if (count != 0) std::memcpy(static_cast<void*>(data), from, count * sizeof(T));
    return *this;
  }

  /// Throws bad_message unless `count` elements of `bytes_each` can still be in the message. A
  /// serialize() that allocates for a number it has just read calls this before it does.
  void require(std::size_t count, std::size_t bytes_each) const {
    if (bytes_each != 0 && count > left() / bytes_each) [[unlikely]]
      wire::fail_count(position(), count, left());
  }

  [[nodiscard]] std::size_t position() const noexcept { return static_cast<std::size_t>(at_ - begin_); }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }

  /// Throws bad_message (message_corrupt) if anything is left.
  void finish() const {
    if (at_ != end_) [[unlikely]]
      fail("the end of the message");
  }

  /// The next `bytes` bytes, in place.
  [[nodiscard]] const std::byte* take(std::size_t bytes) {
    if (bytes > left()) [[unlikely]]
      wire::fail_truncated(position(), bytes, left());
    const std::byte* result = at_;
    at_ += bytes;
    return result;
  }
  /// The next block of `bytes` bytes that was written with this alignment, in place.
  [[nodiscard]] const std::byte* take_aligned(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return at_;
    (void)take(wire::padding(position(), alignment));
    return take(bytes);
  }
  /// A length, not yet compared with anything.
  [[nodiscard]] std::size_t take_length() {
    std::uint32_t small;
    std::memcpy(&small, take(sizeof small), sizeof small);
    if (small != wire::long_length) return small;
    std::size_t n;
    std::memcpy(&n, take(sizeof n), sizeof n);
    if (n < wire::long_length) [[unlikely]]
      fail("a length in its short form");
    return n;
  }
  /// A length of that many elements of at least `bytes_each` bytes.
  [[nodiscard]] std::size_t take_count(std::size_t bytes_each) {
    const std::size_t n = take_length();
    require(n, bytes_each);
    return n;
  }
  void enter() {
    if (++depth_ > max_depth) [[unlikely]]
      wire::fail_depth(true);
  }
  void leave() noexcept { --depth_; }
  /// The new names of the remote pointers in the state of an object that a restart makes anew. Else
  /// null.
  [[nodiscard]] const detail::references* references() const noexcept { return references_; }
  void set_references(const detail::references* r) noexcept { references_ = r; }
  /// Throws bad_message (message_corrupt), whose text says what was expected here instead.
  [[noreturn]] void fail(const char* expected) const { wire::fail_corrupt(position(), expected); }

 private:
  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
  const detail::references* references_ = nullptr;
  unsigned depth_ = 0;
};

}  // namespace orrery
