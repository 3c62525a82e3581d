// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_routing.hpp>
#include <orrery/array/detail/index_sending.hpp>
#include <orrery/array/detail/part_ending.hpp>
#include <orrery/array/detail/part_making.hpp>

// The usual types of indices: what depends on them alone is compiled once, in the library
// (index_int.cpp and others). Those that are no numbers have no ranges.
#define ORRERY_ARRAY_INDEX(keyword, type)    \
  ORRERY_ARRAY_INDEX_ROUTING(keyword, type); \
  keyword template struct orrery::detail::index_maker<type>
#define ORRERY_ARRAY_INDEX_WITHOUT_RANGE(keyword, type)                                                              \
  ORRERY_ARRAY_INDEX_ROUTING(keyword, type);                                                                         \
  keyword template std::uint32_t orrery::detail::index_maker<type>::make_array(                                      \
      const orrery::detail::element_maker<type>&, const orrery::detail::index_maker<type>::settings&, std::uint32_t, \
      const std::string&, bool);                                                                                     \
  keyword template void orrery::detail::index_maker<type>::take_step(                                                \
      orrery::detail::index_maker<type>::step, const orrery::detail::bytes&, const orrery::detail::bytes&);          \
  keyword template void orrery::detail::index_maker<type>::destroy(std::uint32_t);                                   \
  keyword template void orrery::detail::index_maker<type>::unmake(std::uint32_t)
#define ORRERY_ARRAY_INDEX_ROUTING(keyword, type)                                                       \
  keyword template class orrery::detail::index_part<type>;                                              \
  keyword template struct orrery::detail::element_maker<type>;                                          \
  keyword template struct orrery::detail::deleter_there<orrery::detail::index_traffic<type>>;           \
  keyword template struct orrery::detail::index_messages<type>;                                         \
  keyword template struct orrery::detail::index_sender<type>;                                           \
  keyword template orrery::detail::slot* orrery::detail::index_messages<type>::route<false>(            \
      orrery::detail::pe&, orrery::scheduler::delivery&, const orrery::wire::envelope&, std::uint32_t); \
  keyword template orrery::detail::slot* orrery::detail::index_messages<type>::route<true>(             \
      orrery::detail::pe&, orrery::scheduler::delivery&, const orrery::wire::envelope&, std::uint32_t)

ORRERY_ARRAY_INDEX(extern, int);
ORRERY_ARRAY_INDEX(extern, orrery::index<2>);
ORRERY_ARRAY_INDEX(extern, orrery::index<3>);
ORRERY_ARRAY_INDEX(extern, std::int64_t);
ORRERY_ARRAY_INDEX_WITHOUT_RANGE(extern, std::string);
ORRERY_ARRAY_INDEX_WITHOUT_RANGE(extern, orrery::bit_path);
