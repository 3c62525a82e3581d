// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/exchanging.hpp>
#include <orrery/process/detail/group_part.hpp>

#include <cstddef>
#include <cstdint>

namespace orrery {

template <class T>
class group;

namespace detail {

// Members that are being constructed, on this PE; the base class finds its own here.
class construction_scope {
 public:
  construction_scope(const slot& process, group_part& part, std::size_t index) noexcept
      : process_(&process), part_(&part), index_(static_cast<std::uint32_t>(index)), next_(first_) {
    if (next_ != nullptr) next_->previous_ = this;
    first_ = this;
  }
  construction_scope(const construction_scope&) = delete;
  construction_scope& operator=(const construction_scope&) = delete;
  ~construction_scope() {
    (previous_ != nullptr ? previous_->next_ : first_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }

 private:
  friend class member_base;
  const slot* process_;
  group_part* part_;
  std::uint32_t index_;
  construction_scope* previous_ = nullptr;
  construction_scope* next_;
  static constinit thread_local construction_scope* first_;
};

/// The common base of the members of all groups. Not copyable: a member has one rank.
class member_base {
 public:
  member_base(const member_base&) = delete;
  member_base& operator=(const member_base&) = delete;

  /// The place of this process in its group, from 0 on. Does not park. Throws usage_error if it is
  /// in none.
  [[nodiscard]] std::size_t rank() const {
    check();
    return rank_;
  }
  /// The number of members. Does not park. Throws usage_error as rank().
  [[nodiscard]] std::size_t size() const {
    check();
    return handle_->size();
  }
  /// Returns when all members have called it; until then the process is parked in its method, and
  /// its PE goes on. Throws process_gone or node_lost when a member ends that the others wait for,
  /// stopped, and usage_error (at all members, if some call another collective at the same point:
  /// it names both, and later collectives of the group fail too).
  void barrier() {
    arrival a;
    meet(group_part::barrier, a);
  }

 protected:
  member_base() noexcept = default;
  ~member_base();

  void check() const {
    if (handle_ == nullptr) [[unlikely]]
      throw_alone();
  }
  /// Waits until all members have arrived.
  void meet(const collective& what, arrival& a);
  /// Joins the group if the process is being constructed by spawn_group; `where` is to hold it.
  void join(group_handle& where) noexcept;

 private:
  [[noreturn]] static void throw_alone();

  group_handle* handle_ = nullptr;
  address part_;
  std::uint32_t rank_ = 0;
  std::uint32_t index_ = 0;  // among the members of this PE
};

}  // namespace detail

/// The base of a class whose processes know their group: the paper's ProcessGroupMember (Givelberg
/// 2014, section 3.2).
///
///     struct FFT3 : orrery::member<FFT3> {
///       void transform();   // ... barrier(); this_group()[(rank() + 1) % size()]->take(page); ...
///     };
///
/// Each member has the group itself at hand, so that talking to a peer costs one message. All this
/// can be used in the methods and, as the places of all members are known before the first is
/// constructed, in the constructors too: a call to a peer that is not yet constructed waits until
/// it is. A process that spawn made alone is in no group: then all functions throw usage_error.
template <class T>
class member : public detail::member_base, public detail::exchanging<member<T>> {
 public:
  /// The group, as this PE knows it. Does not park.
  [[nodiscard]] const orrery::group<T>& this_group() const {
    check();
    return group_;
  }

 protected:
  member() noexcept { join(group_.handle_); }
  ~member() = default;

 private:
  friend class detail::exchanging<member<T>>;
  orrery::group<T> group_;
};

}  // namespace orrery
