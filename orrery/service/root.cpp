// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/process/remote_cast.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/service/detail/balance_plan.hpp>
#include <orrery/service/detail/type_layouts.hpp>
#include <orrery/service/root.hpp>
#include <orrery/service/session_core.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace orrery::service {
namespace {

template <class F>
void unless_lost(F f) {
  try {
    f();
  } catch (const node_lost&) {
  } catch (const process_gone&) {
  }
}

// The results of calls to ranges, without those of ranges that are lost or gone.
template <class T, class Ranges, class Begin, class Take>
void ask_all(const Ranges& ranges, Begin begin, Take take) {
  std::vector<future<T>> answers;
  for (const auto& r : ranges) unless_lost([&] { answers.push_back(begin(r)); });
  for (future<T>& a : answers) unless_lost([&] { take(a); });
}

std::vector<remote<range_process>> owners_of(const std::vector<directory_entry>& directory) {
  std::vector<remote<range_process>> all;
  for (const directory_entry& e : directory) all.push_back(e.owner);
  return all;
}

void post_tune(const remote<range_process>& range, std::uint32_t items) {
  unless_lost([&] { post(range)->tune(items); });
}

remote<chained_range> chained(address a) { return remote<chained_range>(a); }

// The ranges in the order of their keys; none while they change.
std::vector<range_load> in_order(const std::map<address, range_load>& all) {
  std::vector<range_load> chain;
  auto at = std::ranges::find_if(all, [](const auto& r) { return r.second.first; });
  while (at != all.end() && chain.size() < all.size()) {
    chain.push_back(at->second);
    at = all.find(at->second.successor);
  }
  if (chain.size() != all.size()) chain.clear();
  return chain;
}

future<bool> begin_order(const balance_order& o, const std::vector<range_load>& chain, std::uint64_t limit) {
  const range_load& r = chain[o.range];
  if (o.what == balance_order::kind::merge)
    return start(chained(r.at))->merge_next(chain[o.range + 1].at, static_cast<std::uint32_t>(limit / 2));
  if (o.range == 0) return start(chained(r.at))->move_first(o.pe);
  return start(chained(chain[o.range - 1].at))->move_next(r.at, o.pe);
}

}  // namespace

service_root::service_root(std::string kind, std::string types, std::vector<std::uint32_t> pes)
    : kind_(std::move(kind)), types_(std::move(types)), pes_(std::move(pes)) {
  if (pes_.empty()) throw usage_error(errc::bad_argument, "a service needs at least one PE");
}

void service_root::check(const std::string& kind, const std::string& types) const {
  if (kind != kind_)
    throw usage_error(
        errc::bad_argument,
        fmt::format("this service is of the kind \"{}\"; it was opened as one of the kind \"{}\"", kind_, kind));
  if (types != types_)
    throw usage_error(
        errc::bad_argument,
        fmt::format(
            "this {} has other types of keys or values than it was opened with: it has <{}>, and was opened with <{}>{}",
            kind_, readable_types(types_), readable_types(types), difference_of_types(types_, types)));
}

opening service_root::open(const std::string& kind, const std::string& types) const {
  check(kind, types);
  return {directory_, head_};
}

opening open_service(const remote<service_root>& root, const std::string& kind, const std::string& types) {
  return ask_root(root, kind, [&](const auto& r) { return r->open(kind, types); });
}

process_gone ended_for_a_handle(std::string_view kind) {
  return {verbatim, fmt::format("the {} has ended, and holds nothing any more: make another one", kind)};
}

std::exception_ptr lost_for_a_handle(const remote<service_root>& root, std::string_view kind, std::exception_ptr why) {
  if (orrery::detail::here_pe().owner().reachable(root.address().pe)) return why;
  return with_loss(
      std::move(why),
      fmt::format("the {} cannot be opened any more, as what knows its parts was there: make another one", kind));
}

usage_error names_no_service(std::string_view kind) {
  return usage_error(errc::bad_argument,
                     fmt::format("this handle names no {}: make one, or find one by its name", kind));
}

range_place service_root::place_on(std::uint32_t pe) {
  if (ended_) throw process_gone("a service that ends");
  const auto at = std::ranges::find_if(idle_, [&](const auto& r) { return r.address().pe == pe; });
  if (at == idle_.end()) return {pe, {}};
  const range_place place{pe, *at};
  idle_.erase(at);
  return place;
}

range_place service_root::next_place() { return place_on(pes_[next_++ % pes_.size()]); }

void service_root::add(bytes least, remote<range_process> owner, std::uint64_t version) {
  directory_.push_back({std::move(least), owner, version});
  if (tuned_ != 0) post_tune(owner, tuned_);
}

void service_root::replace(remote<range_process> old, remote<range_process> fresh, std::uint64_t version) {
  for (directory_entry& e : directory_)
    if (e.owner == old) e = {std::move(e.least), fresh, version};
  idle_.push_back(old);
  if (tuned_ != 0) post_tune(fresh, tuned_);
}

void service_root::retire(remote<range_process> old) {
  std::erase_if(directory_, [&](const directory_entry& e) { return e.owner == old; });
  idle_.push_back(old);
}

void service_root::tune(std::uint32_t items) {
  tunes_limit_ = items == tuning::automatic;
  if (tunes_limit_) return;  // as it is, until the next balance()
  set_limit(items);
}

void service_root::tune_limit(std::uint64_t items) {
  if (!tunes_limit_) return;
  const std::uint64_t wanted =
      std::clamp<std::uint64_t>(std::bit_ceil(items / (8 * pes_.size()) + 1), 1U << 12U, 1U << 20U);
  if (wanted >= 2 * limit_ || 2 * wanted <= limit_) set_limit(static_cast<std::uint32_t>(wanted));
}

void service_root::set_limit(std::uint32_t items) {
  tuned_ = items;
  limit_ = items;
  ask_all<void>(owners_of(directory_), [&](const auto& r) { return start(r)->tune(items); }, [](auto& f) { f.get(); });
}

void service_root::set_balancing(bool on, std::uint32_t items) {
  balancing_ = on;
  tunes_limit_ = items == tuning::automatic;
  limit_ = tunes_limit_ ? first_limit : items;
}

void service_root::note_work(std::uint64_t requests) {
  work_ += requests;
  if (balancing_ && !ended_ && work_ >= std::max<std::uint64_t>(1U << 18U, directory_.size() << 10U)) (void)balance();
}

std::uint32_t service_root::balance() {
  if (std::exchange(balances_now_, true)) return 0;
  struct at_end {
    bool& now;
    ~at_end() { now = false; }
  } const guard{balances_now_};
  work_ = 0;
  std::map<address, range_load> all;
  std::map<address, done_before> sums;
  std::uint64_t items = 0;
  ask_all<range_load>(
      owners_of(directory_), [](const auto& r) { return start(chained(r.address()))->load(); },
      [&](auto& f) {
        range_load l = f.get();
        if (!l.active) return;
        items += l.items;
        sums[l.at] = {l.requests, l.busy_ns};
        if (const auto b = before_.find(l.at); b != before_.end()) {
          l.requests -= b->second.requests;
          l.busy_ns -= b->second.busy_ns;
        }
        all.emplace(l.at, l);
      });
  before_ = std::move(sums);
  tune_limit(items);
  const std::vector<range_load> chain = in_order(all);
  std::uint32_t carried_out = 0;
  auto orders = plan_balance(chain, pes_, limit_);
  std::ranges::sort(orders, std::ranges::greater(),
                    &balance_order::range);  // who precedes the next one is where it was
  for (const balance_order& o : orders) {
    if (ended_) break;
    try {
      unless_lost([&] {
        if (o.what == balance_order::kind::split) {
          start(chained(chain[o.range].at))->split(1).get();
          ++carried_out;
        } else if (begin_order(o, chain, limit_).get()) {
          ++carried_out;
        }
      });
    } catch (const stopped&) {
      throw;
    } catch (...) {  // NOLINT(bugprone-empty-catch): of the program's keys; the others are carried out
    }
  }
  return carried_out;
}

void service_root::end() {
  ended_ = true;
  if (head_) idle_.push_back(std::exchange(head_, {}));
  // a range that is being split tells of another one
  while (!directory_.empty() || !idle_.empty()) {
    auto all = owners_of(std::exchange(directory_, {}));
    all.insert(all.end(), idle_.begin(), idle_.end());
    idle_.clear();
    ask_all<void>(all, [](const auto& p) { return start_destroy(p); }, [](auto& f) { f.get(); });
  }
}

std::vector<range_report> service_root::reports() const {
  std::vector<range_report> all;
  ask_all<range_report>(
      owners_of(directory_), [](const auto& p) { return start(p)->report(); },
      [&](auto& f) { all.push_back(f.get()); });
  return all;
}

}  // namespace orrery::service
