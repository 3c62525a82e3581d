// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/through_wire.hpp>
#include <orrery/process/inbox.hpp>
#include <orrery/wire/type_key.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery {

namespace detail {

template <class F>
struct awaited_method {
  static_assert(never<F>, "orrery: when: the method is not overloaded, and its first parameter is the number");
};
#define ORRERY_AWAITED_METHOD(qualifiers)                 \
  template <class C, class R, class N, class... P>        \
  struct awaited_method<R (C::*)(N, P...) qualifiers> {   \
    using number = std::remove_cvref_t<N>;                \
    using values = std::tuple<std::remove_cvref_t<P>...>; \
  };
ORRERY_AWAITED_METHOD()
ORRERY_AWAITED_METHOD(noexcept)
#undef ORRERY_AWAITED_METHOD

// Objects may convert; numbers that may change are a mistake: nobody else says what they were.
template <class V, class P>
inline constexpr bool kept_unchanged =
    std::is_convertible_v<P, V> && (!std::is_arithmetic_v<V> || requires(P&& p) { V{std::forward<P>(p)}; });
template <class Values, class Given>
inline constexpr bool kept_as = true;  // of another number: that is said already
template <class... V, class... P>
  requires(sizeof...(V) == sizeof...(P))
inline constexpr bool kept_as<std::tuple<V...>, std::tuple<P...>> = (kept_unchanged<V, P> && ...);

/// The messages that have arrived by one method.
struct arrived_by_method {
  virtual ~arrived_by_method() = default;
  [[nodiscard]] virtual std::vector<std::byte> written() const = 0;
};

template <auto Method>
struct typed_arrivals final : arrived_by_method {
  using number = typename awaited_method<decltype(Method)>::number;
  using values = typename awaited_method<decltype(Method)>::values;
  orrery::inbox<number, values> all;

  static std::string name() { return wire::stable_key(wire::type_key<typed_arrivals>()); }
  [[nodiscard]] std::vector<std::byte> written() const override {
    if constexpr (serializable<orrery::inbox<number, values>>) {
      return detail::written(all);
    } else {
      throw usage_error(errc::bad_argument,
                        "arrivals: what has come by a method cannot be sent: give the classes of its "
                        "parameters `template <class A> void serialize(A& a)`");
    }
  }
};

}  // namespace detail

/// The messages that methods of an object wait for, by a reference number. A base of its class:
///
///     struct Block : element<Block>, arrivals {
///       void recv_border(int step, int side, Row r) {
///         arrived<&Block::recv_border>(step, side, std::move(r));
///       }
///       void iterate() {
///         for (int step = 0; step < 100; ++step) {
///           send_borders(step);
///           // the four of this step
///           for (auto& [side, row] : when<&Block::recv_border>(step, 4)) use(side, row);
///         }
///       }
///     };
///
/// What comes early waits in an inbox of its method, in the order in which it came. An element that
/// migrates takes it along if its serialize() says `arrivals::serialize(a)`; while a method of it
/// waits it does not migrate.
class arrivals {
 public:
  template <class A>
  void serialize(A& a) {
    if constexpr (A::is_loading::value) {
      a & unread_;
    } else {
      std::vector<message> all = unread_;
      for (const auto& [key, box] : boxes_) all.push_back({key.name(), box->written()});
      a & all;
    }
  }

 protected:
  /// In the method itself: keeps its other arguments until they are asked for by the number.
  template <auto Method, class... P>
  void arrived(typename detail::typed_arrivals<Method>::number n, P&&... rest) {
    using values = typename detail::typed_arrivals<Method>::values;
    static_assert(sizeof...(P) == std::tuple_size_v<values>,
                  "orrery: arrived<&T::m>(number, rest...): give all arguments of the method");
    static_assert(detail::kept_as<values, std::tuple<P...>>,
                  "orrery: arrived<&T::m>(number, rest...): give the arguments of the method as they are; one of these "
                  "is of another type than its parameter");
    by<Method>().put(std::move(n), values(std::forward<P>(rest)...));
  }
  /// The arguments behind the number of the oldest message of this method with this number: one as
  /// it is, several as a tuple. Parks until it has come. Throws as wait_until: process_gone,
  /// usage_error outside of a method, stopped.
  template <auto Method>
  auto when(const typename detail::typed_arrivals<Method>::number& n) {
    return plain(by<Method>().take(n));
  }
  /// So many of them, in the order in which they came.
  template <auto Method>
  auto when(const typename detail::typed_arrivals<Method>::number& n, std::size_t count) {
    auto all = by<Method>().take(n, count);
    using values = typename detail::typed_arrivals<Method>::values;
    if constexpr (std::tuple_size_v<values> == 1) {
      taken_values<std::tuple_element_t<0, values>> one;
      one.reserve(all.size());
      for (auto& v : all) one.push_back(std::get<0>(std::move(v)));
      return one;
    } else {
      return all;
    }
  }
  /// How many of that number have come by this method, and were not asked for.
  template <auto Method>
  [[nodiscard]] std::size_t arrived_count(const typename detail::typed_arrivals<Method>::number& n) {
    return by<Method>().count_of(n);
  }

 private:
  // A method, for this program; and for another node.
  struct method {
    std::string (*name)();
    friend bool operator==(const method&, const method&) = default;
  };
  struct message {
    std::string method;
    std::vector<std::byte> written;
  };

  template <class... V>
  static auto plain(std::tuple<V...>&& all) {
    if constexpr (sizeof...(V) == 1) {
      return std::get<0>(std::move(all));
    } else {
      return std::move(all);
    }
  }
  template <auto Method>
  auto& by() {
    using typed = detail::typed_arrivals<Method>;
    for (const auto& [key, box] : boxes_)
      if (key.name == &typed::name) return static_cast<typed&>(*box).all;
    auto made = wire::make_unique<typed>();
    if (!unread_.empty()) read(*made);
    auto& all = made->all;
    boxes_.emplace_back(method{&typed::name}, std::move(made));
    return all;
  }
  template <class Typed>
  void read(Typed& into) {
    const std::string name = Typed::name();
    std::erase_if(unread_, [&](const message& m) {
      if (m.method != name) return false;
      if constexpr (serializable<decltype(into.all)>) {
        orrery::reader r(m.written);
        r & into.all;
      }
      return true;
    });
  }

  std::vector<std::pair<method, wire::unique_ptr<detail::arrived_by_method>>> boxes_;
  std::vector<message> unread_;  // that the object has brought along
};

}  // namespace orrery
