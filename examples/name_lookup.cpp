// SPDX-License-Identifier: Apache-2.0
// A second program joins a running world, looks a process up by its name, and calls it. The first waits for the second.
// run: ./name_lookup serve --orrery-world=example-$$ & ./name_lookup ask --orrery-world=example-$$ && wait $!
#include <orrery/orrery.hpp>

#include <cstdio>

struct Counter {
  int add(int n) { return count_ += n; }
  int count() const { return count_; }

 private:
  int count_ = 0;
};
ORRERY_PROCESS(Counter, add, count);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args args) {
    using namespace std::chrono_literals;
    if (args.size() > 1 && args[1] == "serve") {
      auto counter = orrery::spawn<Counter>(orrery::here());
      orrery::publish("/example/counter", counter);
      auto asked = orrery::await_name<Counter>("/example/asked", 20s);  // the other program says that it is done
      std::printf("served: %d\n", asked->count());
      return 0;
    }
    auto counter = orrery::await_name<Counter>("/example/counter", 20s);
    counter->add(40);
    const int count = counter->add(2);
    std::printf("node %u counted to %d on PE %u\n", orrery::this_node(), count, counter.address().pe);
    orrery::publish("/example/asked", counter);
    return count == 42 ? 0 : 1;
  });
}
