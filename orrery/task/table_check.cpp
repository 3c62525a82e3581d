// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/internal/table_check.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace orrery::task_detail {

namespace {

std::string_view name_of(const char* name) noexcept { return name != nullptr ? name : "(without a name)"; }

[[noreturn]] void refuse(const orrery_message_type& type, std::string_view what) {
  throw usage_error(errc::bad_argument, fmt::format("the table of the message {}: {}", name_of(type.name), what));
}
[[noreturn]] void refuse(const orrery_message_type& type, const orrery_field& f, std::string_view what) {
  refuse(type, fmt::format("entry {} ('{}') {}", &f - type.field, name_of(f.name), what));
}

// A part of the structure, and the entry that it belongs to.
struct extent {
  std::uint64_t begin;
  std::uint64_t end;
  const orrery_field* of;
};

std::uint64_t bytes_in_structure(const orrery_field& f) noexcept {
  return f.kind == ORRERY_BUFFER ? sizeof(orrery_buffer) : sizeof(void*);
}

void check_count(const orrery_message_type& type, const orrery_field& f) {
  if (f.count_bytes != 1 && f.count_bytes != 2 && f.count_bytes != 4 && f.count_bytes != 8)
    refuse(type, f, fmt::format("has a count of {} bytes: it is to be 1, 2, 4 or 8", f.count_bytes));
  if (std::uint64_t{f.count_offset} + f.count_bytes > type.bytes)
    refuse(type, f,
           fmt::format("has its count at offset {}, outside of the {} bytes of the structure", f.count_offset,
                       type.bytes));
  if (f.count_signed > 1) refuse(type, f, fmt::format("has count_signed {}: it is to be 0 or 1", f.count_signed));
}

void check_field(const orrery_message_type& type, const orrery_field& f) {
  if (f.name == nullptr) refuse(type, f, "has a name that is NULL");
  if (f.kind < ORRERY_STRING || f.kind > ORRERY_BUFFER)
    refuse(type, f, fmt::format("is of kind {}, which is no orrery_field_kind", f.kind));
  if (f.offset + bytes_in_structure(f) > type.bytes)
    refuse(type, f, fmt::format("lies at offset {}, outside of the {} bytes of the structure", f.offset, type.bytes));
  if (f.kind == ORRERY_STRING || f.kind == ORRERY_BUFFER) {
    if (f.of != nullptr) refuse(type, f, "has elements of a message type, but is a string or a buffer");
    return;
  }
  if (f.element == 0 && f.of == nullptr) refuse(type, f, "has elements of 0 bytes");
  if (f.of != nullptr && f.of->bytes != f.element)
    refuse(type, f,
           fmt::format("has elements of {} bytes, but their message {} has {}", f.element, name_of(f.of->name),
                       f.of->bytes));
  if (f.kind == ORRERY_ARRAY) check_count(type, f);
}

void check_overlaps(const orrery_message_type& type, std::span<const orrery_field> fields) {
  std::vector<extent> all;
  for (const orrery_field& f : fields) all.push_back({f.offset, f.offset + bytes_in_structure(f), &f});
  std::ranges::sort(all, {}, &extent::begin);
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].begin < all[i - 1].end)
      refuse(type, *all[i].of,
             fmt::format("overlaps entry {} ('{}')", all[i - 1].of - type.field, all[i - 1].of->name));
  for (const orrery_field& f : fields) {
    if (f.kind != ORRERY_ARRAY) continue;
    const std::uint64_t end = std::uint64_t{f.count_offset} + f.count_bytes;
    // the first that ends behind the beginning of the count
    const auto at = std::ranges::upper_bound(all, f.count_offset, {}, &extent::end);
    if (at != all.end() && at->begin < end)
      refuse(type, f, fmt::format("has its count where entry {} ('{}') lies", at->of - type.field, at->of->name));
  }
}

// `known`: those that were looked at, as a type may lead to itself.
void check(const orrery_message_type& type, std::vector<const orrery_message_type*>& known) {
  if (std::ranges::find(known, &type) != known.end()) return;
  known.push_back(&type);
  if (type.name == nullptr) refuse(type, "its name is NULL");
  if (type.id == 0) refuse(type, "its id is 0, which is that of plain bytes");
  if (type.fields == 0) return;
  if (type.field == nullptr) refuse(type, fmt::format("it has {} entries, but they are NULL", type.fields));
  if (type.fields > type.bytes / sizeof(void*))
    refuse(type,
           fmt::format("it has {} entries, for which its structure of {} bytes has no room", type.fields, type.bytes));
  const std::span<const orrery_field> fields(type.field, type.fields);
  for (const orrery_field& f : fields) check_field(type, f);
  check_overlaps(type, fields);
  for (const orrery_field& f : fields)
    if (f.of != nullptr) check(*f.of, known);
}

// A table that was right. It may lie on a stack, where the next one is another.
struct right_table {
  const orrery_message_type* at = nullptr;
  orrery_message_type was{};
};
constexpr std::size_t remembered = 64;

}  // namespace

void check_table(const orrery_message_type& type) {
  static_assert(sizeof(orrery_message_type) == 2 * sizeof(void*) + 16, "no padding, which memcmp would compare");
  thread_local std::array<right_table, remembered> right;
  right_table& place = right[reinterpret_cast<std::uintptr_t>(&type) / sizeof(type) % remembered];
  if (place.at == &type && std::memcmp(&place.was, &type, sizeof type) == 0) [[likely]]
    return;
  std::vector<const orrery_message_type*> known;
  check(type, known);
  place = {&type, type};
}

}  // namespace orrery::task_detail
