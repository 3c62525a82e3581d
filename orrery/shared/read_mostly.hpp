// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/access.hpp>
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/scalar.hpp>
#include <orrery/shared/shared_element.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/vector.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <source_location>

namespace orrery {

namespace detail {

class replica;

struct read_mostly_request {
  shared_id id;
  std::uint64_t size;
  std::source_location where;
};

/// Elements that are read in memory of this machine and written everywhere at once, for a scope;
/// without their type.
class read_mostly_scope {
 public:
  explicit read_mostly_scope(const read_mostly_request& r);
  read_mostly_scope(const read_mostly_scope&) = delete;
  read_mostly_scope& operator=(const read_mostly_scope&) = delete;
  ~read_mostly_scope();
  /// Parks until the replica is complete.
  void ready();
  void close() noexcept;

  // The words of elements. All but read_bytes may park. They throw std::out_of_range, usage_error
  // (destroyed), node_lost, stopped.
  void write_bytes(std::uint64_t i, const void* value) const;
  void change_bytes(std::uint64_t i, element_change what, scalar type, const void* operand, void* old) const;
  bool compare_exchange_bytes(std::uint64_t i, void* expected, const void* desired) const;
  void read_bytes(std::uint64_t i, void* out) const;
  template <class T>
  [[nodiscard]] T read(std::uint64_t i) const;

 protected:
  std::uint64_t size_ = 0;

 private:
  void note(std::uint64_t i) const;

  const std::byte* first_ = nullptr;  // in the order of the indices
  std::shared_ptr<const shared_object> object_;
  std::shared_ptr<replica> replica_;  // null: the elements themselves are memory of this machine
  bool everywhere_ = true;  // they are so for all PEs of the world
  scope_guard guard_;
  watched_access watch_;
  std::source_location where_;
};

template <class T>
T read_mostly_scope::read(std::uint64_t i) const {
  if constexpr (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8) {
    using word =
        std::conditional_t<sizeof(T) == 1, std::uint8_t,
                           std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                              std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
    if (i < size_) [[likely]]
      // SYNC: acquire, with the store of element_memory.hpp: this sees what its process wrote
      // before, too.
      return std::bit_cast<T>(__atomic_load_n(reinterpret_cast<const word*>(first_ + i * sizeof(T)), __ATOMIC_ACQUIRE));
  }
  element_value<T> v;
  read_bytes(i, v.raw.data());
  return v.get();
}

}  // namespace detail

/// An element of a read-mostly scope: converts to its value, and can be assigned to. A read is
/// local; a write has reached all replicas when it returns, and may park. See shared_element for
/// what the functions do, and for what they throw.
template <class T>
class read_mostly_element : public detail::element_changes<read_mostly_element<T>, T> {
 public:
  read_mostly_element(const detail::read_mostly_scope& s, std::uint64_t i) noexcept : scope_(s), i_(i) {}
  read_mostly_element(const read_mostly_element&) = delete;

  /// The value in this PE's replica.
  [[nodiscard]] T get() const { return scope_.template read<T>(i_); }
  operator T() const { return get(); }  // NOLINT(google-explicit-constructor)
  void operator=(const T& value) const { scope_.write_bytes(i_, &value); }  // NOLINT: nothing to go on with
  void operator=(const read_mostly_element& other) const { *this = other.get(); }  // NOLINT

 private:
  friend detail::element_changes<read_mostly_element, T>;
  void change_bytes(detail::element_change what, detail::scalar type, const void* operand, void* old) const {
    scope_.change_bytes(i_, what, type, operand, old);
  }
  bool compare_exchange_bytes(void* expected, const void* desired) const {
    return scope_.compare_exchange_bytes(i_, expected, desired);
  }

  const detail::read_mostly_scope& scope_;
  std::uint64_t i_;
};

/// A shared vector in a scope of *read-mostly*: `T x = v[i]` reads memory of this machine,
/// `v[i] = x` writes all replicas.
template <class T>
class read_mostly_vector : public detail::read_mostly_scope {
 public:
  using detail::read_mostly_scope::read_mostly_scope;
  [[nodiscard]] read_mostly_element<T> operator[](std::uint64_t i) const noexcept { return {*this, i}; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
};

/// A shared scalar in a scope of read-mostly.
template <class T>
class read_mostly_scalar : public detail::read_mostly_scope, public detail::scalar_changes<read_mostly_scalar<T>, T> {
 public:
  using detail::read_mostly_scope::read_mostly_scope;
  /// The value as an element, for all that one can do to such.
  [[nodiscard]] read_mostly_element<T> element(const std::source_location& = {}) const noexcept { return {*this, 0}; }
  /// The value in this PE's replica.
  [[nodiscard]] T get() const { return this->template read<T>(0); }
  operator T() const { return get(); }  // NOLINT(google-explicit-constructor)
  /// Gives the scalar a value, in all replicas. May park.
  void set(const T& value) const { write_bytes(0, &value); }
  void operator=(const T& value) const { set(value); }  // NOLINT: nothing to go on with
};

namespace detail {

template <class Handle>
struct read_mostly_behaviour : read_mostly_request {
  using handle = Handle;
};

}  // namespace detail

/// The behaviour *read-mostly*, for data that many read and few change (Lu 2001, section 2). Where
/// the elements lie on this machine they are read in place; elsewhere the PE has a replica of all,
/// which its open scopes share. A write goes to the owner, which tells all replicas; it returns
/// when they have the new value. All replicas see the writes to one element in the same order.
///
/// A PE takes updates in when it takes messages: a loop that waits for another value has to park.
/// Writes outside of such scopes are not told to replicas; scopes that open later see them.
///
/// Opening throws usage_error (somebody views it), std::bad_alloc, node_lost.
///
///     with(read_mostly(best), [&](auto& best) {
///       if (length < best) best.fetch_min(length);
///     });
template <class T>
[[nodiscard]] detail::read_mostly_behaviour<read_mostly_vector<T>> read_mostly(
    const shared_vector<T>& v, const std::source_location& where = std::source_location::current()) {
  detail::require_bytes<T>();
  return {{v.id(), v.size(), where}};
}
template <class T>
[[nodiscard]] detail::read_mostly_behaviour<read_mostly_scalar<T>> read_mostly(
    const shared<T>& s, const std::source_location& where = std::source_location::current()) {
  detail::require_bytes<T>();
  return {{s.id(), 1, where}};
}

}  // namespace orrery
