// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared_element.hpp>

#include <string_view>

#include <fmt/format.h>

namespace orrery::detail {

std::string line_of(const std::source_location& where) {
  std::string_view file = where.file_name();
  file.remove_prefix(file.rfind('/') + 1);
  return fmt::format("{}:{}", file, where.line());
}
std::string made_at(const char* what, const std::source_location& where) {
  return fmt::format("{} made at {}", what, line_of(where));
}

}  // namespace orrery::detail
