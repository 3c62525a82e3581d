// expect: orrery: the operation of a reduction travels as its type
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

struct Body;
ORRERY_PROCESS(Body, push);
struct Body : orrery::element<Body> {
  void push(int most, const orrery::result_target& t) {
    contribute(1, [most](int a, int b) { return a + b < most ? a + b : most; }, t);
  }
};

void f(orrery::array<Body> all) { post(all)->push(3, {}); }
