// SPDX-License-Identifier: Apache-2.0
// task, message, tag, buffer, strategy and stack are names like others.
#include <stdio.h>
#define message(x) #x
typedef struct task task;
struct task {
  task* task;
  int message, tag;
};
typedef union {
  int tag;
  float message;
} buffer;
enum strategy { notify, wait };
static struct {
  int items[3], stack;
} stack = {{1, 2, 3}, 4};
static task* make(task* task, int tag) {
  task->tag = tag;
  task->task = task;
  return task;
}
static int tag(enum strategy strategy) {
  switch (strategy) {
    case notify:
      goto message;
    case wait:
      return 2;
  }
message:
  return 1;
}
int main(void) {
  task t = {0, 5};
  buffer b = {.tag = 9};
  {
    int task = 3, message = task * 2;
    t.message += message;
  }
  printf("%s %d %d %d %d %d\n", message(text; "quoted"), make(&t, 7)->task->tag, t.message, b.tag,
         tag(notify) + tag(wait), stack.items[2] + stack.stack);
  return t.tag - 7;
}
