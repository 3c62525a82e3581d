// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/type_description.hpp>

#include <algorithm>
#include <cctype>

namespace orrery::wire {
namespace {

bool is_part_of_name(char c) noexcept { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

// "... {&any_object<range>.value.low}]" or "... {(&
// any_object<range>.object_of_type<range>::value.range::low)}]".
void type_description::field(std::string_view compiler_text) {
  std::size_t end = compiler_text.size();
  const auto skip = [&] {
    while (end != 0 && !is_part_of_name(compiler_text[end - 1]) && compiler_text[end - 1] != ']') --end;
    if (end == 0 || compiler_text[end - 1] != ']') return false;
    // The end of the argument, or the first element of an array: "low[0]".
    const std::size_t open = compiler_text.rfind('[', end - 1);
    const std::string_view inside = compiler_text.substr(open + 1, end - open - 2);
    const bool index = !inside.empty() && std::ranges::all_of(inside, [](char c) { return c >= '0' && c <= '9'; });
    end = index ? open : end - 1;
    return true;
  };
  while (skip()) {
  }
  std::size_t begin = end;
  while (begin != 0 && is_part_of_name(compiler_text[begin - 1])) --begin;
  layouts_[open_.back()].text += compiler_text.substr(begin, end - begin);
}

void type_description::mention(std::string_view type) {
  std::string& text = layouts_[open_.back()].text;
  text += '=';
  text += stable_key(type);
  text += '\n';
}

bool type_description::begin(std::string_view type, std::size_t bytes) {
  mention(type);
  const auto is = [&](const layout& l) { return l.type.data() == type.data(); };
  if (std::ranges::any_of(layouts_, is)) return false;
  open_.push_back(layouts_.size());
  layouts_.push_back({type, std::to_string(bytes) + '\n'});
  return true;
}

std::string type_description::text() const {
  std::string all;
  for (const layout& l : layouts_) all.append(stable_key(l.type)).append(1, ':').append(l.text).append(1, ';');
  return all;
}

}  // namespace orrery::wire
