// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/at_end.hpp>
#include <orrery/wire/error.hpp>

#include <cstdio>
#include <exception>
#include <vector>

#include <fmt/format.h>

namespace orrery::detail {

namespace {
// Filled by initializers of translation units only, and not changed after that.
std::vector<end_of_main>& all() {
  static std::vector<end_of_main> list;
  return list;
}
}  // namespace

bool at_end_of_main(end_of_main f) {
  all().push_back(f);
  return true;
}

int end_main(int result) {
  for (const end_of_main f : all()) {
    try {
      result = f(result);
    } catch (const std::exception& e) {
      std::fputs(fmt::format("orrery: after the main function: {}\n", e.what()).c_str(), stderr);
    }
  }
  return result;
}

}  // namespace orrery::detail
