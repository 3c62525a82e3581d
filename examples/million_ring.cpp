// SPDX-License-Identifier: Apache-2.0
// A token goes round a ring of a million processes, spread over all PEs in blocks.
// run: ./million_ring
// run: ./million_ring 100000 --orrery-nodes=2
#include <orrery/orrery.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

struct Station;
ORRERY_PROCESS(Station, link, pass);  // before the class: its own methods call its neighbour

struct Station {
  void link(orrery::remote<Station> next) { next_ = next; }
  void pass(long hops, orrery::remote<orrery::function> done) {
    if (hops == 0) {
      send(done, 0);
    } else {
      post(next_)->pass(hops - 1, done);
    }
  }

 private:
  orrery::remote<Station> next_;
};

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args args) {
    const std::size_t n = args.size() > 1 ? std::stoul(args[1]) : 1'000'000;
    const std::size_t pes = orrery::world_pes();
    std::vector<orrery::future<orrery::remote<Station>>> spawned;
    for (std::size_t i = 0; i < n; ++i)
      spawned.push_back(orrery::start_spawn<Station>(orrery::pe(static_cast<std::uint32_t>(i * pes / n))));
    std::vector<orrery::remote<Station>> ring;
    for (auto& s : spawned) ring.push_back(s.get());
    for (std::size_t i = 0; i < n; ++i) post(ring[i])->link(ring[(i + 1) % n]);

    const auto begin = std::chrono::steady_clock::now();
    post(ring[0])->pass(static_cast<long>(n), orrery::this_process<orrery::function>());
    (void)orrery::receive<int>();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    std::printf("%zu processes on %zu PEs: %.0f ns for each hop\n", n, pes, time.count() / static_cast<double>(n));
    return 0;
  });
}
