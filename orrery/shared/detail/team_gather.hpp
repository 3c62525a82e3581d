// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/wire/address.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace orrery {
class team_member;
}

namespace orrery::detail {

/// A copy of a region of a shared object for each member of a team, made by all at once.
///
/// Problem: if each of n members asks all owners, n x n requests go before the elements do. But all
/// members want the same. So each sends its share of the elements that its PE owns to the members
/// of other domains, without being asked, and they answer nothing. Members of one domain copy each
/// other's elements from memory when all have begun, and nobody goes on before all have done so. A
/// member that is alone in its domain copies its own before it lets others go on.
///
/// Owned by the scope of one member. All members of the team make one, in the same order. finish()
/// returns when all have begun and all elements are there; it is a barrier, which is also how a
/// member that ends too early is noticed.
class team_gather {
 public:
  team_gather() = default;
  team_gather(const team_gather&) = delete;
  team_gather& operator=(const team_gather&) = delete;
  ~team_gather();

  /// `to` must stay until it ends. May park. Throws usage_error (a PE owns elements and has no
  /// member), node_lost.
  void begin(team_member& member, std::shared_ptr<const shared_object> from, const region& r, std::byte* to,
             std::uint64_t pitch);
  /// Parks. Throws process_gone (a member has ended), node_lost, stopped.
  void finish();
  /// The part of the region that this member answers for.
  [[nodiscard]] const std::vector<part_region>& own_pieces() const noexcept { return own_; }

 private:
  void send(const part_region& w, const std::vector<std::size_t>& to);
  /// The members of other domains; notes whether some share memory. The same answer at all members.
  [[nodiscard]] std::vector<std::size_t> members_afar();
  /// The elements of this domain. Others may write them as soon as this member lets them go on: it
  /// is called before the first barrier, or between the two.
  void copy_from_memory();
  void await_others();
  team_member* member_ = nullptr;
  std::shared_ptr<const shared_object> from_;
  region region_;
  std::byte* to_ = nullptr;
  std::uint64_t pitch_ = 0;
  std::uint64_t number_ = 0;
  std::vector<part_region> own_;
  bool memory_is_shared_ = false;  ///< some members are in one domain
};

/// Arrived values of gathers on a PE, by member and number; of its directory. Others send without
/// being asked, also to a member that ends before it comes to the gather: its values end with it.
struct gathered_pieces {
  struct arriving {
    const shared_object* from = nullptr;  ///< null: the member has not begun yet
    region all;
    std::byte* to = nullptr;
    std::uint64_t pitch = 0;
    std::uint64_t missing = 0;  ///< elements that others have to send
    future_access<void>::owner waiter;  ///< for all to be there, if somebody does
    std::vector<std::pair<part_region, std::vector<std::byte>>> early;
  };
  std::map<std::pair<address, std::uint64_t>, arriving> of;
  /// For all_to_all: by receiver and number, then by sender.
  std::map<std::pair<address, std::uint64_t>, std::map<std::uint32_t, std::vector<std::byte>>> given;

  /// Values have come for a member. False: it has ended, and they are to be dropped. Else the
  /// directory is told when it ends.
  [[nodiscard]] static bool expects(const address& member);
  void forget(const address& member) noexcept;
};

}  // namespace orrery::detail
