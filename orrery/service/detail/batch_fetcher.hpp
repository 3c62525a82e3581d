// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/sorted_leaves.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace orrery::service {

/// Looks ahead in a batch of requests, in three steps.
///
/// Problem: each look-up waits for memory three times, and a batch has many.
///
/// While the range executes a request, the leaf of one further on is fetched, the keys of one
/// before that, and the value of one before that. So the waits of many requests overlap, those of
/// the last ones and of small batches too. Where leaves come or go meanwhile, it begins again.
///
/// Lives on the stack of list_range::serve.
template <class Key, class Value>
class batch_fetcher {
 public:
  using leaves = sorted_leaves<Key, Value>;
  using request = list_request<Key, Value>;

  batch_fetcher(const leaves& items, std::vector<request>& requests, std::uint32_t count)
      : items_(items), requests_(requests), count_(count), version_(items.version()) {}

  /// Request `now` is executed next: its leaf is known, and true.
  void go_on(std::uint32_t now) {
    if (items_.version() != version_) {
      if (now + 3 * step >= count_) {  // what is left is little
        look_up(requests_[now]);
        return;
      }
      version_ = items_.version();
      for (std::uint32_t i = now; i < std::min(done_, count_); ++i) look_up(requests_[i]);
    }
    for (const std::uint32_t until = std::min(count_ + 2 * step, now + 3 * step); done_ < until; ++done_) {
      if (done_ < count_) {
        look_up(requests_[done_]);
        items_.fetch_leaf(requests_[done_].leaf);
      }
      if (done_ >= step && done_ - step < count_) {
        items_.fetch_keys(requests_[done_ - step].leaf);
        if (count_ == 1) items_.fetch_values(requests_[0].leaf);
      }
      if constexpr (std::is_arithmetic_v<Key>) {
        if (done_ >= 2 * step) {
          request& soon = requests_[done_ - 2 * step];
          soon.hint = items_.fetch_value(soon.leaf, soon.key);
        }
      }
    }
  }

 private:
  static constexpr std::uint32_t step = 12;
  void look_up(request& r) const noexcept {
    r.hint = leaves::no_hint;
    try {
      r.leaf = items_.find_leaf(r.key);
    } catch (...) {  // a comparison of the program's: it is looked for when it is executed
      r.leaf = 0;
      r.hint = leaves::not_found_yet;
    }
  }

  const leaves& items_;
  std::vector<request>& requests_;
  std::uint32_t count_;
  std::uint32_t version_;
  // Turns: request i is looked up in turn i, and its value fetched 2 * step turns later.
  std::uint32_t done_ = 0;
};

}  // namespace orrery::service
