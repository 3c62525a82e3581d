// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/outbound.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::scheduler {
namespace outbound_tests {

void against_a_map(std::uint32_t world_pes, const std::vector<std::uint16_t>& pes) {
  outbound_table table(world_pes);
  std::map<std::uint32_t, const outbound*> model;
  for (const std::uint16_t drawn : pes) {
    const std::uint32_t pe = drawn % world_pes;
    const auto known = model.find(pe);
    RC_ASSERT(table.find(pe) == (known != model.end() ? known->second : nullptr));
    if (known == model.end()) {
      auto c = wire::make_unique<outbound>();
      model.emplace(pe, c.get());
      table.put(pe, std::move(c));
    }
  }
  for (const auto& [pe, c] : model) RC_ASSERT(table.find(pe) == c);
  std::size_t n = 0;
  for (const auto& c : table) {
    (void)c;
    ++n;
  }
  RC_ASSERT(n == model.size());
}

// Numbers of PEs that came after many others had left are large, whatever the size of the world.
RC_GTEST_PROP(outbound_table, keeps_what_others_are_erased_beside, (const std::vector<std::uint16_t>& pes)) {
  outbound_table table(16);
  std::map<std::uint32_t, const outbound*> model;
  for (const std::uint16_t drawn : pes) {
    const std::uint32_t pe = drawn % 8 + (drawn >> 8) % 4 * outbound_table::dense_limit;
    if (!model.contains(pe)) {
      auto c = wire::make_unique<outbound>();
      c->pe = pe;
      model.emplace(pe, c.get());
      table.put(pe, std::move(c));
    } else {
      const bool lower = (drawn & 0x8000) != 0;
      const auto is_over = [&](std::uint32_t other) { return lower ? other <= pe : other == pe; };
      table.erase_if([&](const outbound& c) { return is_over(c.pe); });
      std::erase_if(model, [&](const auto& known) { return is_over(known.first); });
    }
    for (std::uint32_t i = 0; i < 4 * 8; ++i) {
      const std::uint32_t other = i % 8 + i / 8 * outbound_table::dense_limit;
      const auto known = model.find(other);
      RC_ASSERT(table.find(other) == (known != model.end() ? known->second : nullptr));
    }
  }
}

RC_GTEST_PROP(outbound_table, finds_what_was_put_in_small_worlds, (const std::vector<std::uint16_t>& pes)) {
  against_a_map(outbound_table::dense_limit, pes);
}
RC_GTEST_PROP(outbound_table, finds_what_was_put_in_large_worlds, (const std::vector<std::uint16_t>& pes)) {
  against_a_map(outbound_table::dense_limit + 50'000, pes);
}

}  // namespace outbound_tests
}  // namespace orrery::scheduler
