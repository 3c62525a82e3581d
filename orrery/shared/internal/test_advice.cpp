// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/internal/test_advice.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::testing {

std::int64_t time_of(std::string_view sim, const program& p, const choices& h) {
  std::int64_t ns = 0;
  in_simulation(sim, [&] { ns = p(h); });
  return ns;
}

std::vector<advised> advice_for(std::string_view sim, const program& p, std::size_t places) {
  scheduler::node_settings settings;
  settings.pe.advise_for = transport::link_cost{};
  std::vector<sharing_advice> all;
  in_simulation(parse_simulation(sim), settings, [&] {
    (void)p(choices(places, how::plain));
    all = advise_sharing();
  });
  std::erase_if(all, [](const sharing_advice& a) {  // the test's own look at a result
    return a.local_reads + a.remote_reads + a.local_writes + a.remote_writes == 1;
  });
  std::vector<std::string> objects;
  const auto made_at = [](const sharing_advice& a) { return a.object.substr(a.object.find("made at")); };
  for (const auto& a : all) objects.push_back(made_at(a));
  std::ranges::sort(objects);
  objects.erase(std::ranges::unique(objects).begin(), objects.end());
  std::vector<advised> result;
  for (const auto& a : all)
    result.push_back({static_cast<std::size_t>(std::ranges::find(objects, made_at(a)) - objects.begin()), a});
  return result;
}

how to_how(std::string_view behaviour) {
  if (behaviour.starts_with("owner_computes")) return how::owned;
  if (behaviour.starts_with("read_cache(m.rows") || behaviour.starts_with("read_cache(v.part")) return how::part;
  if (behaviour.starts_with("read_cache")) return how::cached;
  if (behaviour.starts_with("halo_cache")) return how::halo;
  if (behaviour.starts_with("release")) return how::released;
  if (behaviour == "read_release(m)" || behaviour == "read_release(v)") return how::updated;
  if (behaviour.starts_with("read_release")) return how::part_updated;
  if (behaviour.starts_with("read_mostly")) return how::mostly;
  EXPECT_EQ(behaviour, "");
  return how::plain;
}

choices expect_best_choice(std::string_view sim, const program& p, const std::vector<place_to_choose>& places,
                           const std::vector<std::vector<std::size_t>>& scopes) {
  choices chosen;
  const std::vector<advised> advice = advice_for(sim, p, places.size());
  for (const auto& place : places) {
    const auto a = std::ranges::find_if(advice, place.is_for);
    if (a == advice.end()) {
      ADD_FAILURE() << "no advice for place " << chosen.size();
      return chosen;
    }
    chosen.push_back(to_how(a->advice.behaviour));
    EXPECT_NE(std::ranges::find(place.fit, chosen.back()), place.fit.end())
        << to_text(a->advice) << a->advice.behaviour;
  }
  const std::int64_t advised_time = time_of(sim, p, chosen);
  for (const auto& scope : scopes) {
    choices tried = chosen;
    const std::function<void(std::size_t)> try_all = [&](std::size_t i) {
      if (i == scope.size()) {
        std::string text;
        for (const how h : tried) text += std::to_string(static_cast<int>(h));
        EXPECT_LE(static_cast<double>(advised_time), 1.05 * static_cast<double>(time_of(sim, p, tried)))
            << sim << ": " << text << " is faster";
        return;
      }
      for (const how h : places[scope[i]].fit) {
        tried[scope[i]] = h;
        try_all(i + 1);
      }
    };
    try_all(0);
  }
  return chosen;
}

const std::vector<std::string> advice_worlds{"machines=3,net=10g", "machines=4,net=200g", "machines=5,net=10g"};

}  // namespace orrery::testing
