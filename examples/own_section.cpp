// SPDX-License-Identifier: Apache-2.0
// An element makes the section that it is a member of, and all of them give their values to main.
// run: ./own_section
// run: ./own_section --orrery-nodes=3 --orrery-pes=1
#include <orrery/array/array.hpp>
#include <orrery/array/section.hpp>

#include <cstdio>

struct Cell;
ORRERY_PROCESS(Cell, gather, add_up);
struct Cell : orrery::element<Cell> {
  void gather(const std::vector<int>& members, const orrery::result_target& sum) {
    (void)orrery::start_create_section(this_array(), members).then([sum](const orrery::section<Cell>& all) {
      post(all)->add_up(all, sum);
    });
  }
  void add_up(orrery::section<Cell> of, const orrery::result_target& sum) {
    contribute(of, this_index(), orrery::sum, sum);
  }
};

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto cells = orrery::create_array<Cell>(orrery::range<int>{16});
    auto [target, sum] = orrery::expect_result<int>();
    post(cells[5])->gather({3, 5, 8}, target);
    const int total = sum.get();
    std::printf("the section adds up to %d\n", total);
    return total == 16 ? 0 : 1;
  });
}
