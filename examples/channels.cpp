// SPDX-License-Identifier: Apache-2.0
// A channel of jobs; a semaphore that lets two workers at a time have a licence.
// run: ./channels
// run: ./channels --orrery-nodes=2 --orrery-pes=2
#include <orrery/orrery.hpp>
#include <orrery/process/channel.hpp>
#include <orrery/process/semaphore.hpp>

#include <cstdio>

long work(orrery::remote<orrery::channel<int>> jobs, orrery::remote<orrery::semaphore> licences) {
  licences->acquire();
  long sum = 0;
  for (long n = jobs->receive(); n != 0; n = jobs->receive()) sum += n * n;
  licences->release();
  return sum;
}

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto jobs = orrery::spawn<orrery::channel<int>>(orrery::anywhere(), 10);
    const auto licences = orrery::spawn<orrery::semaphore>(orrery::anywhere(), 2);
    std::vector<orrery::future<long>> sums;
    for (std::uint32_t w = 0; w < 4; ++w)
      sums.push_back(orrery::start_call<&work>(orrery::pe(w % orrery::world_pes()), jobs, licences));
    for (int i = 1; i <= 104; ++i) jobs->send(i <= 100 ? i : 0);  // waits while ten are there
    long sum = 0;
    for (long s : when_all(std::move(sums)).get()) sum += s;
    std::printf("the sum of the squares is %ld\n", sum);
    return sum == 338350 ? 0 : 1;
  });
}
