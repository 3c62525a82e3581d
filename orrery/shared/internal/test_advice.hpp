// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: programs that access shared data by default, the advice of --orrery-advise on
// them, and runs with all behaviours that fit, in the simulator.

#include <orrery/shared/adviser.hpp>
#include <orrery/shared/shared.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::testing {

/// A behaviour. `part` is a cache of rows of a matrix or of a part of a vector; `updated` is
/// read_release, `part_updated` that of a part.
enum class how : std::uint8_t { plain, owned, cached, part, halo, released, mostly, updated, part_updated };
/// For each place of a program.
using choices = std::vector<how>;

/// An index that may be outside, where the matrix begins again, and its place in the source.
struct any_index {
  std::int64_t at;
  std::source_location where;
  template <std::integral I>
  any_index(I i, std::source_location here = std::source_location::current()) noexcept  // NOLINT
      : at(static_cast<std::int64_t>(i)), where(here) {}
};
inline detail::element_index inside(const any_index& i, std::uint64_t n) {
  return {static_cast<std::uint64_t>(i.at + static_cast<std::int64_t>(n)) % n, i.where};
}

/// Access by default with the syntax of a scope.
template <class T>
struct plain_matrix {
  shared_matrix<T> of;
  class handle {
   public:
    explicit handle(const plain_matrix& b) : of_(b.of) {}
    handle(const handle&) = delete;
    auto operator[](any_index i, any_index j) const {
      return of_[inside(i, of_.row_count()), inside(j, of_.column_count()).at];
    }
    void ready() {}
    void close() {}

   private:
    shared_matrix<T> of_;
  };
};
template <class T>
struct plain_vector {
  shared_vector<T> of;
  class handle {
   public:
    explicit handle(const plain_vector& b) : of_(b.of) {}
    handle(const handle&) = delete;
    auto operator[](any_index i) const { return of_[inside(i, of_.size())]; }
    void ready() {}
    void close() {}

   private:
    shared_vector<T> of_;
  };
};
template <class T>
plain_matrix<T> plainly(const shared_matrix<T>& m) {
  return {m};
}
template <class T>
plain_vector<T> plainly(const shared_vector<T>& v) {
  return {v};
}
template <class T>
matrix_part<T> all_of(const shared_matrix<T>& m) {
  return m.rows(0, m.row_count());
}
template <class T>
vector_part<T> all_of(const shared_vector<T>& v) {
  return v.part(0, v.size());
}

/// f(behaviour): for a place that reads; a cache of a part is one of `p`.
template <class O, class P, class F>
void read_part_as(how h, team_member& t, const O& o, const P& p, F f) {
  if (h == how::owned) return f(owner_computes(o, t));
  if (h == how::cached) return f(read_cache(o));
  if (h == how::part) return f(read_cache(p));
  f(plainly(o));
}
template <class O, class F>
void read_as(how h, team_member& t, const O& o, F f) {
  read_part_as(h, t, o, all_of(o), f);
}
/// The same for a place that reads and writes what the member owns; one that writes; and one that
/// reads and writes what others own.
template <class O, class F>
void own_as(how h, team_member& t, const O& o, F f) {
  if (h == how::owned) return f(owner_computes(o, t));
  f(plainly(o));
}
template <class O, class F>
void write_as(how h, team_member& t, const O& o, F f) {
  if (h == how::owned) return f(owner_computes(o, t));
  if (h == how::released) return f(release(o));
  f(plainly(o));
}
template <class O, class P, class F>
void update_as(how h, const O& o, const P& p, F f) {
  if (h == how::updated) return f(read_release(o));
  if (h == how::part_updated) return f(read_release(p));
  f(plainly(o));
}

/// Runs a program, with a choice for each place, and returns its virtual nanoseconds.
using program = std::function<std::int64_t(const choices&)>;

/// Runs it in a simulated world.
std::int64_t time_of(std::string_view sim, const program& p, const choices& h);

/// Advice, and the number of its object in the order of the lines that made objects.
struct advised {
  std::size_t object;
  sharing_advice advice;
};
/// The advice on a run by default of a program with so many places.
std::vector<advised> advice_for(std::string_view sim, const program& p, std::size_t places);
how to_how(std::string_view behaviour);

/// A behaviour to be chosen: which advice is for it, and what fits there.
struct place_to_choose {
  std::function<bool(const advised&)> is_for;
  std::vector<how> fit;
};
/// Tries all that fits for each group of places that are in one scope (the others stay as they are
/// advised): what is advised takes at most 5 % longer. Returns what is advised.
choices expect_best_choice(std::string_view sim, const program& p, const std::vector<place_to_choose>& places,
                           const std::vector<std::vector<std::size_t>>& scopes);

inline bool only_reads(const advised& a) { return a.advice.local_writes + a.advice.remote_writes == 0; }
inline bool only_writes(const advised& a) { return a.advice.local_reads + a.advice.remote_reads == 0; }
inline bool reads_and_writes(const advised& a) { return !only_reads(a) && !only_writes(a); }
inline bool is_far(const advised& a) { return a.advice.remote_reads + a.advice.remote_writes != 0; }

/// The simulated worlds in which choices are compared.
extern const std::vector<std::string> advice_worlds;

}  // namespace orrery::testing
