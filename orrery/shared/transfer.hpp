// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/copy.hpp>
#include <orrery/shared/detail/rectangle.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/vector.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <type_traits>
#include <vector>

// Bulk transfer that goes on while the process does something else, or that leaves out elements; by
// lists of indices: gather.hpp. The elements of each owner travel in a few large messages, whatever
// the distribution. All functions park. They throw std::out_of_range (not inside), usage_error
// (other sizes, destroyed), node_lost, stopped.

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
  explicit transfer(wire::unique_ptr<work> w) noexcept;

 private:
  wire::unique_ptr<work> work_;
};

/// Every step-th element of a shared vector: `count` of them, from `first` on. See every().
template <class T>
class vector_stride {
 public:
  vector_stride(const shared_vector<T>& of, std::uint64_t first, std::uint64_t count, std::uint64_t step) noexcept
      : of_(of), first_(first), count_(count), step_(step) {}
  /// The vector that the stride belongs to.
  [[nodiscard]] const shared_vector<T>& whole() const noexcept { return of_; }
  /// The index of the first element.
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
  /// The distance from one element to the next.
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

/// The index of an element of a matrix, in lists of them.
struct matrix_index {
  std::uint64_t row = 0;
  std::uint64_t column = 0;
  friend bool operator==(const matrix_index&, const matrix_index&) noexcept = default;
};

namespace detail {

/// Indices of elements: a list, of a vector or of a matrix, or `count` of a vector in equal
/// distances.
class index_source {
 public:
  index_source(std::span<const std::uint64_t> list) noexcept : count(list.size()), list_(list) {}  // NOLINT
  index_source(std::span<const matrix_index> list) noexcept : count(list.size()), pairs_(list) {}  // NOLINT
  index_source(std::uint64_t from, std::uint64_t step, std::uint64_t n) noexcept
      : first(from), distance(step), count(n) {}
  [[nodiscard]] matrix_index operator[](std::uint64_t i) const noexcept {
    if (pairs_.data() != nullptr) return pairs_[i];
    return {list_.data() != nullptr ? list_[i] : first + i * distance, 0};
  }
  std::uint64_t first = 0;
  std::uint64_t distance = 0;
  std::uint64_t count = 0;  ///< also of a list

 private:
  std::span<const std::uint64_t> list_;
  std::span<const matrix_index> pairs_;
};

[[nodiscard]] transfer start_read(const rectangle& from, std::byte* to, std::uint64_t pitch,
                                  std::source_location where);
[[nodiscard]] transfer start_write(const std::byte* from, std::uint64_t pitch, const rectangle& to,
                                   std::source_location where);
[[nodiscard]] transfer start_between(const rectangle& from, const rectangle& to, std::source_location where);
[[nodiscard]] transfer start_between(const shared_id& from, const index_source& of, const shared_id& to,
                                     const index_source& places, std::source_location where);
[[nodiscard]] transfer start_gather(const shared_id& from, const index_source& indices, std::byte* to,
                                    std::source_location where);
[[nodiscard]] transfer start_scatter(const std::byte* from, const shared_id& to, const index_source& indices,
                                     std::source_location where);

template <class T>
[[nodiscard]] index_source indices_of(const vector_stride<T>& s) noexcept {
  return {s.first(), s.step(), s.size()};
}

}  // namespace detail

/// As copy, but it returns before the copy is complete: a vector, a matrix or a part of one to
/// local memory,
template <detail::shared_part P>
transfer start_copy(const P& from, std::span<detail::element_of<P>> to,
                    std::source_location where = std::source_location::current()) {
  detail::require_bytes<detail::element_of<P>>();
  const detail::rectangle r = detail::rectangle_of(from);
  detail::require_same_size(r, to.size());
  return detail::start_read(r, reinterpret_cast<std::byte*>(to.data()), r.columns * sizeof(detail::element_of<P>),
                            where);
}
/// back,
template <detail::shared_part P>
transfer start_copy(std::span<const detail::element_of<P>> from, const P& to,
                    std::source_location where = std::source_location::current()) {
  detail::require_bytes<detail::element_of<P>>();
  const detail::rectangle r = detail::rectangle_of(to);
  detail::require_same_size(r, from.size());
  return detail::start_write(reinterpret_cast<const std::byte*>(from.data()), r.columns * sizeof(detail::element_of<P>),
                             r, where);
}
/// and between two of the same shape, each owner sending its own elements. They must not overlap.
template <detail::shared_part P, detail::shared_part Q>
transfer start_copy(const P& from, const Q& to, std::source_location where = std::source_location::current()) {
  static_assert(std::is_same_v<detail::element_of<P>, detail::element_of<Q>>,
                "orrery: start_copy(from, to): both have elements of one type");
  detail::require_bytes<detail::element_of<P>>();
  const detail::rectangle a = detail::rectangle_of(from);
  const detail::rectangle b = detail::rectangle_of(to);
  if (a.rows != b.rows || a.columns != b.columns) detail::throw_other_shape(a, b);
  return detail::start_between(a, b, where);
}
/// Between two of the same shape, complete when it returns. They must not overlap. Elements that
/// their owners hold as objects go through memory of the caller.
template <detail::shared_part P, detail::shared_part Q>
void copy(const P& from, const Q& to, std::source_location where = std::source_location::current()) {
  using T = detail::element_of<P>;
  static_assert(std::is_same_v<T, detail::element_of<Q>>, "orrery: copy(from, to): both have elements of one type");
  if constexpr (detail::held_by_owner<T>) {
    const detail::rectangle a = detail::rectangle_of(from);
    const detail::rectangle b = detail::rectangle_of(to);
    if (a.rows != b.rows || a.columns != b.columns) detail::throw_other_shape(a, b);
    // Some rows at a time, as many as make 1 MiB without what the objects own.
    const std::uint64_t most =
        std::max<std::uint64_t>(1, (1 << 20) / sizeof(T) / std::max<std::uint64_t>(1, a.columns));
    std::vector<T> between(std::min(most, a.rows) * a.columns);
    for (std::uint64_t done = 0; done < a.rows; done += most) {
      const std::uint64_t n = std::min(most, a.rows - done);
      detail::read_elements(detail::rectangle{a.id, a.row + done, n, a.column, a.columns}, between.data(), where);
      detail::write_elements(between.data(), detail::rectangle{b.id, b.row + done, n, b.column, b.columns}, where);
    }
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
/// Between shared vectors, each owner sending its own elements: the k-th of one to the k-th of the
/// other.
template <class T>
transfer start_copy(const vector_stride<T>& from, const vector_stride<T>& to,
                    std::source_location where = std::source_location::current()) {
  detail::require_bytes<T>();
  detail::require_same_size(from.size(), to.size());
  return detail::start_between(from.whole().id(), detail::indices_of(from), to.whole().id(), detail::indices_of(to),
                               where);
}
/// The same, complete when they return.
template <class T>
void copy(const vector_stride<T>& from, const vector_stride<T>& to,
          std::source_location where = std::source_location::current()) {
  start_copy(from, to, where).wait();
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

}  // namespace orrery
