// SPDX-License-Identifier: Apache-2.0
// Memory of another PE, used as an array (Givelberg 2014, section 3.1).
// run: ./remote_array
// run: ./remote_array --orrery-nodes=2
#include <orrery/orrery.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto last = orrery::pe(orrery::world_pes() - 1);
    auto data = orrery::spawn<double[]>(last, 1024);
    data[7] = 3.1415;          // done when the statement is done
    const double x = data[7];  // a copy of the distant element
    std::printf("element 7 is %.4f\n", x);

    std::vector<double> numbers(512);
    std::iota(numbers.begin(), numbers.end(), 1.0);
    data.write(512, numbers);  // in bulk
    std::vector<double> back(512);
    data.read(512, back);
    std::printf("the sum is %.0f\n", std::accumulate(back.begin(), back.end(), 0.0));

    try {
      data[5000] = 1;
    } catch (const std::out_of_range& e) {
      std::printf("refused: %s\n", e.what());
    }
    orrery::destroy(data);
    return x == 3.1415 && back == numbers ? 0 : 1;
  });
}
