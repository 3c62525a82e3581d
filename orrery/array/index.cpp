// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/index.hpp>

#include <orrery/wire/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

namespace orrery {

bit_path::bit_path(std::string_view bits) {
  for (const char c : bits) {
    if (c != '0' && c != '1')
      throw usage_error(errc::bad_argument, fmt::format("bit_path: \"{}\" is not made of 0 and 1", bits));
    push_back(c == '1');
  }
}

void bit_path::push_back(bool bit) {
  if (size_ % 64 == 0) words_.push_back(0);
  words_.back() |= std::uint64_t{bit} << (size_ % 64);
  ++size_;
}

bit_path bit_path::child(std::uint64_t value, std::size_t bits) const {
  bit_path p = *this;
  for (std::size_t i = bits; i-- > 0;) p.push_back((value >> i & 1) != 0);
  return p;
}

bit_path bit_path::parent(std::size_t bits) const {
  if (bits > size_)
    throw usage_error(errc::bad_argument,
                      fmt::format("bit_path: {} bits are to be taken off \"{}\"", bits, to_string()));
  bit_path p = *this;
  p.size_ -= static_cast<std::uint32_t>(bits);
  p.words_.resize((p.size_ + 63) / 64);
  if (p.size_ % 64 != 0) p.words_.back() &= (std::uint64_t{1} << (p.size_ % 64)) - 1;
  return p;
}

std::uint64_t bit_path::last(std::size_t bits) const {
  if (bits > size_ || bits > 64)
    throw usage_error(errc::bad_argument, fmt::format("bit_path: the last {} bits of \"{}\"", bits, to_string()));
  std::uint64_t value = 0;
  for (std::size_t i = size_ - bits; i < size_; ++i) value = value << 1 | std::uint64_t{(*this)[i]};
  return value;
}

namespace detail {
std::string shortened(std::string text) {
  constexpr std::size_t most = 120;
  if (text.size() <= most) return text;
  std::size_t end = most;
  // not within a character
  while (end > most - 4 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return fmt::format("{}... ({} bytes)", std::string_view(text).substr(0, end), text.size());
}
std::string text_of_string(std::string_view index) {
  const std::string text = shortened(std::string(index));
  return text.size() == index.size() ? fmt::format("\"{}\"", text) : '"' + text;
}
}  // namespace detail

std::string bit_path::to_string() const {
  std::string text;
  for (std::size_t i = 0; i < size_; ++i) text += (*this)[i] ? '1' : '0';
  return text;
}

std::uint64_t bit_path::hash() const noexcept {
  return XXH3_64bits_withSeed(words_.data(), words_.size() * sizeof(std::uint64_t), size_);
}

void bit_path::check() const {
  const bool fits =
      words_.size() == (std::size_t{size_} + 63) / 64 && (size_ % 64 == 0 || words_.back() >> (size_ % 64) == 0);
  if (!fits) throw bad_message(errc::message_corrupt, "a bit_path whose length does not fit its bits");
}

namespace detail {

std::uint64_t hash_of_text(std::string_view text) noexcept { return XXH3_64bits(text.data(), text.size()); }
std::string text_of_coordinates(std::span<const std::int64_t> at) { return fmt::format("[{}]", fmt::join(at, ", ")); }
std::string text_of_hash(std::uint64_t hash) { return fmt::format("(an index with hash {:x})", hash); }

}  // namespace detail
}  // namespace orrery
