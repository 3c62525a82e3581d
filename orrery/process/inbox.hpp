// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/wait_until.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace orrery {

/// Keeps the values that have come for a process until its method asks for them, by a number that
/// says what they are for. A member of the object:
///
///     // may come a step too early
///     void Block::border(int step, Border b) { borders_.put(step, std::move(b)); }
///     void Block::iterate() {
///       for (int step = 0; step < 100; ++step) {
///         for (auto& n : neighbours_) post(n)->border(step, mine());
///         for (Border& b : borders_.take(step, 4)) use(b);  // parks until all four are there
///       }
///     }
///     inbox<int, Border> borders_;
///
/// For few values at a time: each is looked for among all. Serializable if the values are, so that
/// an element that migrates takes along what has come early (while a method of it waits it does not
/// migrate).
template <class Number, class Value>
class inbox {
 public:
  /// In a method of the object, which others call or post.
  void put(Number n, Value v) { all_.push_back({std::move(n), std::move(v)}); }
  /// The oldest value of that number; parks until there is one. As wait_until: throws process_gone,
  /// stopped, usage_error.
  [[nodiscard]] Value take(const Number& n) {
    wait_until([&] { return has(n); });
    const auto at = std::ranges::find(all_, n, &item::number);
    Value v = std::move(at->value);
    all_.erase(at);
    return v;
  }
  /// So many of that number, in the order in which they came; parks until they are there.
  [[nodiscard]] std::vector<Value> take(const Number& n, std::size_t count) {
    wait_until([&] { return count_of(n) >= count; });
    std::vector<Value> values;
    values.reserve(count);
    std::erase_if(all_, [&](item& i) {
      if (values.size() == count || !(i.number == n)) return false;
      values.push_back(std::move(i.value));
      return true;
    });
    return values;
  }
  [[nodiscard]] bool has(const Number& n) const { return std::ranges::find(all_, n, &item::number) != all_.end(); }
  [[nodiscard]] std::size_t count_of(const Number& n) const {
    return static_cast<std::size_t>(std::ranges::count(all_, n, &item::number));
  }
  /// Those of all numbers.
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

  template <class A>
  void serialize(A& a) {
    a & all_;
  }

 private:
  struct item {
    Number number;
    Value value;
  };
  std::vector<item> all_;  // as they came
};

}  // namespace orrery
