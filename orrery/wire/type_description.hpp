// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/serialize.hpp>
#include <orrery/wire/type_key.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery::wire {

#pragma GCC diagnostic push
#ifdef __clang__
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif

// Fields have names where their addresses are written out, in what has one as an argument.
template <class T>
struct object_of_type {
  T value;
};
template <class T>
extern const object_of_type<T> any_object;  // never defined: only addresses in it are named
template <class P>
struct field_address {
  P at;
};
template <field_address Field>
constexpr const char* text_with_field_name() noexcept {
  return __PRETTY_FUNCTION__;
}

/// The look of types on the wire, as text.
///
/// Problem: values travel as they lie in memory, without tags or names, so two builds of a program
/// of which one has swapped or added fields would read each other's messages as nonsense that looks
/// like sense. The names of handlers do not show it.
///
/// So each handler describes the types of its arguments and of its result, and programs that meet
/// in a world compare the texts (transport/shm/registry.hpp): names and sizes of types, an
/// aggregate's fields with their names in their order, the elements of containers, what enums are
/// made of, and what the serialize() of a class names. (To swap two fields of one type is as bad as
/// any other swap, and only their names tell.) Types are named by their keys, so that the text does
/// not depend on the compiler.
///
/// For a serialize() this is the fourth archive: a `sizer` that looks at types, not at values. It
/// is shown an object made by the default constructor, as a receiver makes one, so what depends on
/// the value is not seen; neither are the names of enumerators.
///
/// Made by who creates or joins a world, before anything is sent. Not thread-safe.
class type_description : public sizer {
 public:
  /// The look of one type: its size and its parts, each ended by '\n', as the name of a field (or
  /// nothing), '=' and the key of its type. The first layout of a shape has no type: its parts are
  /// what was described.
  struct layout {
    std::string_view type;  ///< its key
    std::string text;
  };

  type_description() : layouts_(1), open_{0} {}

  template <class T>
  type_description& operator&(const T&) {
    describe<T>();
    return *this;
  }
  template <class... T>
  type_description& operator()(const T&...) {
    (describe<T>(), ...);
    return *this;
  }
  template <class T>
  type_description& block(const T*, std::size_t) {
    describe<T>();
    return *this;
  }

  /// Appends what a T looks like: of void, numbers, what cannot be sent, and classes of this
  /// library that say `static constexpr bool known_shape = true` the name alone. Each type is
  /// described once.
  template <class T>
  [[gnu::cold]] void describe() {
    if constexpr (std::is_void_v<T> || std::is_arithmetic_v<T> || requires { requires T::known_shape; }) {
      mention(type_key<T>());
    } else {
      if (!begin(type_key<T>(), sizeof(T))) return;
      if constexpr (serializable<T>) describe_parts<T>();
      end();
    }
  }
  /// Appends only the name and the size of a T.
  template <class T>
  void name() {
    if (begin(type_key<T>(), sizeof(T))) end();
  }

  /// All of it.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const std::vector<layout>& layouts() const noexcept { return layouts_; }

 private:
  template <class T>
  void describe_parts() {
    constexpr kind k = kind_of<T>;
    if constexpr (k == kind::member_serialize || k == kind::free_serialize) {
      describe_serialize<T>();
    } else if constexpr (std::is_enum_v<T>) {
      describe<std::underlying_type_t<T>>();
    } else if constexpr (k == kind::view) {
      if constexpr (requires { typename T::element_type; }) describe<std::remove_const_t<typename T::element_type>>();
    } else if constexpr (k == kind::aggregate) {
      describe_fields<T>(typename parts_of<T>::type{}, std::make_index_sequence<field_count<T>>{});
    } else {
      describe_all(typename parts_of<T>::type{});
    }
  }
  template <class... T>
  void describe_all(type_list<T...>) {
    (describe<std::remove_cv_t<T>>(), ...);
  }
  template <class T, class... Field, std::size_t... I>
  void describe_fields(type_list<Field...>, std::index_sequence<I...>) {
    static_assert(sizeof...(Field) == sizeof...(I));
    ((field(text_with_field_name<address_of_field<T, I>()>()), describe<std::remove_cv_t<Field>>()), ...);
  }
  template <class T>
  void describe_serialize() {
    try {
      const auto value = wire::make_unique<T>();  // not on the stack: it may be large
      if constexpr (kind_of<T> == kind::member_serialize) {
        value->serialize(*this);
      } else {
        serialize(*this, *value);
      }
    } catch (...) {
      // a value without a meaning, which cannot be sent; what it has named until then counts
      layouts_[open_.back()].text += '!';
    }
  }
  // By value only, as an argument of a template: a constant that kept the addresses would name what
  // is never defined to the linker, where nothing is optimized.
  template <class T, std::size_t I>
  static consteval auto address_of_field() {
    return visit_fields(any_object<T>.value, [](auto&... f) {
      auto* at = std::get<I>(std::tuple(std::addressof(f)...));
      return field_address<decltype(at)>{at};
    });
  }

  /// The next part is the field that the text of a compiler names last.
  void field(std::string_view compiler_text);
  void mention(std::string_view type);
  /// False if that was described before.
  bool begin(std::string_view type, std::size_t bytes);
  void end() { open_.pop_back(); }

  std::vector<layout> layouts_;
  std::vector<std::size_t> open_;  // in layouts_
};

#pragma GCC diagnostic pop

}  // namespace orrery::wire
