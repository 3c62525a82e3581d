// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/finish.hpp>
#include <orrery/process/future.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/shared/detail/access_census.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/team.hpp>

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace orrery {

namespace {

using bytes = std::vector<std::byte>;

std::string text_of(const detail::team_call& c) {
  const auto beginning = [](std::string_view text) { return text.substr(0, 100); };
  std::string text(c.name);
  if (!c.type.empty()) text += fmt::format(" of {}", beginning(c.type));
  if (!c.operation.empty()) text += fmt::format(" with {}", beginning(c.operation));
  if (c.name == "broadcast") text += fmt::format(" from root {}", c.root);
  return text;
}

/// A text that came from another node, as one that is never freed: there are as many as programs
/// have calls.
std::string_view kept(std::string text) {
  static std::mutex mutex;
  static auto& all = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return *all.insert(std::move(text)).first;
}

void keep_given(bytes& into, const bytes& other, const void*) {
  if (into.empty()) into = other;
}
/// Each value behind its length.
void append(bytes& into, const bytes& other, const void*) { into.insert(into.end(), other.begin(), other.end()); }

}  // namespace

// The values of members in collective functions, and the operation that combines them: so errors
// call them.
struct team_value {
  bytes value;
  detail::team_call call;  // that the member is in
  template <class A>
  void serialize(A& a) {
    a & value & call.root;
    for (std::string_view* v : {&call.name, &call.type, &call.operation}) {
      std::string text(*v);
      a & text;
      if constexpr (A::is_loading::value) *v = kept(std::move(text));
    }
  }
};
struct team_operation {
  detail::combine_bytes f;
  const void* op;
  team_value operator()(team_value a, const team_value& b) const {
    if (a.call != b.call)
      throw usage_error(errc::bad_argument,
                        fmt::format("{} and {}: members of a team called both at the same point; all members must call "
                                    "the same, for the same types, in the same order",
                                    text_of(a.call), text_of(b.call)));
    f(a.value, b.value, op);
    return a;
  }
};

bytes team_member::reduce_bytes(bytes mine, detail::combine_bytes f, const void* op, const detail::team_call& call) {
  team_value all = member<team_member>::all_reduce(team_value{std::move(mine), call}, team_operation{f, op});
  left_collective();
  return std::move(all.value);
}

// For the adviser: the accesses that follow are those of another phase.
void team_member::left_collective() {
  if (!detail::counts_accesses()) [[likely]]
    return;
  const address first = this_group()[0].address();
  detail::enter_phase_of_team((std::uint64_t{first.pe} << 32 | first.slot) ^ std::uint64_t{first.generation} << 48,
                              ++collectives_);
}
void team_member::check_root(std::size_t root) const {
  if (root >= size())
    throw usage_error(errc::bad_argument, fmt::format("broadcast from root {}: the team has {} members, whose ranks "
                                                      "are 0 to {}",
                                                      root, size(), size() - 1));
}
bytes team_member::broadcast_bytes(bytes mine, const detail::team_call& call) {
  return reduce_bytes(std::move(mine), &keep_given, nullptr, call);
}

std::vector<bytes> team_member::gather_bytes(bytes mine, const detail::team_call& call) {
  const bytes all = reduce_bytes(detail::to_bytes(mine), &append, nullptr, call);
  std::vector<bytes> parts;
  // Each was written on its own, from an offset that is a multiple of nothing: it is read from a
  // buffer of its own, too.
  std::size_t at = 0;
  while (at < all.size()) {
    reader r{std::span<const std::byte>(all).subspan(at)};
    parts.push_back(orrery::read<bytes>(r));
    at += wire_size(parts.back());
  }
  return parts;
}

namespace {
/// At the receiver's PE.
void take_given(address receiver, std::uint64_t number, std::uint32_t from, std::vector<std::byte> what) {
  if (!detail::gathered_pieces::expects(receiver)) return;
  detail::shared_directory::of_this_pe().gathers.given[{receiver, number}][from] = std::move(what);
}
}  // namespace

std::vector<bytes> team_member::exchange_bytes(std::vector<bytes> to_each, const detail::team_call& call) {
  if (to_each.size() != size())
    throw usage_error(errc::bad_argument, fmt::format("all_to_all: {} values for the {} members of the team; give one "
                                                      "for each, in the order of the ranks",
                                                      to_each.size(), size()));
  const std::pair<address, std::uint64_t> mine{address_of(rank()), next_exchange()};
  struct cleaner {
    const std::pair<address, std::uint64_t>& key;
    explicit cleaner(const std::pair<address, std::uint64_t>& k) : key(k) {}
    cleaner(const cleaner&) = delete;
    ~cleaner() { detail::shared_directory::of_this_pe().gathers.given.erase(key); }
  } const at_the_end(mine);
  std::vector<future<void>> sent;
  detail::finish(sent, [&] {
    for (std::size_t i = 1; i < size(); ++i) {
      const std::size_t to = (rank() + i) % size();
      const address there = address_of(to);
      sent.push_back(start_call<&take_given>(pe(there.pe), there, mine.second, static_cast<std::uint32_t>(rank()),
                                             std::move(to_each[to])));
    }
  });
  // a barrier: all have been sent, and so have arrived
  (void)reduce_bytes({}, &keep_given, nullptr, call);
  std::vector<bytes> from_each(size());
  from_each[rank()] = std::move(to_each[rank()]);
  for (auto& [from, what] : detail::shared_directory::of_this_pe().gathers.given[mine])
    from_each.at(from) = std::move(what);
  return from_each;
}

sub_team team_member::split(std::uint64_t number) {
  const std::vector<std::uint64_t> numbers = all_gather(number);
  const auto& all = this_group();
  std::vector<placement> places;
  std::size_t own = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != number) continue;
    if (i == rank()) own = places.size();
    places.push_back(pe(all[i].address().pe));
  }
  const std::size_t n = places.size();
  return {team(placements(std::move(places)), n), own};
}

detail::team_share team_member::share() const {
  if (share_.count == 0) {
    const std::uint32_t here = this_pe();
    const auto& all = this_group();
    share_.index = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::uint32_t p = all[i].address().pe;
      pes_.push_back(p);
      if (p == here) {
        if (i < rank()) ++share_.index;
        ++share_.count;
      }
    }
    std::ranges::sort(pes_);
    pes_.erase(std::ranges::unique(pes_).begin(), pes_.end());
    share_.pes = pes_;
  }
  return share_;
}

bytes team_member::run(const detail::callable<detail::team_function>& f, std::span<const std::byte> arguments) {
  left_collective();  // of spawning
  try {
    return (*f.f)(*this, arguments);
  } catch (...) {
    // The others may wait for this member in a collective: it ends when this has been answered, so
    // that they get process_gone.
    (void)start_destroy(this_group()[rank()]);
    throw;
  }
}

team::team() : where_(here()) {
  std::vector<placement> all;
  for (const std::uint32_t p : program_pes()) all.push_back(pe(p));
  size_ = all.size();
  where_ = placements(std::move(all));
}

namespace detail {

std::vector<bytes> run_team(const team& t, team_function f, std::span<const std::byte> arguments) {
  const group<team_member> members = spawn_group<team_member>(t.where(), t.size());
  std::vector<future<bytes>> running;
  std::vector<bytes> results;
  std::exception_ptr first;
  std::exception_ptr consequence;
  try {
    for (const auto& m : members) running.push_back(start(m)->run(callable<team_function>{f}, arguments));
  } catch (...) {
    first = std::current_exception();
  }
  for (auto& r : running) {
    try {
      results.push_back(r.get());
    } catch (const process_gone&) {
      if (consequence == nullptr) consequence = std::current_exception();
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  try {
    destroy(members);
  } catch (const error&) {  // what members ended with was said above
  }
  enter_phase_of_team(0, 0);  // what follows is not in the team's last phase
  if (first == nullptr) first = consequence;
  if (first != nullptr) std::rethrow_exception(first);
  return results;
}

}  // namespace detail
}  // namespace orrery
