// SPDX-License-Identifier: Apache-2.0
// The format is described in NumPy's documentation, numpy.lib.format: "\x93NUMPY", version (2 bytes), length of the rest (2 or 4 bytes,
// little-endian), and a Python dictionary: {'descr': '<c16', 'fortran_order': False, 'shape': (3, 4, 5), }
#include "npy.hpp"

#include "array_file.hpp"

#include <charconv>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace orrery::tool {
namespace {

using storage::element_type;

constexpr std::string_view magic = "\x93NUMPY";

struct descriptor {
  std::string_view name;
  element_type type;
};
constexpr descriptor descriptors[] = {{"<f4", element_type::float32},
                                      {"<f8", element_type::float64},
                                      {"<c8", element_type::complex64},
                                      {"<c16", element_type::complex128}};

// What follows the key in the dictionary, without leading blanks.
std::string_view value_of(std::string_view dictionary, std::string_view key) {
  const std::size_t at = dictionary.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) throw std::invalid_argument(fmt::format("its header has no '{}'", key));
  std::string_view rest = dictionary.substr(at + key.size() + 2);
  const std::size_t begin = rest.find_first_not_of(": ");
  if (begin == std::string_view::npos) throw std::invalid_argument(fmt::format("its header has no '{}'", key));
  return rest.substr(begin);
}

std::vector<std::int64_t> tuple_of(std::string_view text) {
  std::vector<std::int64_t> sides;
  const std::size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos)
    throw std::invalid_argument("the shape in its header is no tuple");
  text = text.substr(1, end - 1);
  while (!text.empty()) {
    std::int64_t n = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || n <= 0)
      throw std::invalid_argument(fmt::format("the shape in its header is ({})", text));
    sides.push_back(n);
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    const std::size_t next = text.find_first_not_of(", L");
    text = next == std::string_view::npos ? std::string_view() : text.substr(next);
  }
  return sides;
}

}  // namespace

npy_header parse_npy(std::span<const std::byte> begin) {
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  if (text.size() < 12 || !text.starts_with(magic)) throw std::invalid_argument("it is not a file in NumPy's format");
  const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])); };
  const bool first_version = byte(6) == 1;
  const std::size_t start = first_version ? 10 : 12;
  const std::uint64_t length =
      first_version ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > text.size() - start) throw std::invalid_argument("its header is cut off, or too long");
  const std::string_view dictionary = text.substr(start, length);

  npy_header h;
  h.data_offset = start + length;
  const std::string_view type = value_of(dictionary, "descr");
  const descriptor* found = nullptr;
  for (const descriptor& d : descriptors)
    if (type.starts_with(fmt::format("'{}'", d.name))) found = &d;
  if (found == nullptr)
    throw std::invalid_argument(fmt::format(
        "its elements are {}; convert them with a.astype('float64') (or float32, complex64, complex128) first",
        type.substr(0, type.find(','))));
  h.type = found->type;
  h.fortran = value_of(dictionary, "fortran_order").starts_with("True");
  h.shape = three_sides(tuple_of(value_of(dictionary, "shape")));
  return h;
}

std::string make_npy(const storage::index3& shape, element_type type) {
  std::string_view name;
  for (const descriptor& d : descriptors)
    if (d.type == type) name = d.name;
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}, {}), }}", name,
                                       shape[0], shape[1], shape[2]);
  constexpr std::size_t alignment = 64;
  const std::size_t before = magic.size() + 4;
  dictionary.append(alignment - 1 - (before + dictionary.size()) % alignment, ' ');
  dictionary += '\n';
  std::string header(magic);
  header += '\1';
  header += '\0';
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace orrery::tool
