// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/exception.hpp>
#include <orrery/wire/serialize.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

namespace orrery::detail {

/// How exceptions of one class of the program travel. One static object for each ORRERY_EXCEPTION,
/// made before main; never changed.
class exception_class {
 public:
  using save_function = void (*)(const std::exception&, wire_exception&);
  using load_function = std::exception_ptr (*)(const wire_exception&);

  exception_class(const std::type_info& type, save_function save, load_function load);
  exception_class(const exception_class&) = delete;
  exception_class& operator=(const exception_class&) = delete;

  /// Null if the class has no line.
  [[nodiscard]] static const exception_class* find(const std::type_info& type) noexcept;
  [[nodiscard]] static const exception_class* find(const std::string& name) noexcept;

  const std::type_info* const type;
  const std::string name;  ///< as C++ writes it
  const save_function save;
  const load_function load;

 private:
  const exception_class* const next_;
};

template <class E>
concept has_state = requires(E& e, sizer& a) { e.serialize(a); } && std::is_default_constructible_v<E>;

template <class E>
struct exception_form {
  static_assert(std::is_base_of_v<std::exception, E>,
                "orrery: ORRERY_EXCEPTION(Class): the class must derive from std::exception");
  static_assert(
      has_state<E> || std::is_constructible_v<E, const std::string&>,
      "orrery: ORRERY_EXCEPTION(Class): give the class a constructor that takes the what() as a std::string, or a default "
      "constructor and `template <class A> void serialize(A& a)`");

  static void save(const std::exception& thrown, wire_exception& form) {
    if constexpr (has_state<E>) {
      const auto& e = static_cast<const E&>(thrown);
      std::vector<std::byte> state(orrery::wire_size(e));
      orrery::writer w(state);
      orrery::write(w, e);
      form.state.assign(reinterpret_cast<const char*>(state.data()), state.size());
    } else {
      form.what = thrown.what();
    }
  }
  static std::exception_ptr load(const wire_exception& form) {
    if constexpr (has_state<E>) {
      const auto* data = reinterpret_cast<const std::byte*>(form.state.data());
      // aligned, as what it holds needs
      const std::vector<std::byte> state(data, data + form.state.size());
      orrery::reader r(state);
      return std::make_exception_ptr(orrery::read<E>(r));
    } else {
      return std::make_exception_ptr(E(form.what));
    }
  }
};

}  // namespace orrery::detail

/// Lets exceptions of a class of the program arrive at callers as what they are; without it they
/// arrive as remote_error. Stands beside the class, in its namespace. The class derives from
/// std::exception and either has a constructor that takes the text of what(), or a default
/// constructor and `template <class A> void serialize(A& a)` for what it keeps.
///
///     struct disk_error : std::runtime_error { using std::runtime_error::runtime_error; };
///     ORRERY_EXCEPTION(disk_error)
#define ORRERY_EXCEPTION(Class)                                                                                       \
  [[maybe_unused]] inline const ::orrery::detail::exception_class orrery_exception_##Class{                           \
      typeid(Class), &::orrery::detail::exception_form<Class>::save, &::orrery::detail::exception_form<Class>::load}; \
  static_assert(true)
