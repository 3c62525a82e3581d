// SPDX-License-Identifier: Apache-2.0
// Declarations that an island grammar may stumble over.
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

int (*(*table[2])(int))(const char*), *pointer, array[2][3] = {{1, 2, 3}, [1] = {4, [2] = 6}};
static int length(const char* s) {
  int n = 0;
  while (*s++) n++;
  return n;
}
static int first(const char* s) { return *s; }
static int (*choose(int which))(const char*) { return which ? length : first; }
typedef int (*chooser)(const char*);
static chooser (*by_type)(int) = choose;
int old_style(a, b)
int a;
char* b;
{
  return a + b[0];
}
struct outer {
  struct {
    int x, y;
  } inner[2];
  union {
    int i;
    float f;
  };
  unsigned a : 3, : 0, b : 5;
} o = {{{1, 2}, {.y = 4}}, {.i = 7}, 5, 9};
enum color { RED, GREEN = 5, BLUE } paint = BLUE;
static int sum(int n, ...) {
  va_list list;
  va_start(list, n);
  int all = 0;
  while (n--) all += va_arg(list, int);
  va_end(list);
  return all;
}
extern int later;
int later = 11;
_Static_assert(sizeof(struct outer) >= 16, "a layout");
static inline _Noreturn void ends(void);
int main(void) {
  table[0] = choose, table[1] = by_type;
  pointer = &array[1][0];
  int vla_size = 4;
  int vla[vla_size][vla_size];
  vla[3][3] = (int)sizeof vla;
  printf("%d %d %d %d\n", table[0](1)("four"), table[1](0)("A"), pointer[2], array[0][1]);
  printf("%d %d %d %d %d %d\n", old_style(1, "b"), o.inner[1].y, o.i, o.a, o.b, paint);
  printf("%d %d %d %zu\n", sum(3, 1, 2, 3), later, vla[3][3], offsetof(struct outer, inner));
  return (int)(sizeof(int(*)[3]) - sizeof(void*));
}
