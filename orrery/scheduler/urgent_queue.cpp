// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/urgent_queue.hpp>

#include <orrery/scheduler/deadlock_detector.hpp>
#include <orrery/scheduler/idle_queue.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/unique_ptr.hpp>

namespace orrery::scheduler {

bool urgent_queue::insert(slot& s, message* m) noexcept {
  // The first message of a process that has no object yet constructs it.
  const bool constructs = s.state == process_state::scheduled && !s.has_object && !s.is_function;
  if (!s.has_messages() || (!constructs && !begins(s))) {
    s.push_front(m);
    return true;
  }
  message* before = s.last->next;
  while (before != s.last && before->next->head.kind == wire::record_kind::urgent) before = before->next;
  m->next = before->next;
  before->next = m;
  if (before == s.last) s.last = m;
  return false;
}

void urgent_queue::push(slot& s, run_queue& others) {
  all_.push_back(&s);
  if (all_.size() == 1) others.push_next(next_);
}

void urgent_queue::take_over(slot& s, run_queue& others) {
  if (others.replace(s, passed_over_)) push(s, others);
}

slot& urgent_queue::pop(run_queue& others) {
  slot& s = *all_.front();
  all_.pop_front();
  if (!all_.empty()) others.push_next(next_);
  return s;
}

namespace {

const handler* method_of(const message& m) noexcept { return reinterpret_cast<const handler*>(m.head.handler); }

bool is_awaited(const message& m) noexcept {
  if (m.head.reply != 0) return true;
  const hidden_caller* const c = method_of(m)->caller;
  return c != nullptr && c->of != nullptr && c->of(m).call != 0;
}

/// A message that waits until its PE has nothing else to do; then it comes into the mailbox of its
/// process.
class background_message final : public idle_task {
 public:
  background_message(pe& self, slot& s, message* m) noexcept : self_(self), to_(self.address_of(s)), message_(m) {
    s.charge += m->charge();  // its senders are to hear when there is too much
  }
  background_message(const background_message&) = delete;
  background_message& operator=(const background_message&) = delete;
  ~background_message() override {  // the PE ends before it was its turn
    if (message_ != nullptr) fail(*message_, self_.shutdown().refusal(method_of(*message_)));
  }

  void run() override {
    message* const m = std::exchange(message_, nullptr);
    slot* s = self_.find(to_.slot, to_.generation);
    if (s != nullptr) {
      s->charge -= m->charge();
    } else if (const auto route = method_of(*m)->route; route != nullptr) {  // it may have moved on
      delivery d;
      d.load(self_, *m);
      s = route(self_, d, m->head, m->head.size.load(std::memory_order_relaxed));
      if (s == nullptr) return;
    } else {
      fail(*m, gone_error(*method_of(*m), to_));
      return;
    }
    self_.push(*s, m);
    if (is_awaited(*m)) self_.deadlocks().suspect_if_waiting(*s);
  }

 private:
  void fail(message& m, std::exception_ptr why) {
    delivery d;
    d.load(self_, m);
    d.fail(std::move(why));
  }

  pe& self_;
  address to_;
  message* message_;
};

}  // namespace

void run_state::end_urgent::operator()(urgent_queue* q) const noexcept { delete q; }

void run_state::push_urgent(slot& s, message* m) {
  if (urgent_ == nullptr) urgent_.reset(new urgent_queue);
  const bool is_first = urgent_queue::insert(s, m);
  s.charge += m->charge();
  if (s.state <= process_state::receiving) {
    s.state = process_state::scheduled;
    urgent_->push(s, runnable_);
  } else if (s.state == process_state::scheduled) {
    if (is_first) urgent_->take_over(s, runnable_);
  } else if (is_awaited(*m)) {
    whole().deadlocks().suspect_if_waiting(s);
  }
}

void run_state::push_background(slot& s, message* m) {
  pe& self = whole();
  auto t = wire::make_unique<background_message>(self, s, m);
  if (!refusing_) self.run_when_idle(std::move(t));
}

void run_state::push_at(wire::record_kind level, slot& s, message* m) {
  m->head.kind = level;
  if (level == wire::record_kind::urgent) {
    push_urgent(s, m);
  } else {
    push_background(s, m);
  }
}

void run_state::schedule_by_level(slot& s) {
  if (urgent_queue::begins(s)) {
    urgent_->push(s, runnable_);
  } else {
    runnable_.push(s);
  }
}

}  // namespace orrery::scheduler
