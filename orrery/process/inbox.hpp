// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/wait_until.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>

namespace orrery {

namespace detail {

/// The methods that wait for values of an inbox.
///
/// Problem: a message is not to cost more where a method waits for four, and the fourth is still to
/// come. So each wait knows how many values are missing, and tells its condition when that is
/// nothing; the values are counted then only if others have taken some meanwhile. A copy of an
/// inbox is waited for by nobody.
template <class Number>
class number_waits {
 public:
  /// One of them. Lies on the stack of its method.
  struct one {
    one(number_waits& of, const Number& n, std::size_t least)
        : in(of), number(n), missing(least), next(std::exchange(of.first_, this)) {}
    one(const one&) = delete;
    one& operator=(const one&) = delete;
    ~one() {
      one** at = &in.first_;
      while (*at != this) at = &(*at)->next;
      *at = next;
    }
    number_waits& in;
    const Number& number;  ///< on the same stack
    std::size_t missing;
    bool exact = true;  ///< else more may be missing: others have taken some since
    one* next;
    scheduler::condition* condition = nullptr;
  };

  number_waits() = default;
  number_waits(const number_waits&) noexcept {}
  number_waits& operator=(const number_waits&) noexcept {
    look_again();
    return *this;
  }
  ~number_waits() = default;

  void has_come(const Number& n) {
    for (one* w = first_; w != nullptr; w = w->next)
      if (w->missing != 0 && w->number == n && --w->missing == 0) tell(*w);
  }
  /// Values were taken.
  void were_taken() noexcept {
    for (one* w = first_; w != nullptr; w = w->next) w->exact = false;
  }
  /// There are other values now.
  void look_again() noexcept {
    for (one* w = first_; w != nullptr; w = w->next) {
      w->missing = 0;
      w->exact = false;
      tell(*w);
    }
  }

 private:
  static void tell(const one& w) noexcept {
    if (w.condition != nullptr) scheduler::current_pe->conditions().tell(*w.condition);
  }
  one* first_ = nullptr;
};

}  // namespace detail

/// Values that were taken from an inbox, in the order in which they came; a few need no memory of
/// their own. A vector of boost::container, which becomes a std::vector where one is wanted.
template <class Value>
class taken_values : public boost::container::small_vector<Value, std::clamp<std::size_t>(128 / sizeof(Value), 1, 8)> {
 public:
  operator std::vector<Value>() && {  // NOLINT: implicit, so that a method can return it as one
    return {std::move_iterator(this->begin()), std::move_iterator(this->end())};
  }
};

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
/// A message costs the same however many values there are; who takes some looks through all.
/// Serializable if the values are, so that an element that migrates takes along what has come early
/// (while a method of it waits it does not migrate).
template <class Number, class Value>
class inbox {
 public:
  /// In a method of the object, which others call or post.
  void put(Number n, Value v) {
    all_.push_back({std::move(n), std::move(v)});
    waits_.has_come(all_.back().number);
  }
  /// The oldest value of that number; parks until there is one. As wait_until: throws process_gone,
  /// stopped, usage_error. The wait is for a copy of the number.
  [[nodiscard]] Value take(Number n) {
    await(n, 1);
    const auto at = std::ranges::find(all_, n, &item::number);
    Value v = std::move(at->value);
    all_.erase(at);
    waits_.were_taken();
    return v;
  }
  /// So many of that number, in the order in which they came; parks until they are there.
  [[nodiscard]] taken_values<Value> take(Number n, std::size_t count) {
    await(n, count);
    taken_values<Value> values;
    values.reserve(count);
    auto kept = all_.begin();
    for (auto at = kept; at != all_.end(); ++at) {
      if (values.size() != count && at->number == n) {
        values.push_back(std::move(at->value));
      } else {
        if (kept != at) *kept = std::move(*at);
        ++kept;
      }
    }
    all_.erase(kept, all_.end());
    waits_.were_taken();
    return values;
  }
  /// True if a value of that number is there. Does not park.
  [[nodiscard]] bool has(const Number& n) const { return std::ranges::find(all_, n, &item::number) != all_.end(); }
  /// How many values of that number are there. Does not park.
  [[nodiscard]] std::size_t count_of(const Number& n) const {
    return static_cast<std::size_t>(std::ranges::count(all_, n, &item::number));
  }
  /// Those of all numbers.
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

  template <class A>
  void serialize(A& a) {
    a & all_;
    if constexpr (A::is_loading::value) waits_.look_again();
  }

 private:
  using wait = typename detail::number_waits<Number>::one;
  struct wanted : wait {
    wanted(inbox& from, const Number& n, std::size_t c, std::size_t missing)
        : wait(from.waits_, n, missing), of(from), count(c) {}
    bool operator()() {
      if (this->missing == 0 && this->exact) return true;
      const std::size_t there = of.count_of(this->number);
      this->missing = there < count ? count - there : 0;
      this->exact = true;
      return this->missing == 0;
    }
    const inbox& of;
    std::size_t count;
  };
  void await(const Number& n, std::size_t count) {
    scheduler::pe& self = detail::pe_of_method();
    if (const std::size_t there = count_of(n); there < count) [[likely]] {
      wanted w(*this, n, count, count - there);
      scheduler::predicate p = detail::condition_of(w);
      p.told_by = &w.condition;
      (void)self.conditions().wait(p);
    }
  }

  struct item {
    Number number;
    Value value;
  };
  std::vector<item> all_;  // as they came
  detail::number_waits<Number> waits_;
};

}  // namespace orrery
