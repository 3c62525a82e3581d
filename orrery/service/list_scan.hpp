// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/service/list_session.hpp>
#include <orrery/service/presence.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

namespace service {

/// Remembers what a walk in parts has failed with, so that who asks again does not take it for the
/// end.
class lasting_failure {
 public:
  /// Calls `f`; throws what it throws, and from then on throws that without calling it.
  template <class F>
  void or_throw_again(F f) {
    if (why_ != nullptr) std::rethrow_exception(why_);
    try {
      f();
    } catch (...) {
      why_ = std::current_exception();
      throw;
    }
  }
  /// The next items of a walk whose parts `take` appends while there is an answer to come.
  template <class Item, class Take>
  std::vector<Item> next_of(const future<bytes>& asked, Take take) {
    std::vector<Item> items;
    or_throw_again([&] {
      while (items.empty() && asked.valid()) take(items);
    });
    return items;
  }
  /// In a handler: the walk has failed behind what is returned now.
  void throw_next_time() noexcept { why_ = std::current_exception(); }

 private:
  std::exception_ptr why_;
};

/// Appends the next item of `u`. False, and nothing is appended, if it cannot be read behind others
/// that can: these are returned, and then the walk fails. Throws if it is the first one.
template <class Key, class Value>
bool read_item(unpacker& u, std::vector<std::pair<Key, Value>>& items, lasting_failure& failure) {
  try {
    Key k = u.take<Key>();
    items.emplace_back(std::move(k), u.take<Value>());
    return true;
  } catch (...) {
    if (items.empty()) throw;
    failure.throw_next_time();
    return false;
  }
}

}  // namespace service

/// A walk over an interval of keys, in parts.
///
/// next() gives the next part and asks for the one behind it, so one part at most is on its way:
/// who does not take them holds nothing up. Each part is what one range had at one moment; an item
/// that is there from the beginning to the end of the walk is in it once.
///
/// Made by list_session::scan; its session outlives it, and may be used meanwhile.
template <class Key, class Value>
class list_scan {
 public:
  /// An item of a part.
  using item = std::pair<Key, Value>;

  list_scan(list_session<Key, Value>& s, std::optional<Key> from, std::optional<Key> to, std::uint32_t part)
      : session_(s), from_(std::move(from)), to_(std::move(to)), part_(part == 0 ? 1 : part) {
    ask();
  }
  list_scan(const list_scan&) = delete;
  list_scan& operator=(const list_scan&) = delete;

  /// The next items; none when the walk has ended. Parks. Throws node_lost, process_gone if the
  /// list has ended, stopped, and what an item throws that cannot be read; then each time. Items
  /// before that one are returned first.
  [[nodiscard]] std::vector<item> next() {
    return failure_.template next_of<item>(asked_, [&](auto& items) { take(items); });
  }

 private:
  void ask() {
    const service::bytes interval = service::key_interval<Key>{from_, above_, to_}.packed();
    asked_ = service::or_say_lost(session_.loss(), [&] {
      return start(session_.owner_at(from_))->scan(part_, std::span<const std::byte>(interval));
    });
  }
  void take(std::vector<item>& items) {
    const service::bytes answer = service::or_say_lost(session_.loss(), [&] { return asked_.get(); });
    service::unpacker u(answer);
    const auto what = u.take<service::list_answer>();
    if (what == service::list_answer::moved) {
      session_.learn(u);
      ask();
      return;
    }
    std::optional<Key> next;
    if (what == service::list_answer::before) next = u.take<Key>();
    const auto n = u.take<std::uint32_t>();
    items.reserve(n);
    for (std::uint32_t i = 0; i < n; ++i)
      if (!service::read_item(u, items, failure_)) return;
    if (what == service::list_answer::no) return;
    above_ = !next;
    from_ = next ? std::move(next) : std::optional<Key>(items.back().first);
    ask();
  }

  list_session<Key, Value>& session_;
  std::optional<Key> from_;
  bool above_ = false;
  std::optional<Key> to_;
  std::uint32_t part_;
  future<service::bytes> asked_;
  service::lasting_failure failure_;
};

/// A snapshot of an interval of keys, in parts: all items as they were when the stream was made.
///
/// Problem: a snapshot of a large list is too large for a message, and for the memory of who reads
/// it; and nobody can hold a list still while he reads.
///
/// The ranges keep what they had at one moment (pinned_items) for the stream. next() gives the next
/// part, and asks for the one behind it, so one part at most is on its way, and the reader sets the
/// pace. Ranges go on with all requests meanwhile; the price is a copy of each leaf that is written
/// to before the stream has passed it.
///
/// It knows at which place in the order of each range it was made (see session_options::places).
///
/// Made by list_session::stream; it may outlive its session. Ranges free what they keep when the
/// stream has read it, ends, or is lost with its node.
template <class Key, class Value>
class list_stream {
 public:
  /// An item of a part.
  using item = std::pair<Key, Value>;
  /// A range of the stream: it comes behind the first `executed` requests of its owner.
  struct pinned_range {
    service::owned_keys<Key> keys;
    std::uint64_t executed = 0;
  };

  /// For list_session.
  list_stream(wire::unique_ptr<service::own_presence> present, std::vector<pinned_range> ranges, std::uint32_t part,
              std::string_view loss)
      : present_(std::move(present)), ranges_(std::move(ranges)), part_(part == 0 ? 1 : part), loss_(loss) {
    ask();
  }

  /// The ranges that the stream reads, in the order of their keys.
  [[nodiscard]] const std::vector<pinned_range>& ranges() const noexcept { return ranges_; }
  /// The next items; none at the end. Parks. Throws node_lost if a range is lost that has items of
  /// it, process_gone if the list has ended, stopped, and what an item throws that cannot be read;
  /// then each time. Items before that one are returned first.
  [[nodiscard]] std::vector<item> next() {
    return failure_.template next_of<item>(asked_, [&](auto& items) { take(items); });
  }

 private:
  void take(std::vector<item>& items) {
    const service::bytes part = service::or_say_lost(loss_, [&] { return asked_.get(); });
    service::unpacker u(part);
    if (u.take<std::uint8_t>() == 0) ++now_;
    while (!u.empty())
      if (!service::read_item(u, items, failure_)) return;
    ask();
  }
  void ask() {
    if (now_ < ranges_.size())
      asked_ = service::or_say_lost(loss_, [&] {
        return start(remote<service::range_process>(ranges_[now_].keys.owner))->read_pin(present_->get(), part_);
      });
  }

  wire::unique_ptr<service::own_presence> present_;
  std::vector<pinned_range> ranges_;
  std::size_t now_ = 0;
  std::uint32_t part_;
  std::string_view loss_;  // a text that lives for ever
  future<service::bytes> asked_;
  service::lasting_failure failure_;
};

template <class Key, class Value>
list_scan<Key, Value> list_session<Key, Value>::scan(std::optional<Key> from, std::optional<Key> to,
                                                     std::uint32_t part) {
  this->settle();
  return list_scan<Key, Value>(*this, std::move(from), std::move(to), part);
}

template <class Key, class Value>
list_stream<Key, Value> list_session<Key, Value>::stream(const std::optional<Key>& from, const std::optional<Key>& to,
                                                         std::uint32_t part) {
  this->settle();
  auto present = wire::make_unique<service::own_presence>();
  const service::bytes interval = service::key_interval<Key>{from, false, to}.packed();
  std::vector<typename list_stream<Key, Value>::pinned_range> ranges;
  this->ask_owner(
      from, [&](const auto& range) { return range->pin(present->get(), interval); },
      [&](service::list_answer, service::unpacker& u) {
        while (!u.empty()) {
          auto keys = service::owned_keys<Key>::unpack(u);
          ranges.push_back({std::move(keys), u.take<std::uint64_t>()});
        }
      });
  return list_stream<Key, Value>(std::move(present), std::move(ranges), part, this->loss());
}

}  // namespace orrery
