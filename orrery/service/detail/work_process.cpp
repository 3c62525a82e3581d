// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/work_process.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <utility>

namespace orrery::service {

namespace {
// Sessions and handles in other programs call them: a program that has made a queue answers them,
// also if nothing in it calls them.
[[gnu::used, maybe_unused]] void offer(const remote<work_process>& q) {
  (void)q->begin_worker({});
  (void)q->take(0, 0, false);
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

std::vector<handed_item> work_process::take(std::uint32_t worker, std::uint32_t most, bool wait) {
  if (!workers_.contains(worker))
    throw usage_error(errc::bad_argument,
                      "a work queue has taken this worker for dead, and its items back: open another session");
  if (!waiting_.empty() || !wait || drained()) return hand_out(worker, most);
  return line_.wait(worker, most);
}

std::vector<handed_item> work_process::hand_out(std::uint32_t worker, std::uint32_t most) {
  constexpr std::size_t most_bytes = std::size_t{256} << 10U;  // so that the answer can be sent
  std::vector<handed_item> all;
  std::size_t bytes = 0;
  while (!ended_ && all.size() < most && !waiting_.empty()) {
    const std::uint64_t id = waiting_.begin()->second;
    entry& e = items_.at(id);
    bytes += e.item.size();
    if (!all.empty() && bytes > most_bytes) break;
    all.push_back({id, e.times + 1, e.priority, e.item});
    workers_[worker].insert(id);
    e.worker = worker;
    ++e.times;
    waiting_.erase(waiting_.begin());
  }
  counts_.waiting -= all.size();
  counts_.handed_out += all.size();
  return all;
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

void work_process::worker_gone(std::uint32_t worker) {
  line_.cancel(worker);
  for (const std::uint64_t id : workers_.end(worker)) come_back(id, items_.at(id));
  batch_ended();
}

void work_process::come_back(std::uint64_t id, entry& e) {
  e.worker = nobody;
  waiting_.emplace(-std::int64_t{e.priority}, id);
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
  const std::uint64_t id = next_id_++;
  waiting_.emplace(-std::int64_t{r.priority}, id);
  items_.emplace_hint(items_.end(), id, entry{r.priority, 0, nobody, std::move(r.item)});
  ++counts_.waiting;
  pack(answers, list_answer::number);
  pack(answers, id);
}

bool work_process::finish(const work_request& r) {
  const auto at = items_.find(r.id);
  if (at == items_.end() || at->second.worker != r.worker || at->second.times != r.times) return false;
  workers_[at->second.worker].erase(r.id);
  if (r.what == work_request::kind::give_back) {
    at->second.priority = r.priority;
    come_back(r.id, at->second);
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
