// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/group_part.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Programs that are functions, chosen by rank (FG-MPI's mapping functions): each node runs so many
// of them as processes.
//
//     void source(const ranked& me, const args&) { send(me[1], 0); }
//     void relay(const ranked& me, const args&) { send(me[(me.rank + 1) % me.size()],
// receive<int>() + 1); }
//     ranked_function* ring(std::size_t rank, std::size_t) { return rank == 0 ? &source : &relay; }
//
//     int main(int argc, char** argv) { return run(argc, argv, maps<&ring, &star>); }   //
// ./program --map=ring --per-node=1000
namespace orrery {

/// A function of a map knows this: its rank, and all functions by their ranks.
struct ranked {
  std::size_t rank = 0;
  std::vector<remote<function>> all;

  [[nodiscard]] std::size_t size() const noexcept { return all.size(); }
  /// The function of that rank. Throws usage_error unless it is below size().
  [[nodiscard]] remote<function> operator[](std::size_t r) const {
    if (r >= all.size()) [[unlikely]]
      detail::throw_no_member("functions of a map", r, all.size());
    return all[r];
  }
};

/// A function that a map starts. The arguments are the program's own, without those of the map.
using ranked_function = void(const ranked& me, const args& arguments);

namespace detail {

template <auto... Map>
struct map_list {};

template <auto Map>
concept is_rank_map = requires(std::size_t n) {
  { Map(n, n) } -> std::convertible_to<ranked_function*>;
};

/// One rank, on its node.
template <auto Map>
void run_rank(std::size_t rank, args arguments) {
  const ranked me{rank, receive<std::vector<remote<function>>>()};
  if (ranked_function* const f = Map(rank, me.size()); f != nullptr) f(me, arguments);
}

struct named_map {
  std::string_view name;
  remote<function> (*begin)(placement where, std::size_t rank, const args& arguments);
};
template <auto Map>
remote<function> begin_rank(placement where, std::size_t rank, const args& arguments) {
  return spawn(where, &run_rank<Map>, rank, arguments);
}
template <auto Map>
[[nodiscard]] constexpr std::string_view map_name() noexcept {
  const std::string_view whole = function_operation<Map>::name();
  const std::size_t scope = whole.rfind("::");
  return scope == std::string_view::npos ? whole : whole.substr(scope + 2);
}
/// Chooses the map, starts its functions and waits until all have ended.
int run_map(std::span<const named_map> all, args arguments);

}  // namespace detail

/// Maps by the names of their functions, for run(). A map is a function `ranked_function*
/// map(std::size_t rank, std::size_t size)`; it is called on the node of the rank, and gives the
/// function that this rank runs, or null.
template <auto... Map>
  requires(sizeof...(Map) > 0 && (detail::is_rank_map<Map> && ...))
inline constexpr detail::map_list<Map...> maps{};

/// Runs the program as functions: each node starts as many as `--per-node=P` says (default: one for
/// each of its PEs), ranks 0 to P - 1 on the first node and so on. `--map=NAME` chooses the map;
/// default: the first. Returns 0 when all have returned. An exception that leaves one of them is a
/// line on stderr with its rank, and 1 is returned once the others have ended. (Kamal and Wagner,
/// FG-MPI.)
template <auto... Map>
int run(int argc, char** argv, detail::map_list<Map...>) {
  return run(argc, argv, [](args arguments) {
    const detail::named_map all[] = {{detail::map_name<Map>(), &detail::begin_rank<Map>}...};
    return detail::run_map(all, std::move(arguments));
  });
}

}  // namespace orrery
