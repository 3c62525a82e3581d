// SPDX-License-Identifier: Apache-2.0
// A program of which the tests make several builds, as its author might between two releases. The first node of a world measures, the one that joins it reads.

#include <orrery/orrery.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

namespace {

struct reading {
#if defined(SWAPPED)
  double high = 0;
  double low = 0;
#elif defined(RETYPED)
  double low = 0;
  std::int64_t high = 0;  // of the same size
#else
  double low = 0;
  double high = 0;
#endif
#ifdef ADDED
  int unit = 1;
#endif
};

class place {
 public:
  place() = default;
  place(int floor, double height) : floor_(floor), height_(height) {}
  template <class A>
  void serialize(A& a) {
#ifdef SERIALIZED_OTHERWISE
    a & height_ & floor_;
#else
    a & floor_ & height_;
#endif
  }
  [[nodiscard]] int floor() const { return floor_; }

 private:
  int floor_ = 0;
  double height_ = 0;
};

struct sensor {
  reading read(place at) const {
    reading r;
    r.low = at.floor();
    r.high = at.floor() + 1;
    return r;
  }
};
ORRERY_PROCESS(sensor, read);

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](const orrery::args& all) {
    if (all.size() > 1 && all[1] == "host") {
      orrery::publish("/sensor", orrery::spawn<sensor>(orrery::here()));
      orrery::publish("/main", orrery::this_process<orrery::function>());
      std::fputs("up\n", stderr);
      (void)orrery::receive<int>();
      return 0;
    }
    const reading r = orrery::lookup<sensor>("/sensor")->read({3, 2.5});
    orrery::send(orrery::lookup<orrery::function>("/main"), 1);
#ifdef OTHER_CODE
    std::fputs("other code\n", stderr);
#endif
    return r.low == 3 && r.high == 4 ? 0 : 1;
  });
}
