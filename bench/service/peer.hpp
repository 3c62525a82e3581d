// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#ifdef ORRERY_BENCH_ABSEIL
#include <absl/container/btree_map.h>
#else
#include <map>
#endif

namespace bench {

/// One operation of a client.
struct operation {
  enum kind : std::uint8_t { find, insert, erase };
  std::uint32_t key;
  kind what;
};

#ifdef ORRERY_BENCH_ABSEIL
inline constexpr bool has_peer = true;
using ordered_map = absl::btree_map<std::uint32_t, std::uint64_t>;
#else
inline constexpr bool has_peer = false;  // what stands here instead is never measured
using ordered_map = std::map<std::uint32_t, std::uint64_t>;
#endif

/// The peer: a B-tree for each of 256 equal intervals of the keys, under a mutex of its own.
class sharded_btree {
 public:
  void insert(std::uint32_t key, std::uint64_t value) {
    shard& s = shards_[key >> 24U];
    const std::scoped_lock lock(s.mutex);
    s.map.emplace(key, value);
  }
  /// Does all operations; returns how many found, inserted or erased something.
  std::uint64_t run(const std::vector<operation>& all) {
    std::uint64_t done = 0;
    for (const operation& o : all) {
      shard& s = shards_[o.key >> 24U];
      const std::scoped_lock lock(s.mutex);
      switch (o.what) {
        case operation::find: {
          const auto at = s.map.find(o.key);
          done += at != s.map.end() ? (at->second | 1U) & 1U : 0U;
          break;
        }
        case operation::insert:
          done += s.map.emplace(o.key, o.key).second ? 1U : 0U;
          break;
        default:
          done += s.map.erase(o.key);
      }
    }
    return done;
  }

 private:
  struct alignas(64) shard {
    std::mutex mutex;
    ordered_map map;
  };
  std::array<shard, 256> shards_;
};

}  // namespace bench
