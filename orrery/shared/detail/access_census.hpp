// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/access_record.hpp>
#include <orrery/shared/detail/layout.hpp>
#include <orrery/shared/detail/shared_id.hpp>
#include <orrery/wire/containers.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <source_location>
#include <string>
#include <unordered_map>
#include <vector>

namespace orrery::detail {

struct shared_object;
struct counted_object;

/// The accesses of the processes of one PE to the elements of one part of an object.
struct part_use {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t changes = 0;  ///< fetch_add and the like
  std::uint64_t distinct_reads = 0;  ///< elements, of each phase
  std::uint64_t read_runs = 0;  ///< how often a read did not go to the element behind the last one
  std::uint64_t write_runs = 0;
  /// Elements of the rows from the first to the last that the PE read or wrote of other PEs' parts.
  std::uint64_t hull = 0;

  [[nodiscard]] std::uint64_t all() const noexcept { return reads + writes + changes; }
  void add(const part_use& more) noexcept;

  template <class A>
  void serialize(A& a) {
    a & reads & writes & changes & distinct_reads & read_runs & write_runs & hull;
  }
};

/// The same of all parts, in phases in which the same places in the source have accessed the
/// object.
struct object_use {
  std::vector<std::string> places;  ///< "mm2.cpp:41:9"
  std::uint64_t phases = 0;
  std::uint64_t members = 1;  ///< of the team on the PE, at most
  std::map<std::uint32_t, part_use> parts;
  std::uint64_t halo = 0;  ///< how far from the own rectangle others' elements are, at most
  bool over_edges = false;  ///< that is over an edge of the matrix to the opposite one

  template <class A>
  void serialize(A& a) {
    a & places & phases & members & parts & halo & over_edges;
  }
};

/// An object and its uses on one PE.
struct used_object {
  shared_id id;
  std::string label;
  layout how;
  std::vector<object_use> uses;

  template <class A>
  void serialize(A& a) {
    a & id & label & how & uses;
  }
};

/// Counts the accesses by default of the processes of one PE, for --orrery-advise.
///
/// Problem: a scope lasts from one barrier to the next, so what a behaviour would cost depends on
/// what is accessed between two. So the collective functions of teams divide time into *phases*.
/// Accesses are counted for each object, and added up over the phases in which the same places in
/// the source accessed it. A stamp for each element says whether the phase has read it before;
/// objects of more than `most_stamped` elements have none, and each read counts as one of another
/// element.
///
/// Owned by the directory of its PE, if accesses are counted; used on its thread. It does not park.
class access_census {
 public:
  access_census();
  access_census(const access_census&) = delete;
  access_census& operator=(const access_census&) = delete;
  ~access_census();

  void add(const shared_object& o, std::uint64_t row, std::uint64_t column, access_kind k, std::source_location where);
  /// A member of a team has begun (collective 0), or has left its n-th collective function. `team`
  /// names the team.
  void enter_phase(std::uint64_t team, std::uint64_t collective);
  /// The counts so far. The phase ends.
  [[nodiscard]] std::vector<used_object> take();

  static constexpr std::uint64_t most_stamped = 1 << 22;

 private:
  counted_object& find(const shared_object& o);
  void next_phase();

  std::unordered_map<shared_id, wire::unique_ptr<counted_object>> objects_;
  std::uint32_t phase_ = 1;
  std::uint64_t team_ = 0;
  std::uint64_t collective_ = 0;
  std::vector<std::uint32_t> members_{1, 1};  // by phase: of the team on the PE
};

/// The same as access_census::add, of an object that has counts already.
void count_read(counted_object& c, const shared_object& o, std::uint64_t row, std::uint64_t column,
                std::source_location where);
void count_write(counted_object& c, const shared_object& o, std::uint64_t row, std::uint64_t column,
                 std::source_location where);

/// The program counts its accesses: it was started with --orrery-advise.
[[nodiscard]] bool counts_accesses() noexcept;
/// Writes the advice to stderr; when the main function has ended.
int tell_advice(int result);
/// Tells the census of this PE, where accesses are counted.
void enter_phase_of_team(std::uint64_t team, std::uint64_t collective);

}  // namespace orrery::detail
