// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/collectives.hpp>
#include <orrery/process/make_group.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

// Collectives among some of the members of a group, and among processes that were spawned one by
// one.
//
//     struct Cell : orrery::member<Cell> {
//       double sum_of_row(double mine, std::size_t columns) {
//         auto row = split(*this, rank() / columns);  // a communicator of those of my row
//         return row.all_reduce(mine);
//       }
//     };
namespace orrery {

namespace detail {

/// The place of a process in a group: what all communicators have.
class group_place {
 public:
  /// The place of the process among the members, from 0 on. Does not park. Throws usage_error for a
  /// communicator that was default-constructed.
  [[nodiscard]] std::size_t rank() const {
    check();
    return rank_;
  }
  /// The number of members. Does not park. Throws as rank().
  [[nodiscard]] std::size_t size() const {
    check();
    return size_;
  }
  /// Returns when all members have called it. Parks. Throws process_gone when a member ends that
  /// the others wait for, or the group was dismissed; node_lost, stopped; usage_error if members
  /// call different collectives at the same point, as member::barrier, and if the caller is not the
  /// process that has made the communicator.
  void barrier() {
    arrival a;
    meet(group_part::barrier, a);
  }
  /// False for one that was default-constructed.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(process_); }

 protected:
  group_place() noexcept = default;
  /// In the process. Throws usage_error, process_gone, std::bad_alloc.
  explicit group_place(const group_handle& g);
  void check() const {
    if (!process_) [[unlikely]]
      throw_nowhere();
  }
  void meet(const collective& what, arrival& a);

 private:
  [[noreturn]] static void throw_nowhere();

  address process_;
  address part_;
  std::uint32_t rank_ = 0;
  std::uint32_t index_ = 0;  // among the members of this PE
  std::uint32_t size_ = 0;
};

/// Some member had to make the group, and could not.
[[noreturn]] void throw_not_made(std::size_t by);

}  // namespace detail

/// The place of a process in a group, for collectives among its members: what MPI calls a
/// communicator. The group is one that make_group, subgroup or spawn_group has made, of any class;
/// each member makes a communicator of its own, and passes it to the functions of collectives.hpp:
///
///     orrery::communicator row(rows[i]);  // in a method of a member
///     std::vector<double> all = all_gather(row, mine);
///
/// All members call the same collectives of a group in the same order; those of different groups
/// are independent of each other. A process may be in any number of groups. A small value, used by
/// the process that has made it, in any of its methods; copies are as good. Ends nothing: the group
/// lives until it is dismissed.
template <class T>
class communicator : public detail::group_place, public detail::exchanging<communicator<T>> {
 public:
  /// In none: all functions throw usage_error.
  communicator() noexcept = default;
  /// In a method of a member. Does not park. Throws usage_error if the process is no member, or one
  /// twice; process_gone if the group was dismissed.
  explicit communicator(const group<T>& g) : group_place(detail::group_access::handle(g)), group_(g) {}
  /// The group. Does not park. Throws as rank().
  [[nodiscard]] const group<T>& this_group() const {
    check();
    return group_;
  }

 private:
  friend class detail::exchanging<communicator<T>>;
  group<T> group_;
};

namespace detail {

struct split_label : collective_label<> {
  static constexpr const char* name = "split";
};
struct dismiss_label : collective_label<> {
  static constexpr const char* name = "dismiss";
};

template <class T, class M>
communicator<T> split_group(M& m, std::optional<std::uint64_t> color) {
  const std::vector<std::optional<std::uint64_t>> colors = gather_as<split_label>(m, color);
  std::size_t first = 0;
  while (colors[first] != color) ++first;
  group<T> made;
  std::exception_ptr error;
  if (color && first == m.rank()) {
    try {
      made = subgroup(m.this_group(), [&](std::size_t rank) { return colors[rank] == color; });
    } catch (...) {  // the others wait for it
      error = std::current_exception();
    }
  }
  const std::vector<group<T>> all = gather_as<split_label>(m, std::move(made));
  if (error != nullptr) std::rethrow_exception(error);
  if (!color) return {};
  if (!all[first]) throw_not_made(first);
  return communicator<T>(all[first]);
}

}  // namespace detail

/// Divides the members of a group: those that give the same color become a group of their own, in
/// the order of their ranks. Called by all members, each with itself as `m`, as a collective. A
/// member without a color (std::nullopt) is in none, and gets a communicator that is false. The
/// groups cost a small process on each PE until they are dismissed: `dismiss(row)`. Parks. Throws
/// as barrier, and std::bad_alloc.
///
///     auto row = split(*this, rank() / columns);
///     auto column = split(*this, rank() % columns);
template <class T>
[[nodiscard]] communicator<T> split(member<T>& m, std::optional<std::uint64_t> color) {
  return detail::split_group<T>(m, color);
}
/// The same for the members of a communicator.
template <class T>
[[nodiscard]] communicator<T> split(communicator<T>& m, std::optional<std::uint64_t> color) {
  return detail::split_group<T>(m, color);
}

/// Ends the group of a communicator, not its members. Called by all members as a collective, as
/// what they wait for in it must have come to all; afterwards `c` is in none. (`dismiss(group)`,
/// called by anybody, ends a group at once: members that wait in it get process_gone.) Parks.
/// Throws as barrier; then `c` is as before. The group is one that make_group, subgroup or split
/// has made: that of spawn_group ends by destroy.
template <class T>
void dismiss(communicator<T>& c) {
  // the PE of rank 0 tells the others the result, and then that the group ends
  (void)c.template reduce_as<detail::dismiss_label>(0, std::plus<>{});
  const communicator<T> own = std::exchange(c, {});
  if (own.rank() == 0) dismiss(own.this_group());
}

}  // namespace orrery
