// SPDX-License-Identifier: Apache-2.0
// A second program joins a running world, looks a process up by its name, and calls it. The first
// waits for the second.
// run: ./name_lookup serve --orrery-world=example-$$ & server=$!; ./name_lookup ask --orrery-world=example-$$ && wait $server
#include <orrery/orrery.hpp>

#include <cstdio>

struct Counter {
  int add(int n) { return count_ += n; }
  void finish() { finished_ = true; }
  bool finished() const { return finished_; }

 private:
  int count_ = 0;
  bool finished_ = false;
};
ORRERY_PROCESS(Counter, add, finish, finished);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args args) {
    using namespace std::chrono_literals;
    if (args.size() > 1 && args[1] == "serve") {
      auto counter = orrery::spawn<Counter>(orrery::here());
      try {
        orrery::publish("/example/counter", counter);
        while (!counter->finished()) orrery::sleep_for(1ms);
      } catch (const orrery::stopped&) {
        // the other program was the first one, and its end is the end of the world
      }
      return 0;
    }
    auto counter = orrery::await_name<Counter>("/example/counter", 20s);
    counter->add(40);
    const int count = counter->add(2);
    std::printf("node %u counted to %d on PE %u\n", orrery::this_node(), count, counter.address().pe);
    post(counter)->finish();  // one way: nothing more to wait for
    return count == 42 ? 0 : 1;
  });
}
