// SPDX-License-Identifier: Apache-2.0
// An answer that comes later: who asks for work before there is any waits, and the desk takes other
// messages meanwhile.
// run: ./later_answer
// run: ./later_answer --orrery-nodes=3 --orrery-pes=1
#include <orrery/orrery.hpp>

#include <cstdio>
#include <deque>
#include <vector>

struct Desk {
  orrery::future<int> next() { return waiting.emplace_back().get_future(); }
  std::size_t asked() const { return waiting.size(); }
  void hand_out(int job) {
    waiting.front().set_value(job);
    waiting.pop_front();
  }
  std::deque<orrery::promise<int>> waiting;
};
ORRERY_PROCESS(Desk, next, asked, hand_out);

int work(orrery::remote<Desk> desk) { return 2 * desk->next(); }

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto desk = orrery::spawn<Desk>(orrery::anywhere());
    std::vector<orrery::future<int>> done;
    for (int i = 0; i < 5; ++i) done.push_back(orrery::start_call<&work>(orrery::pe(i % orrery::world_pes()), desk));
    while (desk->asked() != done.size()) orrery::yield();
    for (int job = 0; job < 5; ++job) desk->hand_out(job);
    int sum = 0;
    for (int x : when_all(std::move(done)).get()) sum += x;
    std::printf("five workers did jobs worth %d\n", sum);
    return sum == 20 ? 0 : 1;
  });
}
