// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/key_interval.hpp>
#include <orrery/service/detail/list_router.hpp>
#include <orrery/service/range_process.hpp>

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

namespace orrery::service {

/// The head of an ordered list: gives the requests of all sessions of the level `total` one order.
///
/// Problem: ranges execute requests at the same time, so those of two clients have an order at each
/// range, but not one order in all.
///
/// All batches of such sessions come here. The head takes one at a time, numbers its requests
/// (their *moments*), and sends them on to the ranges as a session of the level `per_key` does. It
/// takes the next batch when all are answered. Requests for one key take effect in the order of
/// their moments, as they do for a session. Requests for different keys do not see each other. A
/// request that looks at many keys (size, first, last, after) is sent when all before it are
/// answered, and nothing is sent before its own answer. So each reply is what it would be if all
/// requests were executed one after the other in the order of their moments.
///
/// Made by ordered_list::make; lives until the list ends. Sessions of other levels do not pass
/// through it, so their requests have no place in that order.
template <class Key, class Value>
class list_head final : public range_process, list_router<Key, Value> {
  using router = list_router<Key, Value>;

 public:
  explicit list_head(remote<service_root> root, const std::string& kind)
      : router(root->open(kind, types_in_words<Key, Value>()), {.window = 4096, .order = consistency::per_key}) {}

  bytes serve(const batch_head& head, std::span<const std::byte> packed) override {
    const std::uint32_t count = head.count;
    report_.requests += count;
    answers_.assign(count, {});
    unpacker u(packed);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::byte* const begin = u.position();
      const auto o = unpacker(u.rest()).template take<list_operation>();
      skip_request<Key, Value>(u);
      const bool alone = !has_key(o) || o == list_operation::after;
      if (alone) this->settle();
      this->wait_for_room();
      if (pass_on(i, {begin, u.position()}) && alone) this->settle();
    }
    this->settle();
    packer all;
    for (const bytes& a : answers_) all.append(a);
    pack(all, served_at{0, moment_});
    moment_ += count;
    return all.take();
  }
  bytes scan(std::uint32_t limit, std::span<const std::byte> interval) override {
    return ask(interval, [&](const auto& range) { return range->scan(limit, interval); });
  }
  bytes snapshot(std::span<const std::byte> interval) override {
    return ask(interval, [&](const auto& range) { return range->snapshot(interval); });
  }
  bytes pin(remote<presence> stream, std::span<const std::byte> interval) override {
    return ask(interval, [&](const auto& range) { return range->pin(stream, interval); });
  }
  range_report report() override { return report_; }

 private:
  using typename router::number;
  using typename router::route_number;

  // False if it has failed.
  bool pass_on(std::uint32_t i, std::span<const std::byte> request) {
    try {
      unpacker u(request);
      this->begin(this->route_of(u), i).append(request);
    } catch (...) {  // a comparison of the program's
      pack_failure(answers_[i], std::current_exception());
      return false;
    }
    this->issued();
    return true;
  }
  // The answer of the range where the interval begins.
  template <class Ask>
  bytes ask(std::span<const std::byte> interval, Ask f) {
    bytes all;
    this->ask_owner(key_interval<Key>::unpack(interval).from, f, [&](list_answer what, unpacker& u) {
      pack(all, what);
      all.insert(all.end(), u.rest().begin(), u.rest().end());
    });
    return all;
  }
  void answered(route_number, std::span<const number> numbers, std::span<const std::byte> answer) override {
    this->each_answer(numbers, answer, [&](std::size_t i, list_answer what, unpacker& u) {
      bytes& to = answers_[numbers[i]];
      const std::byte* const begin = u.position();
      skip_answer<Key, Value>(what, u);
      pack(to, what);
      to.insert(to.end(), begin, u.position());
    });
  }
  void failed(std::span<const number> numbers, const std::exception_ptr& why) override {
    for (const number n : numbers) pack_failure(answers_[n], why);
  }

  std::vector<bytes> answers_;  // of the batch that is executed
  std::uint64_t moment_ = 0;  // of the next request
  range_report report_;
};

}  // namespace orrery::service
