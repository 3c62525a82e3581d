// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/shape.hpp>

#include <algorithm>

namespace orrery::wire {

bool shape::begin(std::string_view type, std::size_t bytes) {
  text_.append(type).append(1, ':').append(std::to_string(bytes)).append(1, ' ');
  if (std::ranges::find(begun_, type.data()) != begun_.end()) return false;
  begun_.push_back(type.data());
  return true;
}

}  // namespace orrery::wire
