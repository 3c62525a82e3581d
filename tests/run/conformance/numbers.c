// SPDX-License-Identifier: Apache-2.0
// Integers and floating point: conversions, shifts, limits, complex numbers, atomics, generic selection.
#include <complex.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#define kind(x) _Generic((x), int: "int", unsigned: "unsigned", double: "double", char*: "text", default: "other")
static _Atomic int counter;
static _Thread_local int own = 4;
_Alignas(64) static char aligned[3];
struct flexible {
  int n;
  int values[];
};
static const struct {
  double d;
  int i;
} constants[] = {{0x1.8p3, 0x7f}, {1e-3, 'a'}, {.i = 0b101}};
int main(void) {
  signed char small = (signed char)200;
  unsigned u = -1;
  long long big = LLONG_MAX;
  double complex z = 1 + 2 * I;
  z *= z;
  atomic_fetch_add(&counter, 3);
  bool b = 0.5;
  int* literal = (int[]){1, 2, 3};
  printf("%d %u %lld %d %d %g %g\n", small, u >> 28, big / 3, -7 / 2, -7 % 2, creal(z), cimag(z));
  printf("%s %s %s %s %s\n", kind(1), kind(1u), kind(1.0), kind((char*)0), kind(1LL));
  printf("%d %d %d %d %d %.3f %.17g\n", counter, own, (int)((uintptr_t)aligned % 64), b, literal[2], sqrt(2), 0.1);
  printf("%g %d %g %d %d\n", constants[0].d, constants[0].i, constants[1].d, constants[1].i, constants[2].i);
  printf("%zu %d %llu\n", sizeof(struct flexible), (char)-1 < 0, (unsigned long long)UINT64_MAX);
  return ({
           int x = 3;
           x * 2;
         }) -
         6;
}
