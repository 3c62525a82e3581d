// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_maker.hpp>
#include <orrery/array/detail/send_to_element.hpp>
#include <orrery/array/element.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <utility>

namespace orrery::detail {

/// Makes the parts of an array on all PEs, down the spanning tree, and their elements, as far as
/// their class matters. index_maker does the work. A...: the arguments that all elements get.
template <class T, class Index, class... A>
struct array_maker {
  using part_type = array_part<T, Index>;
  using maker = element_maker<Index>;

  static wire::unique_ptr<index_part<Index>> make_part(pe& self, array_core::description s,
                                                       typename part_type::settings o) {
    return wire::make_unique<part_type>(self, std::move(s), std::move(o));
  }
  struct source final : element_source<Index> {
    std::tuple<A...> all;
    explicit source([[maybe_unused]] orrery::reader r) : all{orrery::read<A>(r)...} {}
    void make(index_part<Index>& p, const Index& i) const override {
      auto& part = static_cast<part_type&>(p);
      std::apply([&](const A&... each) { part.construct_inline(part.create_entry(i, 0), each...); }, all);
    }
  };
  static typename maker::source with(const bytes& arguments) {
    return wire::make_unique<source>(orrery::reader(arguments));
  }
  static void describe(wire::type_description& types) {
    types.describe<Index>();
    (types.describe<A>(), ...);
  }
  inline static const maker instance{type_name<T>(), wire::type_key<array_maker>(), &describe, &make_part, &with};
};

template <class T, class Index>
future<void> array_part<T, Index>::start_end(const Index& i) {
  return start_element<end_with_array_message<T, Index>, void>(this->self_, element_name<T, Index>{this->id(), i});
}

}  // namespace orrery::detail
