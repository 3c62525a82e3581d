// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array.hpp>
#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/section_core.hpp>
#include <orrery/process/detail/attempts.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

// The parts of sections (section.hpp): their agents, and the messages between agents and members.
namespace orrery {

namespace detail {

/// The membership of an element, or null.
[[nodiscard]] inline membership* find_membership(const cell_base& c, std::uint64_t section) noexcept {
  if (c.sections == nullptr) return nullptr;
  const auto it = std::ranges::find(*c.sections, section, &membership::section);
  return it != c.sections->end() ? std::to_address(it) : nullptr;
}

template <class T, class Index>
struct join_operation;
template <class T, class Index>
struct void_operation;
template <class T, class Index>
struct forget_operation;

/// A section's process on a PE where members have their homes; see section_core. Broadcasts come
/// down the tree of agents as posts, and go from each to its members: so their order, their limits
/// and the loss of a node are those of posts.
template <class T, class Index>
class section_agent final : public section_core {
 public:
  /// Throws usage_error unless all members exist; this is the home of all.
  section_agent(description s, std::vector<Index> members) : section_core(here_pe(), s, members.size()) {
    auto& part = index_part_of<Index>(self_, s.array);
    for (const Index& i : members)
      if (!part.has_element(i)) throw_no_member(part.text_of(i));
    members_.insert(members.begin(), members.end());
  }

  /// Tells the members, which have to know before anything else happens. A member that has ended
  /// meanwhile has not heard of the section, and so does not leave it by itself. `all` are the
  /// agents below the root, for the root.
  void join(std::vector<remote<section_agent>> children, std::vector<remote<section_agent>> all) {
    below_ = std::move(children);
    all_ = std::move(all);
    for (const Index& i : ask_members<element_message<T, Index, join_operation<T, Index>, std::uint64_t>>(about().id)) {
      bytes index;
      pack_after(index, i);
      orrery::reader r(index);
      left(before_first, r);
    }
  }
  /// Tells them that there is no such section any more, and ends all agents below this one.
  void leave() {
    attempts attempt;  // one of them may be lost
    std::vector<future<void>> leaving;
    for (const auto& c : below_) attempt([&] { leaving.push_back(start(c)->leave()); });
    if (array_directory::of(self_).find(about().array) != nullptr)
      attempt(
          [&] { (void)ask_members<element_message<T, Index, forget_operation<T, Index>, std::uint64_t>>(about().id); });
    for (auto& l : leaving) attempt([&] { l.get(); });
    for (const auto& c : below_) attempt([&] { destroy(c); });
    // An agent that is lost tells nobody below it: so each is told, from the last one on.
    for (; attempt.failed() && !all_.empty(); all_.pop_back()) {
      attempt([&] { all_.back()->leave(); });
      attempt([&] { destroy(all_.back()); });
    }
    attempt.require_all();
  }

  /// Sends a message with these arguments to the children, and to all members.
  template <class Cast, class Message, class... A>
  void broadcast(const A&... args) {
    (void)index_part_of<Index>(self_, about().array);  // throws if there is none
    broadcasts_ = broadcasts_.next();
    const std::uint32_t number = broadcasts_.value;
    std::exception_ptr failed;  // copying the arguments: the others get theirs
    for (const auto& c : below_) try {
        Cast::send(self_, about().array, c.address(), args...);
      } catch (...) {
        failed = std::current_exception();
      }
    const walk all(*this);
    for (const Index& i : members_) {
      const element_name<T, Index> member{about().array, i};
      try {
        send_element<Message>(self_, member, nullptr, patience::may_wait, std::uint64_t{about().id},
                              std::uint32_t{number}, args...);
      } catch (...) {
        failed = std::current_exception();
        using message = element_message<T, Index, void_operation<T, Index>, std::uint64_t, std::uint32_t>;
        send_element<message>(self_, member, nullptr, patience::may_wait, std::uint64_t{about().id},
                              std::uint32_t{number});
      }
    }
    if (failed != nullptr) std::rethrow_exception(failed);
  }

  ORRERY_PROCESS_MEMBERS(section_agent, join, leave)

 private:
  // Asks all members that are alive, and waits until they have answered. Returns those that had
  // ended before they got it.
  template <class Message, class V>
  [[nodiscard]] std::vector<Index> ask_members(const V& value) {
    attempts attempt;
    std::vector<std::pair<Index, future<void>>> answers;
    {
      const walk all(*this);
      for (const Index& i : members_)
        attempt([&] {
          answers.emplace_back(i,
                               start_element<Message, void>(self_, element_name<T, Index>{about().array, i}, V(value)));
        });
    }
    std::vector<Index> ended;
    for (auto& [i, answer] : answers)
      attempt([&] {
        try {
          answer.get();
        } catch (const process_gone&) {
          ended.push_back(i);
        }
      });
    attempt.require_all();
    return ended;
  }
  void remove(orrery::reader& index) override {
    const auto i = orrery::read<Index>(index);
    if (!walking_) {
      members_.erase(i);
    } else {
      removed_.push_back(i);
    }
  }
  // Goes through the members, and may park meanwhile: those that end then are removed when it is
  // over.
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

  boost::unordered_flat_set<Index, index_hash<Index>, index_equal<Index>> members_;
  std::vector<Index> removed_;
  std::vector<remote<section_agent>> below_, all_;
  sequence_number broadcasts_ = before_first;  // the last one
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
  static void run(pe&, slot& s, void*, std::uint64_t id) {
    auto& c = cell<T, Index>::of(s.where_apart());
    if (c.sections == nullptr) c.sections = wire::make_unique<std::vector<membership>>();
    membership& m = c.sections->emplace_back();
    m.section = id;
    m.home = static_cast<index_part<Index>*>(c.part)->home_of(c.index);
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
    auto& c = cell<T, Index>::of(s.where_apart());
    const auto it = find_membership(c, id);
    if (it == nullptr) return;
    c.part->drop_early(*it);
    c.sections->erase(c.sections->begin() + (it - c.sections->data()));
    if (c.sections->empty()) c.sections.reset();
  }
};

/// Calls a method of a member. Another element that has got the index of one that has ended is
/// none.
///
/// All broadcasts of a section come to a member from one agent, at the home of its index, which
/// numbers them. As they find it by several ways when it moves, one can be early; it is kept then,
/// with the membership, until those before it have been executed. So their order is kept whoever
/// migrates: reductions need that, as a member's contributions are counted.
template <class T, class Index, class M, class R, class... P>
struct member_operation {
  using object = void;
  using result = void;
  using message = element_message<T, Index, member_operation, std::uint64_t, std::uint32_t, P...>;
  static constexpr bool may_miss = true;
  static constexpr bool ordered = false;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return M::name; }
  template <class... A>
  static void run(pe& self, slot& s, void*, std::uint64_t id, std::uint32_t value, A&&... args) {
    const sequence_number number{value};
    auto& c = cell<T, Index>::of(s.where_apart());
    membership* m = find_membership(c, id);
    if (m == nullptr) return;
    if (!m->take_turn(number, c.part->lossy())) {
      bytes b = message::forms::head_to_wire({0, 0, self.id(), 0, 0}, c.index, {});
      try {
        pack_after(b, id, value, std::as_const(args)...);
      } catch (...) {
        c.part->skip_broadcast(*m, number);
        throw;
      }
      m->early.push_back({number, message::routed.index, std::move(b)});
      c.part->begins();
      return;
    }
    if (!m->early.empty()) [[unlikely]]
      c.part->release_early(*m);
    (void)element_operation<T, Index, M, R>::run(self, s, nullptr, std::forward<A>(args)...);
  }
  /// Its arguments cannot be written, or read: it counts all the same.
  using nothing = element_message<T, Index, void_operation<T, Index>, std::uint64_t, std::uint32_t>;
  template <class Tuple>
  static void pack_nothing(bytes& b, const Tuple& args) {
    pack_after(b, std::get<0>(args), std::get<1>(args));
  }
  static void unreadable(pe&, slot& s, orrery::reader args) {
    if (!s.has_object) return;
    auto& c = cell<T, Index>::of(s.where_apart());
    const auto id = orrery::read<std::uint64_t>(args);
    if (membership* m = find_membership(c, id)) c.part->skip_broadcast(*m, {orrery::read<std::uint32_t>(args)});
  }
};

/// In the place of a broadcast that could not be sent to a member.
template <class T, class Index>
struct void_operation {
  using object = void;
  using result = void;
  static constexpr bool may_miss = true;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(a broadcast that failed)"; }
  static void run(pe&, slot& s, void*, std::uint64_t id, std::uint32_t number) {
    auto& c = cell<T, Index>::of(s.where_apart());
    if (membership* m = find_membership(c, id)) c.part->skip_broadcast(*m, {number});
  }
};

/// A broadcast on its way through the agents: a post whose first argument counts.
template <class T, class Index, class M, class R, class... P>
struct section_broadcast {
  using object = section_agent<T, Index>;
  using result = void;
  using message = typename member_operation<T, Index, M, R, P...>::message;
  static_assert((std::is_copy_constructible_v<kept_t<P>> && ...),
                "orrery: each element needs arguments of its own: those of a broadcast must be copyable");
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return M::name; }
  template <class... A>
  static void run(pe&, slot&, object* agent, counted_activity, A&&... args) {
    agent->template broadcast<section_broadcast, message>(args...);
  }
  struct handler : typed_handler<section_broadcast, counted_activity, P...> {
    using base = typed_handler<section_broadcast, counted_activity, P...>;
    struct counted_handler : scheduler::handler {
      counted_handler() noexcept
          : scheduler::handler(section_broadcast::class_name(), section_broadcast::name(),
                               wire::type_key<void(section_broadcast)>(), &base::run, &base::relocate, &base::drop,
                               static_cast<std::uint32_t>(sizeof(typename base::owned)), base::views, &base::describe) {
        route = &counted_activity::route;
        lost = &counted_activity::lost;
      }
    };
    inline static const counted_handler instance;
  };

  template <class... A>
  static void send(pe& self, std::uint32_t array, const address& agent, A&&... args) {
    counted_activity counts(index_part_of<Index>(self, array));
    send_owned<handler>(self, agent, nullptr, true, std::move(counts), std::forward<A>(args)...);
    if (!on_this_node(self, agent.pe)) counts.has_left();
  }
};

template <class T, class Index>
struct section_modes {
  struct broadcast {
    struct target {
      address root;  // its agent
      std::uint32_t array = 0;
    };
    template <class M, class R, class... P>
    static void invoke(const target& to, P&&... args) {
      pe& self = here_pe();
      if (!to.root) throw_null_section();
      index_part_of<Index>(self, to.array).require_whole("a broadcast to a section");
      section_broadcast<T, Index, M, R, P...>::send(self, to.array, to.root, std::forward<P>(args)...);
    }
  };
};

}  // namespace detail
}  // namespace orrery
