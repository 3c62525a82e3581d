// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/placement.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace orrery {

namespace detail {
struct layout;
}

/// How the elements of a shared vector, or the rows and columns of a shared matrix, are dealt out
/// to PEs. A value; it is resolved when something is made with it.
///
///     shared_vector<double> v(1000, distribution::cyclic());
///     shared_matrix<int> m(512, 512, distribution::tiles(2, 2).over({0, 1, 2, 3}));
///
/// Whole rows of a matrix are dealt out, unless it says columns or tiles.
class distribution {
 public:
  /// One run for each PE, as equal as can be. The default.
  [[nodiscard]] static distribution block() { return distribution(kind::block); }
  /// In turn.
  [[nodiscard]] static distribution cyclic() { return distribution(kind::cyclic); }
  /// Runs of n in turn. Making something with n == 0 throws usage_error.
  [[nodiscard]] static distribution block_cyclic(std::uint64_t n) {
    distribution d(kind::cyclic);
    d.block_ = n;
    return d;
  }
  /// One run for each PE; PE k's ends before ends[k], and the last of these is the size. Making
  /// something throws usage_error if they do not ascend or do not fit.
  [[nodiscard]] static distribution bounds(std::vector<std::uint64_t> ends) {
    distribution d(kind::bounds);
    d.ends_ = std::move(ends);
    return d;
  }
  /// All on one PE.
  [[nodiscard]] static distribution on(placement where) {
    distribution d(kind::one);
    d.where_ = where;
    return d;
  }
  /// For a matrix: a block of columns for each PE.
  [[nodiscard]] static distribution columns() { return distribution(kind::columns); }
  /// For a matrix: `down` x `across` tiles, one for each PE. Making something throws usage_error if
  /// there are not as many PEs.
  [[nodiscard]] static distribution tiles(std::uint32_t down, std::uint32_t across) {
    distribution d(kind::tiles);
    d.down_ = down;
    d.across_ = across;
    return d;
  }
  /// The same with room for a halo: so many rows and columns of memory on all sides of each part of
  /// a matrix. A scope of halo_cache of at most that width then copies what is around the caller's
  /// elements only, and shows these where they are. Rows do not follow each other in memory then:
  /// no local(), no span(). Making something throws usage_error for a vector, for elements that
  /// their owners hold as objects, for cyclic rows, and if it is wider than the matrix.
  ///
  ///     shared_matrix<double> m(2048, 2048, distribution::block().with_halo(1));
  [[nodiscard]] distribution with_halo(std::uint64_t width) const {
    distribution d = *this;
    d.halo_ = width;
    return d;
  }
  /// The width of the halo; 0 if there is none.
  [[nodiscard]] std::uint64_t halo() const noexcept { return halo_; }
  /// The same over these PEs, in this order; else over all PEs of the program.
  [[nodiscard]] distribution over(std::vector<std::uint32_t> pes) const {
    distribution d = *this;
    d.pes_ = std::move(pes);
    return d;
  }

  /// The layout for this many rows and columns, seen from here. Throws usage_error.
  [[nodiscard]] detail::layout resolve(std::uint64_t rows, std::uint64_t columns, std::uint32_t element_bytes) const;

 private:
  enum class kind : std::uint8_t { block, cyclic, bounds, one, columns, tiles };
  explicit distribution(kind k) noexcept : kind_(k) {}

  kind kind_;
  std::uint64_t block_ = 1;
  std::uint32_t down_ = 1;
  std::uint32_t across_ = 1;
  std::uint64_t halo_ = 0;
  placement where_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> pes_;
};

namespace detail {
/// The same. Throws usage_error if it has room for a halo.
[[nodiscard]] const distribution& without_halo(const distribution& how);
}  // namespace detail

}  // namespace orrery
