// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/spawn.hpp>
#include <orrery/wire/counted_ptr.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// The members of a group.
//   group_data    who they are and where: constant, shared by all copies of a group inside a node
//   group_handle  the small value that refers to it: all there is in a group<T>
namespace orrery::detail {

/// The members of a group. Does not change; everything that needs it holds on to it.
struct group_data : wire::counted {
  static constexpr std::uint32_t none = 0xffff'ffff;
  /// Set in the rank of a member whose constructor failed because another one's had: the other
  /// one's exception is what spawn_group throws.
  static constexpr std::uint32_t after_another = 0x8000'0000;
  struct part {
    address at;
    std::uint32_t first = none;  ///< its lowest rank
    std::uint32_t members = 0;
  };
  std::vector<address> members;  ///< by rank
  std::vector<part> parts;  ///< one for each PE with members, in the order of their lowest ranks
  std::vector<std::uint32_t> part_of;  ///< rank -> index in parts

  /// Throws bad_message unless there is exactly one part on each PE that has members.
  group_data(std::vector<address> members, const std::vector<address>& parts);
  /// The part on a PE, or null.
  [[nodiscard]] const part* on(std::uint32_t pe) const noexcept;
  /// The parts' results lie in runs of consecutive ranks: true if a run begins at this rank.
  [[nodiscard]] bool begins_run(std::size_t rank) const noexcept {
    return rank == 0 || part_of[rank] != part_of[rank - 1];
  }
};

/// usage_error: a rank that is not below the number of members.
[[noreturn]] void throw_no_member(const char* what, std::size_t rank, std::size_t size);

class group_handle;
[[nodiscard]] group_handle renamed(const references& r, const group_handle& before);

/// A value that refers to a group_data. Sending it to another node copies the data: afterwards each
/// member is one message away (the paper's deep copy in SetProcessGroup).
class group_handle {
 public:
  group_handle() noexcept = default;
  explicit group_handle(wire::counted_ptr<const group_data> d) noexcept : data_(std::move(d)) {}

  [[nodiscard]] explicit operator bool() const noexcept { return data_ != nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return data_ != nullptr ? data_->members.size() : 0; }
  /// Throws usage_error if it refers to none.
  [[nodiscard]] const group_data& data() const {
    if (data_ == nullptr) [[unlikely]]
      throw_null();
    return *data_;
  }
  /// Throws also usage_error if there is no such rank.
  [[nodiscard]] const address& member(std::size_t rank) const {
    const group_data& d = data();
    if (rank >= d.members.size()) [[unlikely]]
      throw_no_member("group", rank, d.members.size());
    return d.members[rank];
  }
  friend bool operator==(const group_handle& a, const group_handle& b) noexcept {
    return a.data_ == b.data_ || (a.data_ != nullptr && b.data_ != nullptr && a.data_->members == b.data_->members);
  }
  friend std::strong_ordering operator<=>(const group_handle& a, const group_handle& b) noexcept;
  [[nodiscard]] std::size_t hash() const noexcept;
  [[nodiscard]] std::string text() const;

  template <class A>
  void serialize(A& a) {
    bool some = data_ != nullptr;
    a & some;
    if constexpr (A::is_loading::value) data_ = {};
    if (!some) return;
    std::vector<address> parts;
    if constexpr (A::is_saving::value) {
      for (const auto& p : data_->parts) parts.push_back(p.at);
      a & data_->members & parts;
    } else {
      std::vector<address> members;
      a & members & parts;
      data_ = wire::counted_ptr(new const group_data(std::move(members), parts));
      rename_after_restart(a, *this);
    }
  }

 private:
  [[noreturn]] static void throw_null();

  wire::counted_ptr<const group_data> data_;
};

}  // namespace orrery::detail
