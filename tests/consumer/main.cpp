// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <string>
#include <string_view>
#include <vector>

struct sum {
  int total = 0;
  std::string text;
};

// Much of what headers hold is looked at by the compiler only where it is used.
struct counter {
  int add(int n) { return total += n; }
  int add(int a, int b) { return total += a + b; }
  virtual sum describe(std::string_view name) const { return {total, std::string(name)}; }
  virtual ~counter() = default;
  int total = 0;
};
ORRERY_PROCESS(counter, add, describe);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    auto c = orrery::spawn<counter>(orrery::pe(0));
    c->add(20);
    start(c)->add(10, 10).get();
    post(c)->add(2);
    auto all = orrery::spawn_group<counter>(orrery::everywhere(), 2);
    const std::vector<int> totals = all->add(1);
    auto data = orrery::spawn<double[]>(orrery::anywhere(), 4);
    data[1] = 42;
    const sum s = c->describe("c");
    return s.total == 42 && s.text == "c" && totals == std::vector{1, 1} && data[1] == 42 ? 0 : 1;
  });
}
