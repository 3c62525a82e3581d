// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/detail/replica.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/detail/word_copy.hpp>
#include <orrery/shared/read_cache.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace orrery::detail {

namespace {

using bytes = std::vector<std::byte>;

constexpr std::uint64_t replica_piece_bytes = 256 << 10;
constexpr std::size_t replica_window = 8;  // pieces that are on their way to one replica
constexpr std::align_val_t cache_line{64};

std::byte* memory_for(const shared_object& o) {
  const std::uint64_t size = std::max<std::uint64_t>(1, o.how().elements()) * o.element_bytes();
  try {
    return static_cast<std::byte*>(::operator new(size, cache_line));
  } catch (const std::bad_alloc&) {
    throw_no_memory(o, size, "replica", "read it by read_cache, in parts");
  }
}

std::uint64_t piece_elements(const shared_object& o) {
  return std::max<std::uint64_t>(1, replica_piece_bytes / o.element_bytes());
}

// --- at the owner --------------------------------------------------------------------------------

const shared_object& owned_here(const shared_id& id, std::uint32_t part) {
  const shared_object& o = find_object(id);
  if (part >= o.how().parts() || part != o.own_part)
    throw bad_message(errc::message_corrupt, o.about.label + ": a request for elements that are not owned here");
  return o;
}
std::byte* element_here(const shared_object& o, std::uint64_t local, std::size_t value_bytes) {
  if (local >= o.how().elements_of(o.own_part) || value_bytes != o.element_bytes())
    throw bad_message(errc::message_corrupt, o.about.label + ": a write to an element that is not owned here");
  return o.base[o.own_part] + local * o.element_bytes();
}

/// The turn of the part: the reader is told of all updates that come later.
std::uint64_t add_reader(shared_id id, std::uint32_t part, std::uint32_t pe, std::uint64_t number) {
  (void)owned_here(id, part);
  auto& a = shared_directory::of_this_pe().replicas.audiences[id];
  a.readers.push_back({pe, number});
  return a.turn;
}
void remove_reader(shared_id id, std::uint32_t pe, std::uint64_t number) {
  auto& all = shared_directory::of_this_pe().replicas.audiences;
  const auto at = all.find(id);
  if (at != all.end()) std::erase(at->second.readers, replica_table::reader{pe, number});
}

struct piece {
  std::uint64_t turn = 0;
  bytes elements;
  template <class A>
  void serialize(A& a) {
    a & turn & elements;
  }
};
piece read_piece(shared_id id, std::uint32_t part, std::uint64_t first, std::uint64_t count) {
  const shared_object& o = owned_here(id, part);
  const std::uint64_t size = o.how().elements_of(part);
  if (first > size || count > size - first || count > piece_elements(o))
    throw bad_message(errc::message_corrupt, o.about.label + ": a request for elements that are not owned here");
  piece p;
  p.turn = shared_directory::of_this_pe().replicas.audiences[id].turn;
  p.elements.resize(count * o.element_bytes());
  for (std::uint64_t i = 0; i < count; ++i)
    load_here(o, o.base[part] + (first + i) * o.element_bytes(), p.elements.data() + i * o.element_bytes());
  return p;
}

void take_update(shared_id id, std::uint64_t number, const replica_update& u) {
  if (replica* r = shared_directory::of_this_pe().replicas.find(id, number); r != nullptr) r->update(u);
}

/// An element was written here: tells all readers, and returns when they know. Parks; what comes
/// before the first message is one step.
void spread(const shared_object& o, std::uint64_t local) {
  auto& all = shared_directory::of_this_pe().replicas.audiences;
  const auto at = all.find(o.about.id);
  if (at == all.end() || at->second.readers.empty()) return;
  const shared_id id = o.about.id;
  replica_update u{o.own_part, local, ++at->second.turn, bytes(o.element_bytes())};
  load_here(o, o.base[o.own_part] + local * o.element_bytes(), u.value.data());
  const std::vector<replica_table::reader> readers = at->second.readers;
  std::vector<std::pair<replica_table::reader, future<void>>> told;
  const auto lost = [&](const replica_table::reader& r) { remove_reader(id, r.pe, r.number); };
  for (const replica_table::reader& r : readers) {
    try {
      told.emplace_back(r, start_call<&take_update>(orrery::pe(r.pe), id, r.number, u));
    } catch (const node_lost&) {
      lost(r);
    }
  }
  for (auto& [r, f] : told) {
    try {
      f.get();
    } catch (const node_lost&) {
      lost(r);
    }
  }
}

void write_to_replicas(shared_id id, std::uint32_t part, std::uint64_t local, std::span<const std::byte> value) {
  const shared_object& o = owned_here(id, part);
  std::byte* const at = element_here(o, local, value.size());
  scope_guard::require_no_view(o, "a scope of read_mostly");
  store_here(o, at, value.data());
  spread(o, local);
}
bytes change_with_replicas(shared_id id, std::uint32_t part, std::uint64_t local, element_change what, scalar type,
                           std::span<const std::byte> operand) {
  const shared_object& o = owned_here(id, part);
  std::byte* const at = element_here(o, local, operand.size());
  scope_guard::require_no_view(o, "a scope of read_mostly");
  bytes old(o.element_bytes());
  bytes now(o.element_bytes());
  change_here(o, at, what, type, operand.data(), old.data());
  load_here(o, at, now.data());
  order_change(at, true);
  if (now != old) spread(o, local);
  return old;
}
std::pair<bool, bytes> compare_exchange_with_replicas(shared_id id, std::uint32_t part, std::uint64_t local,
                                                      std::span<const std::byte> expected,
                                                      std::span<const std::byte> desired) {
  const shared_object& o = owned_here(id, part);
  std::byte* const at = element_here(o, local, expected.size());
  scope_guard::require_no_view(o, "a scope of read_mostly");
  bytes old(expected.begin(), expected.end());
  const bool done = desired.size() == old.size() && compare_exchange_here(o, at, old.data(), desired.data());
  order_change(at, done);
  if (done) spread(o, local);
  return {done, std::move(old)};
}

}  // namespace

// --- at the reader -------------------------------------------------------------------------------

void replica::free_memory::operator()(std::byte* p) const noexcept { ::operator delete(p, cache_line); }

replica::replica(std::shared_ptr<const shared_object> o, std::uint64_t number)
    : object_(std::move(o)), number_(number), memory_(memory_for(*object_)), parts_(object_->how().parts()) {}

void replica::store(std::uint32_t part, std::uint64_t local, const std::byte* value) noexcept {
  const layout& l = object_->how();
  copy_in(memory_.get() + l.rows.index(l.row_part(part), local) * object_->element_bytes(), value,
          object_->element_bytes());
}

void replica::fetch() {
  const layout& l = object_->how();
  const std::uint64_t step = piece_elements(*object_);
  struct asked {
    std::uint32_t part;
    std::uint64_t first;
    future<piece> answer;
  };
  std::deque<asked> on_its_way;
  const auto take = [&] {
    const piece p = on_its_way.front().answer.get();
    const std::uint32_t part = on_its_way.front().part;
    const std::uint64_t first = on_its_way.front().first;
    on_its_way.pop_front();
    if (p.elements.size() != std::min(step, l.elements_of(part) - first) * object_->element_bytes())
      throw bad_message(errc::message_corrupt,
                        object_->about.label + ": another number of elements than was asked for");
    parts_[part].fetched[first / step] = p.turn;
    for (std::uint64_t at = 0, i = first; at < p.elements.size(); at += object_->element_bytes(), ++i)
      store(part, i, p.elements.data() + at);
  };
  for (std::uint32_t p = 0; p < l.parts(); ++p) {
    const std::uint64_t size = l.elements_of(p);
    if (size == 0) continue;
    const placement owner = orrery::pe(l.pes[p]);
    parts_[p].fetched.resize((size + step - 1) / step);
    parts_[p].through = call<&add_reader>(owner, object_->about.id, p, here_pe().id(), number_);
    for (std::uint64_t first = 0; first < size; first += step) {
      if (on_its_way.size() == replica_window) take();
      on_its_way.push_back(
          {p, first, start_call<&read_piece>(owner, object_->about.id, p, first, std::min(step, size - first))});
    }
  }
  while (!on_its_way.empty()) take();
}

void replica::await() {
  if (state_ == state::fetching) {
    auto mine = future_access<void>::make_local(here_pe());
    waiting_.push_back(future_access<void>::make_hold(mine));
    future_access<void>::wrap(std::move(mine)).get();
  }
  if (state_ == state::empty) {
    state_ = state::fetching;
    try {
      fetch();
      for (const replica_update& u : early_) put(u);
      state_ = state::complete;
    } catch (...) {
      failure_ = std::current_exception();
      state_ = state::failed;
    }
    early_ = {};
    for (auto& w : std::exchange(waiting_, {})) resolve<void>(here_pe(), w.release(), [] {});
  }
  if (state_ == state::failed) std::rethrow_exception(failure_);
}

void replica::update(replica_update u) {
  const layout& l = object_->how();
  if (u.part >= l.parts() || u.local >= l.elements_of(u.part) || u.value.size() != object_->element_bytes())
    throw bad_message(errc::message_corrupt, object_->about.label + ": an update that makes no sense");
  if (state_ == state::complete) {
    put(u);
  } else {
    early_.push_back(std::move(u));
  }
}

void replica::put(const replica_update& u) {
  part_state& s = parts_[u.part];
  const bool newer_is_here =
      std::ranges::any_of(s.beyond, [&](const auto& b) { return b.first > u.turn && b.second == u.local; });
  if (!newer_is_here && u.turn > s.fetched[u.local / piece_elements(*object_)]) store(u.part, u.local, u.value.data());
  s.beyond.emplace(u.turn, u.local);
  while (!s.beyond.empty() && s.beyond.begin()->first == s.through + 1) {
    ++s.through;
    s.beyond.erase(s.beyond.begin());
  }
}

std::shared_ptr<replica> replica_table::join(std::shared_ptr<const shared_object> o) {
  const auto at = replicas_.find(o->about.id);
  if (at == replicas_.end()) {
    auto made = std::make_shared<replica>(o, last_number_ + 1);  // there may be no memory for it
    ++last_number_;
    ++made->scopes;
    return replicas_.emplace(o->about.id, std::move(made)).first->second;
  }
  ++at->second->scopes;
  return at->second;
}

void replica_table::leave(const std::shared_ptr<replica>& r) noexcept {
  if (--r->scopes != 0) return;
  const shared_id id = r->of().about.id;
  if (find(id, r->number()) != nullptr) replicas_.erase(id);
  const layout& l = r->of().how();
  const scheduler::pe& self = here_pe();
  for (std::uint32_t p = 0; p < l.parts() && !self.refusing(); ++p) {
    if (l.elements_of(p) == 0 || !here_pe().owner().reachable(l.pes[p])) continue;
    try {
      post_call<&remove_reader>(orrery::pe(l.pes[p]), id, self.id(), r->number());
    } catch (const error&) {  // the world ends, or the owner's node has
    }
  }
}

replica* replica_table::find(const shared_id& id, std::uint64_t number) const noexcept {
  const auto at = replicas_.find(id);
  return at != replicas_.end() && at->second->number() == number ? at->second.get() : nullptr;
}

// --- writers -------------------------------------------------------------------------------------

namespace {

std::span<const std::byte> as_bytes(const void* value, const shared_object& o) {
  return {static_cast<const std::byte*>(value), o.element_bytes()};
}

layout::place place_of(const shared_object& o, std::uint64_t row) {
  if (row >= o.rows) throw_outside(o, row, 0);
  return o.how().find(row, 0);
}
placement owner_of(const shared_object& o, const layout::place& p) { return orrery::pe(o.how().pes[p.part]); }

}  // namespace

void write_replicated(const shared_object& o, std::uint64_t row, const void* value) {
  const layout::place p = place_of(o, row);
  call<&write_to_replicas>(owner_of(o, p), o.about.id, p.part, p.local, as_bytes(value, o));
}

void change_replicated(const shared_object& o, std::uint64_t row, element_change what, scalar type, const void* operand,
                       void* old) {
  const layout::place p = place_of(o, row);
  const bytes before =
      call<&change_with_replicas>(owner_of(o, p), o.about.id, p.part, p.local, what, type, as_bytes(operand, o));
  std::memcpy(old, before.data(), o.element_bytes());
}

bool compare_exchange_replicated(const shared_object& o, std::uint64_t row, void* expected, const void* desired) {
  const layout::place p = place_of(o, row);
  const auto [done, old] = call<&compare_exchange_with_replicas>(owner_of(o, p), o.about.id, p.part, p.local,
                                                                 as_bytes(expected, o), as_bytes(desired, o));
  if (!done) std::memcpy(expected, old.data(), o.element_bytes());
  return done;
}

}  // namespace orrery::detail
