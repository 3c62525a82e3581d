// SPDX-License-Identifier: Apache-2.0
// Whatever is given to orrery-cc as preprocessed C: it is translated, or refused.
#include <tools/orrery_cc/generator.hpp>
#include <tools/orrery_cc/parser.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const orrery_cc::source from(std::string(reinterpret_cast<const char*>(data), size));
  try {
    const orrery_cc::program found = orrery_cc::parse(from);
    if (!found.is_plain_c()) (void)orrery_cc::generate(from, found, "fuzz.c");
  } catch (const orrery_cc::source_error&) {  // what it should say
  }
  return 0;
}
