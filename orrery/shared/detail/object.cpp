// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/future.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/detail/sharing_referee.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

/// The facts that a node needs to use an object: the description, and the memory of its domain, if
/// some lies there.
struct admission {
  shared_description about;
  std::optional<memory_name> memory;

  template <class A>
  void serialize(A& a) {
    a & about & memory;
  }
};
/// The answer of a keeper to the PEs of its node: the mapping as a pointer, which they share.
struct introduction {
  shared_description about;
  std::uint64_t memory = 0;  ///< a std::shared_ptr on the heap, which the receiver takes over

  template <class A>
  void serialize(A& a) {
    a & about & memory;
  }
};

std::uint32_t keeper_of(std::uint32_t pe) {
  scheduler::node& n = here_pe().owner();
  return n.pes_of(n.node_of(pe)).first;
}

bool is_on_node_of(std::uint32_t a, std::uint32_t b) {
  scheduler::node& n = here_pe().owner();
  return n.node_of(a) == n.node_of(b);
}

/// The nodes of one machine are OS processes that can map each other's memory; simulated ones are
/// not.
bool maps_memory(transport::world* w) { return w != nullptr && (w->shared() != nullptr || w->carrier() != nullptr); }

/// In memory_head::object.
std::uint64_t number_of(const shared_id& id) { return std::uint64_t{id.maker} << 32 | id.number; }

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Bytes between the parts of one domain: none where the elements are in the order of their
/// indices.
std::uint64_t part_bytes(const layout& l, std::uint32_t part) {
  const std::uint64_t bytes = l.room_of(part) * l.element_bytes;
  return l.in_order() ? bytes : round_up(bytes);
}

std::uint64_t domain_bytes(const shared_description& d, std::uint32_t domain) {
  std::uint64_t sum = 0;
  for (std::uint32_t p = 0; p < d.how.parts(); ++p)
    if (d.domains[p] == domain) sum += part_bytes(d.how, p);
  return sum;
}

std::shared_ptr<const shared_object> view_of(const shared_description& about, std::shared_ptr<shared_memory> memory) {
  auto o = std::make_shared<shared_object>();
  o->about = about;
  o->rows = about.how.rows.size();
  o->columns = about.how.columns.size();
  o->bytes = about.how.element_bytes;
  o->memory = std::move(memory);
  const std::uint32_t parts = about.how.parts();
  o->base.assign(parts, nullptr);
  o->own_part = about.how.part_of(here_pe().id());
  o->watched = here_pe().settings().follow_order || here_pe().settings().advise_for.has_value();
  if (o->memory != nullptr) {
    const std::uint32_t here = domain_of(here_pe().id());
    std::byte* at = o->memory->elements();
    bool all = about.how.in_order();
    for (std::uint32_t p = 0; p < parts; ++p) {
      if (about.domains[p] == here) {
        o->base[p] = at + about.how.room_before(p) * o->bytes;
        at += part_bytes(about.how, p);
      } else if (about.how.elements_of(p) != 0) {
        all = false;
      }
    }
    if (all) o->in_order = o->memory->elements();
    o->only_checked = o->watched && all && !here_pe().settings().advise_for;
    const scheduler::node& n = here_pe().owner();
    const bool complete =
        n.gone_nodes() == 0 || std::ranges::all_of(about.how.pes, [&](auto p) { return n.reachable(p); });
    if (!o->watched && complete) o->whole = o->in_order;
  }
  return o;
}

/// The object was destroyed, and this PE has been told where.
bool has_ended(const shared_id& id) {
  const auto& ended = shared_directory::of_this_pe().has_ended;
  return std::ranges::find(ended, id, &shared_directory::ended::id) != ended.end();
}
void remember_end(const shared_id& id, std::string_view label, std::string_view where) {
  auto& ended = shared_directory::of_this_pe().has_ended;
  ended.push_back({id, std::string(label), std::string(where)});
  if (ended.size() > shared_directory::most_ended) ended.pop_front();
}
[[noreturn]] void throw_destroyed(const shared_id& id) {
  for (const auto& e : shared_directory::of_this_pe().has_ended)
    if (e.id == id)
      throw usage_error(errc::bad_argument,
                        fmt::format("{} was destroyed at {}; use it before, or make another", e.label, e.destroyed_at));
  throw usage_error(errc::bad_argument,
                    fmt::format("shared data number {} of PE {} was destroyed, or could not be made; use it before "
                                "destroy(), or make another",
                                id.number, id.maker));
}

// --- what PEs say to each other ------------------------------------------------------------------

std::uint64_t hand_over(const std::shared_ptr<shared_memory>& m) {
  if (m == nullptr) return 0;
  return reinterpret_cast<std::uint64_t>(new std::shared_ptr<shared_memory>(m));  // NOLINT: within the OS process
}
std::shared_ptr<shared_memory> take_over(std::uint64_t pointer) {
  if (pointer == 0) return nullptr;
  const wire::unique_ptr<std::shared_ptr<shared_memory>> p(reinterpret_cast<std::shared_ptr<shared_memory>*>(pointer));
  return std::move(*p);
}

/// At a PE, from its keeper.
void learn_object(introduction i) { shared_directory::of_this_pe().add(view_of(i.about, take_over(i.memory))); }
/// At a PE that is told that an object has ended: a process that has asked for it and goes on later
/// must not add it again.
void forget(const shared_id& id) {
  auto& d = shared_directory::of_this_pe();
  d.remove(id);
  if (const auto at = d.asks_for.find(id); at != d.asks_for.end()) at->second.dropped = true;
}
/// At a PE, from its keeper.
void forget_object(shared_id id) { forget(id); }

/// The keeper has the object: the PEs of its node that own parts learn of it, as they will be asked
/// for elements.
void introduce_to_owners(const shared_id& id) {
  std::vector<future<void>> told;
  {
    auto& keep = shared_directory::of_this_pe().keeps.at(id);
    const std::uint32_t self = here_pe().id();
    for (const std::uint32_t p : keep.about.how.pes)
      if (p != self && is_on_node_of(p, self) && std::ranges::find(keep.users, p) == keep.users.end())
        keep.users.push_back(p);
    for (const std::uint32_t p : keep.users)
      told.push_back(start_call<&learn_object>(orrery::pe(p), introduction{keep.about, hand_over(keep.memory)}));
  }
  for (auto& f : told) f.get();
}

void keep_object(const shared_description& about, std::shared_ptr<shared_memory> memory) {
  auto& d = shared_directory::of_this_pe();
  if (d.keeps.contains(about.id)) return;
  d.add(view_of(about, memory));
  d.keeps[about.id] = {about, std::move(memory), {}};
}

/// At the keeper of the first node of a domain: makes the memory.
memory_name make_memory_here(shared_description about) {
  const std::uint32_t domain = domain_of(here_pe().id());
  if (about.held_size != 0) shared_memory::require(domain_bytes(about, domain), about.held_size, about.label);
  auto memory = shared_memory::make(domain_bytes(about, domain), maps_memory(here_pe().owner().world()), about.label);
  const memory_name name = memory->name();
  memory->head().object.store(number_of(about.id));
  keep_object(about, std::move(memory));
  introduce_to_owners(about.id);
  return name;
}
void admit(const admission& a) {
  std::shared_ptr<shared_memory> memory;
  if (a.memory) {
    memory = shared_memory::open(*a.memory, a.about.label);
    // The object may have ended meanwhile, and its descriptor be that of another one.
    if (memory->head().object.load() != number_of(a.about.id)) throw_destroyed(a.about.id);
  }
  keep_object(a.about, std::move(memory));
}
/// At the keepers of the other nodes of the domain.
void attach_here(admission a) {
  admit(a);
  introduce_to_owners(a.about.id);
}

/// A process asks for an object that its PE, or the node of that, does not know.
class question {
 public:
  explicit question(const shared_id& id) : id_(id) { ++shared_directory::of_this_pe().asks_for[id].processes; }
  question(const question&) = delete;
  question& operator=(const question&) = delete;
  ~question() {
    auto& all = shared_directory::of_this_pe().asks_for;
    if (const auto at = all.find(id_); at != all.end() && --at->second.processes == 0) all.erase(at);
  }
  /// After the answer. Throws usage_error if the object has ended since.
  void require_there() const {
    if (shared_directory::of_this_pe().asks_for.at(id_).dropped) throw_destroyed(id_);
  }

 private:
  shared_id id_;
};

/// At the maker: what `keeper` needs.
admission admission_for(shared_id id, std::uint32_t keeper) {
  auto& made = shared_directory::of_this_pe().has_made;
  const auto at = made.find(id);
  if (at == made.end()) throw_destroyed(id);
  if (std::ranges::find(at->second.keepers, keeper) == at->second.keepers.end()) at->second.keepers.push_back(keeper);
  admission a{at->second.about, std::nullopt};
  const auto memory = at->second.memories.find(domain_of(keeper));
  if (memory != at->second.memories.end()) a.memory = memory->second;
  return a;
}

/// At the keeper: knows the object when it returns. Parks.
void become_keeper(const shared_id& id) {
  if (shared_directory::of_this_pe().keeps.contains(id)) return;
  if (has_ended(id)) throw_destroyed(id);  // its maker may be lost
  const std::uint32_t self = here_pe().id();
  if (id.maker == self) return admit(admission_for(id, self));
  const question asked(id);
  const admission a = call<&admission_for>(orrery::pe(id.maker), id, self);
  asked.require_there();
  admit(a);
}
/// At the keeper, for a PE of its node.
introduction introduction_for(shared_id id, std::uint32_t user) {
  become_keeper(id);
  auto& keep = shared_directory::of_this_pe().keeps.at(id);
  if (std::ranges::find(keep.users, user) == keep.users.end()) keep.users.push_back(user);
  return {keep.about, hand_over(keep.memory)};
}

/// At each keeper.
void drop_object(shared_id id) {
  forget(id);
  auto& d = shared_directory::of_this_pe();
  const auto at = d.keeps.find(id);
  if (at == d.keeps.end()) return;
  const std::vector<std::uint32_t> users = std::move(at->second.users);
  d.keeps.erase(at);
  std::vector<future<void>> told;
  for (const std::uint32_t p : users) told.push_back(start_call<&forget_object>(orrery::pe(p), id));
  for (auto& f : told) f.get();
}

void await_those_left(std::vector<future<void>>& told) {
  for (auto& f : told) {
    try {
      f.get();
    } catch (const node_lost&) {  // nothing is left there
    }
  }
}

/// Calls at all these keepers; those of nodes that are lost have nothing to end.
void drop_everywhere(const shared_id& id, const std::vector<std::uint32_t>& keepers) {
  std::vector<future<void>> told;
  for (const std::uint32_t p : keepers) {
    try {
      told.push_back(start_call<&drop_object>(orrery::pe(p), id));
    } catch (const node_lost&) {  // nothing is left there
    }
  }
  await_those_left(told);
}

/// At the maker.
void end_object(shared_id id, std::string_view where) {
  auto& made = shared_directory::of_this_pe().has_made;
  const auto at = made.find(id);
  if (at == made.end()) throw_destroyed(id);
  remember_end(id, at->second.about.label, where);
  const std::vector<std::uint32_t> keepers = std::move(at->second.keepers);
  made.erase(at);
  if (const auto& referee = shared_directory::of_this_pe().referee; referee != nullptr) referee->end(id);
  drop_everywhere(id, keepers);
}

/// At each keeper of the program that is left: the maker is lost, which knew who uses the object.
void drop_of_lost_maker(shared_id id, std::string_view label, std::string_view where) {
  if (!has_ended(id)) remember_end(id, label, where);
  drop_object(id);
}
void end_without_maker(const shared_id& id, std::string_view where) {
  std::string label = fmt::format("shared data number {} of PE {}", id.number, id.maker);
  try {
    label = hold_object(id)->about.label;
  } catch (const node_lost&) {  // this node has not used it
  }
  std::vector<future<void>> told;
  for (const std::uint32_t keeper : program_pes()) {
    if (keeper != keeper_of(keeper) || !here_pe().owner().reachable(keeper)) continue;
    try {
      told.push_back(start_call<&drop_of_lost_maker>(orrery::pe(keeper), id, label, where));
    } catch (const node_lost&) {  // nothing is left there
    }
  }
  await_those_left(told);
}

/// Makes the memory of all domains, and lets all nodes know that own something.
void make_memories(shared_directory::made& m) {
  std::vector<std::pair<std::uint32_t, future<memory_name>>> makers;
  std::vector<std::uint32_t> others;
  for (std::uint32_t p = 0; p < m.about.how.parts(); ++p) {
    const std::uint32_t keeper = keeper_of(m.about.how.pes[p]);
    if (std::ranges::find(m.keepers, keeper) != m.keepers.end()) continue;
    m.keepers.push_back(keeper);
    const auto same = [&](const auto& x) { return x.first == m.about.domains[p]; };
    if (std::ranges::any_of(makers, same)) {
      others.push_back(keeper);
    } else {
      makers.emplace_back(m.about.domains[p], start_call<&make_memory_here>(orrery::pe(keeper), m.about));
    }
  }
  for (auto& [domain, name] : makers) m.memories[domain] = name.get();
  std::vector<future<void>> attached;
  for (const std::uint32_t k : others)
    attached.push_back(start_call<&attach_here>(orrery::pe(k), admission{m.about, m.memories.at(domain_of(k))}));
  for (auto& f : attached) f.get();
}

}  // namespace

std::uint32_t domain_of(std::uint32_t pe) {
  scheduler::node& n = here_pe().owner();
  if (n.world() == nullptr) return 0;
  const std::uint32_t node = n.node_of(pe);
  return maps_memory(n.world()) ? n.world()->machine_of(node) : node;
}

bool one_domain() {
  const transport::world* const w = here_pe().owner().world();
  if (w == nullptr) return true;
  return maps_memory(here_pe().owner().world()) ? w->machines() == 1 : here_pe().owner().world_nodes() == 1;
}

shared_id make_shared_object(layout how, std::string label, std::uint32_t held_size) {
  const shared_id id{here_pe().id(), shared_directory::of_this_pe().new_number()};
  shared_directory::made m;
  m.about = {id, std::move(label), std::move(how), {}, held_size};
  for (const std::uint32_t p : m.about.how.pes) m.about.domains.push_back(domain_of(p));
  try {
    make_memories(m);
  } catch (...) {
    const std::exception_ptr failed = std::current_exception();
    try {
      drop_everywhere(id, m.keepers);
    } catch (const error&) {  // what has failed before says more
    }
    std::rethrow_exception(failed);
  }
  shared_directory::of_this_pe().has_made[id] = std::move(m);
  return id;
}

void destroy_shared_object(const shared_id& id, std::string_view where) {
  if (!id) (void)find_unknown_object(id);
  try {
    return call<&end_object>(orrery::pe(id.maker), id, where);
  } catch (const node_lost&) {  // no other PE could end it for all
  }
  end_without_maker(id, where);
}

static const std::shared_ptr<const shared_object>& meet_object(const shared_id& id) {
  auto& d = shared_directory::of_this_pe();
  if (!id)
    throw usage_error(errc::null_pointer, verbatim,
                      "null shared data: the handle was default-constructed; use one that was made with a size");
  const std::uint32_t self = here_pe().id();
  const std::uint32_t keeper = keeper_of(self);
  if (keeper == self) {
    become_keeper(id);
    if (const auto* o = d.find(id)) return *o;
    throw_destroyed(id);
  }
  const question asked(id);
  const introduction i = call<&introduction_for>(orrery::pe(keeper), id, self);
  std::shared_ptr<shared_memory> memory = take_over(i.memory);
  asked.require_there();
  return *d.add(view_of(i.about, std::move(memory)));
}

const shared_object& find_unknown_object(const shared_id& id) { return *meet_object(id); }
std::shared_ptr<const shared_object> hold_object(const shared_id& id) {
  const auto* o = shared_directory::of_this_pe().find(id);
  return o != nullptr ? *o : meet_object(id);
}

void require_owner(const shared_object& o, std::uint32_t part) {
  if (!here_pe().owner().reachable(o.how().pes[part]))
    throw node_lost(fmt::format("{}: PE {}, which owns a part of it", o.about.label, o.how().pes[part]));
}

void require_owners(const shared_object& o, std::uint64_t row, std::uint64_t rows, std::uint64_t column,
                    std::uint64_t columns) {
  if (here_pe().owner().gone_nodes() == 0) [[likely]]
    return;
  const layout& l = o.how();
  const auto meets = [](const axis& a, std::uint32_t part, std::uint64_t first, std::uint64_t count) {
    return a.below(part, first) != a.below(part, first + count);
  };
  for (std::uint32_t p = 0; p < l.parts(); ++p)
    if (meets(l.rows, l.row_part(p), row, rows) && meets(l.columns, l.column_part(p), column, columns))
      require_owner(o, p);
}
void require_owners(const shared_object& o) { require_owners(o, 0, o.rows, 0, o.columns); }

void throw_outside(const shared_object& o, std::uint64_t row, std::uint64_t column) {
  const layout& l = o.how();
  if (l.columns.size() == 1 && column == 0)
    throw std::out_of_range(
        fmt::format("{}: index {} is outside of its {} elements", o.about.label, row, l.rows.size()));
  throw std::out_of_range(fmt::format("{}: index [{}, {}] is outside of its {} x {} elements", o.about.label, row,
                                      column, l.rows.size(), l.columns.size()));
}
void throw_outside_matrix(const shared_object& o, const region& r) {
  throw std::out_of_range(fmt::format(
      "{}: a rectangle of {} x {} elements from [{}, {}] on lies outside of its {} x {} elements; a part is "
      "given as (first row, rows, first column, columns)",
      o.about.label, r.rows, r.columns, r.row, r.column, o.how().rows.size(), o.how().columns.size()));
}
void require_no_halo(const shared_object& o, const char* what) {
  if (o.how().halo == 0) return;
  throw usage_error(errc::bad_argument,
                    fmt::format("{}: {} needs rows that follow each other in memory, but there is room for a halo "
                                "between them; take row(i) of owner_computes, or make it without with_halo",
                                o.about.label, what));
}

void throw_outside_rows(const shared_object& o, std::uint64_t first, std::uint64_t count) {
  const bool vector = o.how().columns.size() == 1;
  throw std::out_of_range(fmt::format("{}: {} {} from {} on reach outside of its {} {}", o.about.label, count,
                                      vector ? "elements" : "rows", first, o.how().rows.size(),
                                      vector ? "elements" : "rows"));
}

}  // namespace orrery::detail
