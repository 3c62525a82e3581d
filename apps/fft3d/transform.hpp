// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan.hpp"
#include "tile.hpp"

#include <orrery/orrery.hpp>
#include <orrery/storage/sweeper.hpp>

#include <array>
#include <variant>
#include <vector>

namespace fft3d {

/// Has FFTW plan all that is to be done, on this node, and returns what it has learnt.
[[nodiscard]] std::string learn_all(const plan& p);

/// Transforms the lines of units: what a sweeper reads and writes. (Givelberg 2014, section 4.2.)
///
/// A unit is complete along the dimensions of its sweep. Box by box, each so small that it stays in
/// the cache, numbers are copied from the pages to a tile, transformed there along all of these
/// dimensions, and copied back.
class transformer : public orrery::storage::sweeper {
 public:
  transformer(const plan& p, const orrery::remote<orrery::storage::ledger>& units);

 protected:
  void begin(std::size_t sweep) override;
  [[nodiscard]] index3 box_shape(std::size_t sweep) const override;
  void compute_box(std::size_t sweep, orrery::storage::page_block& unit, const domain& box) override;

 private:
  template <class Real>
  void transform(std::size_t sweep, const domain& box, tile<Real>& t);
  template <class Real>
  void multiply(const domain& box, tile<Real>& t) const;

  plan plan_;
  // of each place: its squared frequency, or the Gaussian of that
  std::array<std::vector<double>, 3> along_;
  std::variant<tile<double>, tile<float>> tile_{std::in_place_index<0>, index3{1, 1, 1}};
};
ORRERY_PROCESS(transformer);

}  // namespace fft3d
