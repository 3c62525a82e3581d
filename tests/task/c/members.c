// SPDX-License-Identifier: Apache-2.0
// Members of all kinds that C11 has arrive as they were sent.
//
// run: --orrery-pes=2
// run: --orrery-nodes=2 --orrery-pes=1
#include <orrery/task.h>
#include <string.h>

#include "check.h"

typedef int triple[3];
typedef unsigned short small;
struct row {
  double x[3];
};
enum color { RED, GREEN = 70000 };

message Point { int x, y; };
message Größe {
  _Static_assert(sizeof(int) == 4, "an int has 32 bits");
  int kind;
  union {
    int number;
    double real;
  };
  struct {
    small a : 3, b : 5;
    int : 0;
    unsigned c : 9;
    unsigned int : 2;
  };
  triple three;
  int grid[2][3];
  struct row rows[rows_];
  small rows_;
  _Alignas(16) char aligned;
  enum color color, colors[many];
  _Bool many;
  const char* länge __attribute__((aligned(8)));
  struct Point by_value;
  const Point end;
  volatile int last;
};
message Digraph <%
  int n;
  int a<:n:>;
%>;

task Mirror {
  tag SIZE(Größe);
  tag DIGRAPH(Digraph);
};
static orrery_task first;
static void Mirror_handle_SIZE(Mirror this, Größe m) { Mirror_send_SIZE(m->end != NULL ? first : this->taskID, m); }
static void Mirror_handle_DIGRAPH(Mirror this, Digraph m) { (void)this, (void)m; }
static void Mirror_start(Mirror this) {
  CHECK(orrery_find("first", &first, ORRERY_FOREVER) == ORRERY_OK);
  Mirror_serve(this);
}

int main(void) {
  orrery_task mirror;
  CHECK(orrery_set_name(orrery_self(), "first") == ORRERY_OK);
  CHECK(Mirror_create_at(orrery_pe(orrery_pes() - 1), &mirror) == ORRERY_OK);
  struct row rows[2] = {{{1, 2, 3}}, {{4, 5, 6}}};
  enum color green = GREEN;
  struct Point end = {7, 8};
  struct Größe sent = {.kind = 1,
                       .real = 2.5,
                       .a = 5,
                       .b = 17,
                       .c = 300,
                       .three = {1, 2, 3},
                       .grid = {{1, 2, 3}, {4, 5, 6}},
                       .rows = rows,
                       .rows_ = 2,
                       .aligned = 'x',
                       .color = GREEN,
                       .colors = &green,
                       .many = 1,
                       .länge = "long",
                       .by_value = {3, 4},
                       .end = &end,
                       .last = 9};
  CHECK(Mirror_send_SIZE(mirror, &sent) == ORRERY_OK);
  orrery_message m;
  CHECK(orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK);
  Größe got = Größe_open(&m);
  CHECK(got != NULL && got->kind == 1 && got->real == 2.5 && got->a == 5 && got->b == 17 && got->c == 300);
  CHECK(got->three[2] == 3 && got->grid[1][2] == 6 && got->rows[1].x[2] == 6 && got->aligned == 'x');
  CHECK(got->color == GREEN && got->colors[0] == GREEN && strcmp(got->länge, "long") == 0);
  CHECK(got->by_value.y == 4 && got->end->y == 8 && got->last == 9);
  orrery_release(&m);
  int numbers[] = {1, 2};
  CHECK(Mirror_send_DIGRAPH(mirror, &(struct Digraph){2, numbers}) == ORRERY_OK);
  CHECK(orrery_stop(mirror) == ORRERY_OK && orrery_join(mirror, ORRERY_FOREVER) == ORRERY_OK);
  return 0;
}
