// SPDX-License-Identifier: Apache-2.0
// What happens to arrays on many PEs, in simulated worlds, as JSON: bench_scaling [--only NAME,...] [--largest PES] [--json FILE] [--smoke]. All times
// are virtual: with the same program each run gives the same figures. docs/scaling.md explains them.
#include "measure.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace {

using nlohmann::ordered_json;

std::vector<std::uint32_t> powers(std::uint32_t base, std::uint32_t first, std::uint32_t most) {
  std::vector<std::uint32_t> all;
  for (std::uint64_t p = first; p <= most; p *= base) all.push_back(static_cast<std::uint32_t>(p));
  return all;
}

ordered_json collectives(std::uint32_t most) {
  ordered_json all = ordered_json::array();
  for (const char* net : {"200g", "10g"})
    for (const int each : {1, 10})
      for (const std::uint32_t pes : powers(4, 1, each == 1 ? most : std::min(most, 16'384U)))
        all.push_back({{"net", net}, {"pes", pes}, {"each", each}, {"us", scaling::collective_us(pes, each, net)}});
  return all;
}

ordered_json storage(std::uint32_t most) {
  ordered_json all = ordered_json::array();
  for (const std::uint32_t pes : powers(8, 16, std::min(most, 8192U)))
    for (const int each : {1, 4, 16, 64, 256}) {
      if (std::uint64_t{pes} * static_cast<unsigned>(each) > 300'000) continue;
      const scaling::footprints f = scaling::storage(pes, each);
      all.push_back({{"pes", pes},
                     {"each", each},
                     {"created", f.created},
                     {"moved", f.moved},
                     {"moved_most", f.moved_most},
                     {"elsewhere", f.elsewhere}});
    }
  return all;
}

ordered_json hops(std::uint32_t most) {
  ordered_json all = ordered_json::array();
  const std::uint32_t pes = std::min(most, 1024U);
  for (const int waves : {0, 1, 2, 4, 8})
    all.push_back({{"pes", pes}, {"waves", waves}, {"hops", scaling::hops_after(pes, 10, waves)}});
  for (const std::uint32_t p : powers(4, 4, std::min(most, 4096U)))
    all.push_back({{"pes", p}, {"waves", 1}, {"hops", scaling::hops_after(p, 10, 1)}});
  return all;
}

ordered_json homes(std::uint32_t most) {
  ordered_json all = ordered_json::array();
  const std::uint32_t pes = std::min(most, 1024U);
  for (const std::uint32_t n : {1U, 2U, 8U, pes / 8, pes}) {
    const scaling::first_contacts f = scaling::with_homes(pes, 4, n);
    all.push_back(
        {{"pes", pes}, {"homes", n}, {"hops", f.hops}, {"call_us", f.call_us}, {"messages", f.messages_of_move}});
  }
  return all;
}

ordered_json jacobi(std::uint32_t most) {
  ordered_json all = ordered_json::array();
  std::vector<std::uint32_t> sizes;
  for (const std::uint32_t p : {1U, 4U, 16U, 64U, 256U, 1024U, 4096U, 10'000U})
    if (p <= most) sizes.push_back(p);
  for (const int each : {1, 4, 16}) {  // the same cells for each PE, in so many blocks
    const double one = scaling::jacobi_step_us(1, each, 128);
    for (const std::uint32_t pes : sizes) {
      const double us = scaling::jacobi_step_us(pes, each, 128);
      all.push_back({{"pes", pes}, {"each", each}, {"step_us", us}, {"efficiency", one / us}});
    }
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Arrays on many PEs, in simulated worlds"};
  std::vector<std::string> only;
  std::uint32_t largest = 65'536;
  bool smoke = false;
  std::string file;
  app.add_option("--only", only, "collectives, storage, hops, homes, jacobi")->delimiter(',');
  app.add_option("--largest", largest, "no world has more PEs")->check(CLI::PositiveNumber);
  app.add_flag("--smoke", smoke, "small worlds: only see that it runs");
  app.add_option("--json", file, "write the figures there too");
  CLI11_PARSE(app, argc, argv);
  if (smoke) largest = 64;

  ordered_json out;
  const auto add = [&](const std::string& name, ordered_json (*measure)(std::uint32_t)) {
    if (only.empty() || std::ranges::find(only, name) != only.end()) out[name] = measure(largest);
  };
  add("collectives", collectives);
  add("storage", storage);
  add("hops", hops);
  add("homes", homes);
  add("jacobi", jacobi);
  std::puts(out.dump(1).c_str());
  if (!file.empty()) std::ofstream(file) << out.dump(1) << '\n';
  return 0;
}
