// SPDX-License-Identifier: Apache-2.0
// A channel, and a latch that says when all have come.
// run: ./channels
// run: ./channels --orrery-nodes=2 --orrery-pes=2
#include <orrery/orrery.hpp>
#include <orrery/process/channel.hpp>
#include <orrery/process/latch.hpp>

#include <cstdio>

void work(orrery::remote<orrery::channel<int>> jobs, orrery::remote<orrery::channel<long>> results,
          orrery::remote<orrery::latch> ready) {
  ready->arrive_and_wait();  // nobody begins before all are there
  try {
    for (;;) {
      const long n = jobs->receive();
      results->send(n * n);
    }
  } catch (const orrery::channel_closed&) {
  }
}

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto jobs = orrery::spawn<orrery::channel<int>>(orrery::anywhere(), 10);
    const auto results = orrery::spawn<orrery::channel<long>>(orrery::anywhere());
    const auto ready = orrery::spawn<orrery::latch>(orrery::anywhere(), orrery::world_pes());
    for (std::uint32_t p = 0; p < orrery::world_pes(); ++p)
      orrery::post_call<&work>(orrery::pe(p), jobs, results, ready);
    for (int i = 1; i <= 100; ++i) jobs->send(i);  // waits while ten are there
    jobs->close();
    long sum = 0;
    for (int i = 1; i <= 100; ++i) sum += results->receive();
    std::printf("the sum of the squares is %ld\n", sum);
    return sum == 338350 ? 0 : 1;
  });
}
