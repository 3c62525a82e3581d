// SPDX-License-Identifier: Apache-2.0
// Parallel sorting by regular sampling of a shared vector (Lu 2001, section 3.4).
// run: ./psrs --keys 10000 --check --orrery-pes=2
// run: ./psrs --keys 20000 --of equal --check --orrery-nodes=3 --orrery-pes=1
// run: ./psrs --keys 20001 --of skewed --type u64 --check --orrery-nodes=2 --orrery-pes=2
// run: ./psrs --keys 5 --type double --check --orrery-sim=machines=8,net=10g,jitter=3us
// run: ./psrs --keys 3000 --type record --of equal --check --orrery-nodes=2 --orrery-pes=1
// run: ./psrs --keys 20000 --type double --of skewed --check --orrery-nodes=2 --orrery-pes=2
// run: ./psrs --keys 20000 --type double --of skewed --check --orrery-sim=machines=7,net=10g,jitter=3us
// run: ./psrs --keys 20003 --type u64 --of distinct --check --orrery-pes=3
// run: ./psrs --keys 20000 --type record --of distinct --check --orrery-nodes=2 --orrery-pes=2
// run: ./psrs --keys 5000 --type record --of distinct --check --orrery-sim=machines=5,net=10g,jitter=3us
// run: ./psrs --keys 20000 --type record --of reversed --check --orrery-pes=4
// run: ./psrs --keys 20001 --of reversed --type u64 --check --orrery-nodes=3 --orrery-pes=1
// run: ./psrs --keys 20000 --of sorted --type double --check --orrery-pes=4
// run: ./psrs --keys 20000 --of equal --type u64 --check --orrery-sim=machines=4,net=10g
// run: ./psrs --keys 2000 --check --orrery-nodes=2 --orrery-pes=1 --orrery-check-sharing
// run: ./psrs --keys 900 --compare-ns 3 --check --orrery-sim=machines=40,net=10g
// run: ./psrs --keys 30000 --of sorted --members 7 --check --orrery-sim=machines=3,jitter=3us,seed=2
// run: ./psrs --keys 90 --check --plain --orrery-sim=machines=4,net=10g --orrery-advise
// run: ! command -v mpirun.openmpi || mpirun.openmpi --oversubscribe -n 2 ./psrs --keys 20000 --check --orrery-pes=2 --orrery-machine-ranks=1
#include "sort.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace {

enum class order : int { random, sorted, reversed, distinct, equal, skewed };
enum class key : int { u32, u64, real, record };

struct options {
  std::uint64_t keys = 6'000'000;
  std::size_t members = 0;
  unsigned seed = 1;
  order of = order::random;
  key type = key::u32;
  psrs::costs costs;
  bool plain = false;
  bool check = false;
};

template <class Key>
Key& key_of(Key& k) {
  return k;
}
std::uint64_t& key_of(psrs::record& r) { return r.key; }

/// A record's payload says which key it belongs to.
template <class Key>
void add_payload(Key&) {}
void add_payload(psrs::record& r) {
  for (std::uint32_t i = 0; i < 6; ++i) r.payload[i] = static_cast<std::uint32_t>(r.key * (i + 3));
}

template <class Key>
std::vector<Key> make_keys(const options& o) {
  std::mt19937_64 random(o.seed);
  std::vector<Key> all(o.keys);
  std::uint64_t i = 0;
  for (Key& each : all) {
    auto& k = key_of(each);
    using number = std::remove_reference_t<decltype(k)>;
    const std::uint64_t r = random();
    switch (o.of) {
      case order::random:
        k = static_cast<number>(r >> 32);
        break;
      case order::sorted:
        k = static_cast<number>(i);
        break;
      case order::reversed:
        k = static_cast<number>(o.keys - i);
        break;
      case order::distinct:  // i times an odd number: another one for each i
        k = static_cast<number>(i * 0x9E3779B97F4A7C15);
        break;
      case order::equal:
        k = static_cast<number>(r % 3);
        break;
      case order::skewed:
        k = static_cast<number>((r & 0xffff) * (r >> 16 & 0xffff) >> (r >> 60));
        break;
    }
    if constexpr (std::is_floating_point_v<number>) k = k / 7 - 1e6;  // fractions, and below 0
    add_payload(each);
    ++i;
  }
  return all;
}

template <class Key>
int sort_keys(const options& o) {
  std::vector<Key> keys = make_keys<Key>(o);
  const orrery::shared_vector<Key> v(o.keys);
  copy(std::span<const Key>(keys), v);
  const orrery::team team = o.members == 0 ? orrery::team() : orrery::team(orrery::everywhere(), o.members);
  const auto begin = orrery::now();
  psrs::sort(team, v, o.costs, o.plain);
  const double seconds = std::chrono::duration<double>(orrery::now() - begin).count();
  if (o.check) {
    std::vector<Key> sorted(o.keys);
    copy(v, std::span(sorted));
    std::sort(keys.begin(), keys.end());
    if (sorted != keys) return fmt::print(stderr, "the keys are not sorted\n"), 1;
  }
  fmt::print("{} keys, {} members on {} PEs: {:.6f} s\n", o.keys, team.size(), orrery::world_pes(), seconds);
  destroy(v);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args words) {
    options o;
    CLI::App app("Parallel sorting by regular sampling");
    app.add_option("--keys", o.keys, "how many");
    app.add_option("--members", o.members, "of the team; 0: one on each PE");
    app.add_option("--seed", o.seed, "of the keys");
    const std::map<std::string, order> orders{{"random", order::random},     {"sorted", order::sorted},
                                              {"reversed", order::reversed}, {"distinct", order::distinct},
                                              {"equal", order::equal},       {"skewed", order::skewed}};
    app.add_option("--of", o.of, "random, sorted, reversed, distinct, equal or skewed keys")
        ->transform(CLI::CheckedTransformer(orders));
    const std::map<std::string, key> types{
        {"u32", key::u32}, {"u64", key::u64}, {"double", key::real}, {"record", key::record}};
    app.add_option("--type", o.type, "u32, u64, double or record")->transform(CLI::CheckedTransformer(types));
    app.add_option("--compare-ns", o.costs.compare_ns, "in simulations: time of a comparison");
    app.add_flag("--plain", o.plain, "without scopes: each access by default, for --orrery-advise");
    app.add_flag("--check", o.check, "compare with a sequential sort");
    try {
      // CLI11 takes them from the end
      app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    } catch (const CLI::ParseError& e) {
      return app.exit(e);
    }
    switch (o.type) {
      case key::u32:
        return sort_keys<std::uint32_t>(o);
      case key::u64:
        return sort_keys<std::uint64_t>(o);
      case key::record:
        return sort_keys<psrs::record>(o);
      case key::real:
        break;
    }
    return sort_keys<double>(o);
  });
}
