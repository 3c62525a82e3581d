// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/element.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <source_location>

namespace orrery {

/// Goes through the elements of a shared vector by default access, in the order of their indices:
/// `*i` is a shared_element, wherever it lies. A random access iterator for the algorithms of
/// std::ranges. A value of the size of a handle, good until the vector is destroyed; dereferencing
/// throws, and may park, as shared_element does. (For many elements a scope or copy is faster by
/// far.)
template <class T>
class shared_iterator {
 public:
  using value_type = T;
  using difference_type = std::int64_t;
  using reference = shared_element<T>;
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;  // in the words of C++17: references are no T&

  shared_iterator() noexcept = default;
  shared_iterator(const detail::shared_id& id, std::uint64_t at, const std::source_location& where) noexcept
      : id_(id), at_(static_cast<difference_type>(at)), where_(where) {}

  [[nodiscard]] reference operator*() const noexcept { return {id_, static_cast<std::uint64_t>(at_), 0, where_}; }
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
};

}  // namespace orrery
