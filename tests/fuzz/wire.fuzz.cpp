// SPDX-License-Identifier: Apache-2.0
// Reads values of many types from arbitrary bytes. Whatever the bytes are, the reader either
// refuses them with bad_message or gives a value that can be sent again.
//
//     fuzz_wire --seeds=DIRECTORY      writes one good message of every type there, and ends
//     fuzz_wire DIRECTORY              begins with those (tests/fuzz/corpus/wire)
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <orrery/wire/error.hpp>
#include <orrery/wire/internal/test_message.hpp>

#include "wire_cases.hpp"

namespace orrery::fuzz {
namespace {

void check(bool condition) {
  if (!condition) std::abort();
}

template <class T>
void read_one(const wire::message& m) {
  reader r(m.bytes());
  auto value = read<T>(r);
  check(r.position() <= m.size());
  // It is a good value: it can be sent, takes as much as it took, and arrives. (A map sorts its
  // elements, after which they may need other padding.)
  const wire::message again = wire::encode(value);
  if (wire::kind_of<T> != wire::kind::map) check(again.size() == r.position());
  (void)wire::decode<T>(again);
  if constexpr (std::is_same_v<T, wire_exception>) {
    check(decode_exception(value, {"Class", "method", 1}) != nullptr);
  }
}

template <std::size_t... I>
void read_case(std::size_t number, const wire::message& m, std::index_sequence<I...>) {
  (void)((number == I && (read_one<std::tuple_element_t<I, cases>>(m), true)) || ...);
}

void write_seeds(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  std::size_t number = 0;
  for_each_sample([&](const auto& value) {
    const wire::message m = wire::encode(value);
    std::ofstream file(directory / std::to_string(number), std::ios::binary);
    file.put(static_cast<char>(number));
    file.write(reinterpret_cast<const char*>(m.bytes().data()), static_cast<std::streamsize>(m.size()));
    check(file.flush().good());
    ++number;
  });
  check(number == std::tuple_size_v<cases>);
}

}  // namespace
}  // namespace orrery::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view option = "--seeds=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (!argument.starts_with(option)) continue;
    orrery::fuzz::write_seeds(argument.substr(option.size()));
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  using namespace orrery::fuzz;
  if (size == 0) return -1;
  constexpr std::size_t count = std::tuple_size_v<cases>;
  if (data[0] >= count) return -1;  // keeps the corpus free of what selects nothing
  const wire::message m(std::as_bytes(std::span(data + 1, size - 1)));
  try {
    read_case(data[0], m, std::make_index_sequence<count>{});
  } catch (const bad_message&) {
  }
  return 0;
}
