// SPDX-License-Identifier: Apache-2.0
// The spelling of the thesis in `orrery-cc`: messages with functions, tags without a type, and what
// `send` refuses.
#include "orrery_cc_support.hpp"

#include <string>

#include <gtest/gtest.h>

namespace {

using namespace orrery_cc_tests;  // NOLINT: the fixture of all files

class orrery_cc_thesis : public orrery_cc {
 protected:
  // Compiles it with all warnings and runs it on one PE: the exit code.
  int run_program(const string& text, const string& arguments = "") {
    write("program.c", "#include <orrery/thesis.h>\n" + text);
    // Its messages are its own until it ends.
    return run(
        "orrery-cc -std=gnu11 -Wall -Wextra -Werror program.c -o program && "
        "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 timeout 60 ./program " +
        arguments + " --orrery-pes=1");
  }
  void expect_said(const string& text) {
    EXPECT_NE(said().find(text), string::npos) << text << "\nis not in\n" << said();
  }
};

// A message, and a task that prints those that come with the tag `go`.
const string number = R"(#include <stdio.h>
#include <stdlib.h>
#include <string.h>
message Number { int n; int get(void); };
static int get(Number this) { return this->n; }
static int send_number(int tag, int n, orrery_task to) {
  Number m = Number_create(tag);
  m->n = n;
  const int said = send(NULL, (Message)m, to);
  m->destroy(m);
  return said;
}
)";

TEST_F(orrery_cc_thesis, gives_messages_their_initial_values) {
  ASSERT_EQ(run_program(R"(#include <stdio.h>
struct pair { int x, y; };
message M {
  char who[] = "me";
  char room[8] = "you";
  int all[3] = {1, 2, 3};
  int more[] = {[4] = 7};
  struct pair p = {.y = 5};
  const int fixed = 6;
  double d = 0.5;
  void print(void);
};
static void print(M this) {
  printf("%s %s %d %zu %d %d %d %g %d\n", this->who, this->room, this->all[2], sizeof this->more / sizeof(int),
         this->more[4], this->p.y, this->fixed, this->d, this->tag);
}
int main(void) {
  M m = M_create(9);
  m->print(m);
  M copy = m->clone(m);
  m->all[2] = 4;
  copy->print(copy);
  return m->msg_size != (int)sizeof *m || copy->tid != m->tid || copy->tid == 0;
}
)"),
            0)
      << said();
  EXPECT_EQ(said(), "me you 3 5 7 5 6 0.5 9\nme you 3 5 7 5 6 0.5 9\n");
}

TEST_F(orrery_cc_thesis, finds_functions_with_attributes_and_qualifiers) {
  ASSERT_EQ(run_program(R"(#include <stdio.h>
message A {
  int n = 1;
  int get();
  int add(int more) __attribute__((warn_unused_result));
  void say(const char *format, ...) __attribute__((format(printf, 2, 3)));
};
static int get(A const this) { return this->n; }
static __attribute__((noinline)) int add(struct A *this, int more) { return this->n + more; }
static void say(A this, const char *format, ...);
void say(A this __attribute__((unused)), const char *format, ...) { puts(format); }
static A clone(register A this) { A copy = A_create(this->tag); copy->n = this->n + 10; return copy; }
task T { tag a = 0; tag b = 1; tag c = 2; tag d = 3; };
static void start(T const this) { for (int i = 0; i < 4; ++i) receive(this); }
static void handle_a(T this __attribute__((unused)), A m) { printf("a %d\n", m->get(m)); }
static void handle_b(struct T *this, struct A *const m) { (void)this; printf("b %d\n", m->add(m, 1)); }
static void handle_c(__attribute__((unused)) T this, volatile A m) { printf("c %d\n", m->n); }
static void handle_d(register T this, A m) { (void)this; m->say(m, "d"); }
int main(void) {
  orrery_task t = T_create();
  A m = A_create(a);
  for (; m->tag <= d; ++m->tag) send(NULL, (Message)m, t);
  A copy = m->clone(m);
  printf("%d\n", copy->n);
  return orrery_join(t, ORRERY_FOREVER);
}
)"),
            0)
      << said();
  EXPECT_EQ(said(), "11\na 1\nb 2\nc 1\nd\n");
  write("c23.c",
        "#include <orrery/thesis.h>\nmessage A { int n; int get(void); };\n"
        "static int get([[maybe_unused]] A this) { return 1; }\ntask T { tag a = 0; };\n"
        "static void start([[maybe_unused]] T this) { receive(this); }\n"
        "static void handle_a([[maybe_unused]] T this, [[maybe_unused]] A m) {}\n");
  EXPECT_EQ(run("orrery-cc -std=gnu2x -Wall -Wextra -Werror -c c23.c"), 0) << said();
}

TEST_F(orrery_cc_thesis, takes_types_as_c_does) {
  ASSERT_EQ(run_program(R"(#include <stdio.h>
typedef double real;
typedef int (*strategy)(int);
message M {
  int n;
  enum color { RED, GREEN } get( void );
  struct { real x; } p[2];
  struct { real x; } p0;
  struct { int a;; enum { ONE = 1 }; } q;
};
static enum color get(M this) { return this->n != 0 ? GREEN : RED; }
static int next(int n) { return n + 1; }
task T {
  tag go = 0;
  strategy choose;
};
static void handle_go(T this, const struct M *m) { printf("%d %d\n", m->n, this->choose(m->n)); }
static void receive(T this) {
  struct M m = {.n = 4 + ONE};
  this->choose = next;
  handle_go(this, &m);
}
static void start(T this) { receive(this); }
int main(void) {
  M m = M_create(go);
  m->n = 1;
  printf("%d\n", m->get(m) == GREEN);
  m->destroy(m);
  return orrery_join(T_create(), ORRERY_FOREVER);
}
)"),
            0)
      << said();
  expect_said("1\n5 6\n");
}

TEST_F(orrery_cc_thesis, gives_any_message_with_functions_to_who_takes_one) {
  ASSERT_EQ(run_program(number + R"(
message Word { char text[8]; void put(const char *text); };
static void put(Word this, const char *text) { snprintf(this->text, sizeof this->text, "%s", text); }
message Plain { int n; };
task T { tag any = 3; };
static void start(T this) { for (int i = 0; i < 3; ++i) receive(this); }
static void handle_any(T this, Message m) {
  (void)this;
  printf("%s", m->class_->name);
  printf(" %d\n", strcmp(m->class_->name, "Word") == 0 ? ((Word)m)->text[0] == 'x' : ((Number)m)->get((Number)m));
}
int main(void) {
  orrery_task t = T_create();
  Word w = Word_create(any);
  w->put(w, "x");
  if (send_number(any, 42, t) || send(NULL, (Message)w, t) || Plain_send(t, any, &(struct Plain){1})) return 1;
  return orrery_join(t, ORRERY_FOREVER);
}
)",
                        "--orrery-failed-exit=5"),
            5)
      << said();
  expect_said("Number 42\nWord 1\n");
  expect_said("T: a message with tag any has no functions in this program");
}

TEST_F(orrery_cc_thesis, tells_handlers_of_similar_tags_apart) {
  ASSERT_EQ(run_program(number + R"(
task T { tag tick = 1; tag tick_msg = 2; tag TICK_TOCK = 3; };
static void start(T this) { for (int i = 0; i < 3; ++i) receive(this); }
static void handle_tick_msg(T this, Number m) { (void)this; printf("tick_msg %d\n", m->n); }
static void handle_tick(T this, Number m) { (void)this; printf("tick %d\n", m->n); }
static void handle_TickTock(T this) { (void)this; puts("tock"); }
int main(void) {
  orrery_task t = T_create();
  if (send_number(tick, 1, t) || send_number(tick_msg, 2, t) || send_number(TICK_TOCK, 3, t)) return 1;
  return orrery_join(t, ORRERY_FOREVER);
}
)"),
            0)
      << said();
  EXPECT_EQ(said(), "tick 1\ntick_msg 2\ntock\n");
}

TEST_F(orrery_cc_thesis, compares_the_numbers_of_shared_tags) {
  const string program = R"(enum { ONE = 1 };
task S { tag next = 0; tag work; tag x = ONE + 1; tag y = 0x10; };
task R { tag work = 1; tag x = 2; tag y = 16; };
static void S_start(S this) { (void)this; }
static void S_receive(S this) { (void)this; }
static void R_start(R this) { (void)this; }
static void R_receive(R this) { (void)this; }
int main(void) { (void)S_receive, (void)R_receive; return y - R_y; }
)";
  EXPECT_EQ(run_program(program), 0) << said();
  string other = program;
  other.replace(other.find("x = 2"), 5, "x = 3");
  EXPECT_NE(run_program(other), 0);
  expect_said("tag x has another number in task S: tags without a type are shared by all tasks of a source");
}

TEST_F(orrery_cc_thesis, says_which_pointers_cannot_travel) {
  EXPECT_NE(run_program("message L { int n; L next; int get(void); };\nstatic int get(L this) { return this->n; }\n"),
            0);
  expect_said("program.c:2:22: error: static assertion failed");
  expect_said("write one pointer with its star, as in char *next, whose elements writeAt puts behind the structure");
  EXPECT_NE(run_program("typedef int *ip;\nmessage M { struct { int n; ip p[2]; } in[2]; };\n"), 0);
  expect_said("program.c:3:32: error: static assertion failed");
}

// Which looks for pointers among them, and finds stars of other kinds.
TEST_F(orrery_cc_thesis, takes_numbers_in_structures_without_a_tag) {
  EXPECT_EQ(run_program(R"(
typedef double real;
message M {
  int n;
  struct { real x; int bits : 2 * 2; enum { A = 2 * 3 } e; char c[2 * 4]; } in, all[2];
  union { struct { real y; } *none; int k; } *p;
  int get(void);
};
static int writeAt(M this, void *to) { __builtin_memcpy(to, this, sizeof *this); return (int)sizeof *this; }
static int get(M this) { return this->n; }
message P { int n; struct __attribute__((packed)) { real x; char c; } rows[n]; enum { B = 2 * 3 } e; };
struct tagged { char *s; };
message Q { struct tagged t; struct own { int *p; } o; };
int main(void) { return 0; }
)"),
            1)
      << said();  // for `none`, which alone is a pointer
  expect_said("program.c:7:30: error: a structure or union without a tag has a pointer here");
  string text = file("program.c");
  text.replace(text.find("*none"), 5, "one");
  EXPECT_EQ(run_program(text), 0) << said();
}

TEST_F(orrery_cc_thesis, refuses_to_send_what_is_no_message) {
  ASSERT_EQ(run_program(number + R"(
message Plain { int n; int more[16]; };
static void tell(int said) { printf("%d %s\n", said == ORRERY_USAGE, orrery_error()); }
int main(void) {
  const orrery_task me = orrery_self();
  tell(send(NULL, NULL, me));
  struct Number local = {.tag = 1, .msg_size = sizeof local, .n = 4};
  tell(send(NULL, (Message)&local, me));
  struct Plain plain = {.n = 5};
  tell(send(NULL, (Message)&plain, me));
  tell(send_number(-1, 6, me));
  Number m = Number_create(0);
  m->msg_size = 8;
  tell(send(NULL, (Message)m, me));
  m->msg_size = -1;
  tell(send(NULL, (Message)m, me));
  m->msg_size = (int)sizeof *m;
  return send(NULL, (Message)m, me) != 0 || Comm->receive(Comm, me) == NULL;
}
)"),
            0)
      << said();
  const string no_message =
      "1 send: this is no message with functions that its X_create has made: make it so, or send a "
      "message without functions with its X_send\n";
  EXPECT_TRUE(said().starts_with("1 send: the message is NULL\n" + no_message + no_message +
                                 "1 send: a message Number has the tag -1, and tags are not negative\n"))
      << said();
  expect_said("1 send: a message Number has msg_size 8, and its structure has ");
  expect_said("1 send: a message Number has msg_size -1, and its structure has ");
}

constexpr auto vector = R"(#include <stdio.h>
#include <stdlib.h>
#include <string.h>
message V { int n; double *v; void fill(int n); };
static int result;
static void fill(V this, int n) {
  this->n = n;
  this->v = malloc((size_t)n * sizeof(double));
  for (int i = 0; i < n; ++i) this->v[i] = i;
}
static int writeAt(V this, void *to) {
  V copy = to;
  copy->n = this->n;
  memcpy(copy + 1, this->v, (size_t)this->n * sizeof(double));
  return result != 0 ? result : this->msg_size;
}
)";

TEST_F(orrery_cc_thesis, finds_a_write_at_that_writes_another_size) {
  ASSERT_EQ(run_program(vector + string(R"(
static void tell(int said) { printf("%d %s\n", said == ORRERY_USAGE, orrery_error()); }
int main(void) {
  const orrery_task me = orrery_self();
  V x = V_create(0);
  x->fill(x, 1000);
  tell(send(NULL, (Message)x, me));
  x->msg_size += 1000 * (int)sizeof(double);
  result = 8;
  tell(send(NULL, (Message)x, me));
  result = -1;
  tell(send(NULL, (Message)x, me));
  result = 0;
  if (send(NULL, (Message)x, me)) return 1;
  V got = (V)Comm->receive(Comm, me);
  return got == NULL || got->n != 1000 || got->v[999] != 999 || got->msg_size != x->msg_size;
}
)")),
            0)
      << said();
  expect_said("1 send: writeAt of a message V writes more than its msg_size, which is ");
  expect_said("1 send: writeAt of a message V returns 8, and its msg_size is ");
  expect_said("1 send: writeAt of a message V returns -1, and its msg_size is ");
}

TEST_F(orrery_cc_thesis, ends_a_task_that_clones_what_is_no_message) {
  ASSERT_EQ(run_program(vector + string(R"(
int main(void) {
  V x = V_create(0);
  x->fill(x, 1000);
  V copy = x->clone(x);
  printf("not here: %d\n", copy->n);
  return 1;
}
)")),
            0)
      << said();
  expect_said("clone: writeAt of a message V writes more than its msg_size, which is ");
  EXPECT_EQ(said().find("not here"), string::npos) << said();
}

// Its writeAt knows nothing of tag, tid and msg_size, and its destroy frees elements from malloc.
TEST_F(orrery_cc_thesis, clones_a_message_with_elements_of_its_own) {
  ASSERT_EQ(run_program(R"(#include <stdio.h>
#include <stdlib.h>
#include <string.h>
message Array { int n; int *values; void fill(int n); };
static void fill(Array this, int n) {
  this->n = n;
  this->values = malloc((size_t)n * sizeof(int));
  for (int i = 0; i < n; ++i) this->values[i] = 10 * i;
  this->msg_size = (int)(sizeof(struct Array) + (size_t)n * sizeof(int));
}
static void destroy(Array this) {
  free(this->values);
  free(this);
}
static int writeAt(Array this, void *addr) {
  Array to = addr;
  to->n = this->n;
  if (this->n != 0) memcpy(to + 1, this->values, (size_t)this->n * sizeof(int));
  return this->msg_size;
}
static void show(Array a, Array like) {
  printf("%d %d %d %d\n", a->tag, a->msg_size == like->msg_size, a->tid == like->tid && a->tid != 0, a->values[a->n - 1]);
}
task T { tag go = 3; };
static void start(T this) { receive(this); }
static void handle_go(T this, Array a) {
  (void)this;
  Array kept = a->clone(a);
  show(kept, a);
  kept->destroy(kept);
}
int main(void) {
  Array a = Array_create(go);
  a->fill(a, 5);
  Array b = a->clone(a);
  show(b, a);
  a->destroy(a);
  Array c = b->clone(b);
  b->destroy(b);
  const orrery_task t = T_create();
  if (send(NULL, (Message)c, t)) return 1;
  c->destroy(c);
  Array none = Array_create(go);
  Array other = none->clone(none);
  printf("%d\n", other->values == NULL);
  none->destroy(none);
  other->destroy(other);
  return orrery_join(t, ORRERY_FOREVER);
}
)"),
            0)
      << said();
  expect_said("3 1 1 40\n1\n3 1 1 40\n");
}

TEST_F(orrery_cc_thesis, says_that_a_dead_world_waits_in_a_join) {
  EXPECT_NE(run_program(number + R"(
task T { tag go = 1; };
static void start(T this) { receive(this); }
static void handle_go(T this, Number m) { (void)m; receive(this); }
int main(void) {
  orrery_task t = T_create();
  return send_number(go, 1, t) || orrery_join(t, ORRERY_FOREVER);
}
)"),
            0);
  expect_said(" waits in orrery_join of task 0.");
  EXPECT_EQ(said().find("waits for function::"), string::npos) << said();
}

}  // namespace
