// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all programs of `./run bench service` do to a list, whosever it is.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace bench {

using clock_type = std::chrono::steady_clock;
/// Figures by their names; each may be measured several times.
using metrics = std::map<std::string, std::vector<double>>;

struct settings {
  std::uint32_t items = 1U << 20U;
  std::uint32_t operations = 4'000'000;  // of each client
  std::uint32_t window = 0;              // 0: automatic
  std::uint32_t processes = 192'000;     // of a walking list with one item in each
  int runs = 5;
  bool smoke = false;
};

/// One operation of a client.
struct operation {
  enum kind : std::uint8_t { find, insert, erase };
  std::uint32_t key;
  kind what;
};

enum class keys : std::uint8_t { uniform, zipf, sequential };

[[nodiscard]] inline double seconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double>(clock_type::now() - begin).count();
}

[[nodiscard]] inline std::uint32_t mixed(std::uint64_t n) {  // a bijection of 32 bits: no key is there twice
  auto x = static_cast<std::uint32_t>(n);
  x = (x ^ (x >> 16U)) * 0x7feb'352dU;
  x = (x ^ (x >> 15U)) * 0x846c'a68bU;
  return x ^ (x >> 16U);
}

/// What one client does. Of a mix half of the keys that it is about are there. Zipf: the rank r has a share of 1 / r.
[[nodiscard]] inline std::vector<operation> plan(const settings& s, std::uint32_t client, bool mix,
                                                 keys distribution = keys::uniform) {
  std::vector<operation> all(s.operations);
  std::uint64_t random = 0x9e37'79b9'7f4a'7c15U * (client + 1);
  const std::uint32_t range = mix ? 2 * s.items : s.items;
  std::uint32_t next = client * (range / 2);
  for (operation& o : all) {
    random ^= random << 13U;
    random ^= random >> 7U;
    random ^= random << 17U;
    const auto r = static_cast<std::uint32_t>(random >> 32U);
    if (distribution == keys::uniform) {
      o.key = mixed(r % range);
    } else if (distribution == keys::zipf) {
      o.key = mixed(static_cast<std::uint32_t>(std::pow(range, r * 0x1p-32)) - 1);
    } else {
      o.key = static_cast<std::uint32_t>(next++ % range * (0x1'0000'0000U / range));
    }
    o.what = mix ? static_cast<operation::kind>((random & 0xffffU) % 3) : operation::find;
  }
  return all;
}

/// Rate of two clients on threads, in millions a second: `client(operations)` does them all.
[[nodiscard]] inline double rate_of_threads(const settings& s, bool mix,
                                            const std::function<void(const std::vector<operation>&)>& client) {
  const std::vector<std::vector<operation>> plans{plan(s, 0, mix), plan(s, 1, mix)};
  const auto begin = clock_type::now();
  {
    std::vector<std::jthread> clients;
    for (const auto& p : plans) clients.emplace_back([&] { client(p); });
  }
  return 2.0 * s.operations / seconds_since(begin) / 1e6;
}

// The parts of the benchmark. Each is a world, or threads, of its own.
void measure_threads(const settings& s, metrics& found);
void measure_nodes(const settings& s, metrics& found);
void measure_tuning(const settings& s, metrics& found);
void measure_walking(const settings& s, metrics& found);
void measure_peers(const settings& s, metrics& found);
void measure_redis(const settings& s, const std::string& socket, metrics& found);
/// Figures 4, 5 and 6 of the paper in simulated worlds: a JSON text.
/// `here`: on this machine, else simulated.
[[nodiscard]] std::string measure_paper(const settings& s, int figure, bool here);

/// Runs `body` as the main process of a world with these options.
int in_world(const std::vector<std::string>& options, const std::function<void()>& body);

}  // namespace bench
