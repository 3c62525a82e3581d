// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/core.hpp>
#include <orrery/array/index.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace orrery::detail {

template <class Index>
struct index_traffic;
/// Deletes an object whose class only index_tables.hpp knows.
template <class T>
struct deleter_there {
  void operator()(T* p) const noexcept;
};

/// A cell with the type of its index.
template <class Index>
struct index_cell : cell_base {
  using traffic = index_traffic<Index>;
  using traffic_list = std::vector<std::pair<Index, std::uint64_t>>;
  Index index{};
  /// Bytes to other elements, while that is measured.
  wire::unique_ptr<traffic, deleter_there<traffic>> sent;

  void forget_load() noexcept {
    load_ns = 0;
    sent.reset();
  }
};

/// An element: what the array knows of it, and behind that, in the same block of memory, the
/// object.
template <class T, class Index>
struct cell : index_cell<Index> {
  static constexpr bool over_aligned = alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  [[nodiscard]] static constexpr std::size_t offset() noexcept {
    return (sizeof(cell) + alignof(T) - 1) / alignof(T) * alignof(T);
  }
  [[nodiscard]] void* storage() noexcept { return reinterpret_cast<std::byte*>(this) + offset(); }
  [[nodiscard]] T* object() noexcept { return std::launder(static_cast<T*>(storage())); }
  [[nodiscard]] static cell& of(void* object) noexcept {
    return *std::launder(reinterpret_cast<cell*>(static_cast<std::byte*>(object) - offset()));
  }
  [[nodiscard]] static cell* make(const Index& i) {
    void* p = nullptr;
    if constexpr (over_aligned) {
      p = ::operator new(offset() + sizeof(T), std::align_val_t{alignof(T)});
    } else {
      p = ::operator new(offset() + sizeof(T));
    }
    auto* c = new (p) cell;
    c->index = i;
    return c;
  }
  /// The object must have ended.
  static void free(cell* c) noexcept {
    c->~cell();
    if constexpr (over_aligned) {
      ::operator delete(static_cast<void*>(c), std::align_val_t{alignof(T)});
    } else {
      ::operator delete(static_cast<void*>(c));
    }
  }
};

/// The cell whose object is being constructed on this thread, for the base class of the object. Set
/// just before, taken at once.
extern constinit thread_local cell_base* constructing_cell;

}  // namespace orrery::detail
