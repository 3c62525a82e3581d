// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/service/range_process.hpp>
#include <orrery/service/session_options.hpp>
#include <orrery/wire/error.hpp>

#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::service {

/// A range, and the least key that belonged to it. The first range of a service has none: all
/// lesser keys belong to it.
struct directory_entry {
  bytes least;
  remote<range_process> owner;
  std::uint64_t version = 0;  ///< see owned_keys
};

/// The answer to a program that opens a service.
struct opening {
  /// In no order; each range owned the keys up to the next one's once.
  std::vector<directory_entry> directory;
  /// The process for the requests of sessions whose level is `total`; null: there is none.
  remote<range_process> head;
};

/// Where the next range is to be.
struct range_place {
  std::uint32_t pe = 0;
  remote<range_process> idle;  ///< a range there that owns no keys; null: one is to be made
};

/// The process that a service is known by.
///
/// Problem: a client needs something to begin with, and a service a place that knows all its
/// processes.
///
/// The root knows the kind of the service, the types of its keys and values, its ranges and the PEs
/// that it is on. A client asks it once; later it learns from ranges what has changed. A range that
/// changes hands of keys calls the root, for a place, and to tell it, before it does anything else:
/// so the directory is never wrong, only old. Ranges that own no keys any more stay, as sessions
/// may still ask them, and are used again.
///
/// The root is reentrant: it waits for ranges (their reports, their end, balance()) while they call
/// it.
///
/// Made by who makes the service; lives until end() and destroy, or until its node is lost: then
/// ranges go on, but do not split any more, and no further client can open the service.
class service_root {
 public:
  static constexpr bool orrery_reentrant = true;
  static constexpr std::uint32_t first_limit = 1U << 16U;  ///< where it is automatic

  service_root(std::string kind, std::string types, std::vector<std::uint32_t> pes);

  /// Throws usage_error if the service is of another kind or for other types. The error says how
  /// types with the same name differ.
  void check(const std::string& kind, const std::string& types) const;
  /// The same, and who has the keys.
  opening open(const std::string& kind, const std::string& types) const;
  /// Whether it is of this kind, for these types.
  bool is_of(const std::string& kind, const std::string& types) const { return kind == kind_ && types == types_; }

  /// A place for a range on this PE. Throws process_gone if the service ends.
  range_place place_on(std::uint32_t pe);
  /// The same on all PEs of the service in turn.
  range_place next_place();
  /// A range has come, with keys from `least` on.
  void add(bytes least, remote<range_process> owner, std::uint64_t version);
  /// `fresh` has the keys of `old`, which is idle now.
  void replace(remote<range_process> old, remote<range_process> fresh, std::uint64_t version);
  /// The range before it has the keys of `old`, which is idle now.
  void retire(remote<range_process> old);

  /// All ranges split when they have more than so many items, from now on; also those that are
  /// added later.
  void tune(std::uint32_t items);
  /// The process with the order of all requests (consistency::total).
  void set_head(remote<range_process> head) { head_ = head; }
  /// Ranges are balanced from now on whenever they have done enough; `items`: above which they
  /// split (`tuning::automatic`: see balance).
  void set_balancing(bool on, std::uint32_t items);
  /// A range has done so many requests more.
  void note_work(std::uint64_t requests);
  /// Splits, joins and moves ranges by what they have done since the last time (plan_balance).
  /// Returns how many orders were carried out. Where the size of ranges is automatic, it becomes
  /// what makes 8 ranges for each PE, if it is not about that.
  std::uint32_t balance();

  /// Destroys all ranges, and the head.
  void end();
  /// The work of all ranges, in the order of open(). Not at one moment. Those that are lost are
  /// missing.
  std::vector<range_report> reports() const;

 private:
  struct done_before {
    std::uint64_t requests = 0;
    std::uint64_t busy_ns = 0;
  };

  void tune_limit(std::uint64_t items);
  void set_limit(std::uint32_t items);

  std::string kind_;
  std::string types_;
  std::vector<std::uint32_t> pes_;
  std::size_t next_ = 1;  // the first range is on the first PE
  std::vector<directory_entry> directory_;
  std::vector<remote<range_process>> idle_;
  remote<range_process> head_;
  std::uint32_t tuned_ = 0;  // 0: ranges are as they were made
  std::uint32_t limit_ = 0;
  bool tunes_limit_ = false;
  std::map<address, done_before> before_;  // of the last balance()
  std::uint64_t work_ = 0;  // since then
  bool balancing_ = false;
  bool balances_now_ = false;
  bool ended_ = false;
};
ORRERY_PROCESS(service_root, check, open, is_of, place_on, next_place, add, replace, retire, tune, set_head,
               set_balancing, note_work, balance, end, reports);

/// The error for the holder of a handle when the service has ended, or the handle names none.
[[nodiscard]] process_gone ended_for_a_handle(std::string_view kind);
[[nodiscard]] usage_error names_no_service(std::string_view kind);
/// `why`, a node_lost; if the node of the root is not there any more, that says what it means.
[[nodiscard]] std::exception_ptr lost_for_a_handle(const remote<service_root>& root, std::string_view kind,
                                                   std::exception_ptr why);

/// f(root) for who holds a handle. Throws as f, and with a text that names the kind usage_error for
/// a handle that names no service, and process_gone if the service has ended.
template <class F>
decltype(auto) ask_root(const remote<service_root>& root, std::string_view kind, F f) {
  if (!root) throw names_no_service(kind);
  try {
    return f(root);
  } catch (const process_gone&) {
    throw ended_for_a_handle(kind);
  } catch (const node_lost&) {
    std::rethrow_exception(lost_for_a_handle(root, kind, std::current_exception()));
  }
}

/// service_root::open for who holds a handle. Parks. Throws usage_error, also for a handle that
/// names no service, process_gone if the service has ended, node_lost, stopped.
[[nodiscard]] opening open_service(const remote<service_root>& root, const std::string& kind, const std::string& types);

}  // namespace orrery::service
