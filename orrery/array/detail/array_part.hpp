// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/index_part.hpp>
#include <orrery/array/detail/inline_construction.hpp>
#include <orrery/process/spawn.hpp>

#include <cstring>
#include <tuple>

// The share of an array's part that depends on the class of the elements: how they are made, moved
// and destroyed. index_part.hpp has the rest.
namespace orrery::detail {

/// True if objects of T can move to another OS process.
template <class T>
inline constexpr bool can_be_packed = serializable<T> && std::is_default_constructible_v<T>;

/// Stops the compiler with a sentence if elements that migrate cannot travel: any program can run
/// on several nodes.
template <class T>
consteval void require_migratable() {
  static_assert(
      std::is_default_constructible_v<T>,
      "orrery: elements of this class migrate, also to other nodes, where each is read into a new object: give the "
      "class a public default constructor");
  if constexpr (std::is_default_constructible_v<T>) require_serializable<T>();
}

[[noreturn]] void throw_not_packed(const std::string& element, std::string_view type);
[[noreturn]] void throw_other_class(const std::string& element, std::string_view type);

template <class T, class Index>
struct packed_message;
template <class T, class Index>
struct whole_message;
template <class T, class Index>
struct migrated_message;
/// Elements of the class are told that they have migrated.
template <class T>
inline constexpr bool wants_migrated = requires(T& t) { t.migrated(); };

template <class T, class Index>
class array_part final : public index_part<Index> {
 public:
  using base = index_part<Index>;
  using cell_type = cell<T, Index>;
  using typename base::settings;
  using description = array_core::description;

  array_part(pe& self, description s, settings o) : base(self, std::move(s), std::move(o), facts) {}

  /// The same as in the base, as the cell that it is.
  [[nodiscard]] cell_type* find_local(const Index& i) const noexcept {
    return static_cast<cell_type*>(base::find_local(i));
  }
  [[nodiscard]] cell_type& create_entry(const Index& i, std::uint32_t birth) {
    return static_cast<cell_type&>(base::create_entry(i, birth));
  }
  /// Runs the constructor in the element's process. Undoes create_entry if it throws.
  template <class... A>
  void construct(cell_type& c, A&&... args);
  /// The same on the caller's stack. Messages that have waited for the element go to its mailbox
  /// first.
  template <class... A>
  void construct_inline(cell_type& c, A&&... args) {
    this->flush_early();
    const inline_construction frame(this->self_, *c.process, *this, constructor);
    construct(c, std::forward<A>(args)...);
  }
  [[nodiscard]] future<void> start_end(const Index& i) override;
  /// The class of its elements' processes.
  [[nodiscard]] static std::uint32_t class_number() noexcept { return process_class.number; }

 private:
  [[nodiscard]] index_cell<Index>* make_cell(const Index& i) override { return cell_type::make(i); }
  void free_cell(index_cell<Index>& c) noexcept override { cell_type::free(static_cast<cell_type*>(&c)); }
  void end_object(index_cell<Index>& c) override { static_cast<cell_type&>(c).object()->~T(); }
  void pack_object(index_cell<Index>& c, bytes& to) override {
    if constexpr (can_be_packed<T>)
      pack_after(to, *static_cast<cell_type&>(c).object());
    else  // leave_operation has said it, unless it is moved as an element of a base class
      throw_not_packed(this->text_of(c.index), type_name<T>());
  }
  // The elements as processes: their objects end with their cells.
  static void destroy_object(void* object) {
    cell_type& c = cell_type::of(object);
    static_cast<T*>(object)->~T();
    base::object_has_ended(c);
    cell_type::free(&c);
  }
  static void* to_object(void* object) { return object; }
  static constexpr scheduler::class_info::base process_bases[1] = {{&class_of<T>::info, &to_object}};
  /// The work that runs while an element is constructed without a message.
  inline static const array_handler constructor{type_name<T>(),
                                                "(constructor)",
                                                wire::type_key<array_part>(),
                                                &control_handler::never_run,
                                                &control_handler::never_relocate,
                                                &control_handler::never_drop,
                                                0,
                                                false,
                                                &refuse_route,
                                                nullptr};
  inline static const scheduler::class_info process_class{wire::canonical_name<T>(), &destroy_object, process_bases,
                                                          reentrant<T>::value};
  static cell_base& cell_of(void* object) { return cell_type::of(object); }
  static const scheduler::handler* migrated_handler() noexcept {
    if constexpr (wants_migrated<T>) {
      return &migrated_message<T, Index>::instance;
    } else {
      return nullptr;
    }
  }
  inline static const element_class_facts facts{process_class,
                                                &cell_of,
                                                cell_type::offset(),
                                                packed_message<T, Index>::instance,
                                                whole_message<T, Index>::instance,
                                                migrated_handler()};
};

/// The T of an element, whose class may be derived from T.
template <class T, class Index>
[[nodiscard]] T& element_in(slot& s) noexcept {
  if (s.class_number == array_part<T, Index>::class_number()) [[likely]]
    return *static_cast<T*>(s.where_apart());
  return *static_cast<T*>(scheduler::cast_object(*s.cls(), s.where_apart(), class_of<T>::info()));
}

/// The part of an array on this PE. Throws process_gone if the array was destroyed.
template <class T, class Index>
[[nodiscard]] array_part<T, Index>& part_of(pe& self, std::uint32_t id) {
  return static_cast<array_part<T, Index>&>(index_part_of<Index>(self, id));
}
/// The same; null if another program has made the array (guest.hpp).
template <class T, class Index>
[[nodiscard]] array_part<T, Index>* part_or_guest(pe& self, std::uint32_t id) {
  array_core* p = array_directory::of(self).find(id);
  if (p == nullptr && !is_guest_of(self, id)) [[unlikely]]
    throw_no_array(id);
  return static_cast<array_part<T, Index>*>(p);
}

template <class T, class Index>
template <class... A>
void array_part<T, Index>::construct(cell_type& c, A&&... args) {
  slot& s = *c.process;
  try {
    if (&this->class_of_elements() != &process_class) [[unlikely]]
      throw_other_class(this->text_of(c.index), type_name<T>());
    s.set_place(c.storage());
    constructing_cell = &c;
    if constexpr (constructible_from_kept<T, A...>) {  // else the caller has said so
      if constexpr (std::is_constructible_v<T, A&&...>) {
        new (c.storage()) T(std::forward<A>(args)...);
      } else {
        new (c.storage()) T{std::forward<A>(args)...};
      }
    }
    constructing_cell = nullptr;
    s.set_object(c.storage());
  } catch (...) {
    constructing_cell = nullptr;
    this->undo_creation(c);
    throw;
  }
}

template <class T, class Index, class... A>
struct create_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    return index_part<Index>::route_creation(self, d, e, size, instance);
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    caller from;
    Index i{};
    array_core* const core = array_directory::of(self).find(d.heap->head.slot);
    const activity_end end(core);
    try {
      orrery::reader r({d.payload, d.payload_bytes});
      const auto c = orrery::read<creation>(r);
      from = c.from;
      i = orrery::read<Index>(r);
      orrery::reader args(after_section({d.payload, d.payload_bytes}, r));
      std::tuple<A...> values{orrery::read<A>(args)...};
      auto& part = part_of<T, Index>(self, d.heap->head.slot);
      d.release();
      d.reply = from.call;  // for who looks at what runs: deadlock_detector.cpp
      d.source_pe = from.pe;
      note_class(self, *s.cls());
      auto* made = static_cast<cell<T, Index>*>(part.find_local(i));
      if (made == nullptr || made->process != &s) throw process_gone(part.text_of(i));
      std::apply([&](A&... v) { part.construct(*made, std::move(v)...); }, values);
      answer_value(self, from, {});
    } catch (...) {
      d.release();
      if (from.call == 0 && core != nullptr) {
        report_no_creation(self, static_cast<index_part<Index>*>(core)->text_of(i), std::current_exception());
      } else if (core != nullptr) {  // the home is to know that there is none before who waits does
        answer_from(self, static_cast<index_part<Index>*>(core)->home_of(i), core->id(), from, &instance,
                    std::current_exception());
      } else {
        answer_error(self, from, &instance, std::current_exception());
      }
    }
  }
  static void describe(wire::type_description& types) {
    types.describe<Index>();
    (types.describe<A>(), ...);
  }
  // Only of what the program there does not know: who lost a node with it hears of that anyhow.
  static bool refused_there(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t,
                            const scheduler::unknown_message* unknown) noexcept try {
    if (unknown == nullptr) return false;
    const activity_end end(array_directory::of(self).find(unknown->slot));
    orrery::reader r(payload);
    answer_error(self, orrery::read<creation>(r).from, &h, unknown->why);
    return true;
  } catch (...) {
    return false;
  }
  // Only of one that runs: a creation does not wait in the mailbox of a process that does.
  static scheduler::hidden_caller::name caller_of(const scheduler::message&) noexcept { return {}; }
  static void fail_caller(pe&, slot&, scheduler::delivery& d, std::exception_ptr) noexcept { d.release(); }
  static constexpr scheduler::hidden_caller hidden{&caller_of, &fail_caller};
  struct creation_handler : birth_handler {
    creation_handler() noexcept
        : birth_handler(type_name<T>(), "(constructor)", wire::type_key<create_message>(), &create_message::run,
                        &create_message::route, &create_message::describe) {
      caller = &hidden;
      lost = &refused_there;
    }
  };
  inline static const creation_handler instance;
};

// Tells an element that it has migrated, before anything else comes to it.
template <class T, class Index>
struct migrated_message {
  static void call(pe& self, T& object) {
    try {
      object.migrated();
    } catch (...) {
      self.failures().report_post(&instance, std::current_exception());
    }
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    const activity_end end(cell<T, Index>::of(s.where_apart()).part);
    d.release();
    call(self, *static_cast<T*>(s.where_apart()));
  }
  inline static const birth_handler instance{type_name<T>(), "migrated",    wire::type_key<migrated_message>(),
                                             &run,           &refuse_route, nullptr};
};

// To another node: its state. Then the first message of its new process is to unpack it.
template <class T, class Index>
struct packed_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      return part_of<T, Index>(self, e.slot).arrive_packed(d, e, size);
    } catch (...) {
      d.fail(std::current_exception());
      return nullptr;
    }
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    if constexpr (can_be_packed<T>) {
      cell<T, Index>* c = nullptr;
      std::string element;
      try {
        auto& part = part_of<T, Index>(self, d.heap->head.slot);
        const auto [arrived, state_bytes] = part.unpack_arrival(d);
        c = static_cast<cell<T, Index>*>(arrived);
        element = part.text_of(c->index);
        orrery::reader state(state_bytes);
        part.construct(*c);
        orrery::read_into(state, *c->object());
        d.release();
        if constexpr (wants_migrated<T>) migrated_message<T, Index>::call(self, *c->object());
      } catch (...) {
        d.release();
        report_no_arrival(self, element, std::current_exception());
        // without its state it is none
        if (s.has_object) index_part<Index>::end_element(self, s, cell<T, Index>::of(s.where_apart()));
      }
    } else {
      (void)s;
      d.release();
    }
  }
  // An element with a serialize() is compared by its size only: it may not be made where it has no
  // index.
  static void describe(wire::type_description& types) { types.name<T>(); }
  inline static const birth_handler instance{type_name<T>(), "(arrival)", wire::type_key<packed_message>(),
                                             &run,           &route,      &describe};
};

// To another PE of the node: the cell as it is.
template <class T, class Index>
struct whole_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    return index_part<Index>::route_whole(self, d, e, size, &end_alone);
  }
  // The array was destroyed, or the world has ended, while it was on its way. Its destructor finds
  // all that it may look at.
  static void end_alone(std::uint32_t array, index_cell<Index>* base) {
    auto* const c = static_cast<cell<T, Index>*>(base);
    array_part<T, Index> stand_in(
        here_pe(), {array, here_pe().id(), array_pes(std::vector{here_pe().id()}), 1, "a destroyed array"}, {});
    c->part = &stand_in;
    c->ended = true;
    c->object()->~T();
    cell<T, Index>::free(c);
  }
  static void never_arrives(void* payload) {
    index_cell<Index>* c = nullptr;
    std::memcpy(&c, payload, sizeof c);
    end_alone(0, c);
  }
  struct whole_handler : control_handler {
    whole_handler() noexcept
        : control_handler(type_name<whole_message>(), &whole_message::route, nullptr, wire::type_key<whole_message>()) {
      drop = &never_arrives;
    }
  };
  inline static const whole_handler instance;
};

}  // namespace orrery::detail
