// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array_pes.hpp>
#include <orrery/process/future.hpp>
#include <orrery/process/result_sink.hpp>
#include <orrery/process/send.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

// The arrays of a PE, and how their parts talk to each other.
namespace orrery::detail {

class array_core;
class outbox;
struct broadcast_record;
struct cell_base;
class array_directory;
using bytes = std::vector<std::byte>;

/// Which message of which stream this is (order.hpp); stream 0: of none.
struct order_tag {
  std::uint64_t stream = 0;
  std::uint64_t number = 0;
};

/// The handler of a message to elements. All of them have a route; so a message in a mailbox is
/// known to have this class of handler.
struct array_handler : scheduler::handler {
  using forward_function = void (*)(array_core&, cell_base&, scheduler::message*);
  using describe_function = void (*)(wire::shape&);
  using route_function = slot* (*)(pe&, scheduler::delivery&, const wire::envelope&, std::uint32_t);

  array_handler(std::string_view of, std::string_view method_name, std::string_view parameters,
                void (*run_it)(pe&, slot&, scheduler::delivery&), void (*move_it)(void*, void*), void (*drop_it)(void*),
                std::uint32_t payload, bool has_views, route_function r, forward_function f,
                describe_function types = nullptr) noexcept
      : handler(of, method_name, parameters, run_it, move_it, drop_it, payload, has_views, types), forward(f) {
    route = r;
  }
  /// The element that has the message in its mailbox leaves its PE or has ended: sends the message
  /// after it. Takes the message over.
  forward_function forward;
  /// For broadcasts on their way: makes the record of the arguments.
  std::unique_ptr<broadcast_record> (*decode)(std::span<const std::byte> arguments) = nullptr;
  /// True for broadcasts in mailboxes.
  bool is_member = false;
  /// For messages whose order is kept.
  order_tag (*tag_of)(const scheduler::message&) = nullptr;
  /// For messages that are routed; null: following_kind.
  const struct routed_kind* kind = nullptr;
  /// For the last messages of streams: sends one to an index.
  void (*close)(pe& self, std::uint32_t array, std::string_view index, order_tag tag) = nullptr;
};

/// Handlers of messages that are dealt with where they arrive, by their route.
struct control_handler : array_handler {
  control_handler(std::string_view name, route_function r, describe_function types = nullptr,
                  std::string_view key = "control") noexcept
      : array_handler("(array)", name, key, &never_run, &never_relocate, &never_drop, 0, false, r, nullptr, types) {
    lost = &nobody_misses_it;
  }
  static bool nobody_misses_it(pe&, const scheduler::handler&, std::span<const std::byte>, std::uint32_t,
                               const scheduler::unknown_message*) noexcept {
    return true;
  }
  static void never_run(pe&, slot&, scheduler::delivery& d) { d.release(); }
  static void never_relocate(void*, void*) {}
  static void never_drop(void*) {}
};

/// Handlers of messages that bring an element, serialized: their route makes its process, which
/// runs them first.
struct birth_handler : array_handler {
  birth_handler(std::string_view of, std::string_view name, std::string_view parameters,
                void (*run_it)(pe&, slot&, scheduler::delivery&), route_function r, describe_function types) noexcept
      : array_handler(of, name, parameters, run_it, &control_handler::never_relocate, &control_handler::never_drop, 0,
                      false, r, &forget, types) {}
  // the element ends before it was there
  static void forget(array_core& part, cell_base&, scheduler::message* m);
};

/// A route for messages that never leave their PE.
slot* refuse_route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) noexcept;

// --- bytes ---------------------------------------------------------------------------------------

/// Where the second section of a message begins: so that it can be written, moved and read on its
/// own.
inline constexpr std::size_t section_size = wire_alignment;
[[nodiscard]] constexpr std::size_t section_end(std::size_t n) noexcept {
  return (n + section_size - 1) / section_size * section_size;
}

/// The first section of a message: the values, filled up. `more` bytes of room are added.
template <class... V>
[[nodiscard]] bytes pack(std::size_t more, const V&... values) {
  const std::size_t n = orrery::wire_size(values...);
  bytes b(section_end(n) + more);
  orrery::writer w(std::span<std::byte>(b).first(n));
  orrery::write(w, values...);
  return b;
}
/// Appends values as a section of their own.
template <class... V>
void pack_after(bytes& b, const V&... values) {
  const std::size_t begin = b.size();
  b.resize(begin + orrery::wire_size(values...));
  orrery::writer w(std::span<std::byte>(b).subspan(begin));
  orrery::write(w, values...);
}
/// Reads what follows the first section, of which `r` has read everything. Throws bad_message.
[[nodiscard]] std::span<const std::byte> after_section(std::span<const std::byte> all, const orrery::reader& r);

/// The payload of a wire message that is being routed.
[[nodiscard]] inline std::span<const std::byte> wire_payload(const scheduler::delivery& d, const wire::envelope& e,
                                                             std::uint32_t size) noexcept {
  // A message of another node has the length that it had when it came: `e` lies in memory that node
  // can write.
  const bool checked = d.heap != nullptr || d.remote;
  return {d.payload, checked ? d.payload_bytes : std::size_t{size} - wire::granule - e.padding};
}

// --- sending -------------------------------------------------------------------------------------

/// Counts a message to an element that goes to another PE; `first`: it leaves the PE where it was
/// sent.
inline void note_hop(pe& self, bool first) noexcept {
  scheduler::counters& n = self.count();
  ++n.hops;
  if (first) ++n.routed;
}
/// Sends a serialized message to a PE, from anywhere: never parks and throws nothing. Such
/// messages, and all others to that PE, arrive in the order sent; those too large for a ring travel
/// in pieces. `slot` and `generation` are the handler's to use. Messages for a lost node are
/// dropped. `level`: the kind of its record, where it is for an element.
void tell(pe& self, std::uint32_t to, const scheduler::handler& h, std::uint32_t slot, std::uint32_t generation,
          std::span<const std::byte> payload, wire::record_kind level = wire::record_kind::message) noexcept;
/// Sends a serialized message to a process of another PE, in pieces where it is too large for a
/// ring. Never parks. Throws node_lost, world_error.
void tell_process(pe& self, address to, const scheduler::handler& h, std::span<const std::byte> payload);
/// A message of the PE's own memory with a serialized payload.
[[nodiscard]] scheduler::message* wire_message(pe& self, const scheduler::handler& h, std::uint32_t slot,
                                               std::uint32_t generation, std::span<const std::byte> payload);
/// Routes a message that this PE has in its memory, and puts it into the mailbox of its element.
void dispatch(pe& self, scheduler::message* m);
/// Gives back a message that will not be executed.
void discard(pe& self, scheduler::message* m) noexcept;

/// A caller that waits for an answer: a PE and an entry of its table. `call` 0: nobody.
struct caller {
  std::uint32_t pe = 0;
  std::uint64_t call = 0;
  template <class A>
  void serialize(A& a) {
    a & pe & call;
  }
};
/// Answers with a serialized value.
void answer_value(pe& self, caller to, std::span<const std::byte> value) noexcept;
/// Answers with an exception; one-way messages have theirs reported here.
void answer_error(pe& self, caller to, const scheduler::handler* method, std::exception_ptr why) noexcept;

/// The arrays of a PE, and the calls of this PE whose answer is still to come. Owned by the PE,
/// used on its thread.
class array_directory final : public scheduler::layer_state, public scheduler::wait_watcher {
 public:
  explicit array_directory(pe& self);
  ~array_directory() override;

  [[nodiscard]] static array_directory& of(pe& self) {
    auto& state = self.layers().of(scheduler::upper_layer::array);
    if (state == nullptr) [[unlikely]]
      state = std::make_unique<array_directory>(self);
    return static_cast<array_directory&>(*state);
  }

  /// The part of an array on this PE, or null if there is no such array.
  [[nodiscard]] array_core* find(std::uint32_t id) noexcept {
    const cached& c = cache_[id % cache_size];
    if (c.id == id) [[likely]]
      return c.part;
    return find_slow(id);
  }
  /// The array of a process that is to become an element; null if it is none. Slow.
  [[nodiscard]] array_core* part_of_process(const slot& s) const noexcept;
  /// The array of a process that is an element, also in its constructor; null if it is none.
  [[nodiscard]] const array_core* part_around(const slot& s) const noexcept;
  /// A number for a new array. Throws world_error when there are too many.
  [[nodiscard]] std::uint32_t new_id();
  /// This PE in ids, which have room for 18 bits.
  [[nodiscard]] std::uint32_t maker();
  void add(std::uint32_t id, std::unique_ptr<array_core> part);
  void remove(std::uint32_t id) noexcept;

  // --- order (order.hpp) -------------------------------------------------------------------------
  using find_cell = cell_base& (*)(void* object);
  /// The class of elements with this number: how to find their cells.
  void note_elements(std::uint32_t class_number, find_cell f);
  /// The streams of who is sending: the element whose method runs, or this PE.
  [[nodiscard]] outbox& sender();
  /// A name for a stream that begins on this PE; never 0.
  [[nodiscard]] std::uint64_t new_stream() noexcept { return std::uint64_t{maker()} << 40 | ++streams_; }

  /// The name of an array that was destroyed lately; else empty.
  [[nodiscard]] std::string_view name_of_gone(std::uint32_t id) const noexcept;
  /// Registers a sink until its answer comes, or until a PE of that array is lost; 0: of any array
  /// on this PE.
  [[nodiscard]] std::uint64_t expect(scheduler::sink& s, std::uint32_t array);
  /// The same for an array of another program, until a node of that program is gone.
  [[nodiscard]] std::uint64_t expect_as_guest(scheduler::sink& s, std::uint32_t array);
  /// Takes a sink out again, unless what leads to its answer has been sent: for what throws before.
  class expectation {
   public:
    expectation(array_directory& d, scheduler::sink& s, std::uint32_t array) : expectation(d, d.expect(s, array)) {}
    expectation(array_directory& d, std::uint64_t call) : directory_(d), call_(call) {}
    expectation(const expectation&) = delete;
    expectation& operator=(const expectation&) = delete;
    ~expectation() {
      if (call_ != 0) (void)directory_.take(call_);
    }
    [[nodiscard]] std::uint64_t call() const noexcept { return call_; }
    void sent() noexcept { call_ = 0; }

   private:
    array_directory& directory_;
    std::uint64_t call_;
  };
  /// The sink behind a call, which is registered no more; null if it is not known.
  [[nodiscard]] scheduler::sink* take(std::uint64_t call) noexcept { return calls_.take(call); }
  void pes_lost(pe& self) noexcept override;
  void cancel_waits(pe& self) noexcept override;
  void fetch(int step) const noexcept override;
  /// Work of an element counts for its array until it is done (quiescence.cpp).
  std::uint64_t begin_work(const slot& by) noexcept override;
  void end_work(std::uint64_t number) noexcept override;
  [[nodiscard]] std::string name_of(const slot& s) const override;
  [[nodiscard]] std::string explain_waits() const override;

  /// A message from another PE that arrives in pieces.
  struct incomplete_message {
    bytes data;
    std::size_t total = 0;
  };
  [[nodiscard]] incomplete_message& incomplete_from(std::uint32_t pe) { return incomplete_[pe]; }

 private:
  static constexpr std::size_t cache_size = 16;
  static constexpr int fetched_parts = 2;
  struct cached {
    std::uint32_t id = 0;
    array_core* part = nullptr;
  };
  /// The target that a call waits for.
  struct asked {
    std::uint32_t array = 0;  ///< 0: none in particular
    /// For an array of another program: 1 more than the nodes of that one that were gone.
    std::uint32_t guest = 0;
    std::uint32_t began = 0;  ///< `ends_` then
  };
  /// An array that ended here while calls were waiting, which it may have been asked for. Its end
  /// fails them, but the word of that may be lost with a node.
  struct ended_array {
    std::uint32_t id;
    std::uint32_t number;  ///< of its end
    array_pes pes;
    [[nodiscard]] bool concerns(const asked& a) const noexcept {
      return a.guest == 0 && a.began < number && (a.array == 0 || a.array == id);
    }
  };
  [[nodiscard]] std::uint64_t expect(scheduler::sink& s, const asked& about);
  void fail_guests() noexcept;
  /// The cell of a process that is an element, also in its constructor; else null.
  [[nodiscard]] cell_base* cell_of(const slot& s) const noexcept;
  void note_gone(std::uint32_t id, const std::string& name) noexcept;
  void note_end(const array_core& part) noexcept;
  void fail_waits_for_ended() noexcept;
  array_core* find_slow(std::uint32_t id) noexcept;
  /// Ends what waits for something of this array; 0: of no array in particular.
  void fail_waits(std::uint32_t array, const std::exception_ptr& why) noexcept;
  void fail_all(const std::exception_ptr& why) noexcept;

  cached cache_[cache_size];
  pe& self_;
  std::unordered_map<std::uint32_t, std::unique_ptr<array_core>> parts_;
  std::uint32_t ids_ = 0;
  std::deque<std::uint32_t>
      // used again as late as can be: messages to those that have ended may be on their way
      free_ids_;
  std::uint32_t added_ = 0;
  scheduler::call_table<std::uint64_t, 32, asked> calls_;
  std::uint32_t ends_ = 0;  // of arrays
  std::vector<ended_array> ended_;  // with calls that were waiting then and still are
  std::unordered_map<std::uint32_t, incomplete_message> incomplete_;
  std::vector<find_cell> element_classes_;  // by class number
  std::vector<std::pair<std::uint32_t, std::string>> gone_;  // the latest that were destroyed
  std::unique_ptr<outbox> own_streams_;  // of processes that are no elements
  std::uint64_t streams_ = 0;
  std::optional<std::uint32_t> maker_;
};

}  // namespace orrery::detail
