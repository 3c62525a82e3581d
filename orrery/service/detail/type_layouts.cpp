// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/type_layouts.hpp>
#include <orrery/wire/type_key.hpp>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace orrery::service {
namespace {

std::string name_of(std::string_view key) {
  return wire::is_type_key(key) ? wire::readable_key(key) : std::string(key);
}

// A type in a shape: its key, and a line for its size and each of its parts.
struct layout {
  std::string_view type;
  std::vector<std::string_view> lines;
};
std::vector<layout> layouts_of(std::string_view types) {
  std::vector<layout> all;
  for (std::size_t end = 0; !types.empty(); types.remove_prefix(std::min(end + 1, types.size()))) {
    end = std::min(types.find(';'), types.size());
    std::string_view one = types.substr(0, end);
    const std::size_t colon = std::min(one.find(':'), one.size());
    layout& l = all.emplace_back(one.substr(0, colon), std::vector<std::string_view>());
    one.remove_prefix(std::min(colon + 1, one.size()));
    while (!one.empty()) {
      const std::size_t line = std::min(one.find('\n'), one.size());
      l.lines.push_back(one.substr(0, line));
      one.remove_prefix(std::min(line + 1, one.size()));
    }
  }
  return all;
}

// "a: int, b: int" of the parts from `begin` on.
std::string parts_of(const layout& l, std::size_t begin) {
  constexpr std::size_t most = 8;
  std::string all;
  for (std::size_t i = begin; i < l.lines.size(); ++i) {
    if (i != begin) all += ", ";
    if (i - begin == most) return all + "...";
    const std::string_view part = l.lines[i];
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {  // it said nothing more of itself
      all += part;
      continue;
    }
    const std::string_view key = part.substr(equals + 1);
    if (equals != 0) all.append(part.substr(0, equals)).append(": ");
    all += name_of(key);
  }
  return all;
}

}  // namespace

std::string readable_types(std::string_view types) {
  std::string all;
  while (!types.empty() && !types.starts_with(';')) {
    const std::size_t end = std::min(types.find('\n'), types.size());
    std::string_view one = types.substr(0, end);
    types.remove_prefix(std::min(end + 1, types.size()));
    one.remove_prefix(std::min(one.find_first_not_of(":="), one.size()));
    if (!one.empty()) all += (all.empty() ? "" : ", ") + name_of(one);
  }
  return all;
}

std::string difference_of_types(std::string_view has, std::string_view opened) {
  constexpr std::size_t many = 8;
  const std::vector<layout> others = layouts_of(opened);
  for (const layout& mine : layouts_of(has)) {
    const auto theirs = std::ranges::find(others, mine.type, &layout::type);
    if (mine.type.empty() || theirs == others.end() || mine.lines == theirs->lines) continue;
    if (mine.lines.empty() || theirs->lines.empty()) continue;  // no shape at all
    const std::string name = name_of(mine.type);
    std::size_t at = 1;  // behind the size
    while (at < mine.lines.size() && at < theirs->lines.size() && mine.lines[at] == theirs->lines[at]) ++at;
    if (at >= mine.lines.size() && at >= theirs->lines.size())
      return fmt::format("; its {} takes {} bytes, and {} in the program that opened it", name, mine.lines[0],
                         theirs->lines[0]);
    if (mine.lines.size() <= many && theirs->lines.size() <= many) at = 1;
    return fmt::format("; its {} has other fields{}: {{{}}}, and {{{}}} in the program that opened it", name,
                       at == 1 ? "" : fmt::format(" from number {} on", at), parts_of(mine, at), parts_of(*theirs, at));
  }
  return readable_types(has) == readable_types(opened) ? "; a type within these has other fields" : "";
}

}  // namespace orrery::service
