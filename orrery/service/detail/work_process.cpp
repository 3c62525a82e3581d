// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/work_process.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace orrery::service {

namespace {
// Sessions and handles in other programs call them: a program that has made a queue answers them,
// also if nothing in it calls them.
[[gnu::used, maybe_unused]] void offer(const remote<work_process>& q) {
  (void)q->begin_worker({});
  (void)q->take(0, 0, 0, false);
  (void)q->handed_out(0, 0);
  (void)q->counts();
  q->cancel(0);
  q->close();
  q->end_waits();
}
}  // namespace

std::uint32_t work_process::begin_worker(remote<presence> worker) {
  return workers_.begin(worker,
                        [queue = this_process<work_process>()](std::uint32_t number) { queue->worker_gone(number); });
}

std::vector<handed_item> work_process::take(std::uint32_t number, std::uint64_t turn, std::uint32_t most, bool wait) {
  if (!workers_.contains(number))
    throw usage_error(errc::bad_argument,
                      "a work queue has taken this worker for dead, and its items back: open another session");
  workers_[number].turn = turn;
  if (!waiting_.empty() || !wait || drained()) return hand_out(number, most);
  return line_.wait(number, most);
}

std::vector<handed_item> work_process::handed_out(std::uint32_t number, std::uint64_t turn) {
  std::vector<handed_item> all;
  if (!workers_.contains(number)) return all;
  for (const auto& [id, of] : workers_[number].items) {
    if (of.turn != turn) continue;
    const entry& e = items_.at(id);
    all.push_back({id, e.times, e.priority, {}});
  }
  return all;
}

std::vector<handed_item> work_process::hand_out(std::uint32_t number, std::uint32_t most) {
  constexpr std::size_t most_bytes = std::size_t{256} << 10U;  // so that the answer can be sent
  std::vector<handed_item> all;
  std::size_t bytes = 0;
  while (!ended_ && all.size() < most && !waiting_.empty()) {
    bytes += items_.at(waiting_.begin()->second).item.size();
    if (!all.empty() && bytes > most_bytes) break;
    try {
      hand_out_next(number, all);
    } catch (const std::bad_alloc&) {
      if (all.empty()) throw;
      break;
    }
  }
  return all;
}

void work_process::hand_out_next(std::uint32_t number, std::vector<handed_item>& to) {
  const std::uint64_t id = waiting_.begin()->second;
  entry& e = items_.at(id);
  hands& worker = workers_[number];
  handed_item handed{id, e.times + 1, e.priority, e.item};
  if (to.size() == to.capacity()) to.reserve(2 * to.size() + 1);
  held& of = worker.items[id];
  // From here on nothing throws.
  to.push_back(std::move(handed));
  of.turn = worker.turn;
  of.waiting = waiting_.extract(waiting_.begin());
  e.worker = number;
  ++e.times;
  --counts_.waiting;
  ++counts_.handed_out;
}

// Gives waiting items to those who wait for them; tells all that there will be none.
void work_process::batch_ended() {
  line_.serve([&] { return !waiting_.empty() || drained(); },
              [&](std::uint32_t worker, std::uint32_t most) { return hand_out(worker, most); });
}

void work_process::close() {
  closed_ = true;
  batch_ended();
}

void work_process::end_waits() {
  ended_ = true;
  batch_ended();
}

void work_process::worker_gone(std::uint32_t number) {
  line_.cancel(number);
  hands gone = workers_.end(number);
  for (auto& [id, of] : gone.items) come_back(items_.at(id), std::move(of));
  batch_ended();
}

void work_process::come_back(entry& e, held from) noexcept {
  e.worker = nobody;
  from.waiting.value().first = -std::int64_t{e.priority};
  waiting_.insert(std::move(from.waiting));
  ++counts_.waiting;
  --counts_.handed_out;
  ++counts_.came_back;
}

void work_process::execute(unpacker& requests, bytes& answers) {
  auto r = requests.take<work_request>();
  if (r.what == work_request::kind::put && !closed_) {
    put(std::move(r), answers);
  } else {
    pack(answers, r.what != work_request::kind::put && finish(r) ? list_answer::yes : list_answer::no);
  }
}

void work_process::put(work_request r, bytes& answers) {
  const std::uint64_t id = next_id_;
  const auto at = items_.emplace_hint(items_.end(), id, entry{r.priority, 0, nobody, std::move(r.item)});
  try {
    waiting_.emplace(-std::int64_t{r.priority}, id);
  } catch (...) {
    items_.erase(at);
    throw;
  }
  ++next_id_;
  ++counts_.waiting;
  pack(answers, list_answer::number);
  pack(answers, id);
}

bool work_process::finish(const work_request& r) {
  const auto at = items_.find(r.id);
  if (at == items_.end() || at->second.worker != r.worker || at->second.times != r.times) return false;
  auto of = workers_[r.worker].items.extract(r.id);
  if (r.what == work_request::kind::give_back) {
    at->second.priority = r.priority;
    come_back(at->second, std::move(of.mapped()));
    return true;
  }
  items_.erase(at);
  --counts_.handed_out;
  ++counts_.done;
  return true;
}

void work_process::describe(range_report& to) {
  to.items = items_.size();
  to.bytes = items_.size() * (sizeof(entry) + 2 * 48);  // nodes of two trees
  for (const auto& [id, e] : items_) to.bytes += e.item.size();
}

}  // namespace orrery::service
