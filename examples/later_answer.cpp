// SPDX-License-Identifier: Apache-2.0
// An answer that comes later: who asks for work before there is any waits; the desk goes on.
// run: ./later_answer
// run: ./later_answer --orrery-nodes=3 --orrery-pes=1
#include <orrery/orrery.hpp>

#include <cstdio>
#include <deque>
#include <vector>

struct Desk {
  orrery::future<int> next() { return waiting.emplace_back().get_future(); }
  void hand_out(int job) {
    orrery::wait_until([this] { return !waiting.empty(); });
    waiting.front().set_value(job);
    waiting.pop_front();
  }
  std::deque<orrery::promise<int>> waiting;
};
ORRERY_PROCESS(Desk, next, hand_out);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto desk = orrery::spawn<Desk>(orrery::anywhere());
    orrery::shared_future<int> job(start(desk)->next().then([](int n) { return 2 * n; }));
    desk->hand_out(21);
    std::printf("the job is %d, for each that has a copy: %d\n", job.get(), job.get());
    return job.get() == 42 ? 0 : 1;
  });
}
