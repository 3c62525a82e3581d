// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/directory.hpp>
#include <orrery/array/index.hpp>
#include <orrery/process/describe.hpp>
#include <orrery/wire/type_description.hpp>
#include <orrery/wire/type_key.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

// How values of many elements become one (paper, "Reductions").

namespace orrery {

namespace detail {
[[noreturn]] void throw_lengths(std::size_t a, std::size_t b);
}

/// The operations of reductions. Any class that can be default-constructed and called with two
/// values will do; it must be associative and commutative, as the order of the elements is not
/// specified.
struct sum_op {
  template <class V>
  [[nodiscard]] V operator()(V a, const V& b) const {
    static_assert(
        requires { a += b; } || requires { a + b; },
        "orrery: sum: values of this type cannot be added; use elementwise(sum) for vectors and arrays, or an operation of your own");
    if constexpr (requires { a += b; }) {
      a += b;
      return a;
    } else {
      return static_cast<V>(a + b);
    }
  }
};
/// The least value.
struct min_op {
  template <class V>
  [[nodiscard]] V operator()(V a, const V& b) const {
    return b < a ? b : a;
  }
};
/// The greatest value.
struct max_op {
  template <class V>
  [[nodiscard]] V operator()(V a, const V& b) const {
    return a < b ? b : a;
  }
};
/// True if all are.
struct all_op {
  [[nodiscard]] bool operator()(bool a, bool b) const noexcept { return a && b; }
};
/// True if one is.
struct any_op {
  [[nodiscard]] bool operator()(bool a, bool b) const noexcept { return a || b; }
};
/// Appends containers, in any order: to sort them, contribute pairs of index and value.
struct concat_op {
  template <class V>
  [[nodiscard]] V operator()(V a, const V& b) const {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
};
/// Combines vectors, or arrays, of one length: the n-th values with each other. An empty vector
/// counts as nothing contributed.
template <class Op>
struct elementwise_op {
  template <class V>
  [[nodiscard]] V operator()(V a, const V& b) const {
    if constexpr (requires { a.resize(0); }) {
      if (std::size(b) == 0) return a;
      if (std::size(a) == 0) return b;
    }
    if (std::size(a) != std::size(b)) detail::throw_lengths(std::size(a), std::size(b));
    auto from = std::begin(b);
    for (auto& v : a) v = Op{}(std::move(v), *from++);
    return a;
  }
};
/// `contribute(forces, elementwise(sum), target)`: the sums of the first values, of the second
/// values...; all elements contribute as many (usage_error).
template <class Op>
[[nodiscard]] constexpr elementwise_op<Op> elementwise(Op) noexcept {
  return {};
}
inline constexpr sum_op sum{};
inline constexpr min_op minimum{};
inline constexpr max_op maximum{};
inline constexpr all_op logical_all{};
inline constexpr any_op logical_any{};
inline constexpr concat_op concat{};

namespace detail {

/// Where the result of a reduction goes: as a serialized value.
struct reduction_target {
  enum class kind : std::uint8_t { none, call, process, element, all, forward };
  kind what = kind::none;
  caller call;  // kind::call
  address process;  // kind::process
  std::uint32_t handler = 0;  // the method's, in the table of handlers
  // kind::element, kind::all; kind::process: an activity of it begins, which the method ends
  std::uint32_t array = 0;
  bytes head;  // kind::element, kind::forward: the first section of the message
  std::uint32_t type = 0;  // type_mark() of what it takes; 0: anything that is written like it
  template <class A>
  void serialize(A& a) {
    a & what & call & process & handler & array & type & head;
    if constexpr (requires { a.references(); })
      if (a.references() != nullptr) *this = {};  // not part of a checkpoint
  }
};

/// Remembers the name of a type by its mark, for errors.
std::uint32_t name_mark(std::uint32_t mark, std::string_view name);
/// "int" or, where this program never names the type, "another type".
[[nodiscard]] std::string_view name_of_mark(std::uint32_t mark) noexcept;

/// The mark of a type whose name is known from the start of the program, on all nodes.
template <class V>
struct marked_type {
  static std::uint32_t mark() noexcept {
    static const auto m = static_cast<std::uint32_t>(hash_of_text(wire::stable_key(wire::type_key<V>()))) | 1U;
    return m;
  }
  inline static const std::uint32_t named = name_mark(mark(), type_name<V>());
};
/// Tells types apart, in all nodes in the same way; never 0.
template <class V>
[[nodiscard]] std::uint32_t type_mark() noexcept {
  (void)&marked_type<V>::named;
  return marked_type<V>::mark();
}

/// The name in reports of calls for the result of a reduction; nobody sends it.
extern const control_handler reduction_result;

/// The values combined so far.
struct accumulator {
  virtual ~accumulator() = default;
  /// Identifies value type and operation inside this OS process.
  [[nodiscard]] virtual const void* kind() const noexcept = 0;
  /// The handler of partial results of this kind.
  [[nodiscard]] virtual const array_handler& handler() const noexcept = 0;
  virtual void merge(accumulator&& other) = 0;  // of the same kind
  virtual void append_to(bytes& b) const = 0;
  /// The type of the value: as C++ writes it, and its mark.
  [[nodiscard]] virtual std::string_view type() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t mark() const noexcept = 0;
};

template <class V, class Op>
struct typed_reducer;

template <class V, class Op>
struct typed_accumulator final : accumulator {
  static_assert(
      std::is_default_constructible_v<Op> && !std::is_pointer_v<Op>,
      "orrery: the operation of a reduction travels as its type: make it a class, or a lambda without captures, that can be "
      "default-constructed");
  std::optional<V> value;
  template <class X>
  void add(X&& x) {
    if (value) {
      *value = Op{}(std::move(*value), std::forward<X>(x));
    } else {
      value.emplace(std::forward<X>(x));
    }
  }
  [[nodiscard]] const void* kind() const noexcept override { return &typed_reducer<V, Op>::kind; }
  [[nodiscard]] const array_handler& handler() const noexcept override { return typed_reducer<V, Op>::partial_handler; }
  void merge(accumulator&& other) override {
    auto& o = static_cast<typed_accumulator&>(other);
    if (o.value) add(std::move(*o.value));
  }
  void append_to(bytes& b) const override { pack_after(b, *value); }
  [[nodiscard]] std::string_view type() const noexcept override { return type_name<V>(); }
  [[nodiscard]] std::uint32_t mark() const noexcept override { return type_mark<V>(); }
};

using accumulator_reader = wire::unique_ptr<accumulator> (*)(std::span<const std::byte>);
/// Takes a partial result; `read` makes its value, or is null when there is none.
slot* route_partial(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                    accumulator_reader read) noexcept;

template <class V, class Op>
struct typed_reducer {
  static inline const char kind = 0;
  static wire::unique_ptr<accumulator> read(std::span<const std::byte> from) {
    auto a = wire::make_unique<typed_accumulator<V, Op>>();
    orrery::reader r(from);
    a->value.emplace(orrery::read<V>(r));
    return a;
  }
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    return route_partial(self, d, e, size, &read);
  }
  static void describe(wire::type_description& types) { types.describe<V>(); }
  inline static const control_handler partial_handler{type_name<typed_reducer<V, Op>>(), &route, &describe,
                                                      wire::type_key<typed_reducer>()};
};

}  // namespace detail
}  // namespace orrery
