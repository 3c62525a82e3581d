// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/copy.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/rectangle.hpp>
#include <orrery/shared/vector.hpp>
#include <orrery/wire/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <type_traits>
#include <vector>

// Bulk transfer that goes on while the process does something else, that leaves out elements, or
// that goes by lists of indices. The elements of each owner travel in a few large messages,
// whatever the distribution. All functions park. They throw std::out_of_range (not inside),
// usage_error (other sizes, destroyed), node_lost, stopped.

namespace orrery {

/// A copy that was started. wait() returns when it is complete: what was read is in local memory,
/// what was written can be seen by everybody. Local memory that is written from may be used again
/// as soon as the copy was started; memory that is read to belongs to the copy until wait() has
/// returned. A copy that is dropped before is not complete.
class [[nodiscard]] transfer {
 public:
  transfer() noexcept;
  transfer(transfer&&) noexcept;
  transfer& operator=(transfer&&) noexcept;
  ~transfer();
  /// Parks. Throws node_lost, stopped, usage_error (destroyed meanwhile). A second call does
  /// nothing.
  void wait();

  struct work;  // not for users
  explicit transfer(std::unique_ptr<work> w) noexcept;

 private:
  std::unique_ptr<work> work_;
};

/// Every step-th element of a shared vector: `count` of them, from `first` on. See
/// shared_vector::every.
template <class T>
class vector_stride {
 public:
  vector_stride(const shared_vector<T>& of, std::uint64_t first, std::uint64_t count, std::uint64_t step) noexcept
      : of_(of), first_(first), count_(count), step_(step) {}
  [[nodiscard]] const shared_vector<T>& whole() const noexcept { return of_; }
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }

 private:
  shared_vector<T> of_;
  std::uint64_t first_;
  std::uint64_t count_;
  std::uint64_t step_;
};

/// Elements first, first + step, first + 2 step...: `count` of them. Throws usage_error (a step of
/// 0, or more than there are indices).
template <class T>
[[nodiscard]] vector_stride<T> every(const shared_vector<T>& v, std::uint64_t step, std::uint64_t first,
                                     std::uint64_t count) {
  if (count > 1 && (step == 0 || count - 1 > (~std::uint64_t{0} - first) / step))
    throw usage_error(errc::bad_argument, "every: the step must be 1 or more, and the last index a number of 64 bits");
  return {v, first, count, step};
}

namespace detail {

/// Indices of elements: a list, or `count` of them in equal distances.
struct index_source {
  std::span<const std::uint64_t> list;
  std::uint64_t first = 0;
  std::uint64_t distance = 0;
  std::uint64_t count = 0;  ///< also of the list
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    return list.data() != nullptr ? list[i] : first + i * distance;
  }
};

[[nodiscard]] transfer start_read(const rectangle& from, std::byte* to, std::uint64_t pitch,
                                  std::source_location where);
[[nodiscard]] transfer start_write(const std::byte* from, std::uint64_t pitch, const rectangle& to,
                                   std::source_location where);
[[nodiscard]] transfer start_between(const rectangle& from, const rectangle& to, std::source_location where);
[[nodiscard]] transfer start_gather(const shared_id& from, const index_source& indices, std::byte* to,
                                    std::source_location where);
[[nodiscard]] transfer start_scatter(const std::byte* from, const shared_id& to, const index_source& indices,
                                     std::source_location where);

template <class T>
[[nodiscard]] index_source indices_of(const vector_stride<T>& s) noexcept {
  return {{}, s.first(), s.step(), s.size()};
}
inline void require_same_size(std::uint64_t from, std::uint64_t to) {
  if (from != to) throw_other_size(from, to);
}

}  // namespace detail

/// As copy, but it returns before the copy is complete: a part of a vector or a rectangle of a
/// matrix to local memory,
template <detail::shared_part P>
transfer start_copy(const P& from, std::span<detail::element_of<P>> to,
                    std::source_location where = std::source_location::current()) {
  detail::require_bytes<detail::element_of<P>>();
  detail::require_same_size(from.size(), to.size());
  const detail::rectangle r = detail::rectangle_of(from);
  return detail::start_read(r, reinterpret_cast<std::byte*>(to.data()), r.columns * sizeof(detail::element_of<P>),
                            where);
}
/// back,
template <detail::shared_part P>
transfer start_copy(std::span<const std::type_identity_t<detail::element_of<P>>> from, const P& to,
                    std::source_location where = std::source_location::current()) {
  detail::require_bytes<detail::element_of<P>>();
  detail::require_same_size(from.size(), to.size());
  const detail::rectangle r = detail::rectangle_of(to);
  return detail::start_write(reinterpret_cast<const std::byte*>(from.data()), r.columns * sizeof(detail::element_of<P>),
                             r, where);
}
/// and between two of the same shape, each owner sending its own elements. They must not overlap.
template <detail::shared_part P>
transfer start_copy(const P& from, const P& to, std::source_location where = std::source_location::current()) {
  detail::require_bytes<detail::element_of<P>>();
  const detail::rectangle a = detail::rectangle_of(from);
  const detail::rectangle b = detail::rectangle_of(to);
  detail::require_same_size(a.rows, b.rows);
  detail::require_same_size(a.columns, b.columns);
  return detail::start_between(a, b, where);
}
/// A rectangle of a matrix to one of the same shape, complete when it returns.
template <class T>
void copy(const matrix_part<T>& from, const matrix_part<T>& to,
          std::source_location where = std::source_location::current()) {
  if constexpr (detail::held_by_owner<T>) {
    detail::require_same_size(from.row_count(), to.row_count());
    detail::require_same_size(from.column_count(), to.column_count());
    std::vector<T> between(from.size());
    copy(from, std::span(between), where);
    copy(std::span<const T>(between), to, where);
  } else {
    start_copy(from, to, where).wait();
  }
}

/// Every step-th element to local memory, and back.
template <class T>
transfer start_copy(const vector_stride<T>& from, std::span<std::type_identity_t<T>> to,
                    std::source_location where = std::source_location::current()) {
  detail::require_bytes<T>();
  detail::require_same_size(from.size(), to.size());
  return detail::start_gather(from.whole().id(), detail::indices_of(from), reinterpret_cast<std::byte*>(to.data()),
                              where);
}
template <class T>
transfer start_copy(std::span<const std::type_identity_t<T>> from, const vector_stride<T>& to,
                    std::source_location where = std::source_location::current()) {
  detail::require_bytes<T>();
  detail::require_same_size(from.size(), to.size());
  return detail::start_scatter(reinterpret_cast<const std::byte*>(from.data()), to.whole().id(), detail::indices_of(to),
                               where);
}
template <class T>
void copy(const vector_stride<T>& from, std::span<std::type_identity_t<T>> to,
          std::source_location where = std::source_location::current()) {
  start_copy(from, to, where).wait();
}
template <class T>
void copy(std::span<const std::type_identity_t<T>> from, const vector_stride<T>& to,
          std::source_location where = std::source_location::current()) {
  start_copy(from, to, where).wait();
}

/// to[k] = from[indices[k]]: all that one owner has travels together. The list must stay until
/// start_gather has returned.
template <class T>
transfer start_gather(const shared_vector<T>& from, std::span<const std::uint64_t> indices,
                      std::span<std::type_identity_t<T>> to,
                      std::source_location where = std::source_location::current()) {
  detail::require_bytes<T>();
  detail::require_same_size(indices.size(), to.size());
  return detail::start_gather(from.id(), {indices, 0, 0, indices.size()}, reinterpret_cast<std::byte*>(to.data()),
                              where);
}
template <class T>
[[nodiscard]] std::vector<T> gather(const shared_vector<T>& from, std::span<const std::uint64_t> indices,
                                    std::source_location where = std::source_location::current()) {
  std::vector<T> values(indices.size());
  start_gather(from, indices, std::span(values), where).wait();
  return values;
}
/// to[indices[k]] = values[k]. Where an index is there twice, either value stays.
template <class T>
transfer start_scatter(std::span<const std::type_identity_t<T>> values, const shared_vector<T>& to,
                       std::span<const std::uint64_t> indices,
                       std::source_location where = std::source_location::current()) {
  detail::require_bytes<T>();
  detail::require_same_size(values.size(), indices.size());
  return detail::start_scatter(reinterpret_cast<const std::byte*>(values.data()), to.id(),
                               {indices, 0, 0, indices.size()}, where);
}
template <class T>
void scatter(std::span<const std::type_identity_t<T>> values, const shared_vector<T>& to,
             std::span<const std::uint64_t> indices, std::source_location where = std::source_location::current()) {
  start_scatter(values, to, indices, where).wait();
}

}  // namespace orrery
