// SPDX-License-Identifier: Apache-2.0
// A matrix with a row in each member of a group is transposed by all_to_all.
// run: ./transpose
// run: ./transpose --orrery-nodes=2 --orrery-pes=2
#include <orrery/orrery.hpp>
#include <orrery/process/collectives.hpp>

#include <cstdio>
#include <vector>

struct Row : orrery::member<Row> {
  std::vector<int> transpose() {
    std::vector<int> row;
    for (std::size_t column = 0; column < size(); ++column) row.push_back(static_cast<int>(10 * rank() + column));
    return all_to_all(*this, row);  // row[k] goes to member k
  }
};
ORRERY_PROCESS(Row, transpose);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto columns = orrery::spawn_group<Row>(orrery::everywhere(), 5)->transpose();
    for (const auto& column : columns) {
      for (const int value : column) std::printf("%4d", value);
      std::puts("");
    }
    return columns[3] == std::vector{3, 13, 23, 33, 43} ? 0 : 1;
  });
}
