// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_part.hpp>
#include <orrery/array/detail/index_tables.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <string>

// The table of a part: how it begins and ends, and what it says of itself.
namespace orrery::detail {

template <class Index>
index_part<Index>::index_part(pe& self, description s, settings o, const element_class_facts& elements)
    : array_core(self, std::move(s)),
      elements_(elements),
      settings_(std::move(o)),
      homes_(about().pes.count(), settings_.homes),
      tables_(wire::make_unique<index_tables<Index>>()) {
  element_class = &elements.process_class;
  array_directory::of(self).note_elements(elements.process_class.number, elements.cell_of);
  sweep_at_ = settings_.cached;
  settings_.always_serialize |= scheduler::through_wire;
}

template <class Index>
index_part<Index>::~index_part() {
  for (scheduler::message* m = take_kept(nullptr); m != nullptr;) discard(self_, std::exchange(m, m->next));
  for (auto& [index, e] : tables_->places)
    if (e.is_remote()) drop_location(e.there());
}

template <class Index>
index_cell<Index>* index_part<Index>::find_local(const Index& i) const noexcept {
  const auto it = tables_->places.find(i);
  return it == tables_->places.end() || it->second.is_remote() ? nullptr : it->second.here();
}

template <class Index>
scheduler::slot* index_part<Index>::find_process_in_table(const Index& i) const noexcept {
  const cell_type* c = find_local(i);
  if (c == nullptr) return nullptr;
  lookaside_.note(i, *c->process, cells().size());
  return c->process;
}

template <class Index>
scheduler::slot* index_part<Index>::find_or_ending(const Index& i) const noexcept {
  if (const cell_type* c = find_local(i)) return c->process;
  const auto it = std::ranges::find_if(tables_->endings, [&](const auto& e) { return e.first == i; });
  return it != tables_->endings.end() ? it->second : nullptr;
}

template <class Index>
void index_part<Index>::note_ending(const Index& i, scheduler::slot& s) {
  tables_->endings.emplace_back(i, &s);
  begin_ending();
}

template <class Index>
void index_part<Index>::note_ended(const scheduler::slot& s) noexcept {
  if (std::erase_if(tables_->endings, [&](const auto& e) { return e.second == &s; }) != 0) end_ending();
}

template <class Index>
bool index_part<Index>::is_ending(const scheduler::slot& s) const noexcept {
  return std::ranges::find(tables_->endings, &s, [](const auto& e) { return e.second; }) != tables_->endings.end();
}

template <class Index>
remote_location* index_part<Index>::find_location(const Index& i) const noexcept {
  const auto it = tables_->places.find(i);
  return it != tables_->places.end() && it->second.is_remote() ? it->second.there() : nullptr;
}

template <class Index>
std::optional<std::uint32_t> index_part<Index>::place_of_end(const Index& i) const noexcept {
  const remote_location* a = find_location(i);
  if (a == nullptr || a->state != remote_location::what::deleted || a->pe == self_.id()) return {};
  return a->pe;
}

template <class Index>
bool index_part<Index>::has_element(const Index& i) const noexcept {
  const auto it = tables_->places.find(i);
  return it != tables_->places.end() &&
         (!it->second.is_remote() || it->second.there()->state == remote_location::what::at);
}

template <class Index>
std::uint32_t index_part<Index>::waiting_at(const Index& i) const noexcept {
  const remote_location* a = find_location(i);
  return a != nullptr && !a->is_home ? a->queued : 0;
}

template <class Index>
home_queue* index_part<Index>::find_home_queue(const Index& i) const noexcept {
  if (tables_->home_queues.empty()) return nullptr;
  const auto it = tables_->home_queues.find(i);
  return it != tables_->home_queues.end() ? it->second.get() : nullptr;
}

template <class Index>
bool index_part<Index>::keeps_at_home(const Index& i) const noexcept {
  return find_home_queue(i) != nullptr;
}

template <class Index>
std::size_t index_part<Index>::table_size() const noexcept {
  return tables_->places.size();
}

template <class Index>
void index_part<Index>::reserve(std::size_t n) {
  tables_->places.reserve(tables_->places.size() + n);
  reserve_cells(n);
}

template <class Index>
void index_part<Index>::take_out(const cell_type& c) {
  lookaside_.forget(c.index, *c.process);
  tables_->places.erase(c.index);
}

template <class Index>
array_footprint index_part<Index>::footprint() const noexcept {
  const auto& places = tables_->places;
  const auto& told = tables_->told;
  array_footprint f{cells().size(), places.size() - cells().size(), told.size(), sizeof(*this) + sizeof(*tables_)};
  const auto bytes_of = []<class M>(const M& m) { return m.bucket_count() * (sizeof(typename M::value_type) + 1); };
  f.bytes += bytes_of(places) + bytes_of(told);
  f.bytes += lookaside_.bytes();
  f.bytes += cells().capacity() * sizeof(cell_base*) + f.elements * elements_.offset;
  f.bytes += f.elsewhere * sizeof(remote_location) +
             tables_->deleted.size() * sizeof(typename decltype(tables_->deleted)::value_type);
  return f;
}

template <class Index>
std::string index_part<Index>::text_of(const Index& i) const {
  return about().name + "[" + index_text(i) + "]";
}

template <class Index>
std::vector<array_core::early_wait> index_part<Index>::early_waits(std::size_t most) const {
  std::vector<array_core::early_wait> waits;
  for (const auto& [i, e] : tables_->places)
    if (waits.size() < most && e.is_remote() && e.there()->is_home && e.there()->queued != 0)
      waits.push_back({text_of(i), e.there()->queued});
  return waits;
}

template <class Index>
std::exception_ptr index_part<Index>::gone(const Index& i) const {
  return make_error(errc::process_gone, verbatim,
                    text_of(i) + ": the element was destroyed, or never created; insert one before the call");
}

template <class Index>
std::exception_ptr index_part<Index>::lost(const Index& i, std::uint32_t pe) const {
  return std::make_exception_ptr(node_lost(text_of(i) + ": it was last seen on PE " + std::to_string(pe)));
}

template <class Index>
std::vector<std::uint32_t> index_part<Index>::other_homes() const {
  std::vector<std::uint32_t> all = homes_.others(rank());
  for (std::uint32_t& h : all) h = about().pes.at(h);
  return all;
}

template <class Index>
void index_part<Index>::note_sent(const Index& to, std::uint64_t sent) {
  const scheduler::activation* a = self_.active();
  if (a == nullptr || a->process->class_number != elements_.process_class.number || !a->process->has_object) return;
  auto& from = static_cast<cell_type&>(elements_.cell_of(a->process->where_apart()));
  if (from.part != this) return;
  if (from.sent == nullptr) from.sent.reset(new index_traffic<Index>);
  (*from.sent)[to] += sent;
}

template <class Index>
typename index_cell<Index>::traffic_list index_part<Index>::traffic_of(const cell_type& from) {
  if (from.sent == nullptr) return {};
  return {from.sent->begin(), from.sent->end()};
}

template <class Index>
void index_part<Index>::drop_location(remote_location* a) noexcept {
  if (a->in != nullptr)
    for (scheduler::message* m = a->in->take_held(nullptr); m != nullptr;) discard(self_, std::exchange(m, m->next));
  for (scheduler::message* m = a->take_all(); m != nullptr;) discard(self_, std::exchange(m, m->next));
  if (a->held != nullptr) {
    discard(self_, a->held->creation);
    for (const auto& m : a->held->come) discard(self_, m.what);
  }
  delete a;
}

}  // namespace orrery::detail
