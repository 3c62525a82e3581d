// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/function.hpp>
#include <orrery/process/group.hpp>
#include <orrery/shared/detail/team_share.hpp>
#include <orrery/wire/serialize.hpp>
#include <orrery/wire/type_key.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery {

class team_member;
class sub_team;

namespace detail {

/// The function of a member of a team, and its arguments: a function of the program, and the bytes
/// of its arguments.
using team_function = std::vector<std::byte> (*)(team_member& self, std::span<const std::byte> arguments);

/// The call of a member, for errors: "all_reduce", "int", "std::plus<void>". The texts are never
/// freed: a member makes none when it calls.
struct team_call {
  std::string_view name;
  std::string_view type = {};
  std::string_view operation = {};
  std::uint64_t root = 0;  ///< of a broadcast
  bool operator==(const team_call&) const = default;
};

/// Combines the values of two members, as bytes.
using combine_bytes = void (*)(std::vector<std::byte>& into, const std::vector<std::byte>& other, const void* op);

template <class T>
[[nodiscard]] std::vector<std::byte> to_bytes(const T& x) {
  std::vector<std::byte> b(wire_size(x));
  writer w(b);
  orrery::write(w, x);
  return b;
}
template <class T>
[[nodiscard]] T from_bytes(std::span<const std::byte> b) {
  reader r(b);
  return orrery::read<T>(r);
}

}  // namespace detail

/// One member of a team, as its function sees it: the process that runs it. The function of `spmd`
/// takes it by reference as its first parameter, if it wants it.
///
/// The collective functions are called by all members, in the same order; they park. They throw
/// process_gone when a member has ended by an exception, node_lost, stopped, and usage_error at all
/// members if some call another one at the same point, or one for another type, operation or root.
class team_member : public member<team_member> {
 public:
  // rank() and size() are those of members of groups.

  /// Returns when all members have called it; see member::barrier.
  void barrier() {
    member<team_member>::barrier();
    left_collective();
  }

  /// The value that the member `root` has given, for all. Throws also usage_error (no such member).
  template <class T>
  [[nodiscard]] T broadcast(const T& value, std::size_t root = 0) {
    check_root(root);
    return detail::from_bytes<T>(broadcast_bytes(rank() == root ? detail::to_bytes(value) : std::vector<std::byte>{},
                                                 {"broadcast", wire::canonical_name<T>(), {}, root}));
  }
  /// op(op(value of rank 0, of rank 1), of rank 2)..., for all. `op` is associative; it need not be
  /// commutative.
  template <class T, class Op = std::plus<>>
  [[nodiscard]] T all_reduce(const T& value, Op op = {}) {
    return detail::from_bytes<T>(reduce_bytes(
        detail::to_bytes(value),
        [](std::vector<std::byte>& into, const std::vector<std::byte>& other, const void* o) {
          into = detail::to_bytes(
              static_cast<T>((*static_cast<const Op*>(o))(detail::from_bytes<T>(into), detail::from_bytes<T>(other))));
        },
        &op, {"all_reduce", wire::canonical_name<T>(), wire::canonical_name<Op>()}));
  }
  /// The values of all members, in the order of the ranks, for all.
  template <class T>
  [[nodiscard]] std::vector<T> all_gather(const T& value) {
    return gather(value, {"all_gather", wire::canonical_name<T>()});
  }
  /// As all_reduce, of the ranks up to the own one.
  template <class T, class Op = std::plus<>>
  [[nodiscard]] T scan(const T& value, Op op = {}) {
    const std::vector<T> all = gather(value, {"scan", wire::canonical_name<T>(), wire::canonical_name<Op>()});
    T so_far = all[0];
    for (std::size_t i = 1; i <= rank(); ++i) so_far = op(std::move(so_far), all[i]);
    return so_far;
  }
  /// The values of each member for each: to_each[r] is for rank r, and what comes back at [r] is
  /// what rank r had for this member. T is whatever can be sent, as a vector of any length. Throws
  /// also usage_error (other than size() values).
  template <class T>
  [[nodiscard]] std::vector<T> all_to_all(const std::vector<T>& to_each) {
    std::vector<std::vector<std::byte>> raw;
    for (const T& x : to_each) raw.push_back(detail::to_bytes(x));
    std::vector<T> from_each;
    for (const auto& b : exchange_bytes(std::move(raw), {"all_to_all", wire::canonical_name<T>()}))
      from_each.push_back(detail::from_bytes<T>(b));
    return from_each;
  }
  /// Divides the team: the members that give the same number become a team of their own. A
  /// collective function; see sub_team.
  [[nodiscard]] sub_team split(std::uint64_t number);
  /// This member's share of the elements of this PE, where several members are on one PE. For
  /// behaviours.
  [[nodiscard]] detail::team_share share() const;

  /// For behaviours: where a member is, and a number that is the same for all members if all ask in
  /// the same order.
  [[nodiscard]] orrery::address address_of(std::size_t r) const { return this_group()[r].address(); }
  /// The number of the next collective operation, in which all members agree.
  [[nodiscard]] std::uint64_t next_exchange() noexcept { return ++exchanges_; }
  /// For spmd.
  std::vector<std::byte> run(const detail::callable<detail::team_function>& f, std::span<const std::byte> arguments);

 private:
  void left_collective();
  void check_root(std::size_t root) const;
  template <class T>
  [[nodiscard]] std::vector<T> gather(const T& value, const detail::team_call& call) {
    const std::vector<std::vector<std::byte>> all = gather_bytes(detail::to_bytes(value), call);
    std::vector<T> values;
    values.reserve(all.size());
    for (const auto& b : all) values.push_back(detail::from_bytes<T>(b));
    return values;
  }
  [[nodiscard]] std::vector<std::byte> broadcast_bytes(std::vector<std::byte> mine, const detail::team_call& call);
  [[nodiscard]] std::vector<std::byte> reduce_bytes(std::vector<std::byte> mine, detail::combine_bytes f,
                                                    const void* op, const detail::team_call& call);
  [[nodiscard]] std::vector<std::vector<std::byte>> gather_bytes(std::vector<std::byte> mine,
                                                                 const detail::team_call& call);
  [[nodiscard]] std::vector<std::vector<std::byte>> exchange_bytes(std::vector<std::vector<std::byte>> to_each,
                                                                   const detail::team_call& call);

  mutable detail::team_share share_{0, 0, {}};
  mutable std::vector<std::uint32_t> pes_;
  std::uint64_t exchanges_ = 0;
  std::uint64_t collectives_ = 0;  // that it has left
};
ORRERY_PROCESS(team_member, run);

/// Where the members of a team are to run: a value. The members themselves live as long as a call
/// of `spmd`.
class team {
 public:
  /// One member for each PE of the program, in their order.
  team();
  /// n members at these places; see spawn_group.
  team(placements where, std::size_t n) : where_(std::move(where)), size_(n) {}
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Where the members live, in the order of their ranks.
  [[nodiscard]] const placements& where() const noexcept { return where_; }

 private:
  placements where_;
  std::size_t size_;
};

/// A part of a team: where its members are, to run a function there beside the other parts. Its
/// members are processes of their own, on the same PEs, so that their collective functions do not
/// meet those of the whole team.
///
///     const sub_team part = t.split(t.rank() % 2);
///     if (part.leads()) spmd<&factor>(part.members(), panels);  // each part at once
///     t.barrier();
class sub_team {
 public:
  sub_team(team members, std::size_t rank) : members_(std::move(members)), rank_(rank) {}
  /// The members of the part.
  [[nodiscard]] const team& members() const noexcept { return members_; }
  /// The rank of the caller among those of its part, who keep their order.
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  /// It is the first: the one that is to call spmd.
  [[nodiscard]] bool leads() const noexcept { return rank_ == 0; }

 private:
  team members_;
  std::size_t rank_;
};

namespace detail {

template <class F>
struct team_signature;
template <class R, class... P>
struct team_signature<R (*)(P...)> {
  using result = R;
  using arguments = std::tuple<std::decay_t<P>...>;
  static constexpr bool takes_member = false;
  template <auto F, class Values>
  static R call(team_member&, Values& values) {
    return std::apply(F, values);
  }
};
template <class R, class... P>
struct team_signature<R (*)(team_member&, P...)> {
  using result = R;
  using arguments = std::tuple<std::decay_t<P>...>;
  template <auto F, class Values>
  static R call(team_member& self, Values& values) {
    return std::apply([&self](auto&... x) { return F(self, x...); }, values);
  }
};

template <auto F>
std::vector<std::byte> run_as_member(team_member& self, std::span<const std::byte> arguments) {
  using signature = team_signature<std::decay_t<decltype(F)>>;
  auto values = from_bytes<typename signature::arguments>(arguments);
  if constexpr (std::is_void_v<typename signature::result>) {
    signature::template call<F>(self, values);
    return {};
  } else {
    return to_bytes(signature::template call<F>(self, values));
  }
}

/// Runs the function in all members and returns the bytes of their results. Parks.
[[nodiscard]] std::vector<std::vector<std::byte>> run_team(const team& t, team_function f,
                                                           std::span<const std::byte> arguments);

}  // namespace detail

/// Runs f(args...), or f(member, args...) if its first parameter is a `team_member&`, in each
/// member of a team at once, and returns when all have ended: their results in the order of the
/// ranks, or nothing if f returns void. The arguments are copied to each member.
///
/// If members throw, the others' collective functions throw process_gone; when all have ended, the
/// exception of the lowest rank that is not such a consequence is thrown. Parks. Throws also
/// usage_error (no such place), node_lost, stopped.
///
///     using matrix = shared_matrix<int>;
///     void multiply(team_member& team, matrix a, matrix b, matrix c);
///     spmd<&multiply>(team(), a, b, c);
template <auto F, class... A>
auto spmd(const team& t, const A&... given) {
  using signature = detail::team_signature<std::decay_t<decltype(F)>>;
  const typename signature::arguments values(given...);
  const auto results = detail::run_team(t, &detail::run_as_member<F>, detail::to_bytes(values));
  if constexpr (!std::is_void_v<typename signature::result>) {
    std::vector<std::decay_t<typename signature::result>> all;
    all.reserve(results.size());
    for (const auto& b : results) all.push_back(detail::from_bytes<std::decay_t<typename signature::result>>(b));
    return all;
  }
}

}  // namespace orrery
