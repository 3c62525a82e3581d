// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/service/detail/window_tuner.hpp>
#include <orrery/service/range_process.hpp>
#include <orrery/service/session_options.hpp>
#include <orrery/wire/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery::service {

/// The same options. Throws usage_error if `order` or `replies` is no level, or order, that there
/// is.
[[nodiscard]] session_options checked(const session_options& o);

/// The text of a session when the service has ended.
[[nodiscard]] process_gone ended_for_a_session();

/// f(), in which a session calls a process of its service. That the process is gone means that the
/// service has ended, and is said so.
template <class F>
decltype(auto) or_say_ended(F f) {
  try {
    return f();
  } catch (const process_gone&) {
    throw ended_for_a_session();
  }
}

/// The error of a request, with what the loss of a node means to a service behind it if it is a
/// node_lost that does not say so yet.
[[nodiscard]] std::exception_ptr with_loss(std::exception_ptr why, std::string_view loss);
/// The same as or_say_ended; a node_lost says what the loss means, too.
template <class F>
decltype(auto) or_say_lost(std::string_view loss, F f) {
  try {
    return or_say_ended(std::move(f));
  } catch (const node_lost&) {
    std::rethrow_exception(with_loss(std::current_exception(), loss));
  }
}

/// Requests in the order in which they are to be executed.
struct lane {
  packer requests;
  std::vector<std::uint64_t> numbers;

  [[nodiscard]] bool empty() const noexcept { return numbers.empty(); }
  /// Adds a packed request.
  void add(std::uint64_t number, std::span<const std::byte> request) {
    numbers.push_back(number);
    requests.append(request);
  }
  /// Adds all of another lane.
  void append(const lane& later);
  /// Without requests again; keeps its memory.
  void clear() noexcept {
    requests.clear();
    numbers.clear();
  }
};

/// The common part of sessions that does not depend on types.
///
/// Problem: a request alone costs a message there and one back, and a wait. Many at a time must
/// neither exceed what the client allows nor overtake each other where an order is promised, also
/// while ranges are split and requests reach a range that does not own their keys any more.
///
/// A session has a window of outstanding requests. It gathers them by the ranges that they belong
/// to (*routes*) and sends those of one route as one batch. When half of the window is gathered, or
/// it is full, all of them are sent. A client that waits, or calls flush_idle(), has them sent to
/// the ranges that have answered all batches before (Nagle's algorithm). Each other one gets them
/// when it has: so a request for an idle range goes at once, and those for a busy one share a
/// message.
///
/// `per_key`: batches to one range arrive, and are executed, in the order in which they were sent.
/// When the session learns that keys have gone from one route to another, that one is *blocked*: it
/// sends nothing until all batches that were sent to the old one before are answered. Requests that
/// come back from there go to the new route, which sends what it has in the order of the requests.
/// So requests for one key never overtake each other.
///
/// Keys may also go away from a route and come back. Its process executes requests for them only if
/// the session knows that (`known`), and when the session hears of it, it waits for the answers to
/// what it has sent there before it sends more.
///
/// `sequential`: only one batch is outstanding, of successive requests for one range, and the range
/// executes none behind one that it refuses. So requests take effect in their order, and at
/// different moments only if the earlier ones are answered.
///
/// Owned by the typed session of one client; used by this process only.
class session_core {
 public:
  explicit session_core(const session_options& options);
  session_core(const session_core&) = delete;
  session_core& operator=(const session_core&) = delete;
  virtual ~session_core() = default;

  /// Requests without an answer.
  [[nodiscard]] std::uint32_t outstanding() const noexcept { return outstanding_; }
  /// Sends what is gathered. Parks only while a range is full.
  void flush() { send_gathered(ranges::all); }
  /// Sends what is gathered for ranges that have nothing of this session on their way: for a client
  /// that takes replies as they come. Requests for the others are *hurried*: they are sent when the
  /// last batch there is answered, by the next call of the session that sees it. That is this one,
  /// one that takes replies, or the end of the session. Parks only while a range is full.
  void flush_idle();
  /// So many requests may be outstanding from now on. With less than there are now, the next one
  /// parks until there is room. Throws usage_error if it is 0. With `tuning::automatic` the session
  /// finds it (window_tuner). Parks only while a range is full.
  void set_window(std::uint32_t requests);
  /// How many requests may be outstanding now.
  [[nodiscard]] std::uint32_t window() const noexcept { return options_.window; }
  /// Batches that were sent, and requests that came back because their keys had another owner.
  [[nodiscard]] std::uint64_t batches() const noexcept { return batches_; }
  /// Requests that came back because their keys had another owner.
  [[nodiscard]] std::uint64_t repeated() const noexcept { return repeated_; }

 protected:
  /// Names a request of this session.
  using number = std::uint64_t;
  /// Names a process of the service, in this session.
  using route_number = std::uint32_t;

  /// The route of the next request of `u`, which is then passed by, also if this throws.
  virtual route_number route_of(unpacker& u) const = 0;
  /// A batch was answered. To end with done() or repeat() for each request.
  virtual void answered(route_number from, std::span<const number> numbers, std::span<const std::byte> answer) = 0;
  /// A batch failed as a whole. done() has been called for each.
  virtual void failed(std::span<const number> numbers, const std::exception_ptr& why) = 0;
  /// For people: what the loss of a node means to who uses this service; empty: nothing but that.
  [[nodiscard]] virtual std::string_view loss() const noexcept { return {}; }

  /// A process of the service gets a route. Throws std::bad_alloc.
  route_number add_route(remote<range_process> owner);
  /// The process at the end of a route.
  [[nodiscard]] remote<range_process> owner_of(route_number r) const noexcept { return routes_[r].owner; }
  /// Keys of the route `from` belong to the route `to` from now on; route_of() knows it already.
  void divide(route_number from, route_number to);

  /// The process of the route owns some keys since this version.
  void know(route_number r, std::uint64_t version);

  /// Parks, if the window is full, until half of it is free: one request for each answer would be a
  /// batch of its own.
  void wait_for_room() {
    if (outstanding_ < options_.window) [[likely]]
      return;
    make_room();
  }
  /// A new request: the caller packs it into what begin() returns, and calls issued(), or, if it
  /// cannot, withdraw(). There is room in the window.
  [[nodiscard]] packer& begin(route_number r, number n) {
    open_ = sequential() ? &pending_ : &lane_of(r);
    opened_at_ = open_->requests.size();
    open_->numbers.push_back(n);
    return open_->requests;
  }
  /// The request is packed: it is sent now, or with others. Parks only while a range is full.
  void issued() {
    ++outstanding_;
    if (++gathered_ < burst_ && open_->requests.size() < large_batch) [[likely]]
      return;
    if (tunes_ && gathered_ >= burst_) tuner_.divided(dirty_.size());
    flush();
  }
  /// The request could not be packed: there is none.
  void withdraw() noexcept {
    open_->requests.shrink(opened_at_);
    open_->numbers.pop_back();
  }
  /// An outstanding request has its answer.
  void done() noexcept { --outstanding_; }
  /// An outstanding request that cannot be sent any more fails.
  void give_up(number n, const std::exception_ptr& why) {
    done();
    failed({&n, 1}, why);
  }
  /// A request that came back, in the order of the answers.
  void repeat(number n, std::span<const std::byte> request);

  /// As flush_idle(), and parks until some request is answered. False if none is outstanding.
  bool await_answers();
  /// The same while some request is outstanding: throws process_gone if none can be answered.
  void await_more_answers();
  /// For destructors: sends what is gathered, and parks until all is answered, or the world ends.
  void end() noexcept;
  /// Takes the answers that have come, if the oldest batch is answered, and sends what is hurried.
  /// Parks only while a range is full.
  void take_answers() {
    if (!flights_.empty() && flights_.front().answer.ready()) land_all();
  }

  /// The options of the session, with the window of now.
  [[nodiscard]] const session_options& options() const noexcept { return options_; }

 private:
  /// For the answers to the first `batches` batches of a route.
  struct wait {
    route_number of;
    std::uint64_t batches;
  };
  struct route {
    remote<range_process> owner;
    lane out;  // to be sent
    std::uint64_t sent = 0;  // batches
    std::uint64_t answered = 0;
    std::uint64_t known = 0;  // see batch_head
    bool listed = false;  // in dirty_
    bool hurried = false;  // `out` is sent when all batches are answered
    bool mixed = false;  // `out` is not in the order of the requests
    std::vector<wait> waits;  // not empty: it is blocked
  };
  // Which of them are sent what is gathered, if they are not blocked.
  enum class ranges : std::uint8_t {
    all,
    idle,  // that have answered all batches; the others are hurried
    hurried,  // those of the idle ones
  };
  struct flight {
    route_number to;
    std::vector<number> numbers;
    future<bytes> answer;
  };

  [[nodiscard]] bool in_order_of_keys() const noexcept { return options_.order == consistency::per_key; }
  [[nodiscard]] bool sequential() const noexcept { return options_.order == consistency::sequential; }
  static constexpr std::size_t large_batch = std::size_t{64} << 10U;  // is sent at once
  [[nodiscard]] lane& lane_of(route_number r) {
    route& to = routes_[r];
    if (!to.listed) {
      to.listed = true;
      dirty_.push_back(r);
    }
    return to.out;
  }
  [[nodiscard]] bool goes(const route& to, ranges which) const noexcept {
    if (!to.waits.empty()) return false;
    return which == ranges::all || (to.sent == to.answered && (which == ranges::idle || to.hurried));
  }
  void make_room();
  void send_gathered(ranges which);
  void put_in_order(lane& l);
  void send(route_number r, lane& l, batch_rule rule);
  void take_window(std::uint32_t requests);
  void send_next_in_sequence();
  // False if the first request has failed instead.
  [[nodiscard]] bool send_first_run();
  void land_all();
  void land(flight& f);
  void fail(flight& f, std::exception_ptr why);
  void open_routes();

  session_options options_;
  bool tunes_ = false;
  bool tuned_ = false;  // the tuner has another window
  window_tuner tuner_;
  std::uint32_t burst_ = 1;
  std::uint32_t outstanding_ = 0;
  std::uint32_t gathered_ = 0;  // and not sent, since all was
  bool hurried_ = false;  // some route is; sequential: what is pending is
  std::vector<route> routes_;
  lane* open_ = nullptr;  // of the request that is being packed
  std::size_t opened_at_ = 0;
  std::vector<route_number> dirty_;
  std::vector<route_number> blocked_;
  std::deque<flight> flights_;
  std::vector<std::vector<number>> spare_;
  lane pending_;  // sequential: not sent
  lane again_;  // sequential: came back, to be sent before those
  std::uint64_t batches_ = 0;
  std::uint64_t repeated_ = 0;
};

}  // namespace orrery::service
