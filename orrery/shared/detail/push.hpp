// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/detail/shared_id.hpp>

#include <cstdint>
#include <vector>

namespace orrery::detail {

/// Where a region begins in another object.
struct region_target {
  shared_id id;
  std::uint64_t row = 0;
  std::uint64_t column = 0;

  template <class A>
  void serialize(A& a) {
    a & id & row & column;
  }
};

/// Begins to copy a region of one shared object to another one: each owner sends its own elements,
/// all at once, so that they travel once. The futures end when the elements are where they belong.
/// The objects have elements of one size, and the regions must not overlap. May park. Throws
/// std::out_of_range, usage_error (destroyed), node_lost.
[[nodiscard]] std::vector<future<void>> push_region(const shared_id& from, const region& r, const region_target& to,
                                                    const write_site& site);

/// Every so many-th element of a vector.
struct stride {
  std::uint64_t first = 0;
  std::uint64_t distance = 0;
  std::uint64_t count = 0;

  template <class A>
  void serialize(A& a) {
    a & first & distance & count;
  }
};
/// The same for elements of vectors in equal distances.
[[nodiscard]] std::vector<future<void>> push_stride(const shared_id& from, const stride& s, const shared_id& to,
                                                    const stride& places, const write_site& site);

}  // namespace orrery::detail
