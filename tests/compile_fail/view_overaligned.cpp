// expect: a view \(std::span\) whose elements are aligned to more than 16 bytes
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <span>

struct alignas(32) Vector4 {
  double x[4];
};
struct Field {
  void add(std::span<const Vector4>) {}
};
ORRERY_PROCESS(Field, add);

void f(orrery::remote<Field> field) { field->add({}); }
