// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/section_agent.hpp>
#include <orrery/process/spawn_here.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

// Sections: subsets of an array with broadcasts and reductions of their own.
//
//     auto row = orrery::create_section(grid, indices);
//     post(row)->scale(2.0);                                       // each of them
//     auto [target, norm] = orrery::expect_result<double>();
//     post(row)->add_norm(row, target);  // contribute(row, x * x, orrery::sum, target)

namespace orrery {

/// A subset of an array's elements, fixed when it is made but for those that end: with broadcasts
/// and reductions of its own, exact wherever its members go. A small value that names it: to be
/// copied, stored and sent.
///
/// Broadcasts of one process to one section come to each member in the order sent, whoever
/// migrates, and exactly once to each that lives when it comes to it. All members get the
/// broadcasts of all processes in the same order. Reductions: contribution k of each member that
/// has not ended before it made that many is in reduction k.
template <class T, array_index Index = typename detail::index_type_of<T>::type>
class section {
 public:
  using element_type = T;
  using modes = detail::section_modes<T, Index>;

  section() = default;
  section(std::uint64_t id, std::uint32_t array, const remote<detail::section_agent<T, Index>>& root)
      : id_(id), root_{root.address(), array} {}
  /// The number by which the world knows the section. Does not park.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] explicit operator bool() const noexcept { return id_ != 0; }

  /// `row->m(args...)`: a broadcast, one way. See post(row).
  [[nodiscard]] const auto* operator->() const noexcept {
    return detail::view_target<typename modes::broadcast, T>(root_);
  }

  friend bool operator==(const section& a, const section& b) noexcept { return a.id_ == b.id_; }
  friend auto operator<=>(const section& a, const section& b) noexcept { return a.id_ <=> b.id_; }
  template <class A>
  void serialize(A& a) {
    a & id_ & root_.root & root_.array;
    if constexpr (requires { a.references(); })
      if (a.references() != nullptr) *this = {};  // not part of a checkpoint
  }

 private:
  template <class U, class I>
  friend auto post(const section<U, I>& s);
  template <class U, class I>
  friend void destroy(const section<U, I>& s);

  std::uint64_t id_ = 0;
  typename modes::broadcast::target root_;
};

/// `post(row)->m(args...)`: sends to every member. Parks while much is under way. Throws
/// process_gone (to the error handler: the section was destroyed), node_lost.
template <class T, class Index>
[[nodiscard]] auto post(const section<T, Index>& s) {
  return detail::bound_target<typename detail::section_modes<T, Index>::broadcast, T>(s.root_);
}

/// Makes a section of these elements, each named once or more; returns when all know it.
/// `branching`: of the tree. Parks. Throws usage_error if there is no element at one of the indices
/// (with the names of array and index), node_lost, stopped. Not to be called by an element that is
/// to be a member: it would wait for itself (deadlock_error).
template <class T, class Index>
section<T, Index> create_section(const array<T, Index>& a, const std::vector<Index>& members,
                                 std::uint32_t branching = 4) {
  using agent = detail::section_agent<T, Index>;
  detail::pe& self = detail::here_pe();
  auto& part = detail::index_part_of<Index>(self, a.id());
  part.require_whole("a section");
  const std::uint64_t id = part.new_section();
  std::map<std::uint32_t, std::vector<Index>> at_home;
  at_home[self.id()];  // the root, also without members
  for (const Index& i : boost::unordered_flat_set<Index, detail::index_hash<Index>, detail::index_equal<Index>>(
           members.begin(), members.end()))
    at_home[part.home_of(i)].push_back(i);
  std::vector<std::uint32_t> pes{self.id()};
  for (const auto& [pe, some] : at_home)
    if (pe != self.id()) pes.push_back(pe);

  const std::size_t k = std::max(1U, branching);
  const auto children = [&](std::size_t rank) {
    return std::pair{std::min(k * rank + 1, pes.size()), std::min(k * rank + k + 1, pes.size())};
  };
  detail::attempts attempt;
  std::vector<future<remote<agent>>> making;
  for (std::size_t r = 0; r < pes.size(); ++r) {
    const auto [first, last] = children(r);
    detail::section_core::description s{id, a.id(), r == 0 ? self.id() : pes[(r - 1) / k], {}};
    s.children.assign(pes.begin() + static_cast<std::ptrdiff_t>(first),
                      pes.begin() + static_cast<std::ptrdiff_t>(last));
    attempt(
        [&] { making.push_back(start_spawn<agent>(orrery::pe(pes[r]), std::move(s), std::move(at_home[pes[r]]))); });
  }
  std::vector<remote<agent>> agents;
  for (auto& m : making) attempt([&] { agents.push_back(m.get()); });
  const bool all_made = !attempt.failed();
  std::vector<future<void>> joining;
  for (std::size_t r = 0; all_made && r < agents.size(); ++r) {
    const auto [first, last] = children(r);
    const auto some = [&](std::size_t from, std::size_t to) {
      return std::vector<remote<agent>>(agents.begin() + static_cast<std::ptrdiff_t>(from),
                                        agents.begin() + static_cast<std::ptrdiff_t>(to));
    };
    attempt([&] { joining.push_back(start(agents[r])->join(some(first, last), some(1, r == 0 ? agents.size() : 1))); });
  }
  for (auto& j : joining) attempt([&] { j.get(); });
  // An agent that is lost tells nobody below it: so each is told, from the last one on.
  if (attempt.failed()) {
    for (; !agents.empty(); agents.pop_back()) {
      if (all_made) attempt([&] { agents.back()->leave(); });
      attempt([&] { destroy(agents.back()); });
    }
    attempt.rethrow_first();
  }
  return section<T, Index>(id, a.id(), agents.front());
}

namespace detail {
template <class Index>
[[nodiscard]] std::vector<Index> indices_of(const range<Index>& r) {
  std::vector<Index> all;
  for (std::uint64_t i = 0; i < r.size(); ++i) all.push_back(r.at(i));
  return all;
}
}  // namespace detail

/// A section of the elements of a range.
template <class T, class Index>
  requires detail::has_range<Index>
section<T, Index> create_section(const array<T, Index>& a, const std::type_identity_t<range<Index>>& members,
                                 std::uint32_t branching = 4) {
  return create_section(a, detail::indices_of(members), branching);
}

/// As create_section, but returns at once: so a future member can make its own section, from its
/// constructor on, and use it in a later method.
///
///     start_create_section(this_array(), row).then([me](section<Pixel, index<2>> s) {
/// post(me)->begin(s); });
template <class T, class Index>
[[nodiscard]] future<section<T, Index>> start_create_section(const array<T, Index>& a, std::vector<Index> members,
                                                             std::uint32_t branching = 4) {
  using made = section<T, Index>;
  auto state = detail::future_access<made>::make_local(detail::here_pe());
  auto for_maker = detail::future_access<made>::make_hold(state);
  spawn_here([s = state.get(), a, members = std::move(members), branching] {
    detail::resolve<made>(detail::here_pe(), s, [&] { return create_section(a, members, branching); });
  });
  for_maker.release();
  return detail::future_access<made>::wrap(std::move(state));
}
template <class T, class Index>
  requires detail::has_range<Index>
[[nodiscard]] future<section<T, Index>> start_create_section(const array<T, Index>& a,
                                                             const std::type_identity_t<range<Index>>& members,
                                                             std::uint32_t branching = 4) {
  return start_create_section(a, detail::indices_of(members), branching);
}

/// Ends a section: its members and the array stay; that may have ended before. To be called when
/// nothing of it is on its way: who waits for a reduction that is not over gets process_gone.
/// Parks. Throws process_gone, node_lost.
template <class T, class Index>
void destroy(const section<T, Index>& s) {
  if (!s) detail::throw_null_section();
  const remote<detail::section_agent<T, Index>> root(s.root_.root);
  try {
    detail::attempts attempt;
    attempt([&] { root->leave(); });
    attempt([&] { destroy(root); });
    attempt.require_all();
  } catch (const process_gone&) {
    throw process_gone(verbatim, "the section was destroyed before");
  }
}

}  // namespace orrery

template <class T, class Index>
struct std::hash<orrery::section<T, Index>> {
  [[nodiscard]] std::size_t operator()(const orrery::section<T, Index>& s) const noexcept {
    return orrery::detail::mix(s.id());
  }
};
