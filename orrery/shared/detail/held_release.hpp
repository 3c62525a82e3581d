// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/held.hpp>
#include <orrery/shared/detail/release_tally.hpp>
#include <orrery/shared/detail/transfer_limits.hpp>
#include <orrery/shared/release_request.hpp>
#include <orrery/shared/scope.hpp>
#include <orrery/shared/shared_element.hpp>
#include <orrery/shared/sharing_check.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace orrery::detail {

/// A release scope of elements that their owners hold. Those of the own PE are written at once;
/// others are gathered for each owner, and their order for each element is kept.
template <class T>
class held_release {
 public:
  explicit held_release(const release_request& r)
      : region_{r.row, r.rows, r.column, r.columns},
        object_(hold_for(r.id, region_)),
        most_(r.options.buffer_bytes),
        tally_(r, "other PEs") {
    if (r.checked) watch_.begin(object_, access_kind::write, r.where, "release");
  }
  held_release(const held_release&) = delete;
  held_release& operator=(const held_release&) = delete;
  ~held_release() {
    try {
      close();  // an exception leaves the scope: what was written before is written
    } catch (...) {
      report_unended_scope(std::current_exception());
    }
  }
  void ready() {}
  void flush() {
    for (auto& [part, b] : gathered_) send(part, b);
    throw_failure();
  }
  void close() {
    if (object_ == nullptr) return;
    for (auto& [part, b] : gathered_) send(part, b);
    while (!sent_.empty()) take_oldest();
    watch_.end();
    const std::shared_ptr<const shared_object> last = std::move(object_);
    tally_.tell(last->about.label);
    if (failure_ != nullptr) tally_.rethrow(failure_, last->about.label);
  }

 protected:
  void put(std::uint64_t row, std::uint64_t column, std::reference_wrapper<const T> value) const {
    require_in_scope(*object_, region_, row, column);
    if (watch_) [[unlikely]]
      watch_.add_now(row, column);
    const layout::place p = object_->how().find(row, column);
    if (p.part == object_->own_part) {
      held_elements<T>(*object_)[p.local] = value.get();
      return;
    }
    tally_.add();
    batch& b = gathered_[p.part];
    b.places.push_back(p.local);
    b.values.push_back(value);
    sizer s;
    s & value.get();
    b.bytes += s.size() + sizeof p.local;
    if (b.bytes < most_) return;
    send(p.part, b);
    throw_failure();
  }

 private:
  struct batch {
    std::vector<std::uint64_t> places;
    std::vector<T> values;
    std::size_t bytes = 0;
  };

  struct message {
    future<void> answer;
    std::uint64_t writes;
  };

  void take_oldest() const {
    message oldest = std::move(sent_.front());
    sent_.pop_front();
    try {
      oldest.answer.get();
      tally_.arrived(oldest.writes);
    } catch (...) {
      if (failure_ == nullptr) failure_ = std::current_exception();
    }
  }
  void send(std::uint32_t part, batch& b) const {
    if (b.places.empty()) return;
    if (sent_.size() >= transfer_window) take_oldest();
    const batch now = std::exchange(b, {});
    try {
      sent_.push_back({start_call<&write_list_here<T>>(orrery::pe(object_->how().pes[part]), object_->about.id, part,
                                                       now.places, now.values),
                       now.places.size()});
    } catch (...) {
      if (failure_ == nullptr) failure_ = std::current_exception();
    }
  }
  void throw_failure() const {
    if (failure_ == nullptr) return;
    while (!sent_.empty()) take_oldest();
    tally_.rethrow(failure_, object_->about.label);
  }

  region region_;
  std::shared_ptr<const shared_object> object_;
  std::size_t most_;
  mutable std::map<std::uint32_t, batch> gathered_;  // by part
  mutable std::deque<message> sent_;
  mutable std::exception_ptr failure_;  // the first
  mutable release_tally tally_;
  mutable watched_access watch_;

 protected:
  std::uint64_t row_ = region_.row;
  std::uint64_t rows_ = region_.rows;
  std::uint64_t column_ = region_.column;
  std::uint64_t columns_ = region_.columns;
};

}  // namespace orrery::detail
