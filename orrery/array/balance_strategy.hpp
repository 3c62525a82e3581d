// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

// Which element is to live on which PE: strategies of load balancing. They know nothing of arrays,
// so that any can be tried on made-up loads.

namespace orrery {

/// Measurements of the elements of an array (balance.hpp). Elements are numbered from 0.
struct load_database {
  /// A vertex of the graph: an element of the array.
  struct element {
    double load = 0;  ///< seconds in its methods
    std::uint32_t pe = 0;  ///< where it lives
  };
  /// Traffic between two elements, which are named by their numbers.
  struct edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint64_t bytes = 0;  ///< in messages from one to the other
  };
  std::uint32_t pes = 1;
  std::vector<element> elements;
  std::vector<edge> edges;
  std::uint32_t dimensions = 0;  ///< of the index; 0: it has no coordinates
  std::vector<double> coordinates;  ///< `dimensions` for each element
};

/// The loads that an assignment would lead to.
struct load_summary {
  double max_over_average = 1;  ///< of the PEs' loads; 1: perfect
  std::uint64_t bytes_between_pes = 0;
};
/// `pe_of`: for each element. Does not park or throw.
[[nodiscard]] load_summary summarize(const load_database& loads, std::span<const std::uint32_t> pe_of);

/// A way to choose the PE of each element. A program can have its own.
class balance_strategy {
 public:
  virtual ~balance_strategy() = default;
  /// The name of the strategy in reports.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// The PE of each element, in their order. If that is not one of the world, balance throws
  /// usage_error.
  [[nodiscard]] virtual std::vector<std::uint32_t> assign(const load_database& loads) = 0;
};

namespace detail {
/// Throws usage_error unless there is a PE for each element.
void check_assignment(const balance_strategy& strategy, const load_database& loads,
                      std::span<const std::uint32_t> pe_of);
}  // namespace detail

/// The heaviest element first, each to the PE with the least so far (Graham 1969). Moves nearly
/// all, or nothing if that is as good; elements without a load stay. Communication is not looked
/// at.
[[nodiscard]] std::unique_ptr<balance_strategy> balance_greedy();
/// Takes elements from PEs above `tolerance` times the average to the least loaded, as few as it
/// can. Throws usage_error if `tolerance` is less than 1.
[[nodiscard]] std::unique_ptr<balance_strategy> balance_refine(double tolerance = 1.03);
/// Recursive coordinate bisection (Berger and Bokhari 1987): halves the elements again and again,
/// across the longest side of the box around them, by load. Neighbours stay together. Coordinates
/// have indices that are numbers, arrays of numbers, or of a class with a const method
/// `coordinates()` that returns a std::array of numbers. Throws usage_error if they have none.
[[nodiscard]] std::unique_ptr<balance_strategy> balance_bisection();
/// Partitions the graph of who sends how much to whom into parts of equal load and little traffic
/// between them (METIS: Karypis and Kumar 1998; where its parts are more than 5% above the average,
/// some are taken away as long as that is better).
[[nodiscard]] std::unique_ptr<balance_strategy> balance_graph();
/// Each element to a PE at random; for tests.
[[nodiscard]] std::unique_ptr<balance_strategy> balance_random(std::uint64_t seed);
/// Each element to the PE `by` further on; for tests.
[[nodiscard]] std::unique_ptr<balance_strategy> balance_rotate(std::uint32_t by = 1);

}  // namespace orrery
