// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/access_census.hpp>
#include <orrery/shared/detail/layout.hpp>
#include <orrery/shared/detail/transfer_model.hpp>
#include <orrery/transport/sim/settings.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace orrery::detail {

/// The facts of an object that the adviser needs.
struct shared_description_for_advice {
  std::string label;
  layout how;
};

/// The accesses of all PEs to an object at some places in the source.
struct use_of_object {
  std::vector<std::string> places;
  std::map<std::uint32_t, std::vector<object_use>> by_pe;
};

/// The cost of each behaviour where an object is accessed by default: the messages that its scopes
/// would send, in the model of the network. A behaviour that forbids what was done is none of them.
///
/// A value that refers to what it was made with; used by one thread.
class behaviour_costs {
 public:
  behaviour_costs(const shared_description_for_advice& o, const use_of_object& u, const transport::link_cost& net);

  /// Nanoseconds, in all phases together.
  [[nodiscard]] double by_default() const;
  /// "read_cache(m)" and its nanoseconds.
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& of_behaviours() const noexcept { return all_; }

 private:
  /// The use by one PE, all places together, for each phase.
  struct pe_use {
    std::uint32_t pe;
    std::uint32_t own_part;
    double members;
    std::vector<std::pair<std::uint32_t, part_use>> parts;  // sums over the phases
  };

  [[nodiscard]] double cache() const;
  [[nodiscard]] double cache_of_rows() const;
  [[nodiscard]] double halo() const;
  [[nodiscard]] double release() const;
  [[nodiscard]] double read_mostly() const;
  void add_halo_of(const pe_use& u, transfer_model& model) const;
  [[nodiscard]] double elements_of(std::uint32_t part) const { return static_cast<double>(o_.how.elements_of(part)); }
  void find_behaviours();
  [[nodiscard]] bool has_halo() const;

  const shared_description_for_advice& o_;
  const transport::link_cost& net_;
  std::vector<pe_use> uses_;
  part_use sum_;
  double phases_ = 1;
  std::uint64_t far_ = 0;
  std::uint64_t halo_ = 0;
  bool over_edges_ = false;
  bool shared_by_members_ = false;
  std::vector<std::pair<std::string, double>> all_;
};

}  // namespace orrery::detail
