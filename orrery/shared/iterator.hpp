// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/shared_element.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <source_location>

namespace orrery {

namespace detail {

/// The place of the n-th element of a vector,
struct vector_order {
  [[nodiscard]] static std::uint64_t row_of(std::uint64_t n) noexcept { return n; }
  [[nodiscard]] static std::uint64_t column_of(std::uint64_t) noexcept { return 0; }
};
/// and of a matrix, row after row.
struct matrix_order {
  std::uint64_t columns = 1;
  [[nodiscard]] std::uint64_t row_of(std::uint64_t n) const noexcept { return n / columns; }
  [[nodiscard]] std::uint64_t column_of(std::uint64_t n) const noexcept { return n % columns; }
};

}  // namespace detail

/// Goes through the elements of a shared vector or matrix by default access, in the order of their
/// indices, those of a matrix row after row: `*i` is a shared_element, wherever it lies. A random
/// access iterator for the algorithms of std::ranges. A small value, good until the object is
/// destroyed; dereferencing throws, and may park, as shared_element does. (For many elements a
/// scope or copy is faster by far.)
template <class T, class Order = detail::vector_order>
class shared_iterator {
 public:
  using value_type = T;
  using difference_type = std::int64_t;
  using reference = shared_element<T>;
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;  // in the words of C++17: references are no T&

  shared_iterator() noexcept = default;
  shared_iterator(const detail::shared_id& id, std::uint64_t at, const std::source_location& where,
                  const Order& order = {}) noexcept
      : id_(id), at_(static_cast<difference_type>(at)), where_(where), order_(order) {}

  [[nodiscard]] reference operator*() const noexcept {
    const auto n = static_cast<std::uint64_t>(at_);
    return {id_, order_.row_of(n), order_.column_of(n), where_};
  }
  [[nodiscard]] reference operator[](difference_type n) const noexcept { return *(*this + n); }
  shared_iterator& operator++() noexcept { return *this += 1; }
  shared_iterator& operator--() noexcept { return *this -= 1; }
  shared_iterator operator++(int) noexcept {
    shared_iterator old = *this;
    ++*this;
    return old;
  }
  shared_iterator operator--(int) noexcept {
    shared_iterator old = *this;
    --*this;
    return old;
  }
  shared_iterator& operator+=(difference_type n) noexcept {
    at_ += n;
    return *this;
  }
  shared_iterator& operator-=(difference_type n) noexcept { return *this += -n; }
  friend shared_iterator operator+(shared_iterator i, difference_type n) noexcept { return i += n; }
  friend shared_iterator operator+(difference_type n, shared_iterator i) noexcept { return i += n; }
  friend shared_iterator operator-(shared_iterator i, difference_type n) noexcept { return i -= n; }
  friend difference_type operator-(const shared_iterator& a, const shared_iterator& b) noexcept {
    return a.at_ - b.at_;
  }
  friend bool operator==(const shared_iterator& a, const shared_iterator& b) noexcept { return a.at_ == b.at_; }
  friend auto operator<=>(const shared_iterator& a, const shared_iterator& b) noexcept { return a.at_ <=> b.at_; }
  friend T iter_move(const shared_iterator& i) { return (*i).get(); }
  friend void iter_swap(const shared_iterator& a, const shared_iterator& b) { swap(*a, *b); }

 private:
  detail::shared_id id_;
  difference_type at_ = 0;
  std::source_location where_;
  [[no_unique_address]] Order order_;
};

/// The same of a matrix.
template <class T>
using shared_matrix_iterator = shared_iterator<T, detail::matrix_order>;

}  // namespace orrery
