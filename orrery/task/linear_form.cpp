// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/internal/linear_form.hpp>
#include <orrery/task/internal/table_check.hpp>
#include <orrery/task/internal/task_frame.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace orrery::task_detail {

namespace {

constexpr std::size_t part_alignment = 16;
constexpr unsigned deepest = 64;

constexpr std::size_t aligned(std::size_t n) noexcept { return (n + part_alignment - 1) & ~(part_alignment - 1); }

std::span<const orrery_field> fields_of(const orrery_message_type& t) noexcept { return {t.field, t.fields}; }

template <class T>
T load(const std::byte* at) noexcept {
  T x;
  std::memcpy(&x, at, sizeof x);
  return x;
}

// The value of the member that counts; nothing if it is negative.
std::optional<std::uint64_t> count_of(const orrery_field& f, const std::byte* structure) noexcept {
  const std::byte* at = structure + f.count_offset;
  std::int64_t n = 0;
  switch (f.count_bytes) {
    case 1:
      n = f.count_signed != 0 ? load<std::int8_t>(at) : load<std::uint8_t>(at);
      break;
    case 2:
      n = f.count_signed != 0 ? load<std::int16_t>(at) : load<std::uint16_t>(at);
      break;
    case 4:
      n = f.count_signed != 0 ? std::int64_t{load<std::int32_t>(at)} : std::int64_t{load<std::uint32_t>(at)};
      break;
    default:
      n = load<std::int64_t>(at);
      if (f.count_signed == 0) return static_cast<std::uint64_t>(n);
  }
  if (n < 0) return std::nullopt;
  return static_cast<std::uint64_t>(n);
}

// The bytes that a pointer of a structure in memory points to. It is not null. Nothing: they cannot
// be counted.
std::optional<std::size_t> bytes_at(const orrery_field& f, const std::byte* structure, const std::byte* pointer) {
  if (f.kind == ORRERY_STRING) return std::strlen(reinterpret_cast<const char*>(pointer)) + 1;
  if (f.kind == ORRERY_ONE) return f.element;
  const auto count = count_of(f, structure);
  std::size_t bytes = 0;
  constexpr std::size_t address_space = std::size_t{1} << 48;  // so that sums of sizes are right
  if (!count || __builtin_mul_overflow(*count, f.element, &bytes) || bytes > address_space) return std::nullopt;
  return bytes;
}

std::size_t size_of_parts(const orrery_message_type& type, const std::byte* structure,
                          std::vector<orrery_buffer>* buffers, unsigned depth) {
  if (depth > deepest)
    throw usage_error(
        errc::bad_argument,
        fmt::format("a message {} that is more than {} messages deep: send what hangs on its pointers as an array",
                    type.name, deepest));
  std::size_t all = 0;
  for (const orrery_field& f : fields_of(type)) {
    const auto* pointer = load<const std::byte*>(structure + f.offset);
    if (f.kind == ORRERY_BUFFER) {
      if (pointer == nullptr) continue;
      if (buffers == nullptr)
        throw usage_error(errc::bad_argument,
                          fmt::format("a copy of the message {}, whose buffer '{}' has one owner: take it out first",
                                      type.name, f.name));
      buffers->push_back(load<orrery_buffer>(structure + f.offset));
      continue;
    }
    if (pointer == nullptr) {
      if (f.kind == ORRERY_ARRAY && count_of(f, structure).value_or(1) != 0)
        throw usage_error(
            errc::bad_argument,
            fmt::format("a message {} whose array '{}' is NULL, but its count is not 0", type.name, f.name));
      continue;
    }
    const auto bytes = bytes_at(f, structure, pointer);
    if (!bytes)
      throw usage_error(
          errc::bad_argument,
          fmt::format("a message {} whose array '{}' has a negative count, or more elements than memory has", type.name,
                      f.name));
    all += aligned(*bytes);
    if (f.of != nullptr)
      for (std::size_t at = 0; at < *bytes; at += f.element)
        all += size_of_parts(*f.of, pointer + at, buffers, depth + 1);
  }
  return all;
}

// `structure` is the original, `copy` the one in the linear form, whose pointers become sizes; so
// many `buffers` were met before. Returns the end of what was written.
std::byte* write_parts(const orrery_message_type& type, const std::byte* structure, std::byte* copy, std::byte* to,
                       std::uintptr_t& buffers) {
  for (const orrery_field& f : fields_of(type)) {
    const auto* pointer = load<const std::byte*>(structure + f.offset);
    std::uint64_t size = 0;
    if (f.kind == ORRERY_BUFFER) {
      const std::uintptr_t number[3] = {pointer != nullptr ? ++buffers : 0, 0, 0};
      static_assert(sizeof number == sizeof(orrery_buffer));
      std::memcpy(copy + f.offset, number, sizeof number);
      continue;
    }
    if (pointer != nullptr) {
      const std::size_t bytes = *bytes_at(f, structure, pointer);
      std::memcpy(to, pointer, bytes);
      std::byte* const part = to;
      to += aligned(bytes);
      if (f.of != nullptr)
        for (std::size_t at = 0; at < bytes; at += f.element)
          to = write_parts(*f.of, pointer + at, part + at, to, buffers);
      size = bytes + 1;
    }
    std::memcpy(copy + f.offset, &size, sizeof size);
  }
  return to;
}

[[noreturn]] void throw_bad(const orrery_message_type& type, std::string_view why) {
  throw bad_message(errc::message_corrupt, verbatim,
                    fmt::format("orrery_open: these bytes are no {}: {}", type.name, why));
}

// Returns the end of what the structure has.
std::byte* open_parts(const orrery_message_type& type, std::byte* structure, std::byte* at, std::byte* end,
                      std::span<const orrery_buffer> buffers, unsigned depth) {
  if (depth > deepest) throw_bad(type, "it is too deep");
  for (const orrery_field& f : fields_of(type)) {
    if (f.kind == ORRERY_BUFFER) {
      const auto number = load<std::uintptr_t>(structure + f.offset);
      if (number > buffers.size()) throw_bad(type, fmt::format("the buffer '{}' is not there", f.name));
      const orrery_buffer b = number != 0 ? buffers[number - 1] : orrery_buffer{};
      std::memcpy(structure + f.offset, &b, sizeof b);
      continue;
    }
    const auto size = load<std::uint64_t>(structure + f.offset);
    std::byte* part = nullptr;
    if (size != 0) {
      const std::uint64_t bytes = size - 1;
      if (at > end || bytes > static_cast<std::uint64_t>(end - at)) throw_bad(type, "it is cut short");
      part = at;
      at += aligned(bytes);
      if (f.kind == ORRERY_STRING && (bytes == 0 || part[bytes - 1] != std::byte{0}))
        throw_bad(type, fmt::format("the string '{}' has no end", f.name));
      if (f.kind != ORRERY_STRING) {
        const auto count = f.kind == ORRERY_ONE ? std::optional<std::uint64_t>(1) : count_of(f, structure);
        std::uint64_t expected = 0;
        if (!count || __builtin_mul_overflow(*count, std::uint64_t{f.element}, &expected) || expected != bytes)
          throw_bad(type, fmt::format("'{}' has another size than its count says", f.name));
        if (f.of != nullptr)
          for (std::size_t i = 0; i < bytes; i += f.element)
            at = open_parts(*f.of, part + i, at, end, buffers, depth + 1);
        // an array without elements, whatever its sender had for it
        if (bytes == 0) part = nullptr;
      }
    } else if (f.kind == ORRERY_ARRAY && count_of(f, structure) != 0) {
      throw_bad(type, fmt::format("the array '{}' is not there", f.name));
    }
    std::memcpy(structure + f.offset, &part, sizeof part);
  }
  return at;
}

}  // namespace

std::size_t linear_size(const orrery_message_type& type, const void* value, std::vector<orrery_buffer>* buffers) {
  check_table(type);
  if (type.fields == 0) return type.bytes;
  return aligned(type.bytes) + size_of_parts(type, static_cast<const std::byte*>(value), buffers, 0);
}

void linear_writer::write(std::byte* to) const noexcept {
  if (type_.bytes != 0) std::memcpy(to, value_, type_.bytes);
  std::uintptr_t buffers = 0;
  if (type_.fields != 0)
    write_parts(type_, static_cast<const std::byte*>(value_), to, to + aligned(type_.bytes), buffers);
}

void open_linear(const orrery_message_type& type, std::byte* data, std::size_t size,
                 std::span<const orrery_buffer> buffers) {
  check_table(type);
  if (size < type.bytes || (type.fields == 0 && size != type.bytes)) throw_bad(type, "it has another size");
  if (type.fields == 0) return;
  std::byte* const end = data + size;
  if (open_parts(type, data, data + std::min(aligned(type.bytes), size), end, buffers, 0) != end)
    throw_bad(type, "it is longer than its parts");
}

}  // namespace orrery::task_detail

namespace {
constexpr orrery_field string_field[] = {{"string", ORRERY_STRING, 0, 1, 0, 0, 0, nullptr}};
}
extern "C" const orrery_message_type orrery_string_type = {"string", 1, sizeof(char*), 1, string_field};

namespace {
constexpr orrery_field buffer_field[] = {{"buffer", ORRERY_BUFFER, 0, 0, 0, 0, 0, nullptr}};
}
extern "C" const orrery_message_type orrery_buffer_type = {"buffer", 2, sizeof(orrery_buffer), 1, buffer_field};

extern "C" void* orrery_clone(const orrery_message_type* type, const void* value) {
  using namespace orrery::task_detail;
  void* copy = nullptr;
  guarded("orrery_clone", [&] {
    require(type, "orrery_clone", "the message type");
    require(value, "orrery_clone", "the message");
    const std::size_t size = linear_size(*type, value);
    copy = std::malloc(size != 0 ? size : 1);
    if (copy == nullptr) return fail(ORRERY_NO_MEMORY, "orrery_clone: there is no memory for the copy");
    linear_writer(*type, value).write(static_cast<std::byte*>(copy));
    open_linear(*type, static_cast<std::byte*>(copy), size);
    return ORRERY_OK;
  });
  return copy;
}
