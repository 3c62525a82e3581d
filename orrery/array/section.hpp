// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array.hpp>
#include <orrery/array/section_core.hpp>

#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

// Sections: subsets of an array with broadcasts and reductions of their own.
//
//     auto row = orrery::create_section(grid, indices);
//     post(row)->scale(2.0);                                       // each of them
//     auto [target, norm] = orrery::expect_result<double>();
//     post(row)->add_norm(row, target);                            // contribute(row, x * x, orrery::sum, target)

namespace orrery {

namespace detail {

template <class T, class Index>
struct join_operation;
template <class T, class Index>
struct forget_operation;

/// A section's process on a PE where members have their homes; see section_core. Broadcasts come down the tree of agents as posts, and go from each
/// to its members: so their order, their limits and the loss of a node are those of posts.
template <class T, class Index>
class section_agent final : public section_core {
 public:
  /// Throws usage_error unless all members exist; this is the home of all.
  section_agent(shape s, std::vector<Index> members) : section_core(here_pe(), s, members.size()) {
    auto& part = part_of<T, Index>(self_, s.array);
    for (const Index& i : members)
      if (!part.has_element(i)) throw_no_member(part.text_of(i));
    members_.insert(members.begin(), members.end());
  }

  /// Tells the members, which have to know before anything else happens.
  void join(std::vector<remote<section_agent>> children) {
    below_ = std::move(children);
    ask_members<element_message<T, Index, join_operation<T, Index>, const membership&>>(
        membership{about().id, self_.id(), 0});
  }
  /// Tells them that there is no such section any more, and ends all agents below this one.
  void leave() {
    std::vector<future<void>> leaving;
    for (const auto& c : below_) leaving.push_back(start(c)->leave());
    ask_members<element_message<T, Index, forget_operation<T, Index>, std::uint64_t>>(about().id);
    for (auto& l : leaving) l.get();
    for (const auto& c : below_) destroy(c);
  }

  /// Sends a message with these arguments to the children, and to all members.
  template <class Handler, class Message, class... A>
  void cast(const A&... args) {
    array_core& part = part_of<T, Index>(self_, about().array);
    const activity_end arrived(&part);
    for (const auto& c : below_) {
      part.begins();
      send_owned<Handler>(self_, c.address(), nullptr, true, args...);
    }
    const walk all(*this);
    for (const Index& i : members_)
      send_element<Message>(self_, element_name<T, Index>{about().array, i}, nullptr, patience::may_wait,
                            std::uint64_t{about().id}, args...);
  }

  ORRERY_PROCESS_MEMBERS(section_agent, join, leave)

 private:
  // Of all members that are alive, and waits until they have answered.
  template <class Message, class V>
  void ask_members(const V& value) {
    std::vector<future<void>> answers;
    {
      const walk all(*this);
      for (const Index& i : members_)
        answers.push_back(start_element<Message, void>(self_, element_name<T, Index>{about().array, i}, V(value)));
    }
    for (auto& a : answers) try {
        a.get();
      } catch (const process_gone&) {  // it has ended meanwhile, and leaves as it always would
      }
  }
  void remove(orrery::reader& index) override {
    const auto i = orrery::read<Index>(index);
    if (!walking_) {
      members_.erase(i);
    } else {
      removed_.push_back(i);
    }
  }
  // Goes through the members, and may park meanwhile: those that end then are removed when it is over.
  struct walk {
    section_agent& agent;
    explicit walk(section_agent& a) : agent(a) { agent.walking_ = true; }
    walk(const walk&) = delete;
    walk& operator=(const walk&) = delete;
    ~walk() {
      agent.walking_ = false;
      for (const Index& i : agent.removed_) agent.members_.erase(i);
      agent.removed_.clear();
    }
  };

  boost::unordered_flat_set<Index, index_hash<Index>> members_;
  std::vector<Index> removed_;
  std::vector<remote<section_agent>> below_;
  bool walking_ = false;
};

/// Makes an element a member.
template <class T, class Index>
struct join_operation {
  using object = void;
  using result = void;
  static constexpr bool may_miss = true;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(joins a section)"; }
  static void run(pe&, slot& s, void*, const membership& m) {
    auto& all = cell<T, Index>::of(s.where_apart()).sections;
    if (all == nullptr) all = std::make_unique<std::vector<membership>>();
    all->push_back(m);
  }
};
template <class T, class Index>
struct forget_operation {
  using object = void;
  using result = void;
  static constexpr bool may_miss = true;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(leaves a section)"; }
  static void run(pe&, slot& s, void*, std::uint64_t id) {
    auto& all = cell<T, Index>::of(s.where_apart()).sections;
    if (all == nullptr) return;
    std::erase_if(*all, [&](const membership& m) { return m.section == id; });
    if (all->empty()) all.reset();
  }
};

/// Calls a method of a member. Another element that has got the index of one that has ended is none.
template <class T, class Index, class M, class R>
struct member_operation {
  using object = void;
  using result = void;
  static constexpr bool may_miss = true;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return M::name; }
  template <class... A>
  static void run(pe& self, slot& s, void*, std::uint64_t id, A&&... args) {
    const auto& all = cell<T, Index>::of(s.where_apart()).sections;
    if (all == nullptr || std::ranges::find(*all, id, &membership::section) == all->end()) return;
    (void)element_operation<T, Index, M, R>::run(self, s, nullptr, std::forward<A>(args)...);
  }
};

/// A broadcast on its way through the agents.
template <class T, class Index, class M, class R, class... P>
struct section_cast {
  using object = section_agent<T, Index>;
  using result = void;
  using handler = typed_handler<section_cast, P...>;
  using message = element_message<T, Index, member_operation<T, Index, M, R>, std::uint64_t, P...>;
  static_assert((std::is_copy_constructible_v<kept_t<P>> && ...),
                "orrery: each element needs arguments of its own: those of a broadcast must be copyable");
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return M::name; }
  template <class... A>
  static void run(pe&, slot&, object* agent, A&&... args) {
    agent->template cast<handler, message>(args...);
  }
};

template <class T, class Index>
struct section_modes {
  struct cast {
    struct target {
      address root;  // its agent
      std::uint32_t array = 0;
    };
    template <class M, class R, class... P>
    static void invoke(const target& to, P&&... args) {
      pe& self = here_pe();
      array_directory::of(self).require_whole("a broadcast to a section");
      part_of<T, Index>(self, to.array).begins();
      send_owned<typename section_cast<T, Index, M, R, P...>::handler>(self, to.root, nullptr, true,
                                                                       std::forward<P>(args)...);
    }
  };
};

}  // namespace detail

/// A subset of an array's elements, fixed when it is made but for those that end: with broadcasts and reductions of its own, exact wherever
/// its members go. A small value that names it: to be copied, stored and sent.
///
/// Broadcasts of one process to one section come to each member in the order sent, as posts do, and exactly once to each that lives when it comes to it.
/// Reductions: contribution k of each member that has not ended before it made that many is in reduction k.
template <class T, array_index Index = typename detail::index_type_of<T>::type>
class section {
 public:
  using element_type = T;
  using modes = detail::section_modes<T, Index>;

  section() = default;
  section(std::uint64_t id, std::uint32_t array, const remote<detail::section_agent<T, Index>>& root)
      : id_(id), root_{root.address(), array} {}
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] explicit operator bool() const noexcept { return id_ != 0; }

  /// `row->m(args...)`: a broadcast, one way. See post(row).
  [[nodiscard]] const auto* operator->() const noexcept { return detail::view_target<typename modes::cast, T>(root_); }
  /// `post(row)->m(args...)`: sends to every member. Parks while much is under way. Throws process_gone (to the error handler: the section was
  /// destroyed), node_lost.
  friend auto post(const section& s) { return detail::bound_target<typename modes::cast, T>(s.root_); }

  friend bool operator==(const section& a, const section& b) noexcept { return a.id_ == b.id_; }
  template <class A>
  void serialize(A& a) {
    a & id_ & root_.root & root_.array;
  }

 private:
  template <class U, class I>
  friend void destroy(const section<U, I>& s);

  std::uint64_t id_ = 0;
  typename modes::cast::target root_;
};

/// Makes a section of these elements, each named once or more; returns when all know it. `branching`: of the tree. Parks. Throws usage_error if there is no element at
/// one of the indices (with the names of array and index), node_lost, stopped. Not to be called by an element that is to be a member: it would wait for
/// itself (deadlock_error).
template <class T, class Index>
section<T, Index> create_section(const array<T, Index>& a, const std::vector<Index>& members,
                                 std::uint32_t branching = 4) {
  using agent = detail::section_agent<T, Index>;
  detail::pe& self = detail::here_pe();
  detail::array_directory::of(self).require_whole("a section");
  auto& part = detail::part_of<T, Index>(self, a.id());
  const std::uint64_t id = part.new_section();
  std::map<std::uint32_t, std::vector<Index>> at_home;
  at_home[self.id()];  // the root, also without members
  for (const Index& i : boost::unordered_flat_set<Index, detail::index_hash<Index>>(members.begin(), members.end()))
    at_home[part.home_of(i)].push_back(i);
  std::vector<std::uint32_t> pes{self.id()};
  for (const auto& [pe, some] : at_home)
    if (pe != self.id()) pes.push_back(pe);

  const std::size_t k = std::max(1U, branching);
  const auto children = [&](std::size_t rank) {
    return std::pair{std::min(k * rank + 1, pes.size()), std::min(k * rank + k + 1, pes.size())};
  };
  std::vector<future<remote<agent>>> making;
  for (std::size_t r = 0; r < pes.size(); ++r) {
    const auto [first, last] = children(r);
    detail::section_core::shape s{id, a.id(), r == 0 ? self.id() : pes[(r - 1) / k], {}};
    s.children.assign(pes.begin() + static_cast<std::ptrdiff_t>(first),
                      pes.begin() + static_cast<std::ptrdiff_t>(last));
    making.push_back(start_spawn<agent>(orrery::pe(pes[r]), std::move(s), std::move(at_home[pes[r]])));
  }
  std::vector<remote<agent>> agents;
  std::exception_ptr failed;
  for (auto& m : making) try {
      agents.push_back(m.get());
    } catch (...) {
      failed = std::current_exception();
    }
  if (failed != nullptr) {
    for (const auto& g : agents) destroy(g);
    std::rethrow_exception(failed);
  }
  std::vector<future<void>> joining;
  for (std::size_t r = 0; r < agents.size(); ++r) {
    const auto [first, last] = children(r);
    joining.push_back(start(agents[r])->join(std::vector<remote<agent>>(
        agents.begin() + static_cast<std::ptrdiff_t>(first), agents.begin() + static_cast<std::ptrdiff_t>(last))));
  }
  for (auto& j : joining) j.get();
  return section<T, Index>(id, a.id(), agents.front());
}

/// A section of the elements of a range.
template <class T, class Index>
  requires detail::has_range<Index>
section<T, Index> create_section(const array<T, Index>& a, const std::type_identity_t<range<Index>>& members,
                                 std::uint32_t branching = 4) {
  std::vector<Index> all;
  for (std::uint64_t i = 0; i < members.size(); ++i) all.push_back(members.at(i));
  return create_section(a, all, branching);
}

/// Ends a section: its members and the array stay. To be called when nothing of it is on its way. Parks. Throws process_gone, node_lost.
template <class T, class Index>
void destroy(const section<T, Index>& s) {
  const remote<detail::section_agent<T, Index>> root(s.root_.root);
  root->leave();
  destroy(root);
}

}  // namespace orrery
