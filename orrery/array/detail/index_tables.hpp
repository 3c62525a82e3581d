// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/cell.hpp>
#include <orrery/array/detail/home_queue.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

// The tables of a part. Programs whose indices are of the usual types do not read this.
namespace orrery::detail {

struct remote_location;

/// Where an element is: its cell, or what is known of another place.
template <class Index>
class whereabouts {
 public:
  whereabouts() = default;
  explicit whereabouts(index_cell<Index>* c) noexcept : bits_(reinterpret_cast<std::uintptr_t>(c)) {}
  explicit whereabouts(remote_location* a) noexcept : bits_(reinterpret_cast<std::uintptr_t>(a) | 1) {}
  [[nodiscard]] bool is_remote() const noexcept { return (bits_ & 1) != 0; }
  [[nodiscard]] index_cell<Index>* here() const noexcept { return reinterpret_cast<index_cell<Index>*>(bits_); }
  [[nodiscard]] remote_location* there() const noexcept {
    return reinterpret_cast<remote_location*>(bits_ & ~std::uintptr_t{1});
  }

 private:
  std::uintptr_t bits_ = 1;
};

template <class Index, class Value>
using map_of_index = boost::unordered_flat_map<Index, Value, index_hash<Index>, index_equal<Index>>;

/// Bytes to other elements.
template <class Index>
struct index_traffic : map_of_index<Index, std::uint64_t> {
  using map_of_index<Index, std::uint64_t>::map_of_index;
};

/// All that a part keeps by indices.
template <class Index>
struct index_tables {
  map_of_index<Index, whereabouts<Index>> places;
  map_of_index<Index, std::uint32_t> told;  ///< by the first homes of indices: where elements are
  map_of_index<Index, wire::unique_ptr<home_queue>> home_queues;
  std::vector<std::pair<Index, scheduler::slot*>> endings;  ///< elements whose destructors run
  /// Streams whose next message may be here.
  std::vector<std::pair<Index, std::uint64_t>> releasing;
  std::deque<std::pair<Index, std::uint32_t>> deleted;  ///< index and birth, oldest first
};

template <class T>
void deleter_there<T>::operator()(T* p) const noexcept {
  delete p;
}

}  // namespace orrery::detail
