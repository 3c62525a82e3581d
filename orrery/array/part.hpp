// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/core.hpp>
#include <orrery/array/early.hpp>
#include <orrery/array/guest.hpp>
#include <orrery/array/home_queue.hpp>
#include <orrery/array/homes.hpp>
#include <orrery/array/lookaside.hpp>
#include <orrery/array/placement_map.hpp>
#include <orrery/array/routed_kind.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

// The part of an array on one PE, with the types of its elements and indices: the table from index to where the element is, and what goes with
// it: delivery, creation, migration. What happens to messages is said in docs/arrays.md.
namespace orrery {

/// What an array keeps on one PE.
struct array_footprint {
  std::size_t elements = 0;  ///< that live here
  std::size_t elsewhere =
      0;  ///< elements whose place is known here: of those whose home this is, and of those that were sent to
  std::size_t told = 0;  ///< elements of which this is another home than the first (array_options::homes)
  std::size_t bytes = 0;  ///< of tables and of what the array knows of each element; without the elements' objects
};

}  // namespace orrery

namespace orrery::detail {

/// An element: what the array knows of it, and behind that, in the same block of memory, the object.
template <class T, class Index>
struct cell : cell_base {
  using traffic = boost::unordered_flat_map<Index, std::uint64_t, index_hash<Index>, index_equal<Index>>;
  using traffic_list = std::vector<std::pair<Index, std::uint64_t>>;
  Index index{};
  std::unique_ptr<traffic> sent;  ///< bytes to other elements, while that is measured

  void forget_load() noexcept {
    load_ns = 0;
    sent.reset();
  }

  static constexpr bool over_aligned = alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  [[nodiscard]] static constexpr std::size_t offset() noexcept {
    return (sizeof(cell) + alignof(T) - 1) / alignof(T) * alignof(T);
  }
  [[nodiscard]] void* storage() noexcept { return reinterpret_cast<std::byte*>(this) + offset(); }
  [[nodiscard]] T* object() noexcept { return std::launder(static_cast<T*>(storage())); }
  [[nodiscard]] static cell& of(void* object) noexcept {
    return *std::launder(reinterpret_cast<cell*>(static_cast<std::byte*>(object) - offset()));
  }
  [[nodiscard]] static cell* make(const Index& i) {
    void* p = nullptr;
    if constexpr (over_aligned) {
      p = ::operator new(offset() + sizeof(T), std::align_val_t{alignof(T)});
    } else {
      p = ::operator new(offset() + sizeof(T));
    }
    auto* c = new (p) cell;
    c->index = i;
    return c;
  }
  /// The object must have ended.
  static void free(cell* c) noexcept {
    c->~cell();
    if constexpr (over_aligned) {
      ::operator delete(static_cast<void*>(c), std::align_val_t{alignof(T)});
    } else {
      ::operator delete(static_cast<void*>(c));
    }
  }
};

/// The cell whose object is being constructed on this thread, for the base class of the object. Set just before, taken at once.
extern constinit thread_local cell_base* constructing_cell;

/// An element that is to be created here when the way is clear: when all is here that went out to it by this PE before.
struct held_creation {
  scheduler::message* creation = nullptr;
  struct arrival {
    std::uint32_t origin = 0;  ///< PE
    std::uint64_t number = 0;
    scheduler::message* what = nullptr;
  };
  std::vector<arrival>
      come;  ///< meanwhile, from other PEs: by several ways, so that only numbers say in which order they were sent
};

/// What the table knows of an element that does not live here.
struct away {
  enum class what : std::uint8_t {
    at,  ///< it was last seen at `pe`
    waiting,  ///< messages wait: at the home until it is created, elsewhere until it is sure which way they have to go
    deleted,  ///< (at its home) it was destroyed
  };
  std::uint32_t pe = 0;
  std::uint32_t slot = wire::no_slot;  ///< its process there, if that is known: for flow control
  std::uint32_t generation = 0;
  std::uint32_t birth = 0;
  std::uint32_t moves = 0;
  what state : 2 = what::at;
  bool is_home : 1 = false;  ///< this PE is the first home of the index: what it knows is right, and is kept
  bool asks : 1 =
      false;  ///< a message of this PE asks another home, or one that it has named, and others wait for the answer
  bool passes : 1 = false;  ///< meanwhile messages from elsewhere have gone to the first home
  bool used : 1 = true;  ///< since the last sweep
  bool expiring : 1 = false;  ///< asked whether it can be forgotten
  std::uint32_t queued = 0;
  std::uint64_t last = 0;  ///< number of the last message that went this way
  std::uint64_t confirmed = 0;  ///< the highest number that was heard of
  std::uint64_t early = 0;  ///< bytes that wait for the element to be created
  std::unique_ptr<inbox> in;  ///< (at the home, while there is no element) its streams
  std::unique_ptr<held_creation> held;  ///< mostly null
  scheduler::message* head = nullptr;
  scheduler::message* tail = nullptr;

  /// A message that has left this PE may still be under way.
  [[nodiscard]] bool unsettled() const noexcept { return state == what::waiting || last != confirmed || passes; }
  void append(scheduler::message* m) noexcept {
    m->next = nullptr;
    (tail != nullptr ? tail->next : head) = m;
    tail = m;
    ++queued;
  }
  [[nodiscard]] scheduler::message* take_all() noexcept {
    queued = 0;
    tail = nullptr;
    return std::exchange(head, nullptr);
  }
};

/// What handlers of messages behind a route do if these are lost with a node (handler::lost): the origin of a call may have heard of the loss before it
/// sent the call, by way of a PE that had not.
bool lost_on_its_way(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t to,
                     const scheduler::unknown_message* unknown) noexcept;

template <class T, class Index>
class array_part;

/// The part of an array on this PE. Throws process_gone if the array was destroyed.
template <class T, class Index>
[[nodiscard]] array_part<T, Index>& part_of(pe& self, std::uint32_t id);
/// The same; null if another program has made the array (guest.hpp).
template <class T, class Index>
[[nodiscard]] array_part<T, Index>* part_or_guest(pe& self, std::uint32_t id);
[[noreturn]] void throw_no_array(std::uint32_t id);
[[noreturn]] void throw_own_array(const std::string& name);
[[noreturn]] void throw_no_pe(const std::string& element, std::uint32_t to, std::uint32_t pes);

template <class T, class Index>
class array_part final : public array_core {
 public:
  using cell_type = cell<T, Index>;
  struct settings {
    placement_map<Index> home;
    std::uint32_t homes = 1;  ///< of each index
    bool always_serialize = false;
    std::uint32_t cached = 1 << 16;  ///< entries of elsewhere that are kept at least
    std::uint32_t deleted = 1 << 16;  ///< deleted indices that are remembered
    std::uint64_t early_bytes = 64 << 20;  ///< of messages that wait for elements to be created
    template <class A>
    void serialize(A& a) {
      a & home & homes & always_serialize & cached & deleted & early_bytes;
    }
  };

  array_part(pe& self, shape s, settings o)
      : array_core(self, std::move(s)), settings_(std::move(o)), homes_(about().pes.count(), settings_.homes) {
    element_class = &process_class;
    array_directory::of(self).note_elements(process_class.number,
                                            [](void* object) -> cell_base& { return cell_type::of(object); });
    sweep_at_ = settings_.cached;
    settings_.always_serialize |= scheduler::through_wire;
  }
  ~array_part() override {
    for (scheduler::message* m = take_kept(nullptr); m != nullptr;) discard(self_, std::exchange(m, m->next));
    for (auto& [index, e] : table_)
      if (e.is_away()) drop_away(e.there());
  }

  /// The element, if it is on this PE.
  [[nodiscard]] cell_type* find_local(const Index& i) const noexcept {
    const auto it = table_.find(i);
    return it == table_.end() || it->second.is_away() ? nullptr : it->second.here();
  }
  /// Its process: what a message to it needs, without a look at the element itself, which may be in no cache.
  [[nodiscard]] scheduler::slot* find_process(const Index& i) const noexcept {
    if (scheduler::slot* s = lookaside_.find(i)) return s;
    return find_process_in_table(i);
  }
  /// The same, also of one whose destructor runs here.
  [[nodiscard]] scheduler::slot* find_or_ending(const Index& i) const noexcept {
    if (const cell_type* c = find_local(i)) return c->process;
    const auto it = std::ranges::find_if(endings_, [&](const auto& e) { return e.first == i; });
    return it != endings_.end() ? it->second : nullptr;
  }
  void note_ending(const Index& i, scheduler::slot& s) { endings_.emplace_back(i, &s); }
  void note_ended(const scheduler::slot& s) noexcept {
    std::erase_if(endings_, [&](const auto& e) { return e.second == &s; });
  }
  [[nodiscard]] bool is_ending(const scheduler::slot& s) const noexcept override {
    return std::ranges::find(endings_, &s, [](const auto& e) { return e.second; }) != endings_.end();
  }
  /// At the home of the index: the other PE where its last element has ended, or is ending; none if that is not known.
  [[nodiscard]] std::optional<std::uint32_t> place_of_end(const Index& i) const noexcept {
    const away* a = find_away(i);
    if (a == nullptr || a->state != away::what::deleted || a->pe == self_.id()) return {};
    return a->pe;
  }
  /// At the home of the index: there is an element, here or elsewhere.
  [[nodiscard]] bool has_element(const Index& i) const noexcept {
    const auto it = table_.find(i);
    return it != table_.end() && (!it->second.is_away() || it->second.there()->state == away::what::at);
  }
  [[nodiscard]] std::uint32_t home_of(const Index& i) const { return about().pes.at(rank_of_home(i)); }
  /// Throws usage_error if the array is not on that PE.
  void require_on(const Index& i, std::uint32_t pe) const {
    if (!about().pes.contains(pe)) [[unlikely]]
      throw_no_pe(text_of(i), pe, about().pes.count());
  }
  [[nodiscard]] bool is_home(const Index& i) const { return home_of(i) == self_.id(); }
  [[nodiscard]] const settings& options() const noexcept { return settings_; }
  [[nodiscard]] std::size_t table_size() const noexcept { return table_.size(); }
  [[nodiscard]] std::size_t cached() const noexcept { return cached_; }
  [[nodiscard]] array_footprint footprint() const noexcept {
    array_footprint f{cells().size(), table_.size() - cells().size(), told_.size(), sizeof(*this)};
    f.bytes += table_.bucket_count() * (sizeof(typename decltype(table_)::value_type) + 1);
    f.bytes += told_.bucket_count() * (sizeof(typename decltype(told_)::value_type) + 1);
    f.bytes += lookaside_.bytes();
    f.bytes += cells().capacity() * sizeof(cell_base*) + f.elements * cell_type::offset();
    f.bytes += f.elsewhere * sizeof(away) + deleted_.size() * sizeof(typename decltype(deleted_)::value_type);
    return f;
  }
  [[nodiscard]] std::string text_of(const Index& i) const { return about().name + "[" + index_text(i) + "]"; }
  void create_for_guest(const array_handler& h, std::span<const std::byte> payload) override;
  [[nodiscard]] std::string text_of(const cell_base& c) const override {
    return text_of(static_cast<const cell_type&>(c).index);
  }
  /// scheduler::call_route::follow for a call to this element.
  [[nodiscard]] address follow(const Index& i, std::span<const std::byte> probe);
  [[nodiscard]] std::vector<array_core::early_wait> early_waits(std::size_t most) const override {
    std::vector<array_core::early_wait> waits;
    for (const auto& [i, e] : table_)
      if (waits.size() < most && e.is_away() && e.there()->is_home && e.there()->queued != 0)
        waits.push_back({text_of(i), e.there()->queued});
    return waits;
  }
  [[nodiscard]] std::exception_ptr gone(const Index& i) const {
    return make_error(errc::process_gone, verbatim,
                      text_of(i) + ": the element was destroyed, or never created; insert one before the call");
  }

  // --- creating and destroying; part_life.hpp ---------------------------------------------------------------------
  void reserve(std::size_t n) {
    table_.reserve(table_.size() + n);
    reserve_cells(n);
  }
  /// A cell and a slot for a new element on this PE; its constructor is still to run. The index must not be in use here.
  cell_type& conceive(const Index& i, std::uint32_t birth);
  /// Sends on what had waited for the element that was placed last.
  void flush_early() { dispatch_all(std::exchange(early_, nullptr)); }
  /// Runs the constructor in the element's process. Undoes conceive if it throws.
  template <class... A>
  void construct(cell_type& c, A&&... args);
  /// The same on the caller's stack.
  template <class... A>
  void construct_inline(cell_type& c, A&&... args);
  /// Throws usage_error if there is an element at an index whose home this is. Returns the birth number of a new one.
  std::uint32_t admit(const Index& i);
  /// At the home: a new element is at `pe`; what was sent early goes after it.
  void settle_at(const Index& i, std::uint32_t birth, std::uint32_t pe);
  /// Many elements that were created elsewhere, of which this is the home.
  void know_bulk(const std::vector<Index>& all, std::uint32_t pe);
  /// The element ends: it is found no more. Its object is still there. Returns the messages that it has not executed.
  [[nodiscard]] scheduler::message* bury(cell_type& c);
  void forget_buried(const Index& i, std::uint32_t birth, const inbox::counts& streams);
  /// Sends on what was in the mailbox of an element that is here no more.
  void send_after(cell_base& c, scheduler::message* mailbox);
  [[nodiscard]] static scheduler::message* take_mailbox(cell_base& c) noexcept;

  // --- several homes; part_homes.hpp ----------------------------------------------------------------------------------
  static constexpr std::uint32_t nowhere = ~0U;
  // After the loss of a node, for what goes in circles.
  static constexpr std::uint16_t most_hops = 32'000;
  static constexpr std::uint16_t most_returns = 16;  // to the home, from where the element is said to be
  /// At another home: elements are on this PE, or have ended.
  void hear(const Index& i, std::uint32_t pe);
  void hear_bulk(const std::vector<Index>& all, std::uint32_t pe);
  /// The other homes of the indices whose first home this is.
  [[nodiscard]] std::vector<std::uint32_t> other_homes() const {
    std::vector<std::uint32_t> all = homes_.others(rank());
    for (std::uint32_t& h : all) h = about().pes.at(h);
    return all;
  }
  /// Where the first message of this PE to an element goes: where it is, if this is another home of it, else to the nearest home.
  [[nodiscard]] std::uint32_t first_try(const Index& i) const;

  // --- messages whose element keeps moving; part_pursuit.hpp ----------------------------------------------------------
  static constexpr unsigned most_follows = 4;
  bool leave_pursuit(const routed_kind& kind, const away* a, scheduler::delivery& d, const wire::envelope& e,
                     std::uint32_t size, route_head h, const Index& i, order_tag tag);
  slot* end_pursuit(cell_type& c, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size, route_head h,
                    const Index& i, order_tag tag);
  void keep_at_home(scheduler::delivery& d, const wire::envelope& e, std::uint32_t size, route_head h, const Index& i,
                    order_tag tag);
  /// At the home: others wait, or are under way from here.
  [[nodiscard]] bool keeps_at_home(const Index& i) const noexcept { return find_home_queue(i) != nullptr; }
  [[nodiscard]] bool runs_now(const scheduler::slot& s) const noexcept {
    for (const scheduler::activation* a = self_.active(); a != nullptr; a = a->below)
      if (a->process == &s) return true;
    return false;
  }
  /// Sends what has its turn.
  void send_kept(const Index& i);
  void turn_over(const Index& i);
  /// Where a message from the home is executed.
  void tell_turn_over(const Index& i);
  /// The element has ended: nothing waits for it any more.
  void release_kept(const Index& i);
  [[nodiscard]] scheduler::message* take_kept(scheduler::message* rest) noexcept;

  // --- migration; part_migration.hpp ------------------------------------------------------------------------------------
  /// Moves the element whose process runs this, as a message. Throws usage_error.
  void depart(cell_type& c, std::uint32_t to);
  slot* arrive_packed(scheduler::delivery& d, const wire::envelope& e, std::uint32_t size);
  void arrive_whole(cell_type* c, const std::vector<baggage>& broadcasts);

  // --- delivery; part_route.hpp ------------------------------------------------------------------------------------
  /// Where a message to an element that is not here has to go: null if it has to be dispatched on this PE.
  [[nodiscard]] away* way_to(const Index& i);
  /// The element was last seen from here on a PE that is lost: the home is to be asked, as it may have left it.
  void forget_lost_place(const Index& i);
  /// Messages that wait on this PE until it is sure which way they have to go.
  [[nodiscard]] std::uint32_t waiting_at(const Index& i) const noexcept {
    const away* a = find_away(i);
    return a != nullptr && !a->is_home ? a->queued : 0;
  }
  [[nodiscard]] std::uint64_t next_number() noexcept { return ++numbers_; }
  [[nodiscard]] std::uint64_t last_number() const noexcept override { return numbers_; }
  /// An element of this array may be sending so much to another one.
  void note_sent(const Index& to, std::uint64_t sent) {
    const scheduler::activation* a = self_.active();
    if (a == nullptr || a->process->class_number != process_class.number || !a->process->has_object) return;
    cell_type& from = cell_type::of(a->process->where_apart());
    if (from.part != this) return;
    if (from.sent == nullptr) from.sent = std::make_unique<typename cell_type::traffic>();
    (*from.sent)[to] += sent;
  }
  /// Finds the process for a message; null if it was dealt with. `tag`: of messages whose order is kept.
  slot* route(const routed_kind& kind, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
              const route_head& h, const Index& i, order_tag tag = {});
  /// The streams of an index went on elsewhere while it had no element, or another one. False if that is not kept here.
  bool merge_streams(const Index& i, const inbox::counts& streams);
  void tell_location(const route_head& h, const Index& i, const cell_type* c);
  /// A probe, and what went before it, is lost.
  void tell_nowhere(const route_head& h, const Index& i);
  enum class found : std::uint32_t {
    here,
    not_yet,  ///< at its home, where messages wait for it to be created
    not_at_all,
  };
  struct location {
    std::uint64_t echo = 0;
    found what = found::here;
    std::uint32_t slot = wire::no_slot;  ///< if it is known
    std::uint32_t generation = 0;
    std::uint32_t birth = 0;
    std::uint32_t moves = 0;
  };
  void learn(const Index& i, const location& l, std::uint32_t pe);
  /// The array ends: what waits here for elements to be created fails.
  void fail_early();
  /// The part goes: all messages that wait in it, as a list.
  [[nodiscard]] scheduler::message* take_waiting() noexcept;
  [[nodiscard]] std::uint64_t early_bytes() const noexcept { return early_bytes_; }
  void pes_lost() noexcept override;
  void registered(const Index& i, const location& l, std::uint32_t pe);
  /// A creation comes to this PE. True if it has to wait, as messages that were sent from here before are still under way.
  [[nodiscard]] bool creation_waits(const Index& i) const;
  void hold_creation(const Index& i, scheduler::message* m);
  [[nodiscard]] bool is_held(const Index& i) const noexcept;
  void create_held(const Index& i, away& a);
  /// A probe has come where a creation is held: if it is that one's, what was sent before is here, and the element is created. Else false.
  bool way_is_clear(const Index& i, const route_head& h);

 private:
  // Where an element is: its cell, or what is known of another place.
  class entry {
   public:
    entry() = default;
    explicit entry(cell_type* c) noexcept : bits_(reinterpret_cast<std::uintptr_t>(c)) {}
    explicit entry(away* a) noexcept : bits_(reinterpret_cast<std::uintptr_t>(a) | 1) {}
    [[nodiscard]] bool is_away() const noexcept { return (bits_ & 1) != 0; }
    [[nodiscard]] cell_type* here() const noexcept { return reinterpret_cast<cell_type*>(bits_); }
    [[nodiscard]] away* there() const noexcept { return reinterpret_cast<away*>(bits_ & ~std::uintptr_t{1}); }

   private:
    std::uintptr_t bits_ = 1;
  };

  [[nodiscard]] std::uint32_t rank_of_home(const Index& i) const { return settings_.home(i, about().pes.count()); }
  [[nodiscard]] home_queue* find_home_queue(const Index& i) const noexcept {
    if (home_queues_.empty()) return nullptr;
    const auto it = home_queues_.find(i);
    return it != home_queues_.end() ? it->second.get() : nullptr;
  }
  void drop_away(away* a) noexcept {
    if (a->in != nullptr)
      for (scheduler::message* m = a->in->take_held(nullptr); m != nullptr;) discard(self_, std::exchange(m, m->next));
    for (scheduler::message* m = a->take_all(); m != nullptr;) discard(self_, std::exchange(m, m->next));
    if (a->held != nullptr) {
      discard(self_, a->held->creation);
      for (const auto& m : a->held->come) discard(self_, m.what);
    }
    delete a;
  }
  [[nodiscard]] away* find_away(const Index& i) const noexcept {
    const auto it = table_.find(i);
    return it != table_.end() && it->second.is_away() ? it->second.there() : nullptr;
  }
  away& make_away(const Index& i, std::uint32_t pe, bool is_home);
  /// Removes what is known of elsewhere; gives back the messages that wait.
  [[nodiscard]] scheduler::message* erase_away(const Index& i);
  // --- order; part_order.hpp
  slot* pass_element(cell_type& c, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size, const Index& i,
                     order_tag tag);
  slot* pass_home(const routed_kind& kind, away* a, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                  const route_head& h, const Index& i, order_tag tag);
  bool create_for(const routed_kind& kind, away* a, const route_head& h, const Index& i);
  [[nodiscard]] inbox* streams_of(const Index& i) const noexcept;
  void release_next(const Index& i, std::uint64_t stream);
  void end_stream(const Index& i, std::uint64_t stream);
  void send_streams(const Index& i, std::uint32_t pe, std::unique_ptr<inbox> in);
  [[nodiscard]] inbox& inbox_of(away& a) {
    if (a.in == nullptr) a.in = std::make_unique<inbox>();
    return *a.in;
  }
  void dispatch_all(scheduler::message* m) {
    while (m != nullptr) dispatch(self_, std::exchange(m, m->next));
  }
  void send_probe(const Index& i, away& a);
  bool probe_first_home(const Index& i, away& a);
  bool keep_early(const routed_kind& kind, away& a, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                  const route_head& h, const Index& i);
  /// An element has been created, or was to be, and the PE is lost: not again and again.
  [[nodiscard]] static route_head once_tried(route_head h) noexcept {
    h.flags |= route_head::tried;
    return h;
  }
  [[nodiscard]] std::exception_ptr lost(const Index& i, std::uint32_t pe) const {
    return std::make_exception_ptr(node_lost(text_of(i) + ": it was last seen on PE " + std::to_string(pe)));
  }
  void sweep();
  void mark_deleted(const Index& i, std::uint32_t birth, const inbox::counts& streams, std::uint32_t where);
  void tell_homes(const Index& i, std::uint32_t pe);
  void place(const Index& i, cell_type& c);
  void take_out(const cell_type& c) {
    lookaside_.forget(c.index, *c.process);
    table_.erase(c.index);
  }
  [[gnu::noinline]] scheduler::slot* find_process_in_table(const Index& i) const noexcept {
    const cell_type* c = find_local(i);
    if (c == nullptr) return nullptr;
    lookaside_.note(i, *c->process, cells().size());
    return c->process;
  }
  void report_arrival(const cell_type& c);

  // The elements as processes: their objects end with their cells.
  static void destroy_object(void* object) {
    cell_type& c = cell_type::of(object);
    static_cast<T*>(object)->~T();
    auto* part = static_cast<array_part*>(c.part);
    if (part->find_local(c.index) == &c) {  // the world ends
      part->take_out(c);
      part->abandon(c);
      if (c.order != nullptr)
        for (auto* m = c.order->in.take_held(nullptr); m != nullptr;) discard(part->self_, std::exchange(m, m->next));
    } else if (c.order != nullptr) {
      c.order->out.close(part->self_);
    }
    cell_type::free(&c);
  }
  static void* to_object(void* object) { return object; }
  static constexpr scheduler::class_info::base process_bases[1] = {{&class_of<T>::info, &to_object}};
  /// What runs while an element is constructed without a message.
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

  settings settings_;
  homes homes_;
  boost::unordered_flat_map<Index, std::uint32_t, index_hash<Index>, index_equal<Index>>
      told_;  // by the first homes of indices: where elements are
  boost::unordered_flat_map<Index, entry, index_hash<Index>, index_equal<Index>> table_;
  boost::unordered_flat_map<Index, std::unique_ptr<home_queue>, index_hash<Index>, index_equal<Index>> home_queues_;
  mutable lookaside<Index> lookaside_;
  std::vector<std::pair<Index, scheduler::slot*>> endings_;  // elements whose destructors run
  std::uint64_t numbers_ = 0;
  std::uint32_t births_given_ = 0;
  std::size_t cached_ = 0;  // entries of elsewhere of which this is no home
  std::size_t sweep_at_ = 0;
  std::uint64_t early_bytes_ = 0;
  scheduler::message* early_ = nullptr;  // what place found waiting, oldest first
  std::unique_ptr<inbox> taken_;  // what erase_away found of streams
  std::vector<std::pair<Index, std::uint64_t>> releasing_;  // streams whose next message may be here
  bool in_release_ = false;
  std::deque<std::pair<Index, std::uint32_t>> deleted_;  // index and birth, oldest first
};

template <class T, class Index>
array_part<T, Index>& part_of(pe& self, std::uint32_t id) {
  array_core* p = array_directory::of(self).find(id);
  if (p == nullptr) [[unlikely]]
    throw_no_array(id);
  return static_cast<array_part<T, Index>&>(*p);
}

template <class T, class Index>
array_part<T, Index>* part_or_guest(pe& self, std::uint32_t id) {
  array_core* p = array_directory::of(self).find(id);
  if (p == nullptr && !is_guest_of(self, id)) [[unlikely]]
    throw_no_array(id);
  return static_cast<array_part<T, Index>*>(p);
}

}  // namespace orrery::detail
