// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>

#include <orrery/wire/serialize.hpp>
#include <orrery/wire/unique_ptr.hpp>

namespace orrery::wire {

/// A buffer as a transport gives it, for tests: aligned, and exactly as large as it says, so that
/// the address sanitizer sees one byte too far.
class message {
 public:
  explicit message(std::size_t size)
      : bytes_(static_cast<std::byte*>(::operator new(size, std::align_val_t{wire_alignment}))), size_(size) {}
  explicit message(std::span<const std::byte> bytes) : message(bytes.size()) {
    if (!bytes.empty()) std::memcpy(bytes_.get(), bytes.data(), bytes.size());
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return {bytes_.get(), size_}; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// A message that consists of the first n bytes of this one.
  [[nodiscard]] message first(std::size_t n) const { return message(bytes().first(n)); }

 private:
  struct release {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t{wire_alignment}); }
  };

  wire::unique_ptr<std::byte, release> bytes_;
  std::size_t size_;
};

/// A message that holds the values, in a buffer that wire_size() said is large enough.
template <class... T>
message encode(const T&... x) {
  message m(wire_size(x...));
  if (m.size() != 0) std::memset(m.bytes().data(), 0xa5, m.size());  // nothing is zero by chance
  writer w(m.bytes());
  write(w, x...);
  w.finish();
  return m;
}

/// The one value that the message holds.
template <class T>
T decode(const message& m) {
  reader r(m.bytes());
  T x = read<T>(r);
  r.finish();
  return x;
}

/// The value that arrives when x is sent.
template <class T>
T round_trip(const T& x) {
  return decode<T>(encode(x));
}

}  // namespace orrery::wire
