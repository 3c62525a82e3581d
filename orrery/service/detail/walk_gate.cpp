// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/walk_gate.hpp>
#include <orrery/service/session_core.hpp>
#include <orrery/wire/error.hpp>

#include <exception>
#include <iterator>
#include <utility>

namespace orrery::service {

bytes walk_gate::serve(const batch_head& head, std::span<const std::byte> packed) {
  bytes all;
  if (over_) std::rethrow_exception(over_);
  if (closed_) throw ended_for_a_session();
  if (head.count == 0) return all;
  report_.requests += head.count;
  report_.window = head.window;
  show_window(head.window);
  batch b;
  b.answers.resize(head.count);
  if (head.places) b.versions.resize(head.count);
  b.left = head.count;
  const std::uint64_t first = std::exchange(next_, next_ + head.count);
  struct entry {
    walk_gate& of;
    std::uint64_t first;
    ~entry() {
      of.open_.erase(first);
      if (of.open_.empty() && of.none_open_ != nullptr) std::exchange(of.none_open_, nullptr)->set();
    }
  };
  open_.emplace(first, &b);
  const entry until_the_end{*this, first};
  accept(first, head.count, packed);
  b.all_answered.wait();
  for (const bytes& a : b.answers) all.insert(all.end(), a.begin(), a.end());
  for (const std::uint64_t v : b.versions) pack(all, v);
  if (head.places) pack(all, served_at{0, b.moment});
  return all;
}

void walk_gate::answer(std::uint64_t request, std::uint64_t moment, std::uint64_t version,
                       std::span<const std::byte> packed) {
  const auto behind = open_.upper_bound(request);
  if (behind == open_.begin()) return;
  const auto& [first, at] = *std::prev(behind);
  batch& b = *at;
  if (request - first >= b.answers.size()) return;  // of a batch that was given up
  if (!b.answers[request - first].empty()) return;  // it has failed already
  b.answers[request - first].assign(packed.begin(), packed.end());
  if (request == first) b.moment = moment;
  if (!b.versions.empty()) b.versions[request - first] = version;
  if (--b.left == 0) b.all_answered.set();
  ended(request);
}

void walk_gate::fail(const std::string& why) {
  if (over_) return;
  over_ = make_error(errc::node_lost, verbatim, why);
  fail_open(over_);
  tell_of_loss(why);
}

void walk_gate::finish_requests() {
  closed_ = true;
  if (open_.empty()) return;
  struct entry {  // the wait may end with an exception
    event*& place;
    event none_open;
    ~entry() { place = nullptr; }
  } mine{none_open_, {}};
  none_open_ = &mine.none_open;
  mine.none_open.wait();
}

void walk_gate::fail_open(const std::exception_ptr& why) {
  bytes failure;
  pack_failure(failure, why);
  for (const auto& [first, b] : open_) {
    if (b->left == 0) continue;
    for (bytes& a : b->answers)
      if (a.empty()) a = failure;
    b->left = 0;
    b->all_answered.set();
  }
}

void reply(const walk_request& w, std::uint64_t version, std::span<const std::byte> packed) {
  if (w.gate) post(w.gate)->answer(w.number, w.moment, version, packed);
}
void reply_failed(const walk_request& w, const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const node_lost& e) {
    if (w.gate) post(w.gate)->fail(e.what());
  } catch (...) {
    bytes b;
    pack_failure(b, why);
    reply(w, 0, b);
  }
}
void reply_full(const walk_request& w) {
  reply_failed(w, make_error(errc::bad_argument, "the list is full: it has no free process left"));
}

}  // namespace orrery::service
