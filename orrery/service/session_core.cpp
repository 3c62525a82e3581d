// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/service/session_core.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::service {

void lane::append(const lane& later) {
  requests.append(later.requests.all());
  numbers.insert(numbers.end(), later.numbers.begin(), later.numbers.end());
}

process_gone ended_for_a_session() {
  return {verbatim,
          "the service that this session is of has ended: it holds nothing any more, and another one must be made"};
}

std::exception_ptr with_loss(std::exception_ptr why, std::string_view loss) {
  try {
    std::rethrow_exception(why);
  } catch (const node_lost& e) {
    constexpr std::string_view of_processes = "; spawn the process again on another node";
    std::string_view text = e.what();
    if (loss.empty() || text.contains(loss)) return why;
    // The service has no such way.
    if (text.ends_with(of_processes)) text.remove_suffix(of_processes.size());
    return std::make_exception_ptr(node_lost(verbatim, fmt::format("{}; {}", text, loss)));
  } catch (...) {
    return why;
  }
}

session_options checked(const session_options& o) {
  if (o.order > consistency::total)
    throw usage_error(errc::bad_argument,
                      fmt::format("session_options::order is {}, which is no level of consistency: take one of "
                                  "orrery::consistency",
                                  static_cast<unsigned>(o.order)));
  if (o.replies > reply_order::as_requested)
    throw usage_error(errc::bad_argument,
                      fmt::format("session_options::replies is {}, which is no order of replies: take one of "
                                  "orrery::reply_order",
                                  static_cast<unsigned>(o.replies)));
  return o;
}

session_core::session_core(const session_options& options) : options_(checked(options)) {
  if (options.order == consistency::sequential_of_the_paper)
    throw usage_error(errc::bad_argument,
                      "only a walking_list has the level sequential_of_the_paper: take consistency::sequential");
  set_window(options.window);
}

void session_core::set_window(std::uint32_t requests) {
  if (requests == 0)
    throw usage_error(errc::bad_argument, "a session with a window of 0 requests cannot make any: give it 1 or more");
  tunes_ = requests == tuning::automatic;
  take_window(tunes_ ? tuner_.window() : requests);
}

void session_core::take_window(std::uint32_t requests) {
  options_.window = requests;
  burst_ = (requests - 1) / 2 + 1;
  if (gathered_ >= burst_) flush();
}

session_core::route_number session_core::add_route(remote<range_process> owner) {
  routes_.emplace_back().owner = owner;
  return static_cast<route_number>(routes_.size() - 1);
}

void session_core::divide(route_number from, route_number to) {
  if (in_order_of_keys()) {
    std::vector<wait> waits = routes_[from].waits;
    if (routes_[from].answered != routes_[from].sent) waits.push_back({from, routes_[from].sent});
    route& fresh = routes_[to];
    if (!waits.empty() && fresh.waits.empty()) blocked_.push_back(to);
    fresh.waits.insert(fresh.waits.end(), waits.begin(), waits.end());
  }
  // Requests that were not sent to the old route go where they belong now.
  const lane unsent = std::exchange(routes_[from].out, {});
  const bool hurried = std::exchange(routes_[from].hurried, false);
  unpacker u(unsent.requests.all());
  for (const number n : unsent.numbers) {
    const std::byte* const begin = u.position();
    try {
      const route_number r = route_of(u);
      lane_of(r).add(n, {begin, u.position()});
      routes_[r].mixed = true;
      routes_[r].hurried = routes_[r].hurried || hurried;
    } catch (...) {  // the key cannot be compared
      give_up(n, std::current_exception());
    }
  }
}

void session_core::know(route_number r, std::uint64_t version) {
  route& to = routes_[r];
  if (version <= to.known) return;
  to.known = version;
  if (!in_order_of_keys() || to.answered == to.sent) return;
  if (to.waits.empty()) blocked_.push_back(r);
  to.waits.push_back({r, to.sent});
}

void session_core::repeat(number n, std::span<const std::byte> request) {
  ++repeated_;
  hurried_ = true;
  if (sequential()) {
    again_.add(n, request);
    return;
  }
  unpacker u(request);
  try {
    const route_number r = route_of(u);
    lane_of(r).add(n, request);
    routes_[r].mixed = true;
    routes_[r].hurried = true;
    ++gathered_;
  } catch (...) {  // the key cannot be compared
    give_up(n, std::current_exception());
  }
}

void session_core::put_in_order(lane& l) {
  struct part {
    number n;
    std::span<const std::byte> request;
  };
  std::vector<part> parts;
  unpacker u(l.requests.all());
  for (const number n : l.numbers) {
    const std::byte* const begin = u.position();
    try {
      (void)route_of(u);
    } catch (...) {  // who executes the request will see it, too
    }
    parts.push_back({n, {begin, u.position()}});
  }
  std::ranges::sort(parts, {}, &part::n);
  lane sorted;
  for (const part& p : parts) sorted.add(p.n, p.request);
  l = std::move(sorted);
}

void session_core::send(route_number r, lane& l, batch_rule rule) {
  flight f{r, {}, {}};
  if (!spare_.empty()) {
    f.numbers = std::move(spare_.back());
    spare_.pop_back();
  }
  f.numbers.swap(l.numbers);
  gathered_ -= std::min(gathered_, static_cast<std::uint32_t>(f.numbers.size()));
  ++batches_;
  ++routes_[r].sent;
  try {
    const std::uint64_t known = in_order_of_keys() ? routes_[r].known : ~std::uint64_t{0};
    const batch_head head{
        static_cast<std::uint32_t>(f.numbers.size()), rule, this_pe(), known, options_.window, options_.places};
    f.answer = start(routes_[r].owner)->serve(head, l.requests.all());
    l.requests.clear();
  } catch (...) {  // the range is lost, or the world ends
    l.requests.clear();
    fail(f, std::current_exception());
    return;
  }
  flights_.push_back(std::move(f));
}

void session_core::fail(flight& f, std::exception_ptr why) {
  try {
    std::rethrow_exception(why);
  } catch (const process_gone&) {
    why = std::make_exception_ptr(ended_for_a_session());
  } catch (...) {
    why = with_loss(why, loss());
  }
  ++routes_[f.to].answered;
  for (std::size_t i = 0; i < f.numbers.size(); ++i) done();
  failed(f.numbers, why);
}

void session_core::flush_idle() {
  land_all();
  send_gathered(ranges::idle);
}

void session_core::make_room() {
  if (tunes_) tuner_.limited();
  flush();
  while (outstanding_ > options_.window - burst_) await_more_answers();
}

void session_core::send_gathered(ranges which) {
  if (!blocked_.empty()) open_routes();
  hurried_ = false;
  if (sequential()) {
    send_next_in_sequence();
    hurried_ = !pending_.empty();
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    const route_number r = dirty_[i];
    if (!goes(routes_[r], which)) {
      if (which != ranges::hurried) routes_[r].hurried = true;
      hurried_ = hurried_ || routes_[r].hurried;
      dirty_[kept++] = r;
      continue;
    }
    routes_[r].listed = false;
    routes_[r].hurried = false;
    if (std::exchange(routes_[r].mixed, false)) put_in_order(routes_[r].out);
    if (!routes_[r].out.empty()) send(r, routes_[r].out, batch_rule::each);
  }
  dirty_.resize(kept);
  if (which == ranges::all) gathered_ = 0;
}

// Requests whose keys cannot be compared fail when they are the first ones.
void session_core::send_next_in_sequence() {
  while (flights_.empty() && !pending_.empty() && !send_first_run()) {
  }
}

bool session_core::send_first_run() {
  unpacker u(pending_.requests.all());
  unpacker next = u;
  route_number r = 0;
  std::exception_ptr why;
  try {
    r = route_of(next);
  } catch (...) {  // the key cannot be compared
    why = std::current_exception();
  }
  std::size_t count = 1;
  for (; why == nullptr && count < pending_.numbers.size(); ++count) {
    unpacker after = next;
    try {
      if (route_of(after) != r) break;
    } catch (...) {  // it fails when it is the first one
      break;
    }
    next = after;
  }
  lane batch;
  batch.requests.append({u.position(), next.position()});
  batch.numbers.assign(pending_.numbers.begin(), pending_.numbers.begin() + static_cast<std::ptrdiff_t>(count));
  pending_.requests.drop_front(batch.requests.size());
  pending_.numbers.erase(pending_.numbers.begin(), pending_.numbers.begin() + static_cast<std::ptrdiff_t>(count));
  if (why == nullptr) {
    send(r, batch, batch_rule::until_refused);
    return true;
  }
  give_up(batch.numbers.front(), why);
  return false;
}

bool session_core::await_answers() {
  if (std::exchange(tuned_, false) && tunes_) take_window(tuner_.window());
  const std::uint32_t before = outstanding_;
  send_gathered(ranges::idle);
  if (flights_.empty()) return outstanding_ != before;  // what could not be sent has failed
  flights_.front().answer.wait();
  take_answers();
  return true;
}

void session_core::await_more_answers() {
  if (await_answers()) return;
  throw process_gone(verbatim,
                     "a request of this session can neither be sent nor answered any more: open another session");
}

void session_core::end() noexcept {
  try {
    while (await_answers()) {
    }
  } catch (...) {  // the world ends, or its memory has
  }
}

void session_core::land_all() {
  std::size_t ended = 0;
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    if (!flights_[i].answer.ready()) continue;
    land(flights_[i]);
    ++ended;
  }
  if (ended == 0) return;
  std::erase_if(flights_, [](const flight& f) { return !f.answer.valid(); });
  if (hurried_) send_gathered(ranges::hurried);
}

void session_core::land(flight& f) {
  const route_number from = f.to;
  std::exception_ptr why;
  bytes answer;
  try {
    answer = f.answer.get();
  } catch (...) {
    why = std::current_exception();
  }
  if (why != nullptr) {
    fail(f, why);
  } else {
    answered(from, f.numbers, answer);
    ++routes_[from].answered;  // not before: what comes back goes ahead of what was never sent
    if (tunes_ && tuner_.answered(static_cast<std::uint32_t>(f.numbers.size()), now())) tuned_ = true;
  }
  if (!again_.empty()) {
    again_.append(pending_);
    std::swap(again_, pending_);
    again_.clear();
  }
  f.numbers.clear();
  spare_.push_back(std::move(f.numbers));
  if (!blocked_.empty()) open_routes();
}

void session_core::open_routes() {
  std::erase_if(blocked_, [&](route_number r) {
    std::vector<wait>& waits = routes_[r].waits;
    std::erase_if(waits, [&](const wait& w) { return routes_[w.of].answered >= w.batches; });
    if (!waits.empty()) return false;
    if (!routes_[r].out.empty()) (void)lane_of(r);  // it is to be sent
    return true;
  });
}

}  // namespace orrery::service
