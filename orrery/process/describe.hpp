// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/for_each.hpp>

#include <string_view>
#include <type_traits>
#include <utility>

namespace orrery {
namespace detail {

// Descriptions are found by argument-dependent lookup of orrery_describe(T*, adl_tag). Overload
// resolution prefers the nearest base, so a derived class is described by its base until it has a
// line of its own - and that line finds the base in the same way.
struct adl_tag {};
struct no_description {
  template <class Mode>
  struct proxy {};
};
no_description orrery_describe(const volatile void*, adl_tag);

struct overloaded {};  // &T::f names several functions

template <class T>
constexpr std::string_view type_name() noexcept {
  std::string_view s = __PRETTY_FUNCTION__;  // "... [with T = X; ...]" or "... [T = X]"
  const std::size_t begin = s.find("T = ") + 4;
  const std::size_t end = s.find_first_of(";]", begin);
  return s.substr(begin, end - begin);
}

template <class Mode, class Method>
struct method_proxy;  // method.hpp

template <class Description, class Mode>
using proxy_of = typename Description::template proxy<Mode>;

// The base of the proxy of Class. Each class without a described base has a root of its own: two
// empty bases of one type could not lie at the same place, and all of a proxy must (method.hpp).
template <class Class>
struct proxy_root {};
template <class Base, class Mode, class Class>
struct base_proxy {
  using type = proxy_of<Base, Mode>;
};
template <class Mode, class Class>
struct base_proxy<no_description, Mode, Class> {
  using type = proxy_root<Class>;
};

// Several bases.
template <class... Description>
struct joined_description {
  template <class Mode>
  struct proxy : proxy_of<Description, Mode>... {
    static_assert((std::is_empty_v<proxy_of<Description, Mode>> && ...));
  };
};

// The description of the nearest base, for the line of a class itself and nothing else: after it
// the answer would be another one.
struct ambiguous_description : no_description {};
template <class T, class = void>
struct base_description {
  using type = ambiguous_description;
};
template <class T>
struct base_description<T, std::void_t<decltype(orrery_describe(static_cast<T*>(nullptr), adl_tag{}))>> {
  using type = decltype(orrery_describe(static_cast<T*>(nullptr), adl_tag{}));
};

}  // namespace detail

/// The description of a class that ORRERY_PROCESS wrote, of T or else of its nearest base that has
/// one.
template <class T>
using description_of = decltype(orrery_describe(static_cast<T*>(nullptr), detail::adl_tag{}));

/// True if objects of T can be called through `remote<T>`.
template <class T>
concept described = !std::is_same_v<description_of<T>, detail::no_description>;

namespace detail {
/// For the beginning of a line of a class, which the number tells from others: T, or if it has had
/// one, something that has none.
template <class T, int>
struct described_again {};
// Neither a constraint nor description_of<T>, whose answer would stay as it is the first time.
template <class T, int, class = void>
struct first_line : std::true_type {};
template <class T, int Line>
struct first_line<T, Line,
                  std::enable_if_t<std::is_same_v<
                      typename decltype(orrery_describe(static_cast<T*>(nullptr), adl_tag{}))::orrery_object, T>>>
    : std::false_type {};
template <class T, int Line>
inline constexpr bool is_first_line = first_line<T, Line>::value;
template <class T, int Line>
using at_first_line = std::conditional_t<is_first_line<T, Line>, T, described_again<T, Line>>;
/// `Where` tells places of one class from each other: it may be complete later.
template <class T, class... Where>
inline constexpr bool is_complete = requires { sizeof(T); };

template <class T>
inline constexpr bool is_described = described<T>;  // compilers explain a concept at length

template <class... Base>
using join_descriptions = joined_description<description_of<Base>...>;
template <class Class, class... Base>
inline constexpr bool is_base_of_all = [] {
  if constexpr (requires { sizeof(Class); }) {
    return (std::is_base_of_v<Base, Class> && ...);
  } else {
    return false;
  }
}();

/// For the end of a class's own line: whether lookup by argument finds it, as it does beside the
/// class only.
template <class Class>
inline constexpr bool finds_own_line =
    requires { requires std::is_same_v<typename description_of<Class>::orrery_object, Class>; };

// Whether a class has a member of that name, be it overloaded or private: it is ambiguous then in a
// class that inherits a second one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
template <class Object, class Named>
struct with_second : Object, Named {};
#pragma GCC diagnostic pop
template <class Method>
consteval bool find_method() {
  using object = typename Method::object;
  if constexpr (!requires { sizeof(object); }) {
    return true;  // the line stands before the class
  } else if constexpr (!std::is_same_v<decltype(Method::template pointer<object>(0)), overloaded> ||
                       std::is_final_v<object>) {
    return true;
  } else {
    return !Method::template is_unique<with_second<object, typename Method::orrery_named>>;
  }
}
template <class Method>
inline constexpr bool has_method = find_method<Method>();
}  // namespace detail

}  // namespace orrery

// One tag type for each method name: how to call it, and its exact type unless it is overloaded.
#define ORRERY_METHOD_TAG(m)                                                   \
  struct orrery_method_##m {                                                   \
    using object = orrery_object;                                              \
    [[maybe_unused]] static constexpr std::string_view name = #m;              \
    template <class O, class... A>                                             \
    static auto call(O& o, A&&... a) -> decltype(o.m(std::forward<A>(a)...)) { \
      return o.m(std::forward<A>(a)...);                                       \
    }                                                                          \
    template <class O>                                                         \
    static auto pointer(int) -> decltype(&O::m);                               \
    template <class O>                                                         \
    static auto pointer(...) -> ::orrery::detail::overloaded;                  \
    struct orrery_named {                                                      \
      int m;                                                                   \
    };                                                                         \
    template <class O>                                                         \
    static constexpr bool is_unique = requires { &O::m; };                     \
  };
#define ORRERY_METHOD_PROXY(m) [[no_unique_address]] ::orrery::detail::method_proxy<Mode, orrery_method_##m> m;

// The name of the proxy is what compilers show when a method is not there.
#define ORRERY_DESCRIPTION_BODY(Class, Base, ...)                                            \
  using orrery_object = Class;                                                               \
  using base = Base;                                                                         \
  ORRERY_FOR_EACH(ORRERY_METHOD_TAG __VA_OPT__(, ) __VA_ARGS__)                              \
  template <class Mode>                                                                      \
  struct methods_in_ORRERY_PROCESS : ::orrery::detail::base_proxy<Base, Mode, Class>::type { \
    ORRERY_FOR_EACH(ORRERY_METHOD_PROXY __VA_OPT__(, ) __VA_ARGS__)                          \
  };                                                                                         \
  template <class Mode>                                                                      \
  using proxy = methods_in_ORRERY_PROCESS<Mode>;

/// Makes the named public methods of a class callable through `remote<Class>`. Stands beside the
/// class, in its namespace; up to 64 names. Methods of a base class that has its own line are
/// callable too. Overloaded names are listed once. A class template's instance is named by an alias
/// if it has a comma in it.
///
///     struct PageDevice { ... };
///     ORRERY_PROCESS(PageDevice, write, read)
#define ORRERY_PROCESS(Class, ...)                                                                     \
  ORRERY_DESCRIBE(Class, (typename ::orrery::detail::base_description<Class>::type),                   \
                  (!std::is_same_v<base, ::orrery::detail::ambiguous_description>),                    \
                  "orrery: " #Class                                                                    \
                  " derives from several described classes: name them, ORRERY_PROCESS_DERIVED(" #Class \
                  ", (A, B), methods...)" __VA_OPT__(, ) __VA_ARGS__)

/// The same for a class that derives from several described classes (one needs not be named): their
/// methods are callable too. Two of them must not derive from the same described class.
///
///     struct Camera : Device, Sensor { ... };
///     ORRERY_PROCESS_DERIVED(Camera, (Device, Sensor), shoot)
#define ORRERY_PROCESS_DERIVED(Class, Bases, ...)                                                                     \
  ORRERY_DESCRIBE(                                                                                                    \
      Class, (::orrery::detail::join_descriptions<ORRERY_UNPARENTHESIZED Bases>),                                     \
      (::orrery::detail::is_base_of_all<Class, ORRERY_UNPARENTHESIZED Bases>),                                        \
      "orrery: ORRERY_PROCESS_DERIVED(" #Class                                                                        \
      ", (A, B), methods...): the class must derive from all of them, and its definition stand before" __VA_OPT__(, ) \
          __VA_ARGS__)

#define ORRERY_UNPARENTHESIZED(...) __VA_ARGS__
#define ORRERY_CHECK_METHOD(m)                                   \
  static_assert(::orrery::detail::has_method<orrery_method_##m>, \
                "orrery: ORRERY_PROCESS lists `" #m "`, which the class has no method of: look at the spelling");
// The description is a specialization, so that any way to write the class will do. In an inline
// namespace what is found first is its own template, whatever a `using namespace` shows beside it;
// and lookup by argument finds what it declares.
#define ORRERY_DESCRIBE(Class, its_base, good_base, bad_base, ...)                                              \
  inline namespace orrery_processes {                                                                           \
  template <class>                                                                                              \
  struct orrery_process_of;                                                                                     \
  template <>                                                                                                   \
  struct orrery_process_of<::orrery::detail::at_first_line<Class, __LINE__>> {                                  \
    static_assert(::orrery::detail::is_first_line<Class, __LINE__>,                                             \
                  "orrery: " #Class                                                                             \
                  " has a second ORRERY_PROCESS line: name all methods in the first, and leave the other out"); \
    using orrery_base = ORRERY_UNPARENTHESIZED its_base;                                                        \
    ORRERY_DESCRIPTION_BODY(Class, orrery_base __VA_OPT__(, ) __VA_ARGS__)                                      \
    static_assert(ORRERY_UNPARENTHESIZED good_base, bad_base);                                                  \
    ORRERY_FOR_EACH(ORRERY_CHECK_METHOD __VA_OPT__(, ) __VA_ARGS__)                                             \
  };                                                                                                            \
  [[maybe_unused]] inline orrery_process_of<::orrery::detail::at_first_line<Class, __LINE__>> orrery_describe(  \
      ::orrery::detail::at_first_line<Class, __LINE__>*, ::orrery::detail::adl_tag) {                           \
    return {};                                                                                                  \
  }                                                                                                             \
  }                                                                                                             \
  static_assert(::orrery::detail::finds_own_line<Class>,                                                        \
                "orrery: ORRERY_PROCESS(" #Class ", ...) stands beside the class, in its namespace")

/// The same inside a class, for class templates:
///
///     template <class T> struct Queue {
///       void push(T); T pop();
///       ORRERY_PROCESS_MEMBERS(Queue, push, pop)
///     };
#define ORRERY_PROCESS_MEMBERS(Class, ...)                                                      \
  struct orrery_description {                                                                   \
    ORRERY_DESCRIPTION_BODY(Class, ::orrery::detail::no_description __VA_OPT__(, ) __VA_ARGS__) \
  };                                                                                            \
  [[maybe_unused]] friend orrery_description orrery_describe(Class*, ::orrery::detail::adl_tag) { return {}; }

/// The same for a class template that derives from a described one.
#define ORRERY_PROCESS_MEMBERS_DERIVED(Class, Base, ...)                                      \
  struct orrery_description {                                                                 \
    ORRERY_DESCRIPTION_BODY(Class, ::orrery::description_of<Base> __VA_OPT__(, ) __VA_ARGS__) \
  };                                                                                          \
  [[maybe_unused]] friend orrery_description orrery_describe(Class*, ::orrery::detail::adl_tag) { return {}; }
