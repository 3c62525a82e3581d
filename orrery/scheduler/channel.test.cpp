// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/channel.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::scheduler {
namespace {

void against_a_map(std::uint32_t world_pes, const std::vector<std::uint16_t>& pes) {
  channel_table table(world_pes);
  std::map<std::uint32_t, const channel*> model;
  for (const std::uint16_t drawn : pes) {
    const std::uint32_t pe = drawn % world_pes;
    const auto known = model.find(pe);
    RC_ASSERT(table.find(pe) == (known != model.end() ? known->second : nullptr));
    if (known == model.end()) {
      auto c = std::make_unique<channel>();
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

RC_GTEST_PROP(channel_table, finds_what_was_put_in_small_worlds, (const std::vector<std::uint16_t>& pes)) {
  against_a_map(channel_table::dense_limit, pes);
}
RC_GTEST_PROP(channel_table, finds_what_was_put_in_large_worlds, (const std::vector<std::uint16_t>& pes)) {
  against_a_map(channel_table::dense_limit + 50'000, pes);
}

}  // namespace
}  // namespace orrery::scheduler
