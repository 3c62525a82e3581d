// SPDX-License-Identifier: Apache-2.0
// A table that each node has once, and all its processes read.
// run: ./spread_table
// run: ./spread_table --orrery-nodes=3 --orrery-pes=2
#include <orrery/orrery.hpp>
#include <orrery/process/spread.hpp>

#include <cstdio>
#include <vector>

using table = std::vector<long>;

struct Reader {
  explicit Reader(const orrery::spread_handle<table>& t) : squares(t) {}
  long look(std::size_t i) const { return (*squares)[i]; }
  orrery::spread_handle<table> squares;
};
ORRERY_PROCESS(Reader, look);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    table squares;
    for (long i = 0; i < 1000; ++i) squares.push_back(i * i);
    const auto everywhere = orrery::spread(std::move(squares));  // on all nodes now
    const auto readers = orrery::spawn_group<Reader>(orrery::everywhere(), 6, everywhere);
    const table found = readers->look(30);
    std::printf("%zu readers find %ld\n", found.size(), found[0]);
    return found == table(6, 900) ? 0 : 1;
  });
}
