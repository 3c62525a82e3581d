// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/element.hpp>
#include <orrery/array/index_maker.hpp>
#include <orrery/array/send.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace orrery::detail {

/// What makes the parts of an array on all PEs, down the spanning tree, and their elements. What it tells other PEs is written and read by
/// index_maker, which does the work.
template <class T, class Index>
struct array_maker {
  using by_index = index_maker<Index>;
  using part_type = array_part<T, Index>;

  static void make(bytes how) {
    by_index::make(
        how,
        [](pe& self, array_core::shape s, typename part_type::settings o) -> std::unique_ptr<index_part<Index>> {
          return std::make_unique<part_type>(self, std::move(s), std::move(o));
        },
        [](std::uint32_t pe, const bytes& same) { return start_call<&make>(orrery::pe(pe), same); });
  }
  // Each PE creates what belongs to it.
  template <class... A>
  static void fill(bytes how, A... arguments) {
    by_index::fill(
        how, make_with(arguments...),
        [&](std::uint32_t pe, const bytes& same) {
          return start_call<&fill<A...>>(orrery::pe(pe), same, arguments...);
        },
        [&](std::uint32_t pe, bytes some) {
          return start_call<&fill_with<A...>>(orrery::pe(pe), std::move(some), arguments...);
        });
  }
  // What another PE has found to belong here.
  template <class... A>
  static void fill_with(bytes some, A... arguments) {
    by_index::fill_with(some, make_with(arguments...));
  }

 private:
  template <class... A>
  static auto make_with(const A&... arguments) {
    return [&](index_part<Index>& p, const Index& i) {
      auto& part = static_cast<part_type&>(p);
      part.construct_inline(part.conceive(i, 0), arguments...);
    };
  }
};

template <class T, class Index>
future<void> array_part<T, Index>::start_end(const Index& i) {
  return start_element<end_with_array_message<T, Index>, void>(this->self_, element_name<T, Index>{this->id(), i});
}

}  // namespace orrery::detail
