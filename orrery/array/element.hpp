// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/element_message.hpp>
#include <orrery/wire/unique_ptr.hpp>

namespace orrery {

template <class T, array_index Index>
class array;
template <class T, array_index Index>
class section;

namespace detail {
template <class T, class Index>
struct leave_operation;
template <class T, class Index>
struct element_end;
[[noreturn]] void throw_no_element();
/// An element contributes to a section: to the agent at its home, without a message if that is
/// here. Throws usage_error.
void contribute_to(cell_base& c, std::uint64_t section, wire::unique_ptr<accumulator> value,
                   const reduction_target& target);
void post_leave(pe& self, slot& s, const scheduler::handler& h, std::uint32_t to);
}  // namespace detail

/// The base of a class whose objects know that they are elements of an array (paper, section 10).
/// Not needed for being one.
///
///     struct Block : orrery::element<Block, orrery::index<2>> {
///       void step() { ...; contribute(error, orrery::maximum, done); }
///     };
///
/// Its functions are for the methods and constructors of the element itself; in an object that is
/// no element they throw usage_error.
template <class T, array_index Index = std::int32_t>
class element {
 public:
  using index_type = Index;

  /// The index of this element.
  [[nodiscard]] const Index& this_index() const { return cell().index; }
  /// The array.
  [[nodiscard]] orrery::array<T, Index> this_array() const { return orrery::array<T, Index>(cell().part->id()); }
  /// Adds a value to the next reduction of the array: the k-th contribution of each element goes
  /// into the k-th reduction. The result goes to `target`, of which all elements give the same.
  /// Does not park.
  template <class V, class Op>
  void contribute(V&& value, Op, const detail::reduction_target& target) {
    auto& c = cell();
    c.part->template contribute<V, Op>(c, std::forward<V>(value), &target);
  }
  /// Adds a value to the next reduction of a section that this element belongs to. Its own count:
  /// reductions of several sections and of the array may be under way in any order. Throws
  /// usage_error if it is no member. Does not park.
  template <class V, class Op>
  void contribute(const section<T, Index>& to, V&& value, Op, const detail::reduction_target& target) {
    auto a = wire::make_unique<detail::typed_accumulator<std::decay_t<V>, Op>>();
    a->add(std::forward<V>(value));
    detail::contribute_to(cell(), to.id(), std::move(a), target);
  }
  /// This element has come to the point where its array can be balanced (balance_at_sync): when all
  /// have, the strategy runs, and then the method that was given there is called of each. Counts as
  /// a contribution of 1 to a reduction of the array. Does not park.
  void at_sync(const detail::reduction_target& point) { contribute(std::uint64_t{1}, sum, point); }
  /// How many reductions this element has contributed to or was born after: its next contribution
  /// is for the one with this number plus 1.
  [[nodiscard]] std::uint32_t contributed() const { return cell().reductions.value; }
  /// Moves this element to another PE when the running method has returned, before its next
  /// message. The object travels by its serialize() to another node, where it is read into a
  /// default-constructed one (without either this does not compile); inside a node its memory
  /// changes hands. A reentrant class whose other methods are parked then, and a PE that there is
  /// not, are errors that the PE reports; the element stays. Called several times, it goes to one
  /// PE after the other. Does not park.
  void migrate_to(std::uint32_t pe) {
    auto& c = cell();
    if (c.ended) [[unlikely]] {
      c.part->report_ended(c, "migrates");
      return;
    }
    detail::post_leave(detail::here_pe(), *c.process, leave_handler(), pe);
    c.part->begins();
  }

 protected:
  element() noexcept {
    if (detail::constructing_cell == nullptr) return;
    auto* c = static_cast<detail::cell<T, Index>*>(detail::constructing_cell);
    const auto* at = static_cast<const std::byte*>(static_cast<const void*>(this));
    const auto* begin = static_cast<const std::byte*>(c->storage());
    if (at < begin || at >= begin + sizeof(T)) return;  // another object, made on the way
    cell_ = c;
    detail::constructing_cell = nullptr;
  }
  element(const element&) noexcept {}
  element& operator=(const element&) noexcept { return *this; }
  ~element() = default;

 private:
  [[nodiscard]] detail::cell<T, Index>& cell() const {
    if (cell_ == nullptr) [[unlikely]]
      detail::throw_no_element();
    return *cell_;
  }
  static const scheduler::handler& leave_handler() noexcept;

  detail::cell<T, Index>* cell_ = nullptr;
};

namespace detail {

/// Moves the element; the first or a later message of its mailbox.
template <class T, class Index>
struct leave_operation {
  using object = void;
  using result = void;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(migration)"; }
  static void run(pe&, slot& s, void*, std::uint32_t to) {
    require_migratable<T>();
    auto& c = cell<T, Index>::of(s.where_apart());
    static_cast<index_part<Index>*>(c.part)->depart(c, to);
  }
};

/// Destroys the element, as its last message. Its home answers, behind the news of the end: who has
/// the answer finds the index free.
template <class T, class Index>
struct element_end {
  using object = void;
  using result = void;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(destructor)"; }
  static constexpr bool ordered = keeps_order<T>(name());
  static constexpr bool answers_later = true;
  static void run(pe& self, slot& s, caller from) {
    auto& c = cell<T, Index>::of(s.where_apart());
    auto* part = static_cast<index_part<Index>*>(c.part);
    const std::uint32_t array = part->id();
    const std::uint32_t home = part->home_of(c.index);
    index_part<Index>::end_element(self, s, c);
    answer_from(self, home, array, from);
  }
};

/// The same when the whole array ends: of elements that have ended meanwhile nothing is wanted.
template <class T, class Index>
struct element_end_with_array : element_end<T, Index> {
  static constexpr bool may_miss = true;
};

template <class T, class Index>
using leave_message = element_message<T, Index, leave_operation<T, Index>, std::uint32_t>;
template <class T, class Index>
using end_message = element_message<T, Index, element_end<T, Index>>;
template <class T, class Index>
using end_with_array_message = element_message<T, Index, element_end_with_array<T, Index>>;

}  // namespace detail

template <class T, array_index Index>
const scheduler::handler& element<T, Index>::leave_handler() noexcept {
  return detail::leave_message<T, Index>::here;
}

}  // namespace orrery
