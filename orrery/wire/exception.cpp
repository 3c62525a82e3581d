// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/exception.hpp>

#include <orrery/wire/exception_class.hpp>

#include <cxxabi.h>

#include <any>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <ios>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <typeinfo>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace orrery {
namespace {

// Numbers are part of the wire format: add at the end, never renumber.
enum class form : std::uint16_t {
  unknown = 0,
  own = 1,     // an orrery::error; value is its code
  remote = 2,  // an orrery::remote_error on its way through
  generic_error = 3,
  system_error = 4,
  iostream_error = 5,
  user = 6,  // a class with ORRERY_EXCEPTION; type is its name
  standard = 16,  // and up: 16 + index into `standard_classes`
};

template <class T>
std::exception_ptr make_with_text(const std::string& what) {
  return std::make_exception_ptr(T(what));
}

template <class T>
std::exception_ptr make_without_text(const std::string&) {
  return std::make_exception_ptr(T());
}

struct standard_class {
  const std::type_info* type;
  std::exception_ptr (*make)(const std::string& what);
};

// The order is part of the wire format.
const std::array standard_classes{
    standard_class{&typeid(std::exception), make_without_text<std::exception>},
    standard_class{&typeid(std::logic_error), make_with_text<std::logic_error>},
    standard_class{&typeid(std::invalid_argument), make_with_text<std::invalid_argument>},
    standard_class{&typeid(std::domain_error), make_with_text<std::domain_error>},
    standard_class{&typeid(std::length_error), make_with_text<std::length_error>},
    standard_class{&typeid(std::out_of_range), make_with_text<std::out_of_range>},
    standard_class{&typeid(std::runtime_error), make_with_text<std::runtime_error>},
    standard_class{&typeid(std::range_error), make_with_text<std::range_error>},
    standard_class{&typeid(std::overflow_error), make_with_text<std::overflow_error>},
    standard_class{&typeid(std::underflow_error), make_with_text<std::underflow_error>},
    standard_class{&typeid(std::bad_alloc), make_without_text<std::bad_alloc>},
    standard_class{&typeid(std::bad_array_new_length), make_without_text<std::bad_array_new_length>},
    standard_class{&typeid(std::bad_cast), make_without_text<std::bad_cast>},
    standard_class{&typeid(std::bad_typeid), make_without_text<std::bad_typeid>},
    standard_class{&typeid(std::bad_exception), make_without_text<std::bad_exception>},
    standard_class{&typeid(std::bad_weak_ptr), make_without_text<std::bad_weak_ptr>},
    standard_class{&typeid(std::bad_function_call), make_without_text<std::bad_function_call>},
    standard_class{&typeid(std::bad_optional_access), make_without_text<std::bad_optional_access>},
    standard_class{&typeid(std::bad_variant_access), make_without_text<std::bad_variant_access>},
    standard_class{&typeid(std::bad_any_cast), make_without_text<std::bad_any_cast>},
};

constexpr std::uint16_t bad_alloc_kind = 16 + 10;

std::uint16_t number(form f) noexcept { return static_cast<std::uint16_t>(f); }

// 0 for a class that is not in the table, also if its base is.
std::uint16_t standard_kind(const std::type_info& type) noexcept {
  for (std::size_t i = 0; i != standard_classes.size(); ++i) {
    if (*standard_classes[i].type == type) {
      return static_cast<std::uint16_t>(number(form::standard) + i);
    }
  }
  return 0;
}

std::string readable(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  return name ? name.get() : type.name();
}

// std::logic_error and its kin have no constructor for the exact text only where they compose it;
// of all classes here that is std::system_error, "<text>: <the code's message>".
class system_error_with_text final : public std::system_error {
 public:
  system_error_with_text(std::error_code code, std::string text)
      : std::system_error(code), text_(std::make_shared<const std::string>(std::move(text))) {}
  const char* what() const noexcept override { return text_->c_str(); }

 private:
  std::shared_ptr<const std::string> text_;  // shared: copying an exception must not throw
};

std::exception_ptr make_system_error(std::error_code code, const std::string& what) {
  if (std::system_error plain(code); plain.what() == what) return std::make_exception_ptr(plain);
  const std::string tail = ": " + code.message();
  if (what.ends_with(tail)) {
    return std::make_exception_ptr(std::system_error(code, what.substr(0, what.size() - tail.size())));
  }
  return std::make_exception_ptr(system_error_with_text(code, what));
}

form form_of(const std::system_error& e) {
  const std::type_info& type = typeid(e);
  if (type != typeid(std::system_error) && type != typeid(system_error_with_text) &&
      type != typeid(std::ios_base::failure) && type != typeid(std::filesystem::filesystem_error)) {
    return form::unknown;  // a user's class: it keeps its name
  }
  const std::error_category& category = e.code().category();
  if (category == std::generic_category()) return form::generic_error;
  if (category == std::system_category()) return form::system_error;
  if (category == std::iostream_category()) return form::iostream_error;
  return form::unknown;
}

// The causes of e, as std::throw_with_nested keeps them: text after text.
std::string text_with_causes(const std::exception& e, int limit = 8) {
  std::string text = e.what();
  const auto* nested = dynamic_cast<const std::nested_exception*>(&e);
  if (nested == nullptr || nested->nested_ptr() == nullptr || limit == 0) return text;
  try {
    nested->rethrow_nested();
  } catch (const std::exception& cause) {
    return text + ", because: " + text_with_causes(cause, limit - 1);
  } catch (...) {
    return text + ", because of an exception of unknown type";
  }
}

wire_exception encode_standard(const std::exception& e) {
  wire_exception result;
  const std::type_info& type = typeid(e);
  result.type = readable(type);
  result.what = text_with_causes(e);
  if (const auto* remote = dynamic_cast<const remote_error*>(&e)) {
    result.kind = number(form::remote);
    result.type = remote->type();
    result.what = remote->text();
    result.origin = remote->at();
  } else if (const auto* own = dynamic_cast<const error*>(&e)) {
    result.kind = number(form::own);
    result.value = static_cast<std::int32_t>(own->code());
  } else if (const auto* system = dynamic_cast<const std::system_error*>(&e)) {
    result.kind = number(form_of(*system));
    result.value = system->code().value();
  } else if (const detail::exception_class* known = detail::exception_class::find(type)) {
    result.kind = number(form::user);
    result.type = known->name;
    known->save(e, result);
  } else {
    result.kind = standard_kind(type);
  }
  return result;
}

wire_exception encode(const std::exception_ptr& thrown) {
  wire_exception result;
  if (thrown == nullptr) return result;
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return encode_standard(e);
  } catch (const std::string& text) {  // thrown by some, and better than nothing
    result.what = text;
    result.type = "std::string";
  } catch (const char* text) {
    result.what = text != nullptr ? text : "";
    result.type = "char const*";
  } catch (...) {
    if (const std::type_info* type = abi::__cxa_current_exception_type()) {
      result.type = readable(*type);
    }
  }
  return result;
}

// More would not fit into a record between nodes; inside a node the same holds, so that no program
// depends on it.
constexpr std::size_t longest_exception_text = std::size_t{24} << 10;

bool arrives_whole(const std::exception& e) noexcept { return std::strlen(e.what()) <= longest_exception_text; }

// Ends with how much was cut, and is not cut again on a second way.
void shorten(std::string& text) {
  if (text.size() <= longest_exception_text) return;
  std::size_t most = longest_exception_text - std::string_view("... (18446744073709551615 more bytes)").size();
  // UTF-8: whole characters
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  const std::size_t cut = text.size() - most;
  text.resize(most);
  text += fmt::format("... ({} more bytes)", cut);
}

const std::error_category& category_of(form f) noexcept {
  switch (f) {
    case form::generic_error:
      return std::generic_category();
    case form::iostream_error:
      return std::iostream_category();
    default:
      return std::system_category();
  }
}

}  // namespace

wire_exception encode_exception(const std::exception_ptr& thrown) noexcept {
  try {
    wire_exception result = encode(thrown);
    shorten(result.what);
    return result;
  } catch (...) {  // out of memory while telling of an error
    wire_exception result;
    result.kind = bad_alloc_kind;
    return result;
  }
}

std::exception_ptr decode_exception(const wire_exception& w, const where& at) {
  switch (static_cast<form>(w.kind)) {
    case form::unknown:
      break;
    case form::own:
      if (w.value >= 0 && w.value <= 0xffff) {
        if (auto e = make_error(static_cast<errc>(w.value), verbatim, w.what)) return e;
      }
      break;
    case form::remote:
      return std::make_exception_ptr(remote_error(w.origin, w.type, w.what));
    case form::user:
      if (const detail::exception_class* known = detail::exception_class::find(w.type)) {
        try {
          if (auto e = known->load(w)) return e;
        } catch (const std::bad_alloc&) {
          throw;
        } catch (const std::exception&) {
          // its state cannot be read: what is known of it is better than nothing
        }
      }
      break;
    case form::generic_error:
    case form::system_error:
    case form::iostream_error:
      return make_system_error({w.value, category_of(static_cast<form>(w.kind))}, w.what);
    default: {
      const std::size_t i = w.kind - std::size_t{number(form::standard)};
      if (i < standard_classes.size()) return standard_classes[i].make(w.what);
      break;
    }
  }
  return std::make_exception_ptr(remote_error(at, w.type, w.what));
}

std::exception_ptr as_received(const std::exception_ptr& thrown, const where& at) noexcept {
  try {
    return decode_exception(encode_exception(thrown), at);
  } catch (...) {
    return std::make_exception_ptr(std::bad_alloc());
  }
}

bool keeps_class(const std::exception_ptr& thrown) noexcept {
  if (thrown == nullptr) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (const error& e) {
    return arrives_whole(e);
  } catch (const std::system_error& e) {
    return arrives_whole(e) && (form_of(e) != form::unknown || detail::exception_class::find(typeid(e)) != nullptr);
  } catch (const std::exception& e) {
    return arrives_whole(e) && (standard_kind(typeid(e)) != 0 || detail::exception_class::find(typeid(e)) != nullptr);
  } catch (...) {
    return false;
  }
}

// --- classes of the program ----------------------------------------------------------------------

namespace detail {
namespace {
constinit const exception_class* first_class = nullptr;  // filled before main
}

exception_class::exception_class(const std::type_info& t, save_function s, load_function l)
    : type(&t), name(readable(t)), save(s), load(l), next_(std::exchange(first_class, this)) {}

const exception_class* exception_class::find(const std::type_info& type) noexcept {
  const exception_class* c = first_class;
  while (c != nullptr && *c->type != type) c = c->next_;
  return c;
}
const exception_class* exception_class::find(const std::string& name) noexcept {
  const exception_class* c = first_class;
  while (c != nullptr && c->name != name) c = c->next_;
  return c;
}

}  // namespace detail

}  // namespace orrery
