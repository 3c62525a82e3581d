// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/service/list_messages.hpp>
#include <orrery/service/work_process.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <utility>

namespace orrery::service {

std::uint32_t work_process::begin_worker(remote<presence> worker) {
  const std::uint32_t number = next_worker_++;
  workers_[number];
  when_gone(worker, [number, queue = this_process<work_process>()] { queue->worker_gone(number); });
  return number;
}

std::vector<handed_item> work_process::take(std::uint32_t worker, std::uint32_t most, bool wait) {
  ++requests_;
  if (!workers_.contains(worker))
    throw usage_error(errc::bad_argument,
                      "a work queue has taken this worker for dead, and its items back: open another session");
  if (!waiting_.empty() || !wait || drained()) return hand_out(worker, most);
  struct in_line {
    std::deque<waiter*>& all;
    waiter self;
    ~in_line() { std::erase(all, &self); }
  } me{waiters_, {worker, most}};
  waiters_.push_back(&me.self);
  me.self.end.wait();
  return std::move(me.self.found);
}

std::vector<handed_item> work_process::hand_out(std::uint32_t worker, std::uint32_t most) {
  std::vector<handed_item> all(std::min<std::size_t>(ended_ ? 0 : most, waiting_.size()));
  auto& in_hand = workers_[worker];
  for (handed_item& i : all) {
    i.id = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    entry& e = items_.at(i.id);
    e.worker = worker;
    in_hand.insert(i.id);
    i.times = ++e.times;
    i.priority = e.priority;
    i.item = e.item;
  }
  counts_.waiting -= all.size();
  counts_.handed_out += all.size();
  return all;
}

void work_process::serve_waiters() {
  while (!waiters_.empty() && (!waiting_.empty() || drained())) {
    waiter& w = *waiters_.front();
    waiters_.pop_front();
    w.found = hand_out(w.worker, w.most);
    w.end.set();
  }
}

void work_process::cancel(std::uint32_t worker) {
  std::erase_if(waiters_, [&](waiter* w) {
    if (w->worker != worker) return false;
    w->end.set();
    return true;
  });
}

void work_process::close() {
  closed_ = true;
  serve_waiters();
}

void work_process::end_waits() {
  ended_ = true;
  serve_waiters();
}

void work_process::worker_gone(std::uint32_t worker) {
  cancel(worker);
  const auto at = workers_.find(worker);
  if (at == workers_.end()) return;
  for (const std::uint64_t id : at->second) come_back(id, items_.at(id));
  workers_.erase(at);
  serve_waiters();
}

void work_process::come_back(std::uint64_t id, entry& e) {
  e.worker = nobody;
  waiting_.emplace(-std::int64_t{e.priority}, id);
  ++counts_.waiting;
  --counts_.handed_out;
  ++counts_.came_back;
}

bytes work_process::serve(const batch_head& head, std::span<const std::byte> requests) {
  requests_ += head.count;
  bytes answer;
  unpacker u(requests);
  for (std::uint32_t i = 0; i < head.count; ++i) {
    const auto o = u.take<work_operation>();
    if (o == work_operation::put) {
      put(u, answer);
    } else {
      finish(u, answer, o == work_operation::done);
    }
  }
  serve_waiters();
  return answer;
}

void work_process::put(unpacker& u, bytes& answer) {
  entry e;
  e.priority = u.take<std::int32_t>();
  const auto item = u.take_bytes(u.take<std::uint32_t>());
  if (closed_) {
    pack(answer, list_answer::no);
    return;
  }
  e.item.assign(item.begin(), item.end());
  const std::uint64_t id = next_id_++;
  waiting_.emplace(-std::int64_t{e.priority}, id);
  items_.emplace_hint(items_.end(), id, std::move(e));
  ++counts_.waiting;
  pack(answer, list_answer::number);
  pack(answer, id);
}

void work_process::finish(unpacker& u, bytes& answer, bool done) {
  const auto id = u.take<std::uint64_t>();
  const auto times = u.take<std::uint32_t>();
  const auto at = items_.find(id);
  const bool mine = at != items_.end() && at->second.worker != nobody && at->second.times == times;
  if (mine) workers_[at->second.worker].erase(id);
  if (!done) {
    const auto priority = u.take<std::int32_t>();
    if (mine) {
      at->second.priority = priority;
      come_back(id, at->second);
    }
  } else if (mine) {
    items_.erase(at);
    --counts_.handed_out;
    ++counts_.done;
  }
  pack(answer, mine ? list_answer::yes : list_answer::no);
}

range_report work_process::report() {
  range_report r;
  r.items = items_.size();
  r.requests = requests_;
  for (const auto& [id, e] : items_) r.bytes += e.item.size();
  r.bytes += items_.size() * (sizeof(entry) + 2 * 48);  // nodes of two trees
  return r;
}

}  // namespace orrery::service
