// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/placement.hpp>
#include <orrery/process/time_limit.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/work_process.hpp>
#include <orrery/service/handle.hpp>
#include <orrery/service/reply.hpp>
#include <orrery/service/reply_session.hpp>

#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

/// An item in the hands of a worker.
template <class Item>
struct work {
  std::uint64_t id = 0;     ///< items are numbered as they are put in: 0, 1, 2 ...
  std::uint32_t times = 0;  ///< how often it has been handed out: 1 the first time
  std::int32_t priority = 0;
  Item item{};
};

/// The reply to a request of a work session. `done`: of put false if the queue is closed; of done
/// and give_back false if the session does not have the item.
struct work_reply : service_reply {
  std::uint64_t id = 0;  ///< of put
};

/// A process's way to put items into a work queue, and to take them out.
///
/// An item that it takes is in its hands until it says `done` or gives it back. Items in its hands
/// when the session ends go back: also when the process throws, and when its node is lost.
/// `put(...)` and the like park until the reply is there; `start_put(...)` and the like make the
/// request, and return its number; receive() takes the replies to those.
///
///     auto s = queue.open();
///     while (auto w = s.take()) {
///       use(w->item);
///       s.done(*w);
///     }
///
/// If an item cannot be read, as its unpacking throws, the items before it are returned first. Then
/// one call that takes throws what the item threw, and the session goes on behind it. The item
/// stays in its hands: unreadable() names it, for done() or give_back(). Likewise items that do not
/// arrive, as one that is larger than the memory for messages (`--orrery-memory`).
///
/// Made by work_queue::open; used by one process only, and ends before this one; its end parks. All
/// functions throw process_gone when the queue has ended, node_lost, usage_error, stopped.
template <class Item>
class work_session : public service::reply_session<work_reply> {
  using base = service::reply_session<work_reply>;

 public:
  work_session(remote<service::work_process> queue, const session_options& o) : base(o), queue_(queue) {
    (void)add_route(queue);
    number_ = service::or_say_lost(items_are_lost, [&] { return queue_->begin_worker(present_.get()); });
  }
  /// Parks until all requests are answered.
  ~work_session() override { this->end(); }

  /// Puts an item in; returns its id, none if the queue is closed. Among items of one priority the
  /// oldest is next; the greatest priority is first.
  std::optional<std::uint64_t> put(std::int32_t priority, const Item& item) {
    const work_reply r = run(send_put(priority, item));
    return r.done ? std::optional(r.id) : std::nullopt;
  }
  /// The item is done, and leaves the queue. False, and nothing changes, if this session does not
  /// have it: it has said so before, the queue has taken the item back meanwhile, or another
  /// session took it.
  bool done(const work<Item>& w) { return run(send_done(w)).done; }
  /// The item waits again, with another priority if one is given. False as of done().
  bool give_back(const work<Item>& w) { return give_back(w, w.priority); }
  /// The same with another priority.
  bool give_back(const work<Item>& w, std::int32_t priority) { return run(send_give_back(w, priority)).done; }

  /// As put; returns the number of the request.
  std::uint64_t start_put(std::int32_t priority, const Item& item) {
    check_unfetched();
    return send_put(priority, item);
  }
  /// As done; returns the number of the request.
  std::uint64_t start_done(const work<Item>& w) {
    check_unfetched();
    return send_done(w);
  }
  /// As give_back; returns the number of the request.
  std::uint64_t start_give_back(const work<Item>& w, std::int32_t priority) {
    check_unfetched();
    return send_give_back(w, priority);
  }

  /// The next item. Parks until there is one; none if the queue is closed, and all its items are
  /// done.
  [[nodiscard]] std::optional<work<Item>> take() { return one(take_some(1)); }
  /// The next item, if there is one now.
  [[nodiscard]] std::optional<work<Item>> try_take() { return one(take(1, false)); }
  /// As take(), but parks at most for `limit`, and for as long as the queue takes to answer.
  [[nodiscard]] std::optional<work<Item>> take_for(time_limit limit) {
    if (!taken_.empty()) return one(read_taken(1));
    fetch(1, true, [&](const auto& taken) {
      if (!taken.wait_for(limit)) queue_->cancel(number_);
    });
    return one(read_taken(1));
  }
  /// At most so many of the next items, of 256 KiB together, and at least one; parks as take().
  /// Workers that take many at a time wait less.
  [[nodiscard]] std::vector<work<Item>> take_some(std::uint32_t most) { return take(most == 0 ? 1 : most, true); }
  /// The items in its hands that could not be read, or have not arrived, without their content.
  /// They leave this list, and its hands, with done() or give_back().
  [[nodiscard]] std::vector<work<Item>> unreadable() const { return unreadable_; }

 protected:
  [[nodiscard]] std::string_view loss() const noexcept override { return items_are_lost; }

 private:
  using request = service::work_request;
  using kind = request::kind;

  static constexpr std::string_view items_are_lost =
      "the queue and its items are lost with that node: make another one";

  std::uint64_t send(const request& r) {
    return make(0, [&](service::packer& to) { service::pack(to, r); });
  }
  std::uint64_t send_put(std::int32_t priority, const Item& item) {
    request r{kind::put, 0, 0, priority, 0, {}};
    service::pack(r.item, item);
    return send(r);
  }
  std::uint64_t send_done(const work<Item>& w) {
    const std::uint64_t n = send({kind::done, number_, w.times, 0, w.id, {}});
    forget(w);
    return n;
  }
  std::uint64_t send_give_back(const work<Item>& w, std::int32_t priority) {
    const std::uint64_t n = send({kind::give_back, number_, w.times, priority, w.id, {}});
    forget(w);
    return n;
  }
  std::vector<work<Item>> take(std::uint32_t most, bool waits) {
    if (taken_.empty()) fetch(most, waits, [](const auto&) {});
    return read_taken(most);
  }
  // Gets items from the queue; `watch` is called until they are there. Those that do not arrive are
  // in the hands of this session nevertheless.
  template <class Wait>
  void fetch(std::uint32_t most, bool waits, Wait watch) {
    flush();
    service::or_say_lost(items_are_lost, [&] {
      auto taken = start(queue_)->take(number_, ++turn_, most, waits);
      try {
        watch(taken);
        std::vector<service::handed_item> all = taken.get();
        taken_.assign(std::move_iterator(all.begin()), std::move_iterator(all.end()));
      } catch (const process_gone&) {
        throw;
      } catch (const node_lost&) {
        throw;
      } catch (const stopped&) {
        throw;
      } catch (...) {
        taken_.clear();
        for (const service::handed_item& i : queue_->handed_out(number_, turn_))
          unreadable_.push_back({i.id, i.times, i.priority, {}});
        throw;
      }
    });
  }
  // Items to before one that cannot be read; if that is the first one, throws what it throws.
  std::vector<work<Item>> read_taken(std::uint32_t most) {
    std::vector<work<Item>> all;
    while (!taken_.empty() && all.size() < most) {
      const service::handed_item& i = taken_.front();
      work<Item> w{i.id, i.times, i.priority, {}};
      try {
        w.item = service::unpacker(i.item).template take<Item>();
      } catch (...) {
        if (!all.empty()) break;
        unreadable_.push_back(std::move(w));
        taken_.pop_front();
        throw;
      }
      all.push_back(std::move(w));
      taken_.pop_front();
    }
    return all;
  }
  void forget(const work<Item>& w) {
    std::erase_if(unreadable_, [&](const work<Item>& u) { return u.id == w.id && u.times == w.times; });
  }
  static std::optional<work<Item>> one(std::vector<work<Item>> all) {
    return all.empty() ? std::nullopt : std::optional(std::move(all.front()));
  }

  route_number route_of(service::unpacker& u) const override {
    u.skip<request>();
    return 0;
  }
  void read(service::unpacker& answers, work_reply& to, std::uint32_t) override {
    const auto what = answers.take<service::list_answer>();
    to.done = what != service::list_answer::no;
    if (what == service::list_answer::number) to.id = answers.take<std::uint64_t>();
  }

  service::own_presence present_;
  remote<service::work_process> queue_;
  std::uint32_t number_ = 0;  // of this worker
  std::uint64_t turn_ = 0;  // of its last call of take
  std::deque<service::handed_item> taken_;  // behind an item that could not be read
  std::vector<work<Item>> unreadable_;
};

/// A queue of items with priorities, for any number of workers of any program of the world: a
/// service.
///
/// Each item that was put in is handed out until a worker says that it is done: *at least once*. A
/// worker that ends with an item in its hands, by an exception, with its node or by kill -9, gives
/// it back by that. So an item may be done twice; `work::times` says that an item was handed out
/// before.
///
/// One process owns the queue, so priorities are exact: each worker gets the first item of all. If
/// its node is lost, the queue is. Lives until end(), or as long as its node. A `work_queue` is a
/// small value that names it.
///
///     auto jobs = orrery::work_queue<std::string>::make();
///     jobs.open().put(0, "sweep");
template <class Item>
class work_queue : public service::handle<work_queue<Item>> {
 public:
  static constexpr const char* kind = "work queue";
  /// The type of items, in words that all compilers agree on.
  [[nodiscard]] static std::string types() { return service::types_in_words<Item>(); }
  /// The window of one client.
  using session = work_session<Item>;

  work_queue() noexcept = default;

  /// Makes an empty queue on a PE. Parks. Throws node_lost, stopped.
  [[nodiscard]] static work_queue make(placement where = here()) {
    const remote<service::work_process> all = spawn<service::work_process>(where);
    const std::uint32_t there = all.address().pe;
    work_queue q(spawn<service::service_root>(pe(there), kind, types(), std::vector<std::uint32_t>{there}));
    q.root_->add({}, all, 0);
    return q;
  }
  /// A session for the calling process. Parks. Throws usage_error if the queue has other items,
  /// process_gone if it has ended, node_lost, stopped.
  [[nodiscard]] session open(const session_options& o = {}) const { return session(process(), o); }
  /// No further items are taken in; workers get none when all that are there are done. Parks.
  /// Throws as open().
  void close() const { process()->close(); }
  /// Parks. Throws as open().
  [[nodiscard]] service::work_counts counts() const { return process()->counts(); }
  /// Ends the queue with all items. Workers that wait get none. Parks. Throws as open().
  void end() {
    process()->end_waits();
    base::end();
  }

 private:
  using base = service::handle<work_queue>;
  friend base;
  using base::root_;

  explicit work_queue(remote<service::service_root> root) noexcept : base(root) {}
  [[nodiscard]] remote<service::work_process> process() const {
    return remote<service::work_process>(this->open_directory()[0].owner.address());
  }
};

}  // namespace orrery
