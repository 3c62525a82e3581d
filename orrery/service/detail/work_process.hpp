// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/client_table.hpp>
#include <orrery/service/request_process.hpp>
#include <orrery/service/waiting_line.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace orrery::service {

/// The requests of batches to a work queue.
struct work_request {
  enum class kind : std::uint8_t { put, done, give_back };

  kind what = kind::put;
  std::uint32_t worker = 0;   ///< of done and give_back: who says it
  std::uint32_t times = 0;    ///< of done and give_back: which time the item was handed out
  std::int32_t priority = 0;  ///< of put and give_back
  std::uint64_t id = 0;       ///< of done and give_back
  bytes item;                 ///< of put
};

/// An item that is handed out.
struct handed_item {
  std::uint64_t id = 0;
  std::uint32_t times = 0;
  std::int32_t priority = 0;
  bytes item;
};

/// How many items a work queue has. At one moment.
struct work_counts {
  std::uint64_t waiting = 0;     ///< for a worker
  std::uint64_t handed_out = 0;  ///< and not done
  std::uint64_t done = 0;        ///< since the beginning
  /// How often an item came back, as its worker gave it back or ended.
  std::uint64_t came_back = 0;

  friend bool operator==(const work_counts&, const work_counts&) = default;
};

/// The process of a work queue.
///
/// Problem: workers die with items in their hands. Each item must be done nevertheless, and no
/// worker may wait for an item that nobody will give.
///
/// An item waits, or is in the hands of one worker. It leaves the queue when that worker says that
/// it is done. The queue holds the presence of each worker; when that ends, what the worker had
/// waits again, in its old place. An item knows how many times it was handed out. A client that
/// says `done` names itself and that time, and is heard only if it has the item: neither another
/// session is, nor a worker that is taken for dead, and is not, which gets no item any more either.
///
/// A worker that finds nothing parks here (the process is reentrant). An item that becomes free
/// goes at once to the worker that has waited longest, so that no item is on the way to a worker
/// that has died.
///
/// An answer may not arrive: an item may be larger than the memory for messages. So workers number
/// their calls of take(), and can ask which items a call has given them.
///
/// Where memory ends, what needs it fails, and changes nothing: each item is either waiting or in
/// the hands of one worker yet, and each worker that waits hears of it.
///
/// Made by work_queue::make; lives until work_queue::end. It knows no types: items are bytes here.
class work_process final : public request_process {
 public:
  static constexpr bool orrery_reentrant = true;

  /// A worker begins; returns its number.
  std::uint32_t begin_worker(remote<presence> worker);
  /// Up to `most` items for the worker, for its call with this number. If there is none and `wait`
  /// is set, parks until there is one, the queue is drained, or cancel(). Throws usage_error if the
  /// worker was taken for dead, stopped.
  std::vector<handed_item> take(std::uint32_t worker, std::uint64_t turn, std::uint32_t most, bool wait);
  /// The items in the hands of the worker that take() has given to this call, without their
  /// content.
  [[nodiscard]] std::vector<handed_item> handed_out(std::uint32_t worker, std::uint64_t turn);
  /// The worker's take() returns at once, with nothing if it has nothing.
  void cancel(std::uint32_t worker) { line_.cancel(worker); }
  /// No further items are taken in.
  void close();
  /// All that wait get nothing; nothing is handed out any more.
  void end_waits();
  [[nodiscard]] work_counts counts() const { return counts_; }
  void worker_gone(std::uint32_t worker);

 private:
  // priority, negative; id: the least is next
  using place = std::pair<std::int64_t, std::uint64_t>;
  struct entry {
    std::int32_t priority = 0;
    std::uint32_t times = 0;  // handed out
    std::uint32_t worker = nobody;
    bytes item;
  };
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};
  struct held {
    std::uint64_t turn = 0;  // the call that has got it
    std::set<place>::node_type waiting;  // to come back without memory
  };
  struct hands {
    std::uint64_t turn = 0;  // the last call of the worker
    std::map<std::uint64_t, held> items;  // by id
  };

  void execute(unpacker& requests, bytes& answers) override;
  void batch_ended() override;
  void describe(range_report& to) override;
  void put(work_request r, bytes& answers);
  [[nodiscard]] bool finish(const work_request& r);
  void come_back(entry& e, held from) noexcept;
  std::vector<handed_item> hand_out(std::uint32_t number, std::uint32_t most);
  void hand_out_next(std::uint32_t number, std::vector<handed_item>& to);
  [[nodiscard]] bool drained() const noexcept { return ended_ || (closed_ && items_.empty()); }

  std::map<std::uint64_t, entry> items_;  // by id
  std::set<place> waiting_;
  client_table<hands> workers_;
  waiting_line<std::vector<handed_item>> line_;
  work_counts counts_;
  std::uint64_t next_id_ = 0;
  bool closed_ = false;
  bool ended_ = false;
};
ORRERY_PROCESS(work_process, begin_worker, take, handed_out, cancel, close, end_waits, counts, worker_gone);

}  // namespace orrery::service
