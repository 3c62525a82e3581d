// SPDX-License-Identifier: Apache-2.0
// The first program of the world. It has a counter, and calls none of the methods that customers call.

#include "shop.hpp"

#include <cstdio>

namespace {

struct cellar {  // only here
  int bottles() const { return 7; }
};
ORRERY_PROCESS(cellar, bottles);

int thrice(int n) { return 3 * n; }

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](const orrery::args&) {
    const auto clerks = orrery::spawn_group<shop::clerk>(orrery::here(), 2);
    const auto other = orrery::create_array<shop::shelf>(orrery::range<long>{1});
    const auto counter =
        orrery::spawn<shop::counter>(orrery::here(), 0, orrery::create_array<shop::shelf>(orrery::range<int>{3}),
                                     other[0L], clerks, orrery::shared_vector<std::string>(4));
    if (counter->mark(3) != 3) return 1;  // of the overloads this one only
    (void)orrery::spawn(orrery::here(), &thrice, 1);  // as customers try, with a function of theirs
    orrery::publish("/counter", counter);
    orrery::publish("/cellar", orrery::spawn<cellar>(orrery::here()));
    orrery::publish("/main", orrery::this_process<orrery::function>());
    std::fputs("up\n", stderr);
    (void)orrery::receive<int>();
    return 0;
  });
}
