// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/remote.hpp>

#include <cstddef>
#include <iterator>

namespace orrery {

template <class T>
class group;

namespace detail {

/// Goes through the members of a group in the order of their ranks; random access, by value.
template <class T>
class group_iterator {
 public:
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;
  using value_type = remote<T>;
  using difference_type = std::ptrdiff_t;
  using reference = remote<T>;
  using pointer = void;

  group_iterator() noexcept = default;
  remote<T> operator*() const noexcept { return remote<T>(*at_); }
  remote<T> operator[](difference_type n) const noexcept { return remote<T>(at_[n]); }
  group_iterator& operator++() noexcept { return *this += 1; }
  group_iterator operator++(int) noexcept { return group_iterator(at_++, 0); }
  group_iterator& operator--() noexcept { return *this -= 1; }
  group_iterator operator--(int) noexcept { return group_iterator(at_--, 0); }
  group_iterator& operator+=(difference_type n) noexcept {
    at_ += n;
    return *this;
  }
  group_iterator& operator-=(difference_type n) noexcept { return *this += -n; }
  friend group_iterator operator+(group_iterator i, difference_type n) noexcept { return i += n; }
  friend group_iterator operator+(difference_type n, group_iterator i) noexcept { return i += n; }
  friend group_iterator operator-(group_iterator i, difference_type n) noexcept { return i -= n; }
  friend difference_type operator-(const group_iterator& a, const group_iterator& b) noexcept { return a.at_ - b.at_; }
  friend auto operator<=>(const group_iterator&, const group_iterator&) noexcept = default;

 private:
  friend class group<T>;
  group_iterator(const address* first, std::size_t rank) noexcept : at_(first + rank) {}

  const address* at_ = nullptr;
};

}  // namespace detail

}  // namespace orrery
