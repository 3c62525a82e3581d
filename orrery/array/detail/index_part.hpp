// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/cell.hpp>
#include <orrery/array/detail/core.hpp>
#include <orrery/array/detail/guest.hpp>
#include <orrery/array/detail/homes.hpp>
#include <orrery/array/detail/lookaside.hpp>
#include <orrery/array/detail/routed_kind.hpp>
#include <orrery/array/early.hpp>
#include <orrery/array/placement_map.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

// The part of an array on one PE, with the type of its indices: the table from index to where the
// element is, and what goes with it: delivery, creation, migration. docs/reference/arrays.md says
// what happens to messages. array_part.hpp has what depends on the class of the elements.
namespace orrery {

/// The memory of an array on one PE.
struct array_footprint {
  std::size_t elements = 0;  ///< that live here
  /// Elements whose place is known here: of those whose home this is, and of those that were sent
  /// to.
  std::size_t elsewhere = 0;
  /// Elements of which this is another home than the first (array_options::homes).
  std::size_t told = 0;
  /// Bytes of tables and of the knowledge of each element; without the elements' objects.
  std::size_t bytes = 0;
};

}  // namespace orrery

namespace orrery::detail {

/// An element that is to be created here when the way is clear: when all is here that went out to
/// it by this PE before.
struct held_creation {
  scheduler::message* creation = nullptr;
  struct arrival {
    std::uint32_t origin = 0;  ///< PE
    std::uint64_t number = 0;
    scheduler::message* what = nullptr;
  };
  std::vector<arrival>
      /// Meanwhile, from other PEs: by several ways, so that only numbers say in which order they
      /// were sent.
      come;
};

/// The table's entry for an element that does not live here.
struct remote_location {
  enum class what : std::uint8_t {
    at,  ///< it was last seen at `pe`
    /// Messages wait: at the home until it is created, elsewhere until it is sure which way they
    /// have to go.
    waiting,
    deleted,  ///< (at its home) it was destroyed
  };
  std::uint32_t pe = 0;
  std::uint32_t slot = wire::no_slot;  ///< its process there, if that is known: for flow control
  std::uint32_t generation = 0;
  std::uint32_t birth = 0;
  std::uint32_t moves = 0;
  what state : 2 = what::at;
  /// This PE is the first home of the index: what it knows is right, and is kept.
  bool is_home : 1 = false;
  /// A message of this PE asks another home, or one that it has named, and others wait for the
  /// answer.
  bool asks : 1 = false;
  bool passes : 1 = false;  ///< meanwhile messages from elsewhere have gone to the first home
  bool used : 1 = true;  ///< since the last sweep
  bool expiring : 1 = false;  ///< asked whether it can be forgotten
  /// A message of this PE has asked for its process. (Others may have gone this way before: those
  /// of other PEs, and probes of waits.)
  bool wanted : 1 = false;
  std::uint32_t queued = 0;
  std::uint64_t last = 0;  ///< number of the last message that went this way
  std::uint64_t confirmed = 0;  ///< the highest number that was heard of
  std::uint64_t early = 0;  ///< bytes that wait for the element to be created
  wire::unique_ptr<inbox> in;  ///< (at the home, while there is no element) its streams
  wire::unique_ptr<held_creation> held;  ///< mostly null
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

/// Asks for a new element: first at the home, which admits it, then where it is to live.
struct creation {
  caller from;
  std::uint32_t at = 0;
  std::uint32_t birth = 0;
  bool admitted = false;
  template <class A>
  void serialize(A& a) {
    a & from & at & birth & admitted;
  }
};

/// The questions that a part has about the class of its elements.
struct element_class_facts {
  const scheduler::class_info& process_class;
  cell_base& (*cell_of)(void* object);
  std::size_t offset = 0;  ///< of an object behind the beginning of its cell
  const scheduler::handler& packed;  ///< brings an element from another node
  const scheduler::handler& whole;  ///< and from another PE of the node
  const scheduler::handler* migrated;  ///< tells an element of its move; null: nobody asks
};

/// Answers for messages behind a route that are lost with a node (handler::lost): the origin of a
/// call may have heard of the loss before it sent the call, by way of a PE that had not.
bool lost_on_its_way(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t to,
                     const scheduler::unknown_message* unknown) noexcept;

template <class Index>
class index_part;
template <class Index>
struct index_tables;
class home_queue;

/// The part of an array on this PE. Throws process_gone if the array was destroyed.
template <class Index>
[[nodiscard]] index_part<Index>& index_part_of(pe& self, std::uint32_t id);
[[noreturn]] void throw_own_array(const std::string& name);
/// A promise that the element has made and not kept; empty: there is none.
[[nodiscard]] std::string promise_of(pe& self, const slot& element);
[[noreturn]] void throw_promised(const std::string& element, const std::string& promise);
[[noreturn]] void throw_parked(const std::string& element);
/// Nobody waits for an element whose constructor throws: a line on stderr.
void report_no_creation(pe& self, const std::string& element, const std::exception_ptr& why) noexcept;
/// An element that has moved could not be made again from its state.
void report_no_arrival(pe& self, const std::string& element, const std::exception_ptr& why) noexcept;
[[noreturn]] void throw_no_pe(const std::string& element, std::uint32_t to, std::uint32_t pes);

template <class Index>
class index_part : public array_core {
 public:
  using cell_type = index_cell<Index>;
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

  index_part(pe& self, description s, settings o, const element_class_facts& elements);
  ~index_part() override;

  /// The class of its elements' processes.
  [[nodiscard]] const scheduler::class_info& class_of_elements() const noexcept { return elements_.process_class; }

  /// The element, if it is on this PE.
  [[nodiscard]] cell_type* find_local(const Index& i) const noexcept;
  /// Its process: what a message to it needs, without a look at the element itself, which may be in
  /// no cache.
  [[nodiscard]] scheduler::slot* find_process(const Index& i) const noexcept {
    if (scheduler::slot* s = lookaside_.find(i)) return s;
    return find_process_in_table(i);
  }
  /// The same, also of one whose destructor runs here.
  [[nodiscard]] scheduler::slot* find_or_ending(const Index& i) const noexcept;
  void note_ending(const Index& i, scheduler::slot& s);
  void note_ended(const scheduler::slot& s) noexcept;
  [[nodiscard]] bool is_ending(const scheduler::slot& s) const noexcept override;
  /// At the home of the index: the other PE where its last element has ended, or is ending; none if
  /// that is not known.
  [[nodiscard]] std::optional<std::uint32_t> place_of_end(const Index& i) const noexcept;
  /// At the home of the index: there is an element, here or elsewhere.
  [[nodiscard]] bool has_element(const Index& i) const noexcept;
  [[nodiscard]] std::uint32_t home_of(const Index& i) const { return about().pes.at(rank_of_home(i)); }
  /// Throws usage_error if the array is not on that PE.
  void require_on(const Index& i, std::uint32_t pe) const {
    if (!about().pes.contains(pe)) [[unlikely]]
      throw_no_pe(text_of(i), pe, about().pes.count());
  }
  [[nodiscard]] bool is_home(const Index& i) const { return home_of(i) == self_.id(); }
  [[nodiscard]] const settings& options() const noexcept { return settings_; }
  [[nodiscard]] std::size_t table_size() const noexcept;
  [[nodiscard]] std::size_t cached() const noexcept { return cached_; }
  [[nodiscard]] array_footprint footprint() const noexcept;
  [[nodiscard]] std::string text_of(const Index& i) const;
  void create_for_guest(const array_handler& h, std::span<const std::byte> payload) override;
  [[nodiscard]] std::string text_of(const cell_base& c) const override {
    return text_of(static_cast<const cell_type&>(c).index);
  }
  /// scheduler::call_route::follow for a call to this element.
  [[nodiscard]] address follow(const Index& i, std::span<const std::byte> probe);
  [[nodiscard]] std::vector<array_core::early_wait> early_waits(std::size_t most) const override;
  [[nodiscard]] std::exception_ptr gone(const Index& i) const;

  // --- creating and destroying; part_life.hpp ----------------------------------------------------
  void reserve(std::size_t n);
  /// A cell and a slot for a new element on this PE; its constructor is still to run, and
  /// flush_early. The index must not be in use here.
  cell_type& create_entry(const Index& i, std::uint32_t birth);
  /// Sends on the messages that had waited for elements which were placed since.
  void flush_early() { dispatch_all(std::exchange(early_, nullptr)); }
  /// Undoes create_entry, where a constructor has thrown. The cell is gone then.
  void undo_creation(cell_type& c);
  /// A message that asks for a new element; `instance`: its handler.
  static slot* route_creation(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                              const array_handler& instance);
  /// The object has ended: so has its element.
  static void object_has_ended(cell_type& c);
  /// Ends the element of a process that runs: it is found no more, its destructor runs, and what it
  /// has not executed is sent on.
  static void end_element(pe& self, slot& s, cell_type& c);
  /// Lets an element end, as its last message, when the whole array ends.
  [[nodiscard]] virtual future<void> start_end(const Index& i) = 0;
  /// Throws usage_error if there is an element at an index whose home this is. Returns the birth
  /// number of a new one.
  std::uint32_t admit(const Index& i);
  /// At the home: a new element is at `pe`; what was sent early goes after it.
  void settle_at(const Index& i, std::uint32_t birth, std::uint32_t pe);
  /// Many elements that were created elsewhere, of which this is the home.
  void know_bulk(const std::vector<Index>& all, std::uint32_t pe);
  /// The element ends: it is found no more. Its object is still there. Returns the messages that it
  /// has not executed.
  [[nodiscard]] scheduler::message* unregister(cell_type& c);
  void forget_buried(const Index& i, std::uint32_t birth, const inbox::counts& streams);
  /// Sends on what was in the mailbox of an element that is here no more.
  void send_after(cell_base& c, scheduler::message* mailbox);
  [[nodiscard]] static scheduler::message* take_mailbox(cell_base& c) noexcept;

  // --- several homes; part_homes.hpp -------------------------------------------------------------
  static constexpr std::uint32_t nowhere = ~0U;
  // After the loss of a node, for what goes in circles.
  static constexpr std::uint16_t most_hops = 32'000;
  // to the home, from where the element is said to be
  static constexpr std::uint16_t most_returns = 16;
  /// At another home: elements are on this PE, or have ended.
  void hear(const Index& i, std::uint32_t pe);
  void hear_bulk(const std::vector<Index>& all, std::uint32_t pe);
  /// The other homes of the indices whose first home this is.
  [[nodiscard]] std::vector<std::uint32_t> other_homes() const;
  /// Where the first message of this PE to an element goes: where it is, if this is another home of
  /// it, else to the nearest home.
  [[nodiscard]] std::uint32_t first_try(const Index& i) const;

  // --- messages whose element keeps moving; part_pursuit.hpp -------------------------------------
  static constexpr unsigned most_follows = 4;
  bool leave_pursuit(const routed_kind& kind, const remote_location* a, scheduler::delivery& d, const wire::envelope& e,
                     std::uint32_t size, route_head h, const Index& i, order_tag tag);
  slot* end_pursuit(cell_type& c, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size, route_head h,
                    const Index& i, order_tag tag);
  bool yield_turn(const routed_kind& kind, const remote_location& a, scheduler::delivery& d, const wire::envelope& e,
                  std::uint32_t size, route_head h, const Index& i);
  void keep_at_home(scheduler::delivery& d, const wire::envelope& e, std::uint32_t size, route_head h, const Index& i,
                    order_tag tag);
  /// At the home: others wait, or are under way from here.
  [[nodiscard]] bool keeps_at_home(const Index& i) const noexcept;
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

  // --- migration; part_migration.hpp -------------------------------------------------------------
  /// Moves the element whose process runs this, as a message. Throws usage_error.
  void depart(cell_type& c, std::uint32_t to);
  slot* arrive_packed(scheduler::delivery& d, const wire::envelope& e, std::uint32_t size);
  /// Reads the first message of an element from another node: its cell, and its state as bytes.
  [[nodiscard]] std::pair<cell_type*, std::span<const std::byte>> unpack_arrival(const scheduler::delivery& d);
  void arrive_whole(cell_type* c, const std::vector<pending_broadcast>& broadcasts);
  /// A message that brings a cell of this node. `end_alone` ends the element if its array is gone.
  static slot* route_whole(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                           void (*end_alone)(std::uint32_t array, cell_type*));

  // --- delivery; part_route.hpp ------------------------------------------------------------------
  /// Where a message to an element that is not here has to go: null if it has to be dispatched on
  /// this PE.
  [[nodiscard]] remote_location* way_to(const Index& i);
  /// The element was last seen from here on a PE that is lost: the home is to be asked, as it may
  /// have left it.
  void forget_lost_place(const Index& i);
  /// This PE has sent the creation of an element to its first home.
  void follow_creation(const Index& i, std::uint32_t home);
  /// Messages that wait on this PE until it is sure which way they have to go.
  [[nodiscard]] std::uint32_t waiting_at(const Index& i) const noexcept;
  [[nodiscard]] std::uint64_t next_number() noexcept { return ++numbers_; }
  [[nodiscard]] std::uint64_t last_number() const noexcept override { return numbers_; }
  /// An element of this array may be sending so much to another one.
  void note_sent(const Index& to, std::uint64_t sent);
  /// Bytes from an element of this PE to others, since they are measured.
  [[nodiscard]] static typename cell_type::traffic_list traffic_of(const cell_type& from);
  /// Finds the process for a message; null if it was dealt with. `tag`: of messages whose order is
  /// kept.
  slot* route(const routed_kind& kind, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
              const route_head& h, const Index& i, order_tag tag = {});
  /// Its parts, where the element is not here; `a`: what is known of it, or null.
  bool pass_on(const routed_kind& kind, remote_location* a, scheduler::delivery& d, const wire::envelope& e,
               std::uint32_t size, const route_head& h, const Index& i, order_tag tag);
  slot* route_at_home(const routed_kind& kind, remote_location* a, scheduler::delivery& d, const wire::envelope& e,
                      std::uint32_t size, const route_head& h, const Index& i, order_tag tag);
  /// The streams of an index went on elsewhere while it had no element, or another one. False if
  /// that is not kept here.
  bool merge_streams(const Index& i, const inbox::counts& streams);
  void tell_location(const route_head& h, const Index& i, const cell_type* c);
  /// A probe, and what went before it, is lost.
  void tell_nowhere(const route_head& h, const Index& i);
  /// The same where the array has ended, and not yet where the message came from.
  static void tell_ended(pe& self, std::uint32_t array, const route_head& h, const Index& i);
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
  /// A creation comes to this PE. True if it has to wait, as messages that were sent from here
  /// before are still under way.
  [[nodiscard]] bool creation_waits(const Index& i) const;
  void hold_creation(const Index& i, scheduler::message* m);
  [[nodiscard]] bool is_held(const Index& i) const noexcept;
  void create_held(const Index& i, remote_location& a);
  /// A probe has come where a creation is held: if it is that one's, what was sent before is here,
  /// and the element is created. Else false.
  bool way_is_clear(const Index& i, const route_head& h);

 private:
  [[nodiscard]] std::uint32_t rank_of_home(const Index& i) const { return settings_.home(i, about().pes.count()); }
  [[nodiscard]] home_queue* find_home_queue(const Index& i) const noexcept;
  void drop_location(remote_location* a) noexcept;
  [[nodiscard]] remote_location* find_location(const Index& i) const noexcept;
  remote_location& make_location(const Index& i, std::uint32_t pe, bool is_home);
  /// Removes what is known of elsewhere; gives back the messages that wait.
  [[nodiscard]] scheduler::message* erase_remote_location(const Index& i);
  // --- order; part_order.hpp
  slot* pass_element(cell_type& c, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size, const Index& i,
                     order_tag tag);
  slot* pass_home(const routed_kind& kind, remote_location* a, scheduler::delivery& d, const wire::envelope& e,
                  std::uint32_t size, const route_head& h, const Index& i, order_tag tag);
  bool create_for(const routed_kind& kind, remote_location* a, const route_head& h, const Index& i);
  [[nodiscard]] inbox* streams_of(const Index& i) const noexcept;
  void release_next(const Index& i, std::uint64_t stream);
  void end_stream(const Index& i, std::uint64_t stream);
  void send_streams(const Index& i, std::uint32_t pe, wire::unique_ptr<inbox> in);
  [[nodiscard]] inbox& inbox_of(remote_location& a) {
    if (a.in == nullptr) a.in = wire::make_unique<inbox>();
    return *a.in;
  }
  void dispatch_all(scheduler::message* m) {
    while (m != nullptr) dispatch(self_, std::exchange(m, m->next));
  }
  void send_route_probe(const Index& i, remote_location& a);
  bool probe_first_home(const Index& i, remote_location& a);
  bool keep_early(const routed_kind& kind, remote_location& a, scheduler::delivery& d, const wire::envelope& e,
                  std::uint32_t size, const route_head& h, const Index& i);
  /// An element has been created, or was to be, and the PE is lost: not again and again.
  [[nodiscard]] static route_head once_tried(route_head h) noexcept {
    h.flags |= route_head::tried;
    return h;
  }
  [[nodiscard]] std::exception_ptr lost(const Index& i, std::uint32_t pe) const;
  void sweep();
  void mark_deleted(const Index& i, std::uint32_t birth, const inbox::counts& streams, std::uint32_t where);
  void tell_homes(const Index& i, std::uint32_t pe);
  void place(const Index& i, cell_type& c);
  void take_out(const cell_type& c);
  [[gnu::noinline]] scheduler::slot* find_process_in_table(const Index& i) const noexcept;
  void report_arrival(const cell_type& c);

  // Done by the class of the elements.
  [[nodiscard]] virtual cell_type* make_cell(const Index& i) = 0;
  /// The object must have ended.
  virtual void free_cell(cell_type& c) noexcept = 0;
  virtual void end_object(cell_type& c) = 0;
  virtual void pack_object(cell_type& c, bytes& to) = 0;

  const element_class_facts& elements_;
  settings settings_;
  homes homes_;
  const wire::unique_ptr<index_tables<Index>> tables_;
  mutable lookaside<Index> lookaside_;
  std::uint64_t numbers_ = 0;
  std::uint32_t births_given_ = 0;
  std::size_t cached_ = 0;  // entries of elsewhere of which this is no home
  std::size_t sweep_at_ = 0;
  std::uint64_t early_bytes_ = 0;
  scheduler::message* early_ = nullptr;  // what place found waiting, oldest first
  wire::unique_ptr<inbox> taken_;  // what erase_remote_location found of streams
  bool in_release_ = false;
};

template <class Index>
index_part<Index>& index_part_of(pe& self, std::uint32_t id) {
  array_core* p = array_directory::of(self).find(id);
  if (p == nullptr) [[unlikely]]
    throw_no_array(id);
  return static_cast<index_part<Index>&>(*p);
}

}  // namespace orrery::detail
