// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/vector_clock.hpp>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace orrery::scheduler {

struct activation;
struct outbound;
struct inbound;
struct message;
struct slot;
class pe;

/// The order of events, while a program is checked: vector clocks of all that runs on a PE.
///
/// Problem: whoever checks accesses to common data has to know which are ordered. Messages, calls,
/// futures and collectives order them, and the layers above build on these. So each method run has
/// a clock, and whatever goes from one to another carries it: a message in a mailbox and the sink
/// of a call in a table beside them, a record to another PE in a record of its own before it
/// (record_kind::annex). Nothing of this exists on a PE that is not checked, and nothing looks for
/// it there but what looks for a trace, too.
///
/// A *strand* is the unit that is ordered in itself: a method run. Its number is taken when it is
/// first stamped, and is used again for a later strand that is known to come after it. Its time
/// goes on when it tells others of itself, if it was stamped since.
///
/// Owned by the node's runtime, made before the PE runs; used on the PE's thread.
class causality {
 public:
  explicit causality(pe& of) noexcept : of_(of) {}
  causality(const causality&) = delete;
  causality& operator=(const causality&) = delete;

  /// The stamp with which an access is remembered.
  struct stamp {
    std::uint64_t strand;
    std::uint64_t time;
    std::uint64_t version;  ///< another one: the clock has changed since, too
  };
  /// The stamp of the running method or function.
  [[nodiscard]] stamp now();
  /// While it lives, what the running method sends tells nobody of it, although it carries the
  /// clock: for a request whose receiver does nothing that is ordered but answer. So looks that
  /// find nothing new leave the method's time as it was, and can be told as one.
  class request_only;
  /// All that comes before what runs now, with its own time.
  [[nodiscard]] const vector_clock& clock();
  /// The running method goes on to a new time: what it did so far is told apart from what follows.
  void tick() noexcept;

  // --- told by the scheduler ---------------------------------------------------------------------
  void begin(const activation& a);
  void end(const activation& a);
  /// A message was made, by what runs or by what arrives.
  void created(const message& m);
  /// Its memory is given back. If what runs now has read it, it comes after it.
  void gone(const message& m);
  /// A later take from `key` comes after what runs now.
  void give(const void* key);
  /// The same for what is kept there once only.
  void give_anew(const void* key);
  void take(const void* key);
  void forget(const void* key) noexcept { kept_.erase(key); }
  /// The running method goes on after it was parked, and comes after the methods of its process
  /// that have ended meanwhile.
  void take_process();

  /// The running method is going to send a record: puts an annex before it. False if there is no
  /// room.
  [[nodiscard]] bool precede(outbound& c) noexcept;
  /// The same as whole records, for who must defer them.
  [[nodiscard]] std::vector<std::vector<std::byte>> annex_records(const outbound& c);
  /// An annex has arrived.
  void receive_annex(const inbound& in, const std::byte* payload, std::size_t bytes, bool first);
  /// The record of the annex arrives; until arrived() it is what runs.
  void arrives(const inbound& in);
  void arrived() noexcept { arriving_ = false; }

 private:
  struct strand {
    vector_clock clock;
    std::uint64_t number = 0;
    std::uint64_t time = 0;  // its own in the clock
    std::uint64_t version = 0;
    bool told = false;  // others know its time: what it does next has a later one
    bool quiet = false;  // see request_only
    void tell() noexcept { told |= !quiet; }
  };
  struct ended {
    std::uint64_t number;
    std::uint64_t time;
  };
  struct process_clock {
    vector_clock clock;
    std::uint32_t generation = 0;
  };
  [[nodiscard]] strand* running();
  void renew_stamp();
  [[nodiscard]] const vector_clock& tell();
  void give_number(strand& s);
  void join(strand& s, const vector_clock& c);

  pe& of_;
  std::unordered_map<const activation*, strand> strands_;
  const activation* latest_ = nullptr;  // whose strand was asked for
  strand* latest_strand_ = nullptr;
  std::unordered_map<const message*, vector_clock> messages_;
  std::unordered_map<const void*, vector_clock> kept_;
  std::unordered_map<const slot*, process_clock> processes_;
  std::unordered_map<std::uint32_t, vector_clock> annexes_;  // by the PE that sends
  vector_clock incoming_;
  bool arriving_ = false;
  std::vector<ended> free_numbers_;
  std::uint64_t last_number_ = 0;
  std::uint64_t last_version_ = 0;
  const vector_clock nothing_;
};

class causality::request_only {
 public:
  /// `of`: null where the program is not checked.
  explicit request_only(causality* of) noexcept : strand_(of != nullptr ? of->running() : nullptr) {
    if (strand_ != nullptr) strand_->quiet = true;
  }
  request_only(const request_only&) = delete;
  request_only& operator=(const request_only&) = delete;
  ~request_only() {
    if (strand_ != nullptr) strand_->quiet = false;
  }

 private:
  strand* strand_;
};

}  // namespace orrery::scheduler
