// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/orrery.hpp>
#include <orrery/shared/shared.hpp>

#include <cstdint>

namespace psrs {

/// Keys with something that goes with them.
struct record {
  std::uint64_t key = 0;
  std::uint32_t payload[6] = {};
  friend bool operator==(const record&, const record&) = default;
  friend bool operator<(const record& a, const record& b) { return a.key < b.key; }
};

/// The time of a comparison in a simulated world: a sort of n keys is n log2 n of them.
struct costs {
  double compare_ns = 0;
};

/// Sorts a shared vector by regular sampling (Shi and Schaeffer 1992; Lu 2001, section 3.4), in the
/// four phases of the paper; it stays distributed as it was. Each PE of the team must own at most
/// one run of elements (block, bounds). `plain`: without scopes, each access by default, for
/// --orrery-advise. Parks. Throws as spmd.
template <class Key>
void sort(const orrery::team& team, const orrery::shared_vector<Key>& keys, costs c = {}, bool plain = false);

extern template void sort(const orrery::team&, const orrery::shared_vector<std::uint32_t>&, costs, bool);
extern template void sort(const orrery::team&, const orrery::shared_vector<std::uint64_t>&, costs, bool);
extern template void sort(const orrery::team&, const orrery::shared_vector<double>&, costs, bool);
extern template void sort(const orrery::team&, const orrery::shared_vector<record>&, costs, bool);

}  // namespace psrs
