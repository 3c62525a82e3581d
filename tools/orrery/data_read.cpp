// SPDX-License-Identifier: Apache-2.0
// `orrery data read`: a part of an array, as text or in a file.
#include "commands.hpp"
#include "data.hpp"

#include <orrery/orrery.hpp>
#include <orrery/storage/storage.hpp>

#include <cerrno>
#include <charconv>
#include <complex>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace orrery::tool {
namespace {

using namespace orrery::storage;

constexpr std::int64_t most_as_text = 1 << 20;

std::int64_t place_in(std::string_view text, std::int64_t side, std::int64_t otherwise) {
  if (text.empty()) return otherwise;
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument(fmt::format("'{}' is no number", text));
  return n < 0 ? n + side : n;
}

void parse_slice(std::string_view text, std::int64_t side, std::int64_t& first, std::int64_t& last) {
  const std::size_t colon = text.find(':');
  first = place_in(text.substr(0, colon), side, 0);
  if (colon == std::string_view::npos) {
    if (text.empty()) throw std::invalid_argument("nothing is between two commas: write : for all");
    last = first + 1;
  } else {
    last = place_in(text.substr(colon + 1), side, side);
  }
  if (first < 0 || last > side || first >= last)
    throw std::invalid_argument(fmt::format("'{}' is nothing inside of 0:{}", text, side));
}

template <class T>
void append(std::string& line, const T& x) {
  fmt::format_to(std::back_inserter(line), " {}", x);
}
template <class T>
void append(std::string& line, const std::complex<T>& x) {
  fmt::format_to(std::back_inserter(line), " {}{:+}j", x.real(), x.imag());  // as Python writes and reads it
}

// One line of text for each row, with the place of its first element.
template <class T>
void print_rows(const storage::array& a, const domain& part) {
  std::vector<T> row(static_cast<std::size_t>(part.shape()[2]));
  std::string line;
  for (std::int64_t i = part.first[0]; i < part.last[0]; ++i)
    for (std::int64_t j = part.first[1]; j < part.last[1]; ++j) {
      a.read(domain{{i, j, part.first[2]}, {i + 1, j + 1, part.last[2]}}, std::span(row));
      line = fmt::format("({},{},{}):", i, j, part.first[2]);
      for (const T& x : row) append(line, x);
      line += '\n';
      if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size())
        throw std::system_error(errno, std::system_category(), "cannot print");
    }
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::system_category(), "cannot print");
}

void print_part(const data_request& r, const domain& part) {
  if (part.size() > most_as_text)
    throw std::invalid_argument(fmt::format(
        "{} are {} elements, too many to print: write them to a file with --out FILE.npy, or choose fewer with --box",
        storage::to_string(part), part.size()));
  const auto set = spawn<data_set>(here(), r.path, data_set_options{.unfinished = r.unfinished});
  const storage::array a = set->contents();
  switch (a.type()) {
    case element_type::float32:
      return print_rows<float>(a, part);
    case element_type::float64:
      return print_rows<double>(a, part);
    case element_type::complex64:
      return print_rows<std::complex<float>>(a, part);
    case element_type::complex128:
      return print_rows<std::complex<double>>(a, part);
  }
}

}  // namespace

domain parse_box(const std::string& text, const index3& shape) {
  domain d = domain::of_shape(shape);
  if (text.empty()) return d;
  std::string_view rest = text;
  try {
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t comma = rest.find(',');
      if ((comma == std::string_view::npos) != (k == 2))
        throw std::invalid_argument("three slices are needed, one for each dimension");
      parse_slice(rest.substr(0, comma), shape[k], d.first[k], d.last[k]);
      rest.remove_prefix(k == 2 ? 0 : comma + 1);
    }
  } catch (const std::invalid_argument& e) {
    throw command_error(fmt::format(
        "--box {}: {}. It is first:last,first:last,first:last (without last), or a single place, or : for all; the array is {}",
        text, e.what(), storage::to_string(shape)));
  }
  return d;
}

int data_read(const data_request& r) {
  return in_world([&] {
    const domain part = parse_box(r.box, data_set::read_info(r.path).shape);
    r.file.empty() ? print_part(r, part) : export_part(r, part);
    return 0;
  });
}

}  // namespace orrery::tool
