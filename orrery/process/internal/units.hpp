// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::detail {

inline constexpr std::uint64_t kib = 1024;
inline constexpr std::uint64_t mib = kib * 1024;
inline constexpr std::uint64_t gib = mib * 1024;
inline constexpr std::uint64_t tib = gib * 1024;
inline constexpr std::uint64_t microsecond = 1000;
inline constexpr std::uint64_t second = 1'000'000'000;

/// A number without a unit; nothing if it is not so written.
[[nodiscard]] std::optional<std::uint64_t> to_number(std::string_view text);
/// True for numbers like 0100 and 0x10, which C reads as octal and hexadecimal: they are no sizes
/// and no times.
[[nodiscard]] bool has_leading_zero(std::string_view text);
/// Bytes, written like 4096, 64K or 2G; nothing if it is not so written.
[[nodiscard]] std::optional<std::uint64_t> to_size(const std::string& text);
/// Nanoseconds, written like 50us, 1ms or 2s, or 0.
[[nodiscard]] std::optional<std::uint64_t> to_time(const std::string& text);

/// Bytes and nanoseconds in the largest unit that leaves no fraction.
[[nodiscard]] std::string size_text(std::uint64_t n);
[[nodiscard]] std::string time_text(std::uint64_t ns);

}  // namespace orrery::detail
