// SPDX-License-Identifier: Apache-2.0
// An ordinary object on another PE, on another node: the same line.
// run: ./hello
// run: ./hello --orrery-nodes=3
#include <orrery/orrery.hpp>

#include <cstdio>
#include <string>

struct Greeter {
  explicit Greeter(std::string word) : word_(std::move(word)) {}
  std::string greet(const std::string& whom) {
    ++greeted_;
    return word_ + ", " + whom + ", from PE " + std::to_string(orrery::this_pe());
  }
  int greeted() const { return greeted_; }

 private:
  std::string word_;
  int greeted_ = 0;
};
ORRERY_PROCESS(Greeter, greet, greeted);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    for (std::uint32_t i = 0; i < orrery::world_pes(); ++i) {
      auto greeter = orrery::spawn<Greeter>(orrery::pe(i), "Hello");
      auto answer = start(greeter)->greet("world");  // goes on at once
      post(greeter)->greet("nobody");                // one way
      std::printf("%s\n", answer.get().c_str());
      if (greeter->greeted() != 2) return 1;  // messages arrive in the order sent
      orrery::destroy(greeter);
    }
    return 0;
  });
}
