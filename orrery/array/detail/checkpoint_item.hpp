// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array.hpp>
#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/checkpoint_file.hpp>
#include <orrery/process/detail/references.hpp>
#include <orrery/process/group.hpp>

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// A checkpoint can hold arrays, groups and single processes. Each is a `saved<Item>`:
//   describe(item)             what the header is to say
//   save_here(item, add)       add(key, state) for all of it that lives on this PE; a key is an
//                              index or a rank
//   make(how, from)            a new one, with the same members, whose states are still to be read
//   rename(references, from, item)  who is who
//   pe_of(item, key)           where a state is to be read
//   adopt(item, key, reader)   reads it there
//   text(item, key)            whose state that is, for errors
namespace orrery::detail {

/// name<argument, ...>
[[nodiscard]] std::string type_text(std::string_view name, std::initializer_list<std::string_view> arguments);
/// The activity so far of the arrays among them.
[[nodiscard]] std::vector<array_core::activity> activity_of(const std::vector<checkpoint_item>& items);
/// Throws usage_error if they have done anything since, or do.
void require_rest_since(const std::vector<array_core::activity>& before, const std::vector<checkpoint_item>& items);
[[noreturn]] void throw_not_quiescent(const std::string& whose);
[[noreturn]] void throw_derived(const std::string& array, std::string_view base);
/// Which member or process an error is about.
struct saved_process {
  static constexpr std::uint32_t alone = ~0U;
  address at;
  std::uint32_t rank = alone;
  [[nodiscard]] std::string text(std::string_view class_name) const;
};
/// The object of a process of this PE. Throws process_gone, usage_error (it is of another class).
[[nodiscard]] void* object_of_class(const saved_process& p, const scheduler::class_info& cls);
/// The same, for a process that has nothing to do. Throws also usage_error.
[[nodiscard]] void* idle_object(const saved_process& p, const scheduler::class_info& cls);

template <class T>
inline constexpr bool can_be_saved = [] {
  static_assert(
      std::is_class_v<T> && can_be_packed<T>,
      "orrery: checkpoint, restore: the class of elements, members and processes needs a default constructor and `template "
      "<class A> void serialize(A& a)`");
  return true;
}();

template <class Item>
struct saved {
  static_assert(never<Item>, "orrery: checkpoint, restore: these are for arrays, groups and remote pointers");
};

template <class T, class Index>
struct saved<array<T, Index>> {
  static_assert(can_be_saved<T>);
  using item = array<T, Index>;
  using key = Index;
  using options = array_options<Index>;
  static options default_options() { return {}; }
  static std::string type() { return type_text("array", {wire::canonical_name<T>(), wire::canonical_name<Index>()}); }

  static checkpoint_item describe(const item& a) {
    const auto& part = part_of<T, Index>(here_pe(), a.id());
    if (part.class_of_elements().number != array_part<T, Index>::class_number())
      throw_derived(part.about().name, wire::canonical_name<T>());
    return {type(), part.about().name, a.id(), {}};
  }
  template <class F>
  static void save_here(const item& a, F add) {
    pe& self = here_pe();
    const array_core* here = array_directory::of(self).find(a.id());
    if (here == nullptr) return;  // the array is not on this PE
    std::vector<Index> all;  // the cells may change while a file is being written
    for (const cell_base* c : here->cells()) all.push_back(static_cast<const cell<T, Index>*>(c)->index);
    for (const Index& i : all) {
      auto& part = part_of<T, Index>(self, a.id());
      auto* c = part.find_local(i);
      if (c == nullptr || c->process->state != scheduler::process_state::idle || c->process->depth != 0)
        throw_not_quiescent(part.text_of(i));
      add(i, *c->object());
    }
  }
  static item make(options o, const checkpoint_item& from) {
    if (o.name == options{}.name) o.name = from.name;
    return create_array<T, Index>(o);
  }
  static void add_pes(const item&, std::set<std::uint32_t>&) {}  // it is on those of its program
  static void rename(references& r, const checkpoint_item& from, const item& a) { r.add_array(from.id, a.id()); }
  static std::uint32_t pe_of(const item& a, const Index& i) { return part_of<T, Index>(here_pe(), a.id()).home_of(i); }
  static void adopt(const item& a, const Index& i, reader& state) {
    auto& part = part_of<T, Index>(here_pe(), a.id());
    auto& c = part.create_entry(i, part.admit(i));
    part.construct_inline(c);
    read_into(state, *c.object());
  }
  static std::string text(const item& a, const Index& i) { return part_of<T, Index>(here_pe(), a.id()).text_of(i); }
};

template <class T>
struct saved<group<T>> {
  static_assert(can_be_saved<T>);
  using item = group<T>;
  using key = std::uint32_t;
  using options = placements;
  static options default_options() { return everywhere(); }
  static std::string type() { return type_text("group", {wire::canonical_name<T>()}); }

  static checkpoint_item describe(const item& g) { return {type(), {}, 0, group_access::handle(g).data().members}; }
  template <class F>
  static void save_here(const item& g, F add) {
    const std::uint32_t here = here_pe().id();
    for (std::uint32_t rank = 0; rank < g.size(); ++rank)
      if (const address at = g[rank].address(); at.pe == here)
        add(rank, *static_cast<const T*>(idle_object({at, rank}, class_of<T>::info())));
  }
  static item make(const options& where, const checkpoint_item& from) {
    return spawn_group<T>(where, from.processes.size());
  }
  static void add_pes(const item& g, std::set<std::uint32_t>& pes) {
    for (std::uint32_t rank = 0; rank < g.size(); ++rank) pes.insert(g[rank].address().pe);
  }
  static void rename(references& r, const checkpoint_item& from, const item& g) {
    r.add_group(from.processes, group_access::handle(g));
  }
  static std::uint32_t pe_of(const item& g, std::uint32_t rank) { return g.at(rank).address().pe; }
  static void adopt(const item& g, std::uint32_t rank, reader& state) {
    read_into(state, *static_cast<T*>(object_of_class({g.at(rank).address(), rank}, class_of<T>::info())));
  }
  static std::string text(const item& g, std::uint32_t rank) {
    return saved_process{g.at(rank).address(), rank}.text(wire::canonical_name<T>());
  }
};

template <class T>
struct saved<remote<T>> {
  static_assert(can_be_saved<T>);
  using item = remote<T>;
  using key = std::uint32_t;
  using options = placement;
  static options default_options() { return anywhere(); }
  static std::string type() { return type_text("remote", {wire::canonical_name<T>()}); }

  static checkpoint_item describe(const item& p) {
    if (!p) throw usage_error(errc::null_pointer, "checkpoint: a " + type());
    return {type(), {}, 0, {p.address()}};
  }
  template <class F>
  static void save_here(const item& p, F add) {
    if (p.address().pe == here_pe().id())
      add(key{0}, *static_cast<const T*>(idle_object({p.address()}, class_of<T>::info())));
  }
  static item make(const options& where, const checkpoint_item&) { return spawn<T>(where); }
  static void add_pes(const item& p, std::set<std::uint32_t>& pes) { pes.insert(p.address().pe); }
  static void rename(references& r, const checkpoint_item& from, const item& p) {
    r.add_process(from.processes.at(0), p.address());
  }
  static std::uint32_t pe_of(const item& p, key) { return p.address().pe; }
  static void adopt(const item& p, key, reader& state) {
    read_into(state, *static_cast<T*>(object_of_class({p.address()}, class_of<T>::info())));
  }
  static std::string text(const item& p, key) { return saved_process{p.address()}.text(wire::canonical_name<T>()); }
};

}  // namespace orrery::detail
