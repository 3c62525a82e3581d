// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/array_description.hpp>
#include <orrery/array/detail/broadcast_record.hpp>
#include <orrery/array/detail/cell_base.hpp>
#include <orrery/array/detail/directory.hpp>
#include <orrery/array/detail/open_reduction.hpp>
#include <orrery/array/detail/sequence_number.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <string>
#include <vector>

// The part of an array on one PE, as far as it does not depend on the types of elements and
// indices: who lives here, broadcasts and reductions. Glossary:
//   cell     an element with what the array has to know of it; its process's object lies in it
//   root     the PE that numbers broadcasts and ends reductions: the one that made the array
//   parent, children   of this PE in the spanning tree over all PEs, with the root at its top
namespace orrery::detail {

class section_core;

/// The numbers of activities that were begun on this PE and that have ended here: messages,
/// methods, creations, migrations, parts of reductions. Over all PEs they are equal when there is
/// nothing to do, and only then.
struct array_activity {
  std::uint64_t begun = 0;
  std::uint64_t over = 0;
  bool operator==(const array_activity&) const = default;
  template <class A>
  void serialize(A& a) {
    a & begun & over;
  }
};

/// The part of an array on one PE. Owned by the PE's directory; used on the PE's thread.
///
/// Broadcasts (paper, "Broadcasts"): numbered by the root, sent down the tree, so that they arrive
/// everywhere in one order. Each element has the count of those it has got. One that arrives by
/// migration gets what it has missed out of `past`, and what it had already is not delivered
/// again. A past broadcast is forgotten when it is sure that no element will ask for it: each PE
/// has it (children acknowledge to parents), and all that had left a PE before it got there have
/// arrived (a fence is sent after them, and is answered). The root says how far that is, the
/// low-water mark, with the next broadcast. One in `ack_every` asks for it.
///
/// Reductions: contribution k of an element belongs to reduction k. When all elements of a PE have
/// contributed, their value, number and the PE's net births are added to those of the children, and
/// go to the parent. An element that arrives at a PE which is through already sends its
/// contribution to the root. There the reduction is over when all parts are in and contributions
/// equal births. An element destroyed after its contribution counts as alive in that reduction
/// (`departed_contributions`); one destroyed after its PE is through, but before its contribution,
/// is taken back at the root. A PE without elements is told that a reduction has begun, if its
/// parent knows that such a PE is below (`has_empty_pes`). One that has elements hears of it from
/// them: by a contribution, or by the arrival of one that has contributed elsewhere.
///
/// Invariants: (1) past holds the broadcasts from low_.next() to received_, but for those that
/// could not be read here; (2) open is sorted by number, and local completion is in that order;
/// (3) have of each reduction counts the cells with reductions >= number, and a reduction that is
///     not open and not over has none.
class array_core {
 public:
  using description = array_description;

  array_core(pe& self, description s);
  array_core(const array_core&) = delete;
  array_core& operator=(const array_core&) = delete;
  virtual ~array_core();

  [[nodiscard]] pe& self() const noexcept { return self_; }
  [[nodiscard]] const description& about() const noexcept { return about_; }
  [[nodiscard]] std::uint32_t id() const noexcept { return about_.id; }
  /// The rank of this PE among those of the array.
  [[nodiscard]] std::uint32_t rank() const noexcept { return about_.pes.rank_of(self_.id()); }
  [[nodiscard]] const std::vector<cell_base*>& cells() const noexcept { return cells_; }
  /// The number of the last message of this PE to an element elsewhere.
  [[nodiscard]] virtual std::uint64_t last_number() const noexcept = 0;

  // --- who lives here ----------------------------------------------------------------------------
  void reserve_cells(std::size_t n) { cells_.reserve(cells_.size() + n); }
  /// A share of a range begins, or has ended, to be made here. Meanwhile this PE is through with no
  /// reduction, as elements are missing that count in it, and their constructors may contribute;
  /// and it forgets no broadcast, as they are to get all.
  void begin_share();
  void end_share();
  /// A new element; one of a range gets the broadcasts that have come since its share was begun.
  void born(cell_base& c);
  /// One that comes from another PE. It gets the broadcasts that it has missed.
  void arrived(cell_base& c);
  /// Broadcasts that are taken out of a mailbox, to go with their element; so that it executes all
  /// in order. One that cannot be written, or read, is reported.
  [[nodiscard]] std::vector<pending_broadcast> pack_broadcasts(scheduler::message*& mailbox);
  /// Before arrived.
  void unpack_broadcasts(cell_base& c, const std::vector<pending_broadcast>& all) noexcept;
  /// It goes to another PE.
  void departed(cell_base& c, std::uint32_t to);
  /// The world ends, and it with it.
  void abandon(cell_base& c) noexcept { take_out(c); }
  /// It is destroyed.
  void died(cell_base& c);

  // --- broadcasts --------------------------------------------------------------------------------
  /// Sends a broadcast: `method` is its handler, `arguments` its second section. May park while
  /// this PE has many under way, if the caller is not an element of the array. Throws stopped,
  /// node_lost (a part of the array is gone), process_gone (it was destroyed meanwhile).
  void broadcast(const array_handler& method, std::span<const std::byte> arguments);
  /// The same without waiting.
  void broadcast_now(const array_handler& method, std::span<const std::byte> arguments);
  /// A broadcast arrives.
  void receive_broadcast(const array_handler& method, std::span<const std::byte> payload);
  /// One of this PE could not be sent.
  void take_back_broadcast() noexcept { --own_; }
  void release(broadcast_record* r) noexcept;  ///< gives up one hold
  void executed(broadcast_record* r) noexcept;  ///< one message of it is out of its mailbox
  void acknowledge(sequence_number number, std::uint32_t child);  ///< a child has it
  void fence(sequence_number number, std::uint32_t from);
  void fence_answered(sequence_number number);
  [[nodiscard]] std::size_t past_size() const noexcept;

  // --- reductions --------------------------------------------------------------------------------
  /// An element contributes its next value.
  template <class V, class Op>
  void contribute(cell_base& c, V&& value, const reduction_target* target) {
    using reducer = typed_reducer<std::decay_t<V>, Op>;
    if (c.ended) [[unlikely]] {
      report_ended(c, "contributes");
      return;
    }
    const sequence_number n = c.reductions.next();
    if (n <= done_) [[unlikely]] {
      auto a = wire::make_unique<typed_accumulator<std::decay_t<V>, Op>>();
      a->add(std::forward<V>(value));
      c.reductions = n;
      send_late(n, 1, 0, std::move(a), target);
      return;
    }
    open_reduction& r = open(n);
    if (r.target == nullptr && target != nullptr) r.target = wire::make_unique<reduction_target>(*target);
    if (r.value == nullptr) r.value = wire::make_unique<typed_accumulator<std::decay_t<V>, Op>>();
    if (r.value->kind() != &reducer::kind) [[unlikely]] {
      mixed(r);
    } else {
      try {
        static_cast<typed_accumulator<std::decay_t<V>, Op>&>(*r.value).add(std::forward<V>(value));
      } catch (...) {  // the operation: it is what the reduction ends with
        r.error = std::current_exception();
      }
    }
    c.reductions = n;
    ++r.contributions;
    if (++r.have == cells_.size()) complete_here();
  }
  void receive_partial(const partial_result& p, wire::unique_ptr<accumulator> value,
                       wire::unique_ptr<reduction_target> target, std::exception_ptr error);
  void receive_start(sequence_number number);
  void receive_empty_pes(std::uint32_t child);
  [[nodiscard]] std::size_t open_reductions() const noexcept;
  /// The array is being destroyed, or not any more as that has failed: meanwhile no reduction ends,
  /// as not all that has to would be in it, and no section is told who has ended.
  void begin_end() noexcept { ends_ = true; }
  void give_up_end();
  [[nodiscard]] bool ends() const noexcept { return ends_; }
  void leave_if_it_stays(membership m, bytes index);
  /// Those that are not over never will be: who waits for one is told so. Counts for the array and
  /// its sections.
  void fail_reductions() noexcept;
  /// True if a PE of the array is gone of which that was not known.
  [[nodiscard]] bool find_losses() noexcept;
  /// Throws node_lost if a PE of the array is gone: what concerns all elements has no meaning any
  /// more.
  void require_whole(const char* what) const;
  /// A node is gone, and with it a part of the array: reductions that are not over never will be,
  /// and are reported.
  virtual void pes_lost() noexcept;

  // --- quiescence (quiescence.cpp) ---------------------------------------------------------------
  using activity = array_activity;
  void begins(std::uint64_t n = 1) noexcept { activity_.begun += n; }
  void over() noexcept { ++activity_.over; }
  [[nodiscard]] activity active() const noexcept { return activity_; }
  /// The caller is a method, constructor or destructor of an element of this array, or called by
  /// one.
  [[nodiscard]] bool inside_element() const noexcept;
  /// A destructor has asked for what an element cannot do that has ended; it must not throw, so
  /// that is reported.
  void report_ended(const cell_base& c, const char* what) const noexcept;

  // --- sections (section.hpp) --------------------------------------------------------------------
  [[nodiscard]] section_core* find_section(std::uint64_t id) const noexcept;
  void add_section(std::uint64_t id, section_core& s);
  void remove_section(std::uint64_t id) noexcept;
  /// Sends a member those of its early broadcasts whose turn it is; when messages were lost, all.
  void release_early(membership& m);
  /// Notes that the broadcast failed before the member could execute it: later ones do not wait for
  /// it.
  void skip_broadcast(membership& m, sequence_number number);
  /// They will not be executed.
  void drop_early(const membership& m) noexcept {
    for (std::size_t i = 0; i < m.early.size(); ++i) over();
  }
  /// A number for a section that is made on this PE; never 0.
  [[nodiscard]] std::uint64_t new_section() noexcept { return std::uint64_t{self_.id()} << 32 | ++sections_made_; }

  // --- load (balance.hpp) ------------------------------------------------------------------------
  void measure(bool on) noexcept { measures_ = on; }
  [[nodiscard]] bool measures() const noexcept { return measures_; }

  /// While what an element that could not be created had got is sent on: no other one is to be
  /// created for that.
  [[nodiscard]] bool resends_failed() const noexcept { return resends_failed_; }

  /// A node was lost, and messages with it: others do not wait for them any more.
  [[nodiscard]] bool lossy() const noexcept { return lossy_; }

  /// See layer_state::fetch; `step` 0 to 2.
  void fetch(int step) const noexcept;

  /// Sends a creation that a guest (guest.hpp) asks for to its home.
  virtual void create_for_guest(const array_handler& h, std::span<const std::byte> payload) = 0;
  /// The destructor of an element runs in this process.
  [[nodiscard]] virtual bool is_ending(const slot& s) const noexcept = 0;
  /// The element as the program calls it: "grid[3]".
  [[nodiscard]] virtual std::string text_of(const cell_base& c) const = 0;
  /// While the destructor of an element runs, which may park.
  class ending {
   public:
    explicit ending(array_core& part) noexcept : part_(part) { part_.begin_ending(); }
    ending(const ending&) = delete;
    ending& operator=(const ending&) = delete;
    ~ending() { part_.end_ending(); }

   private:
    array_core& part_;
  };
  void begin_ending() noexcept { ++ending_; }
  void end_ending() noexcept {
    if (--ending_ == 0) tell_ends();
  }
  [[nodiscard]] bool has_endings() const noexcept { return ending_ != 0; }
  /// Parks until no destructor of an element of this PE runs.
  void wait_for_ends();
  /// Parks until that, or the end of the array that was under way, is over or was given up.
  void wait_for_news_of_ends();
  void tell_ends() noexcept;
  /// Lines on reductions that are not over, and on messages that wait for elements to be created.
  [[nodiscard]] std::string explain_waits() const;
  struct early_wait {
    std::string element;
    std::uint32_t messages;
  };
  /// At most `most` of those that are waited for.
  [[nodiscard]] virtual std::vector<early_wait> early_waits(std::size_t most) const = 0;

  /// Tells it, on this PE, from other arrays that have had its number.
  std::uint32_t incarnation = 0;

  /// The class of the elements as processes.
  const scheduler::class_info* element_class = nullptr;

 protected:
  pe& self_;
  bool resends_failed_ = false;

 private:
  static constexpr std::uint32_t ack_every = 8;
  static constexpr std::uint32_t own_broadcasts = 16;  // of one PE under way
  /// The lists that no template needs. core_records.hpp has them: only the library reads that.
  struct records;
  struct child {
    std::uint32_t pe;
    sequence_number done = before_first;  // its last reduction
    bool has_empty_pes = true;  // below it are PEs without elements, as far as is known
  };

  void deliver(broadcast_record& r);
  void miss(sequence_number number, bool ours) noexcept;
  void post_to(cell_base& c, broadcast_record& r);
  void catch_up(cell_base& c);
  void forget_past(sequence_number low) noexcept;
  void begin_ack(sequence_number number);
  void ack_step(sequence_number number);
  void pass_acks();

  open_reduction& open(sequence_number number);
  void start_at(const child& c, sequence_number number);
  void complete_here();
  [[nodiscard]] bool may_wait_for_broadcasts() const noexcept;
  void take_out(const cell_base& c) noexcept {
    cells_.back()->position = c.position;
    cells_[c.position] = cells_.back();
    cells_.pop_back();
  }
  void leave_reductions(const cell_base& c);
  void fail_lost_reductions() noexcept;
  void pass_on();
  void finish(open_reduction& r) noexcept;
  void send_late(sequence_number number, std::uint64_t contributions, std::int64_t births,
                 wire::unique_ptr<accumulator> a, const reduction_target* target);
  [[nodiscard]] bool has_empty_pes() const noexcept;
  void tell_of_empty_pes();

  description about_;
  const wire::unique_ptr<records> records_;
  std::uint32_t parent_ = 0;
  std::vector<child> children_;
  std::vector<cell_base*> cells_;
  activity activity_;

  sequence_number numbered_ = before_first;  // at the root
  sequence_number low_ = before_first;
  sequence_number received_ = before_first;
  std::uint32_t own_ = 0;  // broadcasts of this PE that its elements have not all executed

  sequence_number done_ = before_first;  // the last reduction through which this PE is
  sequence_number passed_ = before_first;  // the last that was sent to the parent
  std::int64_t births_ = 0;
  std::uint32_t sections_made_ = 0;
  std::uint32_t shares_ = 0;  // of ranges that are being made here
  sequence_number before_shares_;  // the last broadcast
  std::uint32_t ending_ = 0;
  bool told_of_empty_pes_ = true;
  bool measures_ = false;
  bool lossy_ = false;
  bool ends_ = false;
};

/// Sends a part of a reduction of an array to its part on another PE: a value, or the exception
/// that it ended with here.
void send_partial(pe& self, std::uint32_t to, std::uint32_t array, partial_result p, const accumulator* a,
                  const reduction_target* target, std::exception_ptr error = {});
/// handler::lost of broadcasts on their way. The elements below a PE whose program does not have
/// the method do not get it: that is reported.
bool lost_broadcast(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t to,
                    const scheduler::unknown_message* unknown) noexcept;

}  // namespace orrery::detail
