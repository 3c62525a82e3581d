// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/service/walk_process.hpp>
#include <orrery/wire/error.hpp>

#include <iterator>
#include <utility>

namespace orrery::service {

walk_gate::batch::batch(walk_gate& at, std::uint32_t count) : at_(at), first_(at.next_), answers_(count), left_(count) {
  at_.next_ += count;
  at_.report_.requests += count;
  if (count != 0) at_.open_.emplace(first_, this);
}

walk_gate::batch::~batch() { at_.open_.erase(first_); }

bytes walk_gate::batch::wait() {
  using access = detail::future_access<void>;
  if (left_ != 0) {
    auto state = access::make_local(detail::here_pe());
    state->hold();
    waiting_ = state.get();
    access::wrap(std::move(state)).get();
  }
  bytes all;
  for (const bytes& a : answers_) all.insert(all.end(), a.begin(), a.end());
  return all;
}

void walk_gate::answer(std::uint64_t request, std::span<const std::byte> packed) {
  const auto behind = open_.upper_bound(request);
  if (behind == open_.begin()) return;
  batch& b = *std::prev(behind)->second;
  if (request - b.first_ >= b.answers_.size()) return;  // of a batch that was given up
  b.answers_[request - b.first_].assign(packed.begin(), packed.end());
  if (--b.left_ == 0 && b.waiting_ != nullptr)
    detail::resolve<void>(detail::here_pe(), std::exchange(b.waiting_, nullptr), [] {});
}

void walk_manager::adopt(const std::vector<remote<walk_process>>& all) {
  all_ = all;
  free_.assign(all.rbegin(), all.rend());
}

remote<walk_process> walk_manager::take(std::uint32_t managers) {
  if (!free_.empty()) {
    const auto p = free_.back();
    free_.pop_back();
    return p;
  }
  return managers != 0 ? next_->take(managers - 1) : remote<walk_process>();
}

void walk_manager::tune(std::uint32_t granularity, std::uint32_t forwards) {
  for (const auto& p : all_) post(p)->tune(granularity, forwards);
}

void walk_manager::end() {
  free_.clear();
  for (const auto& p : std::exchange(all_, {})) destroy(p);
}

}  // namespace orrery::service
