// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/request_process.hpp>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>

namespace orrery::service {

/// The same for the same packed key in all programs.
[[nodiscard]] std::uint64_t hash_of(std::span<const std::byte> packed_key) noexcept;

/// A part of a hash map: it owns the keys whose hash falls to it.
template <class Key, class Value>
class hash_part final : public request_process {
 private:
  void describe(range_report& to) override { to.items = items_.size(); }
  void execute(unpacker& requests, bytes& answer) override {
    unpacker one = requests;
    skip_request<Key, Value>(requests);
    const std::size_t size = answer.size();
    try {
      unpack(one, request_);
      execute(request_, answer);
    } catch (...) {  // of the program's keys and values
      answer.resize(size);
      pack_failure(answer, std::current_exception());
    }
  }
  void execute(list_request<Key, Value>& r, bytes& answer) {
    const auto at = items_.find(r.key);
    const bool there = at != items_.end();
    bool done = there;
    switch (r.operation) {
      case list_operation::find:
        pack(answer, there ? list_answer::value : list_answer::no);
        if (there) pack(answer, at->second);
        return;
      case list_operation::erase:
        if (there) items_.erase(at);
        break;
      case list_operation::update:
        if (there) at->second = std::move(r.value);
        break;
      default:
        done = !there;
        if (!there) {
          items_.emplace(std::move(r.key), std::move(r.value));
        } else if (r.operation == list_operation::insert_or_update) {
          at->second = std::move(r.value);
        }
    }
    pack(answer, done ? list_answer::yes : list_answer::no);
  }

  std::unordered_map<Key, Value> items_;
  list_request<Key, Value> request_;  // that is executed
};

}  // namespace orrery::service
