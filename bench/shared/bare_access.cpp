// SPDX-License-Identifier: Apache-2.0
#include "bare_access.hpp"

#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/shared_directory.hpp>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

using orrery::detail::shared_directory;
using orrery::detail::shared_id;
using orrery::detail::shared_object;

namespace {

struct spot {
  std::byte* at;
  std::size_t bytes;
};
[[gnu::always_inline]] inline spot find(const shared_id& id, std::uint64_t row, std::uint64_t column) {
  const shared_directory* const d = shared_directory::of_this_pe_if_any();
  const shared_object* const o = d == nullptr ? nullptr : d->find_recent(id);
  if (o == nullptr || row >= o->rows || column >= o->columns || o->whole == nullptr) [[unlikely]]
    std::abort();  // where the library looks for the element in other ways
  return {o->whole + (row * o->columns + column) * o->bytes, o->bytes};
}
template <class W>
void load(const std::byte* at, void* out) {
  const W w = std::atomic_ref<W>(*reinterpret_cast<W*>(const_cast<std::byte*>(at))).load();
  std::memcpy(out, &w, sizeof w);
}
template <class W>
void store(std::byte* at, const void* value) {
  W w;
  std::memcpy(&w, value, sizeof w);
  std::atomic_ref<W>(*reinterpret_cast<W*>(at)).store(w);
}

}  // namespace

void bare::read(const shared_id& id, std::uint64_t row, std::uint64_t column, void* out, std::source_location) {
  const spot s = find(id, row, column);
  switch (s.bytes) {
    case 1:
      return load<std::uint8_t>(s.at, out);
    case 2:
      return load<std::uint16_t>(s.at, out);
    case 4:
      return load<std::uint32_t>(s.at, out);
    case 8:
      return load<std::uint64_t>(s.at, out);
    default:
      std::abort();
  }
}

void bare::write(const shared_id& id, std::uint64_t row, std::uint64_t column, const void* value,
                 std::source_location) {
  const spot s = find(id, row, column);
  switch (s.bytes) {
    case 1:
      return store<std::uint8_t>(s.at, value);
    case 2:
      return store<std::uint16_t>(s.at, value);
    case 4:
      return store<std::uint32_t>(s.at, value);
    case 8:
      return store<std::uint64_t>(s.at, value);
    default:
      std::abort();
  }
}
