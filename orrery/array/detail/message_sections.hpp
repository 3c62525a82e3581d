// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/result_sink.hpp>
#include <orrery/process/detail/send.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// The bytes of a message of an array: sections, each of which can be read on its own.
namespace orrery::detail {

using bytes = std::vector<std::byte>;

/// Where the second section of a message begins: so that it can be written, moved and read on its
/// own.
inline constexpr std::size_t section_size = wire_alignment;
[[nodiscard]] constexpr std::size_t section_end(std::size_t n) noexcept {
  return (n + section_size - 1) / section_size * section_size;
}

/// The first section of a message: the values, filled up. `more` bytes of room are added.
template <class... V>
[[nodiscard]] bytes pack(std::size_t more, const V&... values) {
  const std::size_t n = orrery::wire_size(values...);
  bytes b(section_end(n) + more);
  orrery::writer w(std::span<std::byte>(b).first(n));
  orrery::write(w, values...);
  return b;
}
/// Appends values as a section of their own.
template <class... V>
void pack_after(bytes& b, const V&... values) {
  const std::size_t begin = b.size();
  b.resize(begin + orrery::wire_size(values...));
  orrery::writer w(std::span<std::byte>(b).subspan(begin));
  orrery::write(w, values...);
}
/// Reads what follows the first section, of which `r` has read everything. Throws bad_message.
[[nodiscard]] std::span<const std::byte> after_section(std::span<const std::byte> all, const orrery::reader& r);

/// The payload of a wire message that is being routed.
[[nodiscard]] inline std::span<const std::byte> wire_payload(const scheduler::delivery& d, const wire::envelope& e,
                                                             std::uint32_t size) noexcept {
  // A message of another node has the length that it had when it came: `e` lies in memory that node
  // can write.
  const bool checked = d.heap != nullptr || d.remote;
  return {d.payload, checked ? d.payload_bytes : std::size_t{size} - wire::granule - e.padding};
}

}  // namespace orrery::detail
