// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/directory.hpp>

#include <orrery/array/detail/core.hpp>
#include <orrery/array/detail/order.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/prefetch.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <deque>
#include <exception>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

constexpr std::uint32_t id_bits_of_pe = 14;  // arrays that one PE can have made

}  // namespace

struct array_directory::tables {
  std::unordered_map<std::uint32_t, wire::unique_ptr<array_core>> parts;
  std::uint32_t ids = 0;
  // used again as late as can be: messages to those that have ended may be on their way
  std::deque<std::uint32_t> free_ids;
  std::uint32_t added = 0;
  std::unordered_map<std::uint32_t, incomplete_message> incomplete;
  std::vector<find_cell> element_classes;  // by class number
  std::vector<std::pair<std::uint32_t, std::string>> gone;  // the latest that were destroyed
  wire::unique_ptr<outbox> own_streams;  // of processes that are no elements
  std::optional<std::uint32_t> maker;
};

array_directory::array_directory(pe& self) : self_(self), tables_(wire::make_unique<tables>()), waits_(self) {
  self.layers().watchers().add(*this);
}

array_directory::~array_directory() {
  self_.layers().watchers().remove(*this);
  tables_->parts.clear();
}

std::uint32_t maker_of(pe& self, std::uint32_t array) noexcept {
  const transport::world* const world = self.owner().world();
  const std::uint32_t maker = array >> id_bits_of_pe;
  return world != nullptr ? world->pe_of_alias(maker) : maker;
}

std::uint32_t array_directory::maker() {
  if (tables_->maker) return *tables_->maker;
  constexpr std::uint32_t makers = 1U << (32 - id_bits_of_pe);
  transport::world* const world = self_.owner().world();
  const std::uint32_t own = world != nullptr ? world->take_alias(self_.id()) : self_.id();
  if (own >= makers)
    throw world_error(errc::world_too_large, fmt::format("arrays can be made on the first {} PEs only", makers));
  tables_->maker = own;
  return own;
}

std::uint32_t array_directory::new_id() {
  constexpr std::uint32_t most = std::uint32_t{1} << id_bits_of_pe;
  std::uint32_t n = 0;
  if (tables_->ids + 1 < most) {
    n = ++tables_->ids;
  } else if (!tables_->free_ids.empty()) {
    n = tables_->free_ids.front();
    tables_->free_ids.pop_front();
  } else {
    throw world_error(errc::world_too_large, fmt::format("{} arrays that were made on PE {}", most - 1, self_.id()));
  }
  return maker() << id_bits_of_pe | n;
}

void array_directory::add(std::uint32_t id, wire::unique_ptr<array_core> part) {
  array_core* p = part.get();
  p->incarnation = ++tables_->added;
  tables_->parts[id] = std::move(part);
  cache_[id % cache_size] = {id, p};
  // The PE that made the array may not have heard yet of a loss that this one knows of, and hears
  // of once.
  if (self_.owner().gone_nodes() != 0 && p->find_losses()) p->pes_lost();
}

void array_directory::remove(std::uint32_t id) noexcept {
  if (cache_[id % cache_size].id == id) cache_[id % cache_size] = {};
  const auto it = tables_->parts.find(id);
  if (it == tables_->parts.end()) return;
  const auto ended = std::move(it->second);  // while it is not found any more
  tables_->parts.erase(it);
  if (tables_->own_streams != nullptr) tables_->own_streams->forget(id);
  note_gone(id, ended->about().name);
  waits_.note_end(id, ended->about().pes);
  if (tables_->maker == id >> id_bits_of_pe) tables_->free_ids.push_back(id & ((1U << id_bits_of_pe) - 1));
}

void array_directory::note_gone(std::uint32_t id, const std::string& name) noexcept try {
  constexpr std::size_t most = 16;
  if (tables_->gone.size() == most) tables_->gone.erase(tables_->gone.begin());
  tables_->gone.emplace_back(id, name);
} catch (const std::bad_alloc&) {  // then an error says the number
}

std::string_view array_directory::name_of_gone(std::uint32_t id) const noexcept {
  const auto it =
      std::ranges::find(tables_->gone.rbegin(), tables_->gone.rend(), id, [](const auto& g) { return g.first; });
  return it != tables_->gone.rend() ? std::string_view(it->second) : std::string_view();
}

array_core* array_directory::find_slow(std::uint32_t id) noexcept {
  const auto it = tables_->parts.find(id);
  if (it == tables_->parts.end()) return nullptr;
  cache_[id % cache_size] = {id, it->second.get()};
  return it->second.get();
}

void array_directory::fetch(int step) const noexcept {
  if (step == 0) {
    scheduler::fetch_lines(this, sizeof *this / 64);
    return;
  }
  int left = fetched_parts;
  for (const cached& c : cache_) {
    if (c.part == nullptr) continue;
    c.part->fetch(step - 1);
    if (--left == 0) return;
  }
}

cell_base* array_directory::cell_of(const slot& s) const noexcept {
  const bool constructing = s.apart && !s.dying;
  if ((!s.has_object && !constructing) || s.class_number >= tables_->element_classes.size()) return nullptr;
  const find_cell f = tables_->element_classes[s.class_number];
  return f != nullptr ? &f(s.where_apart()) : nullptr;
}

const array_core* array_directory::part_around(const slot& s) const noexcept {
  const cell_base* c = cell_of(s);
  return c != nullptr ? c->part : nullptr;
}

std::uint64_t array_directory::begin_work(const slot& by) noexcept {
  const cell_base* c = cell_of(by);
  if (c == nullptr) return 0;
  c->part->begins();
  return std::uint64_t{c->part->incarnation} << 32 | c->part->id();
}
std::string array_directory::explain_waits() const {
  std::string text;
  for (const auto& [id, part] : tables_->parts) text += part->explain_waits();
  return text;
}
std::string array_directory::name_of(const slot& s) const {
  const cell_base* c = cell_of(s);
  return c != nullptr ? c->part->text_of(*c) : "";
}
void array_directory::end_work(std::uint64_t number) noexcept {
  array_core* part = find(static_cast<std::uint32_t>(number));
  if (part != nullptr && part->incarnation == number >> 32) part->over();
}

array_core* array_directory::part_of_process(const slot& s) const noexcept {
  for (const auto& [id, part] : tables_->parts)
    for (const cell_base* c : part->cells())
      if (c->process == &s) return part.get();
  return nullptr;
}

void array_directory::note_elements(std::uint32_t class_number, find_cell f) {
  if (tables_->element_classes.size() <= class_number) tables_->element_classes.resize(class_number + 1);
  tables_->element_classes[class_number] = f;
}

void array_directory::make(pe& self) {
  self.layers().of(scheduler::upper_layer::array) = wire::make_unique<array_directory>(self);
}

array_directory::incomplete_message& array_directory::incomplete_from(std::uint32_t pe) {
  return tables_->incomplete[pe];
}

outbox& array_directory::sender() {
  if (const scheduler::activation* a = self_.active(); a != nullptr)
    if (cell_base* c = cell_of(*a->process); c != nullptr) return c->order_of().out;
  if (tables_->own_streams == nullptr) tables_->own_streams = wire::make_unique<outbox>();
  return *tables_->own_streams;
}

// Arrays that were on the lost PEs. Calls that wait then must not be told again each time that
// anything else about other nodes changes.
void array_directory::pes_lost(pe&) noexcept {
  // there may be many thousand PEs
  if (self_.owner().gone_nodes() == 0 && self_.simulated() != nullptr) return;
  waits_.fail_guests();
  waits_.fail_for_ended();
  std::erase_if(tables_->incomplete, [&](const auto& p) { return !self_.owner().reachable(p.first); });
  std::vector<array_core*> hit;
  for (const auto& [id, part] : tables_->parts)
    if (part->find_losses()) hit.push_back(part.get());
  if (hit.empty()) return;
  // Fails the calls that wait for an answer: the message may have been there, or on its way through
  // there.
  for (const array_core* part : hit)
    waits_.fail_of(part->id(),
                   std::make_exception_ptr(node_lost(fmt::format("a call to an element of {}", part->about().name))));
  waits_.fail_of(0, std::make_exception_ptr(node_lost("a reduction of an array")));
  for (array_core* part : hit) part->pes_lost();
}

void array_directory::cancel_waits(pe& self) noexcept {
  waits_.fail_all(self.shutdown().ending("a call to an element of an array"));
}

}  // namespace orrery::detail
