// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/access_record.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace orrery::detail {

/// The description of an object in reports.
struct judged_object {
  shared_id id;
  std::string label;
  std::uint64_t columns = 1;
  bool is_vector = true;

  template <class A>
  void serialize(A& a) {
    a & id & label & columns & is_vector;
  }
};

/// Compares the accesses to the objects that a PE has made, and says which are not ordered.
///
/// Records come from all PEs, in any order. Each is compared with those that are remembered: the
/// latest `remembered` of each object, and of the `objects` that were judged last. So memory is
/// bounded, and a mistake is missed only if so many accesses, or so many other objects, come
/// between the two. Objects that were destroyed are forgotten first, but not at once: records of
/// them may still be on their way.
///
/// Owned by the directory of its PE; used on its thread.
class sharing_referee {
 public:
  /// Writes a line to stderr for each new pair of places.
  void judge(const judged_object& o, std::vector<access_record> records);
  /// The object was destroyed.
  void end(const shared_id& id);
  /// All that was found, a line for each pair of places.
  [[nodiscard]] const std::vector<std::string>& mistakes() const noexcept { return mistakes_; }

  static constexpr std::size_t remembered = 4096;
  static constexpr std::size_t objects = 256;

 private:
  void compare(const judged_object& o, const access_record& a, const access_record& b);

  struct history {
    std::deque<access_record> records;
    bool ended = false;
    std::uint64_t turn = 0;  // of the last judgement
  };
  void forget_one();

  std::map<shared_id, history> histories_;
  std::uint64_t turn_ = 0;
  std::set<std::string> told_;
  std::vector<std::string> mistakes_;
};

}  // namespace orrery::detail
