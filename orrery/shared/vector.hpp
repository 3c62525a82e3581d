// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/shared_handle.hpp>
#include <orrery/shared/distribution.hpp>
#include <orrery/shared/held_element.hpp>
#include <orrery/shared/iterator.hpp>
#include <orrery/shared/shared_element.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

namespace orrery {

template <class T>
class vector_part;

/// The global indices that somebody owns, in ascending order: `for (std::uint64_t i :
/// a.local_indices())`.
using index_range = detail::axis_walk;

/// A vector whose elements lie on many PEs and are used from all of them as data, with plain
/// syntax.
///
///     shared_vector<double> a(1'000'000);   // a block for each PE
///     a[7] = 3.5;                           // from anywhere
///     double x = a[7];
///
/// The value is a small handle that is copied, stored and sent. It owns nothing: `destroy(a)` ends
/// the elements everywhere, and a later use throws usage_error. Elements begin as zero bytes.
/// Scopes (scope.hpp) make loops over many elements fast. (Aurora's GVector: Lu 2001, section 2.)
template <class T>
class shared_vector {
 public:
  using value_type = T;

  /// Null: using it throws usage_error.
  shared_vector() noexcept = default;
  /// Makes a vector of n elements. Parks until its memory is there. Throws usage_error (the
  /// distribution does not fit), world_error and std::bad_alloc (no memory), node_lost, stopped.
  explicit shared_vector(std::uint64_t n, const distribution& how = distribution::block(),
                         const std::source_location& where = std::source_location::current())
      : id_(detail::make_shared_of<T>("shared vector", n, 1, detail::without_halo(how), nullptr, where)), size_(n) {}
  /// The same; all elements are `value`.
  shared_vector(std::uint64_t n, const distribution& how, const T& value,
                const std::source_location& where = std::source_location::current())
      : id_(detail::make_shared_of<T>("shared vector", n, 1, detail::without_halo(how), &value, where)), size_(n) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// An element; see shared_element.
  [[nodiscard]] shared_element<T> operator[](detail::element_index i) const noexcept { return {id_, i.at, 0, i.where}; }
  /// The elements in the order of their indices, by default access; see shared_iterator.
  [[nodiscard]] shared_iterator<T> begin(
      const std::source_location& where = std::source_location::current()) const noexcept {
    return {id_, 0, where};
  }
  [[nodiscard]] shared_iterator<T> end(
      const std::source_location& where = std::source_location::current()) const noexcept {
    return {id_, size_, where};
  }
  /// All indices, wherever their elements lie.
  [[nodiscard]] detail::index_run indices() const noexcept { return {0, size_}; }
  /// The PE that owns an element. May park; throws std::out_of_range, usage_error.
  [[nodiscard]] std::uint32_t owner(std::uint64_t i) const { return detail::owner_of_element(id_, i, 0); }
  /// The elements that this PE owns, in the order of their indices, which are local_indices(). Good
  /// until the vector is destroyed. May park.
  [[nodiscard]] std::span<T> local() const { return detail::local_elements<T>(id_); }
  /// The indices of the elements on this PE.
  [[nodiscard]] index_range local_indices() const { return detail::elements_of_this_pe(id_).row_walk; }
  /// Elements [first, first + count), for copy and for behaviours of a part. Whether they are
  /// inside is checked then.
  [[nodiscard]] vector_part<T> part(std::uint64_t first, std::uint64_t count) const noexcept {
    return {*this, first, count};
  }
  /// Makes all elements `value`, each PE its own. Parks.
  void fill(const T& value, const std::source_location& where = std::source_location::current()) const {
    detail::fill_elements(id_, value, where);
  }

  /// False for a null handle.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(id_); }
  friend bool operator==(const shared_vector&, const shared_vector&) noexcept = default;
  /// For behaviours.
  [[nodiscard]] const detail::shared_id& id() const noexcept { return id_; }

  template <class A>
  void serialize(A& a) {
    a & id_ & size_;
  }

 private:
  detail::shared_id id_;
  std::uint64_t size_ = 0;
};

/// Some elements of a shared vector that follow each other; see shared_vector::part.
template <class T>
class vector_part {
 public:
  using value_type = T;
  vector_part(const shared_vector<T>& of, std::uint64_t first, std::uint64_t count) noexcept
      : of_(of), first_(first), count_(count) {}
  /// The vector that the part belongs to.
  [[nodiscard]] const shared_vector<T>& whole() const noexcept { return of_; }
  /// The index of the part's first element in the whole vector.
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }

  template <class A>
  void serialize(A& a) {
    a & of_ & first_ & count_;
  }

 private:
  shared_vector<T> of_;
  std::uint64_t first_;
  std::uint64_t count_;
};

/// Ends a shared vector everywhere, also if the PE that made it is lost. Memory that open scopes
/// use stays until they end. Parks. Throws usage_error (null, destroyed before).
template <class T>
void destroy(const shared_vector<T>& v, const std::source_location& where = std::source_location::current()) {
  detail::destroy_shared(v.id(), where);
}

}  // namespace orrery
