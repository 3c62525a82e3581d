// SPDX-License-Identifier: Apache-2.0
// Reading, transforming and writing overlap: `start` the next read before the work on this page.
// run: ./pipeline
// run: ./pipeline --orrery-nodes=3
#include <orrery/orrery.hpp>

#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

using Page = std::vector<double>;

struct Device {
  Page read(std::size_t index) const {
    // a slow disk: the process parks, its PE goes on
    orrery::sleep_for(std::chrono::milliseconds(2));
    return Page(1000, static_cast<double>(index));
  }
  void write(const Page& page, std::size_t index) { written_[index] = page[0]; }
  double checksum() const {
    double sum = 0;
    for (const auto& [index, value] : written_) sum += value;
    return sum;
  }

 private:
  std::map<std::size_t, double> written_;
};
ORRERY_PROCESS(Device, read, write, checksum);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    auto source = orrery::spawn<Device>(orrery::anywhere());
    auto target = orrery::spawn<Device>(orrery::anywhere());
    constexpr std::size_t pages = 50;
    auto next = start(source)->read(0);
    for (std::size_t i = 0; i < pages; ++i) {
      Page page = next.get();
      if (i + 1 < pages) next = start(source)->read(i + 1);
      for (double& x : page) x = std::sqrt(x * x) + 1;
      post(target)->write(page, i);
    }
    const double sum = target->checksum();  // behind all the writes
    std::printf("%zu pages, checksum %.0f\n", pages, sum);
    return sum == pages * (pages + 1) / 2.0 ? 0 : 1;
  });
}
