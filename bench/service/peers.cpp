// SPDX-License-Identifier: Apache-2.0
// Ordered maps of others, used by two threads of one OS process. What was not there when this was built is absent.
#include "workload.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <mutex>

#ifdef ORRERY_BENCH_ABSEIL
#include <absl/container/btree_map.h>
#endif
#ifdef ORRERY_BENCH_TBB
#include <oneapi/tbb/concurrent_map.h>
#endif
#ifdef ORRERY_BENCH_CDS
#include <cds/gc/hp.h>
#include <cds/init.h>

#include <cds/container/skip_list_map_hp.h>
#endif

namespace bench {
namespace {

[[maybe_unused]] std::atomic<std::uint64_t> done;  // so that no look-up is left out

template <class Map>
void run(Map& map, const std::vector<operation>& all) {
  std::uint64_t n = 0;
  for (const operation& o : all) {
    const bool hit = o.what == operation::find     ? map.find(o.key)
                     : o.what == operation::insert ? map.insert(o.key, o.key)
                                                   : map.erase(o.key);
    n += hit ? 1 : 0;
  }
  done += n;
}

template <class Map>
[[maybe_unused]] void measure(Map& map, const std::string& name, const settings& s, metrics& found) {
  for (std::uint32_t i = 0; i < s.items; ++i) map.insert(mixed(i), i);
  for (int i = 0; i < s.runs; ++i)
    for (const bool mix : {false, true})
      found[name + (mix ? "_mix_m" : "_find_m")].push_back(
          rate_of_threads(s, mix, [&](const std::vector<operation>& all) { run(map, all); }));
}

#ifdef ORRERY_BENCH_ABSEIL
/// A B-tree for each of 256 equal intervals of the keys, under a mutex of its own.
class sharded_btree {
 public:
  bool find(std::uint32_t key) {
    shard& s = shards_[key >> 24U];
    const std::scoped_lock lock(s.mutex);
    const auto at = s.map.find(key);
    return at != s.map.end() && at->second != ~std::uint64_t{0};
  }
  bool insert(std::uint32_t key, std::uint64_t value) {
    shard& s = shards_[key >> 24U];
    const std::scoped_lock lock(s.mutex);
    return s.map.emplace(key, value).second;
  }
  bool erase(std::uint32_t key) {
    shard& s = shards_[key >> 24U];
    const std::scoped_lock lock(s.mutex);
    return s.map.erase(key) != 0;
  }

 private:
  struct alignas(64) shard {
    std::mutex mutex;
    absl::btree_map<std::uint32_t, std::uint64_t> map;
  };
  std::array<shard, 256> shards_;
};
#endif

#ifdef ORRERY_BENCH_TBB
/// Its erase() may not run beside others: so an erased item stays, with a value that says so.
class tbb_map {
 public:
  bool find(std::uint32_t key) {
    const auto at = map_.find(key);
    return at != map_.end() && at->second.load(std::memory_order_acquire) != erased;
  }
  bool insert(std::uint32_t key, std::uint64_t value) {
    const auto [at, fresh] = map_.emplace(key, value);
    std::uint64_t expected = erased;
    return fresh || at->second.compare_exchange_strong(expected, value);
  }
  bool erase(std::uint32_t key) {
    const auto at = map_.find(key);
    return at != map_.end() && at->second.exchange(erased) != erased;
  }

 private:
  static constexpr std::uint64_t erased = ~std::uint64_t{0};
  tbb::concurrent_map<std::uint32_t, std::atomic<std::uint64_t>> map_;
};
#endif

#ifdef ORRERY_BENCH_CDS
struct less_traits : cds::container::skip_list::traits {
  using less = std::less<std::uint32_t>;
};
class cds_map {
 public:
  bool find(std::uint32_t key) { return map_.contains(key); }
  bool insert(std::uint32_t key, std::uint64_t value) { return map_.insert(key, value); }
  bool erase(std::uint32_t key) { return map_.erase(key); }

 private:
  using map = cds::container::SkipListMap<cds::gc::HP, std::uint32_t, std::uint64_t, less_traits>;

 public:
  static constexpr std::size_t hazards = map::c_nHazardPtrCount + 4;

 private:
  map map_;
};
void measure_cds(const settings& s, metrics& found) {
  cds::Initialize();
  {
    cds::gc::HP collector(cds_map::hazards);
    cds::threading::Manager::attachThread();
    {
      cds_map map;
      for (std::uint32_t i = 0; i < s.items; ++i) map.insert(mixed(i), i);
      for (int i = 0; i < s.runs; ++i)
        for (const bool mix : {false, true})
          found[mix ? "cds_mix_m" : "cds_find_m"].push_back(
              rate_of_threads(s, mix, [&](const std::vector<operation>& all) {
                cds::threading::Manager::attachThread();
                run(map, all);
                cds::threading::Manager::detachThread();
              }));
    }
    cds::threading::Manager::detachThread();
  }
  cds::Terminate();
}
#endif

}  // namespace

void measure_peers([[maybe_unused]] const settings& s, [[maybe_unused]] metrics& found) {
#ifdef ORRERY_BENCH_ABSEIL
  {
    sharded_btree map;
    measure(map, "btree", s, found);
  }
#endif
#ifdef ORRERY_BENCH_TBB
  {
    tbb_map map;
    measure(map, "tbb", s, found);
  }
#endif
#ifdef ORRERY_BENCH_CDS
  measure_cds(s, found);
#endif
}

}  // namespace bench
