// SPDX-License-Identifier: Apache-2.0
// A function that receives any of three types; a guard leaves empty words, a limit ends it.
// run: ./inbox_of_types
// run: ./inbox_of_types --orrery-nodes=2 --orrery-pes=2
#include <orrery/orrery.hpp>
#include <orrery/process/receive_any.hpp>

#include <cstdio>
#include <string>

struct Stop {};

void collect(orrery::remote<orrery::function> to) {
  long sum = 0;
  for (bool more = true; more;)
    more = orrery::receive(orrery::on<int>([&](int n) { return sum += n, true; }),
                           orrery::on<std::string>([](const std::string& s) { return !s.empty(); },
                                                   [&](const std::string& s) { return sum += std::ssize(s), true; }),
                           orrery::on<Stop>([](Stop) { return false; }),
                           orrery::after(std::chrono::hours(1), [] { return false; }));
  if (orrery::has_message<std::string>()) send(to, sum + std::ssize(orrery::receive<std::string>()));
}

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto f = orrery::spawn(orrery::anywhere(), collect, orrery::this_process<orrery::function>());
    send(f, 40), send(f, std::string()), send(f, std::string("ab")), send(f, Stop{});
    const long sum = orrery::receive<long>();
    std::printf("received %ld\n", sum);
    return sum == 42 ? 0 : 1;
  });
}
