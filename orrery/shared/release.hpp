// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/guard.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/read_cache.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/vector.hpp>
#include <orrery/shared/word_copy.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <source_location>
#include <type_traits>

namespace orrery {

/// How a release scope gathers.
struct release_options {
  /// Bytes of writes to one owner, and their places, that are gathered before they are sent; at least one write is. All buffers of a scope together
  /// have 4 MiB at most.
  std::size_t buffer_bytes = 32 << 10;
};

namespace detail {

struct release_request {
  shared_id id;
  std::uint64_t rows;
  std::uint64_t columns;
  std::source_location where;
  bool checked = true;  ///< false: another scope stands for it
  release_options options = {};
};

/// Writes that others are to see at the end of a scope; without their type. Where the element lies
/// on this machine a write is a store. Others are collected for each owner and sent when a buffer
/// is full; their order for each element is kept.
class release_scope {
 public:
  explicit release_scope(const release_request& r);
  release_scope(const release_scope&) = delete;
  release_scope& operator=(const release_scope&) = delete;
  ~release_scope();
  void ready() {}
  /// Sends what was gathered so far, and does not wait until others can see it. May park.
  void flush();
  /// Sends what is left and waits until all owners have written. Parks.
  void close();

 protected:
  /// May park. Throws std::out_of_range, node_lost, stopped.
  void put(std::uint64_t row, std::uint64_t column, const void* value) const;

  std::byte* whole_ = nullptr;  ///< all elements in the order of their indices, if they lie so here
  std::uint64_t rows_ = 0;
  std::uint64_t columns_ = 0;

 private:
  struct buffers;
  std::unique_ptr<buffers> buffers_;
  scope_guard guard_;
  mutable watched_access watch_;
};

/// Stores an element that the machine writes whole so that nobody sees a part of it.
template <class T>
inline void store_released(std::byte* at, const T& value) noexcept {
  if constexpr (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8) {
    using word =
        std::conditional_t<sizeof(T) == 1, std::uint8_t,
                           std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                              std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
    word w;
    std::memcpy(&w, &value, sizeof w);
    __atomic_store_n(reinterpret_cast<word*>(at), w, __ATOMIC_RELAXED);  // the end of the scope orders it
  } else {
    copy_in(at, &value, sizeof value);
  }
}
template <class T>
inline constexpr bool stored_whole = sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8;

template <class>
inline constexpr bool never_read = false;

/// What a release scope gives for an element: it can be assigned to.
template <class Scope, class T>
class write_reference {
 public:
  write_reference(const Scope& s, std::uint64_t row, std::uint64_t column) noexcept
      : scope_(s), row_(row), column_(column) {}
  write_reference(const write_reference&) = delete;
  write_reference& operator=(const write_reference&) = delete;

  void operator=(const T& value) const { scope_.write(row_, column_, value); }  // NOLINT: nothing to go on with

  template <class U>
  operator U() const {  // NOLINT(google-explicit-constructor)
    static_assert(
        never_read<U>,
        "orrery: an element cannot be read in a release scope, which only writes; use read_release, or open the "
        "scope of another behaviour");
  }
  template <class U>
  void operator+=(const U&) const {
    static_assert(never_read<U>,
                  "orrery: an element cannot be read in a release scope, which only writes: `+=` reads it; use "
                  "read_release, or the element without a scope");
  }

 private:
  const Scope& scope_;
  std::uint64_t row_;
  std::uint64_t column_;
};

}  // namespace detail

/// A shared vector in a scope of *release consistency*: elements can be written, not read, and
/// others see that at the end of the scope at the latest. Several may write disjoint elements at
/// the same time.
template <class T>
class release_vector : public detail::release_scope {
 public:
  using detail::release_scope::release_scope;
  [[nodiscard]] detail::write_reference<release_vector, T> operator[](std::uint64_t i) const noexcept {
    return {*this, i, 0};
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return rows_; }
  /// The same as an assignment. May park. Throws std::out_of_range, node_lost, stopped.
  void write(std::uint64_t i, std::uint64_t, const T& value) const {
    if constexpr (detail::stored_whole<T>) {
      if (whole_ != nullptr && i < rows_) [[likely]]
        return detail::store_released(whole_ + i * sizeof(T), value);
    }
    put(i, 0, &value);
  }
};

/// A shared matrix in a scope of release consistency; else like release_vector.
template <class T>
class release_matrix : public detail::release_scope {
 public:
  using detail::release_scope::release_scope;
  [[nodiscard]] detail::write_reference<release_matrix, T> operator[](std::uint64_t row,
                                                                      std::uint64_t column) const noexcept {
    return {*this, row, column};
  }
  [[nodiscard]] std::uint64_t row_count() const noexcept { return rows_; }
  [[nodiscard]] std::uint64_t column_count() const noexcept { return columns_; }
  /// The same as an assignment. May park. Throws std::out_of_range, node_lost, stopped.
  void write(std::uint64_t row, std::uint64_t column, const T& value) const {
    if constexpr (detail::stored_whole<T>) {
      if (whole_ != nullptr && row < rows_ && column < columns_) [[likely]]
        return detail::store_released(whole_ + (row * columns_ + column) * sizeof(T), value);
    }
    put(row, column, &value);
  }
};

namespace detail {

template <class Handle>
struct release_behaviour : release_request {
  using handle = Handle;
};

/// An element of a scope that reads a cache and writes through a release scope.
template <class Scope, class T>
class update_reference {
 public:
  update_reference(const Scope& s, std::uint64_t row, std::uint64_t column) noexcept
      : scope_(s), row_(row), column_(column) {}
  update_reference(const update_reference&) = delete;

  operator T() const noexcept { return scope_.read(row_, column_); }  // NOLINT(google-explicit-constructor)
  void operator=(const T& value) const { scope_.write(row_, column_, value); }  // NOLINT: nothing to go on with
  void operator=(const update_reference& other) const { *this = static_cast<T>(other); }  // NOLINT
  void operator+=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) + x); }
  void operator-=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) - x); }
  void operator*=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) * x); }

 private:
  const Scope& scope_;
  std::uint64_t row_;
  std::uint64_t column_;
};

struct update_request {
  cache_request cache;
  release_request release;
};
template <class Handle>
struct update_behaviour : update_request {
  using handle = Handle;
};

/// The two scopes together.
template <class Cached, class Released, class T>
class update_scope : protected Cached {
 public:
  explicit update_scope(const update_request& r) : Cached(r.cache), written_(r.release) {}
  void ready() { Cached::ready(); }
  void flush() { written_.flush(); }
  void close() {
    written_.close();
    Cached::close();
  }

 protected:
  void write_both(std::uint64_t row, std::uint64_t column, const T& value) const {
    written_.write(row, column, value);  // first: this one says what is outside
    reinterpret_cast<T*>(this->copy())[row * this->columns_ + column] = value;
  }
  [[nodiscard]] const T& read_cached(std::uint64_t row, std::uint64_t column) const noexcept {
    return Cached::data()[row * this->columns_ + column];
  }

 private:
  Released written_;
};

}  // namespace detail

/// A shared vector in a scope of *read cache and release* together: reads see the copy that was
/// made when the scope opened, and one's own writes, which others see at the end of the scope at
/// the latest.
template <class T>
class read_release_vector : public detail::update_scope<cached_vector<T>, release_vector<T>, T> {
 public:
  using detail::update_scope<cached_vector<T>, release_vector<T>, T>::update_scope;
  [[nodiscard]] detail::update_reference<read_release_vector, T> operator[](std::uint64_t i) const noexcept {
    return {*this, i, 0};
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return this->rows_; }
  [[nodiscard]] const T& read(std::uint64_t i, std::uint64_t = 0) const noexcept { return this->read_cached(i, 0); }
  void write(std::uint64_t i, std::uint64_t, const T& value) const { this->write_both(i, 0, value); }
};
/// The same of a shared matrix.
template <class T>
class read_release_matrix : public detail::update_scope<cached_matrix<T>, release_matrix<T>, T> {
 public:
  using detail::update_scope<cached_matrix<T>, release_matrix<T>, T>::update_scope;
  [[nodiscard]] detail::update_reference<read_release_matrix, T> operator[](std::uint64_t row,
                                                                            std::uint64_t column) const noexcept {
    return {*this, row, column};
  }
  [[nodiscard]] std::uint64_t row_count() const noexcept { return this->rows_; }
  [[nodiscard]] std::uint64_t column_count() const noexcept { return this->columns_; }
  [[nodiscard]] const T& read(std::uint64_t row, std::uint64_t column) const noexcept {
    return this->read_cached(row, column);
  }
  void write(std::uint64_t row, std::uint64_t column, const T& value) const { this->write_both(row, column, value); }
};

/// The behaviour *release consistency*. Opening throws node_lost, usage_error (somebody views it). Writing and ending throw node_lost, with how many
/// of the scope's writes have come to owners on other machines.
template <class T>
[[nodiscard]] detail::release_behaviour<release_vector<T>> release(
    const shared_vector<T>& v, const std::source_location& where = std::source_location::current()) {
  return {{v.id(), v.size(), 1, where}};
}
template <class T>
[[nodiscard]] detail::release_behaviour<release_matrix<T>> release(
    const shared_matrix<T>& m, const std::source_location& where = std::source_location::current()) {
  return {{m.id(), m.row_count(), m.column_count(), where}};
}
/// The same with buffers of another size.
template <class T>
[[nodiscard]] detail::release_behaviour<release_vector<T>> release(
    const shared_vector<T>& v, const release_options& options,
    const std::source_location& where = std::source_location::current()) {
  return {{v.id(), v.size(), 1, where, true, options}};
}
template <class T>
[[nodiscard]] detail::release_behaviour<release_matrix<T>> release(
    const shared_matrix<T>& m, const release_options& options,
    const std::source_location& where = std::source_location::current()) {
  return {{m.id(), m.row_count(), m.column_count(), where, true, options}};
}
/// The behaviour *read cache and release*. Opening throws what those of the two throw.
template <class T>
[[nodiscard]] detail::update_behaviour<read_release_vector<T>> read_release(
    const shared_vector<T>& v, const std::source_location& where = std::source_location::current()) {
  return {{{v.id(), 0, v.size(), 0, 1, false, where}, {v.id(), v.size(), 1, where}}};
}
template <class T>
[[nodiscard]] detail::update_behaviour<read_release_matrix<T>> read_release(
    const shared_matrix<T>& m, const std::source_location& where = std::source_location::current()) {
  return {{{m.id(), 0, m.row_count(), 0, m.column_count(), false, where},
           {m.id(), m.row_count(), m.column_count(), where}}};
}

}  // namespace orrery
