// SPDX-License-Identifier: Apache-2.0
// Control flow, with locals that are still right behind a longjmp, a computed goto and recursion.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
static jmp_buf back;
static int deep(int n) {
  volatile char frame[200];
  frame[n % 200] = (char)n;
  return n == 0 ? 0 : deep(n - 1) + frame[n % 200] * 0 + 1;
}
static void jump(int n) {
  if (n == 0) longjmp(back, 42);
  jump(n - 1);
}
static int ackermann(int m, int n) {
  return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
static int duff(char* to, const char* from, int count) {
  int n = (count + 3) / 4;
  switch (count % 4) {
    case 0:
      do {
        *to++ = *from++;
        case 3:
          *to++ = *from++;
        case 2:
          *to++ = *from++;
        case 1:
          *to++ = *from++;
      } while (--n > 0);
  }
  return count;
}
static int by_value(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
int main(void) {
  volatile int seen = 1;
  const int said = setjmp(back);
  if (said == 0) {
    seen = 2;
    jump(10);
  }
  char copy[12] = {0};
  duff(copy, "conformance", 11);
  int numbers[] = {5, 3, 9, 1}, i, all = 0;
  qsort(numbers, 4, sizeof *numbers, by_value);
  void* const where[] = {&&odd, &&even, &&end};
  i = 0;
  goto* where[1];
odd:
  all += 10;
  if (++i == 4) goto* where[2];
  goto* where[1];
even:
  all += 1;
  if (++i == 4) goto* where[2];
  goto* where[0];
end:
  for (i = 0;; i++) {
    if (i % 2) continue;
    if (i > 8) break;
    all += i;
  }
  printf("%d %d %d %d %s %d %d %d\n", said, seen, deep(100), ackermann(2, 3), copy, numbers[0], numbers[3], all);
  return 5;
}
