// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_part.hpp>

#include <string>

// The table of a part: how it begins and ends, and what it says of itself.
namespace orrery::detail {

template <class Index>
index_part<Index>::index_part(pe& self, description s, settings o, const element_class_facts& elements)
    : array_core(self, std::move(s)),
      elements_(elements),
      settings_(std::move(o)),
      homes_(about().pes.count(), settings_.homes) {
  element_class = &elements.process_class;
  array_directory::of(self).note_elements(elements.process_class.number, elements.cell_of);
  sweep_at_ = settings_.cached;
  settings_.always_serialize |= scheduler::through_wire;
}

template <class Index>
index_part<Index>::~index_part() {
  for (scheduler::message* m = take_kept(nullptr); m != nullptr;) discard(self_, std::exchange(m, m->next));
  for (auto& [index, e] : table_)
    if (e.is_remote()) drop_location(e.there());
}

template <class Index>
array_footprint index_part<Index>::footprint() const noexcept {
  array_footprint f{cells().size(), table_.size() - cells().size(), told_.size(), sizeof(*this)};
  f.bytes += table_.bucket_count() * (sizeof(typename decltype(table_)::value_type) + 1);
  f.bytes += told_.bucket_count() * (sizeof(typename decltype(told_)::value_type) + 1);
  f.bytes += lookaside_.bytes();
  f.bytes += cells().capacity() * sizeof(cell_base*) + f.elements * elements_.offset;
  f.bytes += f.elsewhere * sizeof(remote_location) + deleted_.size() * sizeof(typename decltype(deleted_)::value_type);
  return f;
}

template <class Index>
std::string index_part<Index>::text_of(const Index& i) const {
  return about().name + "[" + index_text(i) + "]";
}

template <class Index>
std::vector<array_core::early_wait> index_part<Index>::early_waits(std::size_t most) const {
  std::vector<array_core::early_wait> waits;
  for (const auto& [i, e] : table_)
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
  if (from.sent == nullptr) from.sent = std::make_unique<typename cell_type::traffic>();
  (*from.sent)[to] += sent;
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
