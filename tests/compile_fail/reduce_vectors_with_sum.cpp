// expect: orrery: sum: values of this type cannot be added
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

#include <vector>

struct Body;
ORRERY_PROCESS(Body, push);
struct Body : orrery::element<Body> {
  void push(const orrery::result_target& t) { contribute(std::vector<double>(3), orrery::sum, t); }
};

void f(orrery::array<Body> all) { post(all)->push({}); }
