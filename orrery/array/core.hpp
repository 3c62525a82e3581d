// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array_pes.hpp>
#include <orrery/array/directory.hpp>
#include <orrery/array/order.hpp>
#include <orrery/array/reduction.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

// The part of an array on one PE, as far as it does not depend on the types of elements and
// indices: who lives here, broadcasts and reductions. Glossary:
//   cell     an element with what the array has to know of it; its process's object lies in it
//   root     the PE that numbers broadcasts and ends reductions: the one that made the array
//   parent, children   of this PE in the spanning tree over all PEs, with the root at its top
namespace orrery::detail {

class section_core;

/// A section that an element belongs to (section.hpp). Travels with it.
struct membership {
  std::uint64_t section = 0;
  std::uint32_t home = 0;  ///< PE where the element's contributions are counted
  std::uint32_t contributed = 0;  ///< reductions of the section so far
  std::uint32_t broadcasts = 0;  ///< broadcasts of the section that it has executed
  /// A broadcast that has come before one that was sent before it, by another way. Each counts as
  /// begun.
  struct early_broadcast {
    std::uint32_t number = 0;
    std::uint32_t handler = 0;
    bytes message;  ///< on the wire; empty: it failed, and only counts
  };
  std::vector<early_broadcast> early;

  /// True if it is the turn of that broadcast, which counts as executed then.
  bool take_turn(std::uint32_t number, bool whatever_is_missing) noexcept {
    if (number != broadcasts + 1 && !whatever_is_missing) return false;
    broadcasts = std::max(broadcasts, number);
    return true;
  }
};

/// The array's knowledge of an element of this PE.
struct cell_base {
  array_core* part = nullptr;
  slot* process = nullptr;
  std::uint32_t position = 0;  ///< among the part's cells
  std::uint32_t broadcasts = 0;  ///< that the element has got, or that are in its mailbox
  std::uint32_t reductions = 0;  ///< that it has contributed to
  std::uint32_t birth = 0;  ///< tells it from others with this index, before and after it
  std::uint32_t moves = 0;  ///< migrations so far
  bool ended = false;  ///< it was destroyed: only its destructor may still run
  std::uint64_t load_ns = 0;  ///< in its methods, while that is measured
  std::unique_ptr<std::vector<membership>> sections;  ///< mostly null
  std::unique_ptr<order_state> order;  ///< mostly null

  [[nodiscard]] order_state& order_of() {
    if (order == nullptr) order = std::make_unique<order_state>();
    return *order;
  }
};

/// A broadcast on one PE: the arguments, until every element here has executed it and none can come
/// that has not.
struct broadcast_record {
  std::uint32_t number = 0;
  std::uint32_t holders = 0;  ///< messages in mailboxes, and the buffer of past broadcasts
  std::uint32_t left = 0;  ///< messages in mailboxes
  bool ours = false;  ///< begun on this PE
  array_core* part = nullptr;
  const array_handler* member = nullptr;  ///< of the messages to elements
  const array_handler* method = nullptr;  ///< of the broadcast
  virtual ~broadcast_record() = default;
  virtual void append_arguments(bytes& b) const = 0;
};

/// A broadcast that an element has got but not executed, on its way with the element.
struct pending_broadcast {
  std::uint32_t method = 0;  ///< in the table of handlers
  bytes arguments;
};

/// A reduction that is not over. (Paper: "Reductions", figure 7.)
struct open_reduction {
  std::uint32_t number = 0;
  std::uint32_t have = 0;  ///< elements that live here and have contributed
  bool here_done = false;  ///< all that lived here had
  bool tree_done = false;  ///< at the root: the parts of all PEs are in
  std::uint32_t children_left = 0;
  std::uint64_t contributions = 0;
  std::int64_t births = 0;  ///< created less destroyed
  std::unique_ptr<accumulator> value;
  std::unique_ptr<reduction_target> target;
  std::exception_ptr error;
};

/// Elements contributed values of different kinds: that is its result.
void mixed(open_reduction& r);

/// See above. Owned by the PE's directory; used on the PE's thread.
///
/// Broadcasts (paper, "Broadcasts"): numbered by the root, sent down the tree, so that they arrive
/// everywhere in one order. Each element has the count of those it has got. One that arrives by
/// migration gets what it has missed out of `past_`, and what it had already is not delivered
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
/// (`departed_contributions_`); one destroyed after its PE is through, but before its contribution,
/// is taken back at the root. A PE without elements is told that a reduction has begun, if its
/// parent knows that such a PE is below (`has_empty_pes`). One that has elements hears of it from
/// them: by a contribution, or by the arrival of one that has contributed elsewhere.
///
/// Invariants: (1) past_ holds the broadcasts from low_ + 1 to received_; (2) open_ is sorted by
/// number, and local completion is in that order;
/// (3) have of each reduction counts the cells with reductions >= number, and a reduction that is
///     not open and not over has none.
class array_core {
 public:
  struct description {
    std::uint32_t id = 0;
    std::uint32_t root = 0;
    array_pes pes;
    std::uint32_t branching = 4;
    std::string name;
    /// In the spanning tree. Not of the root.
    [[nodiscard]] std::uint32_t parent_of(std::uint32_t pe) const noexcept;
    [[nodiscard]] std::vector<std::uint32_t> children_of(std::uint32_t pe) const;
    template <class A>
    void serialize(A& a) {
      a & id & root & pes & branching & name;
    }

   private:
    [[nodiscard]] std::uint64_t place_of(std::uint32_t pe) const noexcept;
    [[nodiscard]] std::uint32_t at_place(std::uint64_t place) const noexcept;
  };

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
  /// in order.
  [[nodiscard]] std::vector<pending_broadcast> pack_broadcasts(scheduler::message*& mailbox);
  /// Before arrived.
  void unpack_broadcasts(cell_base& c, const std::vector<pending_broadcast>& all);
  /// It goes to another PE.
  void departed(cell_base& c, std::uint32_t to);
  /// The world ends, and it with it.
  void abandon(cell_base& c) noexcept { take_out(c); }
  /// It is destroyed.
  void died(cell_base& c);

  // --- broadcasts --------------------------------------------------------------------------------
  /// Sends a broadcast: `method` is its handler, `arguments` its second section. May park while
  /// this PE has many under way, if the caller is not an element of the array. Throws stopped,
  /// node_lost (a part of the array is gone).
  void broadcast(const array_handler& method, std::span<const std::byte> arguments);
  /// The same without waiting.
  void broadcast_now(const array_handler& method, std::span<const std::byte> arguments);
  /// A broadcast arrives.
  void receive_broadcast(const array_handler& method, std::span<const std::byte> payload);
  void release(broadcast_record* r) noexcept;  ///< gives up one hold
  void executed(broadcast_record* r) noexcept;  ///< one message of it is out of its mailbox
  void acknowledge(std::uint32_t number, std::uint32_t child);  ///< a child has it
  void fence(std::uint32_t number, std::uint32_t from);
  void fence_answered(std::uint32_t number);
  [[nodiscard]] std::size_t past_size() const noexcept { return past_.size(); }

  // --- reductions --------------------------------------------------------------------------------
  /// An element contributes its next value.
  template <class V, class Op>
  void contribute(cell_base& c, V&& value, const reduction_target* target) {
    using reducer = typed_reducer<std::decay_t<V>, Op>;
    if (c.ended) [[unlikely]] {
      report_ended(c, "contributes");
      return;
    }
    const std::uint32_t n = c.reductions + 1;
    if (n <= done_) [[unlikely]] {
      auto a = std::make_unique<typed_accumulator<std::decay_t<V>, Op>>();
      a->add(std::forward<V>(value));
      c.reductions = n;
      send_late(n, 1, 0, std::move(a), target);
      return;
    }
    open_reduction& r = open(n);
    if (r.target == nullptr && target != nullptr) r.target = std::make_unique<reduction_target>(*target);
    if (r.value == nullptr) r.value = std::make_unique<typed_accumulator<std::decay_t<V>, Op>>();
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
  /// The contribution of a child, or of a late element.
  struct partial_result {
    static constexpr std::uint32_t no_child = ~0U;
    std::uint64_t section = 0;  ///< 0: of the whole array
    std::uint32_t number = 0;
    std::uint32_t child = no_child;  ///< PE
    std::uint64_t contributions = 0;
    std::int64_t births = 0;
    bool late = false;
    bool has_empty_pes = false;
    bool has_target = false;
    bool failed = false;  ///< an exception comes instead of a value
    template <class A>
    void serialize(A& a) {
      a & section & number & child & contributions & births & late & has_empty_pes & has_target & failed;
    }
  };
  void receive_partial(const partial_result& p, std::unique_ptr<accumulator> value,
                       std::unique_ptr<reduction_target> target, std::exception_ptr error);
  void receive_start(std::uint32_t number);
  void receive_empty_pes(std::uint32_t child);
  [[nodiscard]] std::size_t open_reductions() const noexcept { return open_.size(); }
  /// The array is being destroyed, or not any more as that has failed: meanwhile no reduction ends,
  /// as not all that has to would be in it, and no section is told who has ended.
  void begin_end() noexcept { ends_ = true; }
  void give_up_end();
  [[nodiscard]] bool ends() const noexcept { return ends_; }
  void leave_if_it_stays(membership m, bytes index) { late_leaves_.push_back({std::move(m), std::move(index)}); }
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
  /// What was begun on this PE and what has ended here: messages, methods, creations, migrations,
  /// parts of reductions. Over all PEs they are equal when there is nothing to do, and only then.
  struct activity {
    std::uint64_t begun = 0;
    std::uint64_t over = 0;
    bool operator==(const activity&) const = default;
    template <class A>
    void serialize(A& a) {
      a & begun & over;
    }
  };
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
  [[nodiscard]] section_core* find_section(std::uint64_t id) const noexcept {
    const auto it = sections_.find(id);
    return it != sections_.end() ? it->second : nullptr;
  }
  void add_section(std::uint64_t id, section_core& s) { sections_.emplace(id, &s); }
  void remove_section(std::uint64_t id) noexcept { sections_.erase(id); }
  /// Sends a member those of its early broadcasts whose turn it is; when messages were lost, all.
  void release_early(membership& m);
  /// Notes that the broadcast failed before the member could execute it: later ones do not wait for
  /// it.
  void skip_broadcast(membership& m, std::uint32_t number);
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
    explicit ending(array_core& part) noexcept : part_(part) { ++part_.ending_; }
    ending(const ending&) = delete;
    ending& operator=(const ending&) = delete;
    ~ending() {
      if (--part_.ending_ == 0) part_.tell_ends();
    }

   private:
    array_core& part_;
  };
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
  struct ack_round {
    std::uint32_t number;
    std::uint32_t left;
  };
  struct child {
    std::uint32_t pe;
    std::uint32_t done = 0;  // its last reduction
    bool has_empty_pes = true;  // below it are PEs without elements, as far as is known
  };

  void deliver(broadcast_record& r);
  void post_to(cell_base& c, broadcast_record& r);
  void catch_up(cell_base& c);
  void forget_past(std::uint32_t low) noexcept;
  void begin_ack(std::uint32_t number);
  void ack_step(std::uint32_t number);
  void pass_acks();

  open_reduction& open(std::uint32_t number);
  void start_at(const child& c, std::uint32_t number);
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
  void send_late(std::uint32_t number, std::uint64_t contributions, std::int64_t births, std::unique_ptr<accumulator> a,
                 const reduction_target* target);
  [[nodiscard]] bool has_empty_pes() const noexcept;
  void tell_of_empty_pes();

  description about_;
  std::uint32_t parent_ = 0;
  std::vector<child> children_;
  std::vector<cell_base*> cells_;
  activity activity_;

  std::uint32_t numbered_ = 0;  // at the root
  std::uint32_t low_ = 0;
  std::uint32_t received_ = 0;
  std::uint32_t own_ = 0;  // broadcasts of this PE that its elements have not all executed
  std::deque<broadcast_record*> past_;
  std::deque<ack_round> acks_;  // by number
  std::vector<std::uint32_t> departed_to_;  // PEs, since the last fence

  std::uint32_t done_ = 0;  // reductions through which this PE is
  std::uint32_t passed_ = 0;  // that were sent to the parent
  std::int64_t births_ = 0;
  // last reduction of destroyed elements, how many
  std::vector<std::pair<std::uint32_t, std::uint32_t>> departed_contributions_;
  std::deque<open_reduction> open_;
  std::unordered_map<std::uint64_t, section_core*> sections_;  // whose agent is here
  std::uint32_t sections_made_ = 0;
  std::uint32_t shares_ = 0;  // of ranges that are being made here
  std::uint32_t before_shares_ = 0;  // broadcasts
  std::uint32_t ending_ = 0;
  std::vector<std::uint64_t> wait_for_ends_;  // calls
  struct late_leave {
    membership of;
    bytes index;
  };
  std::vector<late_leave> late_leaves_;  // members that have ended with the array
  bool told_of_empty_pes_ = true;
  bool measures_ = false;
  std::vector<std::uint32_t> lost_;  // PEs of the array that are gone
  bool lossy_ = false;
  bool ends_ = false;
};

/// Adds a value, or an exception that came instead, to a reduction; a value of another kind makes
/// it fail.
void add_up(open_reduction& r, std::unique_ptr<accumulator> value, std::exception_ptr error);
/// Sends a part of a reduction of an array to its part on another PE: a value, or the exception
/// that it ended with here.
void send_partial(pe& self, std::uint32_t to, std::uint32_t array, array_core::partial_result p, const accumulator* a,
                  const reduction_target* target, std::exception_ptr error = {});
/// Answers a call that has no result from another PE, after what was sent there before; `error`:
/// with that, of this method.
void answer_from(pe& self, std::uint32_t pe_there, std::uint32_t array, caller to,
                 const scheduler::handler* method = nullptr, const std::exception_ptr& error = {}) noexcept;
/// A reduction will never be over, as what it was over was destroyed: who waits for its result is
/// told.
void fail_unfinished(pe& self, const std::string& what, const reduction_target* target) noexcept;
/// The result goes where it has to.
void deliver_reduction(pe& self, const accumulator* value, const reduction_target* target,
                       std::exception_ptr error) noexcept;

/// Something of an array that has begun ends with this.
class activity_end {
 public:
  explicit activity_end(array_core* part) noexcept : part_(part) {}
  activity_end(const activity_end&) = delete;
  activity_end& operator=(const activity_end&) = delete;
  ~activity_end() {
    if (part_ != nullptr) part_->over();
  }

 private:
  array_core* part_;
};
/// Counts for an array from where it is made to where it ends, wherever its message takes it; so it
/// is an argument of that: whether it is executed, unreadable or fails, it ends once.
class counted_activity {
 public:
  counted_activity() = default;
  explicit counted_activity(array_core& part) noexcept : array_(part.id()) { part.begins(); }
  counted_activity(counted_activity&& o) noexcept : array_(std::exchange(o.array_, 0)) {}
  counted_activity& operator=(counted_activity&&) = delete;
  ~counted_activity();
  /// It has gone to another node, as bytes.
  void has_left() noexcept { array_ = 0; }
  template <class A>
  void serialize(A& a) {
    a & array_;
  }
  /// The route of messages to a process, whose first argument this is.
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) noexcept;
  /// Their handler::lost.
  static bool lost(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t to,
                   const scheduler::unknown_message* unknown) noexcept;

 private:
  std::uint32_t array_ = 0;
};

/// handler::lost of broadcasts on their way. The elements below a PE whose program does not have
/// the method do not get it: that is reported.
bool lost_broadcast(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t to,
                    const scheduler::unknown_message* unknown) noexcept;

/// Parks until nothing of an array is queued, running or on its way. Throws usage_error, node_lost,
/// stopped, process_gone.
void wait_for_quiescence(std::uint32_t array);
/// The sums over all PEs of what was begun there and of what has ended, looked at one after the
/// other. If two such looks find the same, and as much ended as begun, then nothing of the array
/// has happened between them. Parks. Throws node_lost, process_gone.
[[nodiscard]] array_core::activity activity_of(std::uint32_t array);

/// Around a method of an element, whose time is measured if that is asked for.
class load_scope {
 public:
  explicit load_scope(const cell_base& c) noexcept {
    if (c.part->measures()) [[unlikely]]
      begin(c);
  }
  load_scope(const load_scope&) = delete;
  load_scope& operator=(const load_scope&) = delete;
  ~load_scope() {
    if (process_ != nullptr) [[unlikely]]
      end();
  }

 private:
  void begin(const cell_base& c) noexcept;
  void end() noexcept;
  pe* self_ = nullptr;
  array_core* part_ = nullptr;
  slot* process_ = nullptr;
  std::uint32_t position_ = 0;
  std::uint64_t parks_ = 0;
  std::int64_t begin_ = 0;
};

}  // namespace orrery::detail
