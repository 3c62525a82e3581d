// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/spare_strategy.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>

namespace orrery::service {
namespace {

class local_first final : public spare_strategy {
  std::size_t choose(std::span<const spare_place>, std::size_t self) override { return self; }
};

class in_turn final : public spare_strategy {
  std::size_t choose(std::span<const spare_place> places, std::size_t self) override {
    return (self + next_++) % places.size();
  }
  std::size_t next_ = 0;
};

// The best, and of equal ones the first that follows `self` in the ring.
template <class Better>
std::size_t best_of(std::span<const spare_place> places, std::size_t self, Better better) {
  std::size_t best = self;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const std::size_t at = (self + i) % places.size();
    if (better(places[at], places[best])) best = at;
  }
  return best;
}

class even final : public spare_strategy {
  std::size_t choose(std::span<const spare_place> places, std::size_t self) override {
    return best_of(places, self, [](const spare_place& a, const spare_place& b) { return a.free > b.free; });
  }
};

class by_load final : public spare_strategy {
  std::size_t choose(std::span<const spare_place> places, std::size_t self) override {
    return best_of(places, self, [](const spare_place& a, const spare_place& b) {
      return a.free != 0 && (b.free == 0 || a.load < b.load);
    });
  }
};

}  // namespace

wire::unique_ptr<spare_strategy> make_spare_strategy(spare_order o) {
  switch (o) {
    case spare_order::ring:
      return wire::make_unique<in_turn>();
    case spare_order::even:
      return wire::make_unique<even>();
    case spare_order::by_load:
      return wire::make_unique<by_load>();
    default:
      return wire::make_unique<local_first>();
  }
}

}  // namespace orrery::service
