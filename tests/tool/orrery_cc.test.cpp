// SPDX-License-Identifier: Apache-2.0
// The program `orrery-cc`, as a user runs it: what it refuses and how it says so, what it takes, and how it is used like a compiler.
#include "orrery_cc_support.hpp"

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace orrery_cc_tests;  // NOLINT: the fixture of both files

// name, source, expected lines
struct refused {
  string name;
  string source;
  std::vector<string> errors;
};
std::vector<refused> refused_programs() {
  std::vector<refused> all;
  std::istringstream in(read(TEST_SOURCES "/refused.txt"));
  bool in_errors = false;
  for (string line; std::getline(in, line);) {
    if (line.starts_with("=== ")) {
      all.push_back({line.substr(4), "#include <orrery/task.h>\n", {}});
      in_errors = false;
    } else if (all.empty() || line.empty()) {
    } else if (line == "---") {
      in_errors = true;
    } else if (line == "no header") {
      all.back().source = "\n";
    } else if (in_errors) {
      all.back().errors.push_back(line);
    } else {
      all.back().source += line + "\n";
    }
  }
  return all;
}

constexpr auto small = R"(#include <orrery/task.h>
#include <stdio.h>
message Number { int n; };
task Doubler { tag NUMBER(Number); int factor = 2; };
task Main { tag NUMBER(Number); };
static void Main_handle_NUMBER(Main this, Number message) { (void)this; printf("%d\n", message->n); }
static void Main_start(Main this) {
  orrery_task d = Doubler_create();
  Number_send(d, Doubler_NUMBER, &(struct Number){21});
  Main_receive(this);
}
static void Doubler_handle_NUMBER(Doubler this, Number message) { message->n *= this->factor; }
static void Doubler_start(Doubler this) {
  orrery_message m;
  if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return;
  Number n = Number_open(&m);
  Doubler_handle_NUMBER(this, n);
  Main_send_NUMBER(m.sender, n);
  orrery_release(&m);
}
int main(void) { return orrery_join(Main_create(), ORRERY_FOREVER); }
)";

TEST_F(orrery_cc, refuses_wrong_programs_as_a_compiler_does) {
  const auto all = refused_programs();
  EXPECT_GE(all.size(), 40U);
  const auto name_of = [](std::size_t i) { return "wrong_" + std::to_string(i) + ".c"; };
  for (std::size_t i = 0; i < all.size(); ++i) write(name_of(i), all[i].source);
  // In one call, as a compiler goes on with the next source.
  EXPECT_NE(run("orrery-cc -Werror -fsyntax-only wrong_*.c"), 0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const string& error : all[i].errors) {
      if (const auto text = error.find(" static assertion failed"); text != string::npos) {
        EXPECT_NE(said().find(name_of(i) + ":" + error.substr(0, text) + " error: static assertion failed"),
                  string::npos)
            << all[i].name << "\n"
            << said();
        continue;
      }
      const bool by_compiler = error.find("conflicting") != string::npos ||
                               error.find("incompatible") != string::npos ||
                               error.find("initializer") != string::npos || error.ends_with(": error: ");
      const string place = name_of(i) + ":" + error.substr(0, error.find(':') + 1);
      EXPECT_NE(said().find(by_compiler ? place : name_of(i) + ":" + error + "\n"), string::npos) << all[i].name << "\n"
                                                                                                  << said();
    }
  }
}

TEST_F(orrery_cc, goes_on_with_the_next_source_but_links_nothing) {
  write("wrong.c", "#include <orrery/task.h>\nmessage M { int *values; };\n");
  write("small.c", small);
  write("plain.c", "int f(void) { return undeclared; }\n");
  EXPECT_EQ(run("orrery-cc wrong.c small.c plain.c -o program"), 1);
  EXPECT_NE(said().find("wrong.c:2:18: error: "), string::npos) << said();
  EXPECT_NE(said().find("plain.c:1:"), string::npos) << said();
  EXPECT_FALSE(exists("program"));
  EXPECT_EQ(run("orrery-cc -c wrong.c small.c"), 1);
  EXPECT_TRUE(exists("small.o"));
}

TEST_F(orrery_cc, shows_the_line_with_a_caret) {
  write("wrong.c", "#include <orrery/task.h>\nmessage Reading { int *values; };\n");
  EXPECT_EQ(run("orrery-cc -c wrong.c"), 1);
  EXPECT_EQ(
      said(),
      "wrong.c:2:24: error: 'values' is a pointer, and a message cannot know to how much: count its elements in a "
      "member, and write int values[count];\n"
      "    2 | message Reading { int *values; };\n"
      "      |                        ^~~~~~\n");
}

TEST_F(orrery_cc, builds_a_program_in_one_call_and_in_two) {
  write("small.c", small);
  ASSERT_EQ(run("orrery-cc -std=c11 -Wall -Wextra -Werror small.c -o one && ./one --orrery-pes=2"), 0) << said();
  EXPECT_EQ(said(), "42\n");
  ASSERT_EQ(run("orrery-cc -c -MMD small.c && orrery-cc small.o -o two && ./two --orrery-nodes=2 --orrery-pes=1"), 0)
      << said();
  EXPECT_EQ(said(), "42\n");
  EXPECT_TRUE(file("small.d").starts_with("small.o: small.c")) << file("small.d");
}

TEST_F(orrery_cc, makes_one_file_of_each_source_or_none) {
  write("small.c", small);
  write("plain.c", "int plain(void) { return 3; }\n");
  for (const string option : {"-c", "-S"}) {
    EXPECT_EQ(run("orrery-cc " + option + " small.c plain.c -o both"), 1);
    EXPECT_NE(said().find("-o names one file"), string::npos) << said();
  }
  EXPECT_EQ(run("orrery-cc -### -c small.c -o shown.o && test ! -e shown.o"), 0) << said();
  ASSERT_EQ(run("orrery-cc -c small.c plain.c && test -e small.o && test -e plain.o"), 0) << said();
  // Those of other languages beside one that is translated, too.
  write("code.S", "#define NAME code\n.globl NAME\nNAME: ret\n");
  write("text", "int other(void) { return sizeof 'a'; }\n");
  ASSERT_EQ(run("orrery-cc -c -MMD small.c code.S -x c++ text -x none small.o && test -e text.o && nm code.o"), 0)
      << said();
  EXPECT_NE(said().find(" T code"), string::npos) << said();
  EXPECT_TRUE(file("code.d").starts_with("code.o: code.S")) << file("code.d");
  EXPECT_EQ(run("orrery-cc -c small.c code.S -o both"), 1) << said();
  ASSERT_EQ(run("orrery-cc -x c++ text -x none small.c -o all && ./all --orrery-pes=1"), 0) << said();
  EXPECT_EQ(said(), "42\n");
}

TEST_F(orrery_cc, builds_tasks_of_several_files) {
  write("doubler.h", R"(#pragma once
#include <orrery/task.h>
message Number { int n; orrery_task back; };
message Answer { int n; };
task Doubler { tag NUMBER(Number); };
)");
  write("doubler.c", R"(#include "doubler.h"
static void Doubler_handle_NUMBER(Doubler this, Number message) {
  (void)this;
  Answer_send(message->back, 7, &(struct Answer){2 * message->n});
}
static void Doubler_start(Doubler this) { Doubler_serve(this); }
)");
  write("main.c", R"(#include "doubler.h"
#include <stdio.h>
int main(int argc, char **argv) {
  (void)argv;
  Doubler_send_NUMBER(Doubler_create(), &(struct Number){20 + argc, orrery_self()});
  orrery_message m;
  if (orrery_receive_tag(7, &m, ORRERY_FOREVER) != ORRERY_OK) return 1;
  printf("%d\n", Answer_open(&m)->n);
  orrery_release(&m);
})");
  write("Makefile", "CC = orrery-cc\nCFLAGS = -Wall -Werror\nmain: main.o doubler.o\nmain.o doubler.o: doubler.h\n");
  const bool has_make = run("command -v make") == 0;
  const string build =
      has_make ? "make -s" : "orrery-cc -c main.c && orrery-cc -c doubler.c && orrery-cc main.o doubler.o -o main";
  ASSERT_EQ(run(build + " && ./main --orrery-pes=2"), 0) << said();
  EXPECT_EQ(said(), "42\n");
}

TEST_F(orrery_cc, leaves_sources_without_tasks_to_the_compiler) {
  write("plain.c", R"(#include <stdio.h>
typedef int task;
typedef struct { int message; } tag;
struct message { int x; };
task message(task t) { struct message m = {t}; return m.x; }
int main(void) { tag t = {3}; printf("%d\n", message(t.message)); return 0; }
)");
  ASSERT_EQ(run("orrery-cc -Wall -Werror plain.c -o plain && ./plain"), 0) << said();
  EXPECT_EQ(said(), "3\n");
  ASSERT_EQ(run("grep -c orrery_run plain"), 1);  // nothing of the runtime is in it
  EXPECT_EQ(run("orrery-cc --emit-c plain.c"), 1);
}

TEST_F(orrery_cc, changes_no_byte_of_sources_that_use_its_words) {
  write("words.c", R"(#include <stdio.h>
typedef struct task { struct task *task; int message, tag; } task;
enum { message, tag };
static task message_of(task *task) { struct { int message; } tag = {1}; task->message = tag.message; return *task; }
int main(void) { task t = {0}; goto tag; tag: return message_of(&t).tag + message; }
)");
  write("knr.c", "int f(message) int message; { struct tag { int task; } tag = { message }; return tag.task; }\n");
  ASSERT_EQ(run(TEST_SOURCES "/../../../tools/orrery_cc_over_sources $(command -v orrery-cc) ."), 0) << said();
  EXPECT_NE(said().find("2 files (0 left out)"), string::npos) << said();
  EXPECT_NE(said().find("0 changed or refused"), string::npos) << said();
}

TEST_F(orrery_cc, leaves_every_other_line_as_it_was) {
  write("small.c", small);
  ASSERT_EQ(run(TEST_C_COMPILER " -I" TEST_INCLUDE " -E small.c > before.c && orrery-cc --emit-c small.c > after.c"),
            0);
  std::istringstream before(file("before.c"));
  std::istringstream after(file("after.c"));
  string line;
  string translated;
  while (std::getline(before, line)) {
    if (line.starts_with("message ") || line.starts_with("task ")) continue;
    const string wanted = line.starts_with("int main(void)") ? string() : line;
    if (wanted.empty()) continue;
    bool found = false;
    while (!found && std::getline(after, translated)) found = translated == wanted;
    ASSERT_TRUE(found) << wanted;
  }
}

TEST_F(orrery_cc, lets_warnings_and_errors_stand_where_the_user_made_them) {
  write("small.c", string(small) + "static int unused_function(void) { return undeclared; }\n");
  EXPECT_NE(run("orrery-cc -Wall -c small.c"), 0);
  EXPECT_NE(said().find("small.c:22:"), string::npos) << said();
  EXPECT_NE(said().find("undeclared"), string::npos) << said();
}

TEST_F(orrery_cc, takes_every_standard_of_c_and_strict_warnings) {
  write("small.c", small);
  for (const string standard : {"c11", "gnu11", "c17", "c2x", "gnu2x"})
    EXPECT_EQ(run("orrery-cc -std=" + standard + " -Wall -Wextra -Wpedantic -Werror -c small.c"), 0) << said();
}

TEST_F(orrery_cc, takes_older_c_but_the_first_which_it_refuses_in_the_source) {
  write("small.c", small);
  write("plain.c", "int two(void) { return 2; }\n");
  for (const string standard : {"-std=c99", "-std=gnu99", "-std=gnu89", "-std=c89 -std=c11"})
    EXPECT_EQ(run("orrery-cc -Wall -Wextra -Werror " + standard + " -c small.c"), 0) << said();
  EXPECT_EQ(run("orrery-cc -Wall -Wpedantic -Werror -std=c99 -c small.c"), 0) << said();
  for (const string standard : {"-std=c89", "-std=c90", "-ansi", "-std=iso9899:199409"}) {
    EXPECT_EQ(run("orrery-cc " + standard + " -c small.c"), 1);
    EXPECT_NE(said().find("small.c:3:9: error: messages and tasks need C of 1999 or later, and " + standard + " asks"),
              string::npos)
        << said();
    EXPECT_EQ(run("orrery-cc " + standard + " -c plain.c"), 0) << said();
  }
}

TEST_F(orrery_cc, reads_its_standard_input) {
  write("small.c", small);
  write("plain.txt", "#include <stdio.h>\nint main(void) { puts(\"plain\"); return 0; }\n");
  ASSERT_EQ(run("orrery-cc -O1 -x c - -o one < small.c && ./one --orrery-pes=2"), 0) << said();
  EXPECT_EQ(said(), "42\n");
  ASSERT_EQ(run("cat small.c | orrery-cc -c -xc - && orrery-cc ./-.o -o two && ./two --orrery-pes=1"), 0) << said();
  EXPECT_EQ(said(), "42\n");
  ASSERT_EQ(run("orrery-cc -o three -x c - < plain.txt && ./three && orrery-cc -c -x c plain.txt -o plain.o && "
                "orrery-cc plain.o -o four && ./four && orrery-cc -x c plain.txt -lm -o five && ./five"),
            0)
      << said();
  EXPECT_EQ(said(), "plain\nplain\nplain\n");
  ASSERT_EQ(
      run("orrery-cc -E -x c - < small.c > out && grep -c 'tag NUMBER' out && orrery-cc --emit-c -x c - < small.c"), 0)
      << said();
  EXPECT_NE(run("printf '#include <orrery/task.h>\\nmessage M { int *p; };\\n' | orrery-cc -c -x c -"), 0);
  EXPECT_NE(said().find("<stdin>:2:18: error: 'p' is a pointer"), string::npos) << said();
  EXPECT_NE(said().find("    2 | message M { int *p; };\n      |                  ^\n"), string::npos) << said();
}

TEST_F(orrery_cc, takes_words_out_of_response_files) {
  write("small.c", small);
  write("options", "-Wall -Werror\n -DNAME='a b'\t\"-DOTHER=c d\" -DESCAPED=e\\ f @more\n");
  write("more", "small.c\n-o program");
  ASSERT_EQ(run("orrery-cc @options && ./program --orrery-pes=2"), 0) << said();
  EXPECT_EQ(said(), "42\n");
  write("plain.c",
        "#define TEXT(x) #x\n#define SAID(x) TEXT(x)\n#include <stdio.h>\n"
        "int main(void) { puts(SAID(NAME)); puts(SAID(OTHER)); puts(SAID(ESCAPED)); }\n");
  write("more", "plain.c -o program");
  ASSERT_EQ(run("orrery-cc @options && ./program"), 0) << said();
  EXPECT_EQ(said(), "a b\nc d\ne f\n");
  EXPECT_NE(run("orrery-cc @absent"), 0);
  EXPECT_NE(said().find("absent"), string::npos) << said();
  write("more", "@options");
  EXPECT_EQ(run("orrery-cc @options"), 1);
  EXPECT_NE(said().find("files that name each other"), string::npos) << said();
}

TEST_F(orrery_cc, says_what_is_wrong_with_the_folder_for_its_files) {
  write("small.c", small);
  EXPECT_EQ(run("TMPDIR=/nowhere/at/all orrery-cc -c small.c"), 1);
  EXPECT_NE(
      said().find("error: no folder for the files in between can be made in '/nowhere/at/all', which TMPDIR names: No "
                  "such file or directory; set TMPDIR"),
      string::npos)
      << said();
  EXPECT_EQ(run("TMPDIR=$PWD/small.c orrery-cc -c small.c"), 1);
  EXPECT_NE(said().find("Not a directory"), string::npos) << said();
  EXPECT_EQ(run("TMPDIR= orrery-cc -c small.c"), 0) << said();
}

TEST_F(orrery_cc, gives_each_task_the_pointers_of_its_own_os_process) {
  write("pointers.c", R"(#include <orrery/task.h>
#include <string.h>
static int values[3] = {1, 2, 3};
static int twice(int x) { return 2 * x; }
typedef int (*unary)(int);
task T { const char *name = "a name"; int *value = &values[1]; unary f = twice; int last; const char *none = 0; };
static void T_start(T this) {
  *this->value += 5;  // of this OS process
  if (strcmp(this->name, "a name") || this->f(values[1]) != 14 || this->none || this->last) orrery_sleep(ORRERY_FOREVER);
}
int main(void) {
  orrery_task t;
  if (T_create_at(orrery_node(1), &t) || orrery_join(t, 60000000000LL)) return 1;
  return values[1] == 2 ? 0 : 2;
}
)");
  ASSERT_EQ(run("orrery-cc -Wall -Wextra -Werror pointers.c -o pointers && "
                "./pointers --orrery-nodes=2 --orrery-pes=1"),
            0)
      << said();
}

TEST_F(orrery_cc, is_the_compiler_of_a_cmake_project) {
  write("small.c", small);
  write("number.h", "#define TWO 2\n");
  write("plain.c", "#include \"number.h\"\nint two(void) { return TWO; }\n");
  write("CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.20)\nproject(small C)\nadd_library(plain STATIC plain.c)\n"
        "add_executable(small small.c)\ntarget_link_libraries(small plain)\n");
  ASSERT_EQ(
      run("cmake -G Ninja -B built -DCMAKE_C_COMPILER=orrery-cc . && ninja -C built && ./built/small --orrery-pes=2"),
      0)
      << said();
  EXPECT_TRUE(said().ends_with("42\n")) << said();
  ASSERT_EQ(run("ninja -C built; sleep 0.01; touch number.h; ninja -n -v -C built"), 0);
  EXPECT_NE(said().find("no work to do"), string::npos) << said();
  EXPECT_NE(said().find("plain.c"), string::npos) << said();  // its dependencies are known
}

TEST_F(orrery_cc, lets_debuggers_and_sanitizers_point_into_the_source) {
  write("small.c", small);
  const bool has_gdb = run("gdb --version") == 0;
  ASSERT_EQ(run("orrery-cc -g -fsanitize=undefined -c small.c -o small.o && orrery-cc -g small.c -o small"), 0)
      << said();
  ASSERT_EQ(run("strings -a small.o | grep -x 'small.c'"), 0) << "the checks name another file";
  if (!has_gdb) GTEST_SKIP() << "gdb is not installed";
  ASSERT_EQ(
      run("gdb -batch -ex 'info line Doubler_handle_NUMBER' -ex 'break small.c:12' -ex run -ex bt -ex 'print message->n' small"),
      0);
  for (const string text :
       {"Line 12 of \"small.c\"", "Doubler_handle_NUMBER (this=", "Doubler_start (this=", "$1 = 21"})
    EXPECT_NE(said().find(text), string::npos) << said();
}

TEST_F(orrery_cc, takes_all_kinds_of_members) {
  write("kinds.c", R"(#include <orrery/task.h>
#include <stdio.h>
#include <stdlib.h>
enum color { RED, GREEN };
struct pair { int a, b; };
message Point { double x, y; char *label; };
message Everything {
  unsigned long long big : 40, small : 3;
  struct pair pair; enum color color; char fixed[16];
  const char *text, *other;
  unsigned char count;
  Point corners[count];
  struct { short s; } inner;
  Point centre;
  char *names[count];
  long total; struct pair pairs[total];
  _Bool flags[2][3];
  Everything next;
};
int main(void) {
  struct Point c[2] = {{1, 2, "a"}, {3, 4, NULL}};
  char *names[2] = {"x", NULL};
  struct pair pairs[1] = {{5, 6}};
  struct Everything tail = {.text = "tail"};
  struct Everything e = {.big = 1ULL << 39, .small = 5, .pair = {1, 2}, .color = GREEN, .fixed = "fixed", .text = "text",
                         .count = 2, .corners = c, .inner = {9}, .centre = &c[0], .names = names, .total = 1,
                         .pairs = pairs, .flags = {{1, 0, 1}}, .next = &tail};
  Everything_send(orrery_self(), 1, &e);
  orrery_message m;
  if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return 1;
  Everything r = Everything_clone(Everything_open(&m));
  orrery_release(&m);
  printf("%llu %d %d %s %s %s %s %g %s %g %d %s %d %d %d %s\n", (unsigned long long)r->big, (int)r->small, r->color, r->fixed,
         r->text, r->other ? "?" : "null", r->corners[0].label, r->corners[1].y, r->names[0], r->centre->y, r->inner.s,
         r->names[1] ? "?" : "null", r->pairs[0].b, r->flags[0][0], r->flags[0][1], r->next->text);
  const int more = r->next->next != NULL;
  free(r);
  return more;
}
)");
  ASSERT_EQ(run("orrery-cc -std=gnu11 kinds.c -o kinds && ./kinds --orrery-pes=1"), 0) << said();
  EXPECT_EQ(said(), "549755813888 5 1 fixed text null a 4 x 2 9 null 6 1 0 tail\n");
}

TEST_F(orrery_cc, takes_members_with_attributes) {
  write("attributes.c", R"(#include <orrery/task.h>
#include <stdio.h>
message Point { int x; };
message Marked {
  int number __attribute__((aligned(16))), second;
  [[maybe_unused]] short first;
  long count __attribute__((unused));
  int values[count] __attribute__((unused));
  Point one __attribute__((unused));
  struct { int a; } inner __attribute__((unused));
  struct { char c; int i; } __attribute__((packed));
  double __attribute__((vector_size(16))) pair;
};
int main(void) {
  struct Marked m = {.number = 1, .second = 2, .count = 1, .values = (int[]){3}, .one = &(struct Point){4}, .inner = {5}, .i = 6, .pair = {7, 8}};
  Marked_send(orrery_self(), 1, &m);
  orrery_message got;
  if (orrery_receive(&got, ORRERY_FOREVER) != ORRERY_OK) return 1;
  Marked r = Marked_open(&got);
  printf("%d %d %d %d %d %d %g %d\n", r->number, r->second, r->values[0], r->one->x, r->inner.a, r->i, r->pair[1], (int)_Alignof(struct Marked));
  orrery_release(&got);
  return 0;
}
)");
  ASSERT_EQ(run("orrery-cc -std=gnu2x attributes.c -o attributes && ./attributes --orrery-pes=1"), 0) << said();
  EXPECT_EQ(said(), "1 2 3 4 5 6 8 16\n");
}

// As variables have them: a length from the initial value, pointers to functions and arrays; a
// large state without values is not in the program's file. A receive of one's own needs no handlers.
TEST_F(orrery_cc, takes_all_kinds_of_state) {
  write("state.c", R"(#include <orrery/task.h>
#include <stdio.h>
static int twice(int n) { return 2 * n; }
message M { int value; };
task Many {
  tag GO(M);
  char text[] = "a text", *const names[] = {"x", "y"};
  int pairs[][2] = {{1, 2}, {3, 4}, {5, 6}};
  int (*call)(int) = twice, (*rows)[2], (*calls[2])(int) = {[1] = twice};
};
static orrery_status (Many_receive)(Many this) {
  orrery_message m;
  const orrery_status status = orrery_receive(&m, ORRERY_FOREVER);
  if (status != ORRERY_OK) return status;
  printf("%s %zu %s %d %d %d %d\n", this->text, sizeof this->text, this->names[1], this->pairs[2][1],
         this->call(M_open(&m)->value), this->rows == NULL, this->calls[1](7));
  orrery_release(&m);
  return status;
}
static void Many_start(Many this) {
  if (Many_receive(this) != ORRERY_OK) puts("not received");
}
task Large { tag GO(); char room[64 << 20]; };
static void Large_start(Large this) { printf("%d\n", this->room[1 << 20]); }
static void Large_handle_GO(Large this) { (void)this; }
int main(void) {
  orrery_task t = Many_create();
  int bad = Many_send_GO(t, &(struct M){4}) || orrery_join(t, ORRERY_FOREVER);
  return bad || orrery_join(Large_create(), ORRERY_FOREVER);
}
)");
  ASSERT_EQ(run("orrery-cc -std=gnu11 -Wall -Wextra state.c -c -o state.o && orrery-cc state.o -o state && "
                "./state --orrery-pes=1 && test $(stat -c %s state.o) -lt 1000000"),
            0)
      << said();
  EXPECT_EQ(said(), "a text 7 y 6 8 1 14\n0\n");
}

// A frame that is larger than the guard below a stack, and all stacks beside it.
TEST_F(orrery_cc, ends_a_task_that_has_no_room_for_a_large_array) {
  write("wide.c", R"(#include <orrery/task.h>
int wide(void);
task Wide { tag GO(); };
static void Wide_start(Wide this) { (void)this; wide(); }
static void Wide_handle_GO(Wide this) { (void)this; }
int main(void) { return orrery_join(Wide_create(), ORRERY_FOREVER); }
)");
  // In a source that is left to the compiler, however that is called.
  write("plain.c", "int wide(void) { volatile char frame[1 << 20]; frame[1] = 1; return frame[1]; }\n");
  for (const string call : {"wide.c plain.c -o wide", "-c wide.c plain.c && orrery-cc wide.o plain.o -o wide"}) {
    ASSERT_EQ(run("orrery-cc " + call), 0) << said();
    EXPECT_NE(run("ulimit -c 0; ./wide --orrery-pes=1"), 0);
    EXPECT_NE(said().find("stack overflow in "), string::npos) << said();
  }
}

// A program of task.h alone is not translated.
TEST_F(orrery_cc, builds_plain_c_whose_cleanups_run_when_a_task_exits) {
  write("plain.c", R"(#include <orrery/task.h>
#include <stdio.h>
static void says(int *number) { printf("cleanup %d\n", *number); }
static void run(void *argument, size_t size) {
  (void)argument, (void)size;
  int number __attribute__((cleanup(says))) = 7;
  orrery_exit();
}
static int main_task(int argc, char **argv) {
  (void)argc, (void)argv;
  orrery_task t;
  return orrery_create(run, NULL, 0, orrery_here(), &t) || orrery_join(t, ORRERY_FOREVER);
}
int main(int argc, char **argv) { return orrery_run(argc, argv, main_task); }
)");
  ASSERT_EQ(run("orrery-cc plain.c -o plain && ./plain"), 0) << said();
  EXPECT_EQ(said(), "cleanup 7\n");
  ASSERT_EQ(run("orrery-cc -c plain.c && orrery-cc plain.o -o plain && ./plain"), 0) << said();
  EXPECT_EQ(said(), "cleanup 7\n");
}

// A message that no handler of the task takes is a failed one.
TEST_F(orrery_cc, counts_messages_that_a_task_does_not_take) {
  write("drop.c", R"(#include <orrery/task.h>
message M { int value; };
message Other { char *text; };
task T { tag GO(M); };
static void T_start(T this) { T_serve(this); }
static void T_handle_GO(T this, M message) { (void)this; (void)message; orrery_exit(); }
int main(int argc, char **argv) {
  (void)argv;
  orrery_task t = T_create();
  if (argc > 1) Other_send(t, T_GO, &(struct Other){"x"}), Other_send(t, 77, &(struct Other){"x"});
  return T_send_GO(t, &(struct M){1}) || orrery_join(t, ORRERY_FOREVER);
}
)");
  ASSERT_EQ(run("orrery-cc drop.c -o drop && ./drop --orrery-pes=1"), 0) << said();
  EXPECT_EQ(run("./drop 1 --orrery-pes=1"), 1) << said();
  for (const string text : {"is no M", "a message with tag 77", "2 one-way messages failed"})
    EXPECT_NE(said().find(text), string::npos) << text << "\n" << said();
}

TEST_F(orrery_cc, leaves_nothing_behind_when_it_is_interrupted) {
  string source =
      "#include <orrery/task.h>\ntask T { tag GO(); int z[1 << 22] = {1}; };\n"
      "static void T_start(T this) { (void)this; }\nstatic void T_handle_GO(T this) { (void)this; }\n";
  write("large.c", source);
  // Its compiler may be anywhere; each time it is stopped a little later.
  EXPECT_EQ(run("mkdir scratch && export TMPDIR=$PWD/scratch && for i in 1 2 3 4 5 6 7 8; do "
                "orrery-cc -c large.c & p=$!; sleep 0.0$((i * 2)); kill -TERM $p; "
                "wait $p; r=$?; [ $r = 143 ] || [ $r = 0 ] || exit 3; done; sleep 0.2; [ -z \"$(ls scratch)\" ]"),
            0)
      << said();
}

// `main` may call itself, and be called by others; its address may be taken.
TEST_F(orrery_cc, takes_every_main) {
  const string rest = "message M { int value; };\nstatic int of(const struct M *m) { return m->value; }\n";
  const std::vector<std::pair<string, string>> mains{
      {"int main(void) { puts(\"end\"); }", "end\n"},
      {"int main(argc, argv) int argc; char **argv; { printf(\"%d %s\\n\", argc, argv[1]); return 0; }", "2 word\n"},
      {"extern char **environ; int main(int argc, char *argv[], char *envp[]) { (void)argv; printf(\"%d %d\\n\", argc, envp == environ); return 0; }",
       "2 1\n"},
      {"int main(int argc) { printf(\"%d\\n\", argc); return 0; }", "2\n"},
      {"static int depth; int main(int argc, char **argv); static int again(int n, char **v) { return main(n, v); } "
       "static int (*pointer)(int, char **) = main; "
       "int main(int argc, char **argv) { if (depth++ < 3) return depth == 1 ? main(argc, argv) : depth == 2 ? again(argc, argv) : pointer(argc, argv); "
       "printf(\"%d %s\\n\", depth, argv[1]); return of(&(struct M){0}); }",
       "4 word\n"},
      {"int main(void) { struct { int main; } s = {4}; int main = s.main + of(&(struct M){.value = 1}); printf(\"%d\\n\", main); return 0; }",
       "5\n"},
      {"int (main)(void) { puts(__func__); return 0; }", "main\n"},
  };
  for (const auto& [text, prints] : mains) {
    write("main.c", "#include <orrery/task.h>\n#include <stdio.h>\n" + rest + text + "\n");
    ASSERT_EQ(run("orrery-cc -std=gnu17 main.c -o main && ./main word --orrery-pes=1"), 0) << text << said();
    EXPECT_NE(said().find(prints), string::npos) << text << said();
  }
  write("main.c", "#include <orrery/task.h>\n#include <stdio.h>\n" + rest + "main() { puts(\"old\"); return 0; }\n");
  ASSERT_EQ(run("orrery-cc -std=gnu89 -w main.c -o main && ./main --orrery-pes=1"), 0) << said();
  EXPECT_EQ(said(), "old\n");
  write("main.c",
        "#include <orrery/task.h>\nmessage M { int main; };\nint main(void) { struct M m = {0}; return m.main; }\n");
  EXPECT_EQ(run("orrery-cc -c main.c"), 0) << said();
  write(
      "main.c",
      "#include <orrery/task.h>\nmessage M { int x; };\nint main(int argc, char **argv) { (void)argv; return argc - 1; }\n");
  EXPECT_EQ(run("orrery-cc -Wmissing-prototypes -Wredundant-decls -Wstrict-prototypes -Werror -c main.c"), 0) << said();
}

// Functions whose parameters are declared behind their parenthesis, in front of a definition, and as those of a task.
TEST_F(orrery_cc, takes_functions_of_old_c) {
  write("old.c", R"(#include <orrery/task.h>
#include <stdio.h>
int sum(a, b) int a; int b; { return a + b; }
message Number { int n; };
struct pair { int task, message; } twice(p, n) struct pair p; struct pair *n; { p.task += n->message; return p; }
task Adder { tag ADD(Number); int all; };
static void Adder_handle_ADD(this, m) Adder this; Number m; { this->all = sum(this->all, m->n); }
static void Adder_start(this) Adder this; { Adder_receive(this); Adder_receive(this); printf("%d\n", this->all); }
int main(argc, argv) int argc; char **argv; {
  orrery_task a = Adder_create();
  struct pair p = {1, argc};
  Adder_send_ADD(a, &(struct Number){twice(p, &p).task});
  Adder_send_ADD(a, &(struct Number){argv[argc] == 0});
  return orrery_join(a, ORRERY_FOREVER);
}
)");
  ASSERT_EQ(run("orrery-cc -std=gnu11 -Wno-deprecated-non-prototype old.c -o old && ./old --orrery-pes=1"), 0)
      << said();
  EXPECT_EQ(said(), "3\n");
}

TEST_F(orrery_cc, gives_tasks_a_strategy_and_leaves_the_word_alone) {
  write("polls.c", R"(#include <orrery/task.h>
typedef int strategy;
message M { orrery_task from; };
task T { tag GO(M); strategy message_wait; strategy word; };
static void T_handle_GO(T this, M message) { this->word = 1; M_send(message->from, 1, message); }
static void T_start(T this) { T_serve(this); }
int main(void) {
  orrery_task t;
  orrery_message m;
  // On this PE: it looks in a loop, and lets others run.
  if (T_create_at(orrery_here(), &t) || orrery_sleep(1000000)) return 1;
  if (T_send_GO(t, &(struct M){orrery_self()}) || orrery_receive(&m, ORRERY_FOREVER)) return 2;
  return orrery_stop(t) || orrery_join(t, ORRERY_FOREVER);
}
)");
  ASSERT_EQ(run("orrery-cc -std=c11 -Wall -Wextra -Werror polls.c -o polls && ./polls --orrery-pes=1 && "
                "orrery-cc --emit-c polls.c | grep -c ORRERY_YIELD"),
            0)
      << said();
}

TEST_F(orrery_cc, gives_tasks_a_stack_and_leaves_the_word_alone) {
  write("deep.c", R"(#include <orrery/task.h>
#include <string.h>
typedef struct { int items[4]; } stack;
enum { MUCH = 300 << 10 };
task Deep { tag GO(); stack = MUCH + (40 << 10); stack word; char last; };
static void Deep_handle_GO(Deep this) {
  volatile char frame[MUCH];
  memset((char *)frame, 7, sizeof frame);
  this->last = frame[sizeof frame - 1];
  this->word.items[0] = 1;
}
static void Deep_start(Deep this) { Deep_receive(this); }
int main(void) {
  orrery_task t = Deep_create();
  return Deep_send_GO(t) || orrery_join(t, ORRERY_FOREVER);
}
)");
  ASSERT_EQ(
      run("orrery-cc -std=c11 -Wall -Wextra -Wpedantic -Werror deep.c -o deep && ./deep --orrery-nodes=2 --orrery-pes=1"),
      0)
      << said();
}

TEST_F(orrery_cc, passes_on_buffers_and_leaves_a_type_of_that_name_alone) {
  write("buffers.c", R"(#include <orrery/task.h>
#include <string.h>
message Some { int count; buffer first, second; buffer more[count]; };
task T { tag SOME(Some); buffer kept; };
static void T_handle_SOME(T this, Some message) {
  if (message->count != 1 || memcmp(message->more[0].data, "abc", 3) != 0 || message->second.data) orrery_exit();
  orrery_buffer_take(&message->first, &this->kept);
}
static void T_start(T this) {
  T_receive(this);
  orrery_message m;
  if (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK)
    Some_send(m.sender, 1, &(struct Some){.first = this->kept});
  orrery_release(&m);
}
int main(void) {
  orrery_task t = T_create();
  struct Some some = {.count = 1, .more = &(orrery_buffer){0}};
  if (orrery_buffer_make(3000, &some.first) || orrery_buffer_make(3, some.more)) return 2;
  memcpy(some.more[0].data, "abc", 3), memset(some.first.data, 'x', 3000);
  if (T_send_SOME(t, &some) || T_send_SOME(t, &some) != ORRERY_USAGE) return 3;
  orrery_message m;
  if (orrery_send_bytes(t, 9, "", 0, ORRERY_WAIT) || orrery_receive(&m, ORRERY_FOREVER)) return 4;
  Some back = Some_open(&m);
  int wrong = back->first.size == 3000 && ((char *)back->first.data)[2999] == 'x' ? 0 : 5;
  orrery_release(&m);
  return wrong;
}
)");
  write("own.c", R"(#include <orrery/task.h>
typedef struct { int used; char bytes[8]; } buffer;
message M { buffer b; };
task T { tag GO(M); buffer kept; };
static void T_handle_GO(T this, M message) { this->kept.used += message->b.used; }
static void T_start(T this) { T_receive(this); }
int main(void) {
  orrery_task t = T_create();
  T_send_GO(t, &(struct M){{1, "x"}});
  return orrery_join(t, ORRERY_FOREVER);
}
)");
  ASSERT_EQ(run("orrery-cc -std=c11 -Wall -Wextra -Werror buffers.c -o buffers && ./buffers --orrery-pes=2 && "
                "./buffers --orrery-nodes=2 --orrery-pes=1 && orrery-cc own.c -o own && ./own"),
            0)
      << said();
}

TEST_F(orrery_cc, builds_programs_that_a_task_ends_with_exit) {
  write("ends.c", R"(#include <orrery/task.h>
#include <stdlib.h>
task Ending { int code = 3; };
static void Ending_start(Ending this) { exit(this->code); }
int main(void) {
  Ending_create();
  orrery_message m;
  return orrery_receive(&m, ORRERY_FOREVER);
}
)");
  ASSERT_EQ(run("orrery-cc ends.c -o ends"), 0) << said();
  // What other tasks have is nobody's when the OS process ends.
  EXPECT_EQ(run("ASAN_OPTIONS=detect_leaks=0 ./ends --orrery-pes=2"), 3) << said();
}

TEST_F(orrery_cc, makes_a_header_for_cpp_or_says_what_cpp_cannot_have) {
  write("good.h",
        "#include <orrery/task.h>\n#include <time.h>\ntypedef struct { int a; } pair;\n"
        "message M { pair p; time_t when; char *text; };\ntask T { tag GO(M); };\n");
  ASSERT_EQ(
      run("orrery-cc --emit-cpp-header good.h -o good.hpp && orrery-cc --emit-cpp-header --cpp-namespace=a::b good.h"),
      0)
      << said();
  EXPECT_NE(said().find("namespace a::b {"), string::npos) << said();
  const string header = file("good.hpp");
  for (const string text : {"#include <time.h>", "namespace good {", "typedef struct { int a; } pair;", "tag<M> GO"})
    EXPECT_NE(header.find(text), string::npos) << text << "\n" << header;
  EXPECT_EQ(header.find("typedef struct orrery_task"), string::npos);

  write("bad.h",
        "#include <orrery/task.h>\nmessage M { int class; int n; struct { int a; } all[n]; };\ntask T { tag go; };\n");
  EXPECT_EQ(run("orrery-cc --emit-cpp-header bad.h"), 1);
  for (const string text : {"bad.h:2:17: error: 'class' is a word of C++: give it another name\n",
                            "bad.h:2:49: error: the type of the elements of 'all' has no name, which C++ needs",
                            "bad.h:3:14: error: tag 'go' has no type, which C++ needs: write tag go(Message);\n"})
    EXPECT_NE(said().find(text), string::npos) << said();
  write("bad.h", "#include <orrery/task.h>\nmessage M { int M; _Atomic int n; };\ntask T { tag T(M); };\n");
  EXPECT_EQ(run("orrery-cc --emit-cpp-header bad.h"), 1);
  for (const string text : {"'M' has the name of its message", "'n' is _Atomic", "tag 'T' has the name of its task"})
    EXPECT_NE(said().find(text), string::npos) << said();
  write("bad.h", "#include <orrery/task.h>\n");
  EXPECT_EQ(run("orrery-cc --emit-cpp-header bad.h"), 1);
  EXPECT_NE(said().find("has no task and no message"), string::npos) << said();
  for (const string name : {"", "3x", "a::", "::a", "a::3", "a b", "a-b", "class", "a::int"}) {
    EXPECT_EQ(run("orrery-cc --emit-cpp-header '--cpp-namespace=" + name + "' good.h"), 1);
    EXPECT_NE(said().find("error: '" + name + "' cannot name a namespace: "), string::npos) << said();
  }
  ASSERT_EQ(run("cp good.h new.h && orrery-cc --emit-cpp-header new.h"), 0);
  EXPECT_NE(said().find("namespace new_ {"), string::npos) << said();
  for (const string closed : {">/dev/full", ">&-"})
    EXPECT_EQ(run("(orrery-cc --emit-cpp-header good.h " + closed + ")"), 1) << closed << said();
  EXPECT_EQ(run("orrery-cc --emit-cpp-header"), 1);
  EXPECT_NE(said().find("takes one file"), string::npos) << said();
}

TEST_F(orrery_cc, has_the_lexer_that_re2c_makes) {
  if (run("re2c --version") != 0 || said() != "re2c 3.0\n") GTEST_SKIP() << "it was made by re2c 3.0";
  ASSERT_EQ(run("re2c -i --no-generation-date " TEST_LEXER "/lexer.re -o lexer.inc"), 0) << said();
  EXPECT_TRUE(file("lexer.inc") == read(TEST_LEXER "/lexer.inc"))
      << "make it anew: re2c -i --no-generation-date tools/orrery_cc/lexer.re -o tools/orrery_cc/lexer.inc";
}

TEST_F(orrery_cc, ends_whatever_it_is_given) {
  int number = 0;
  for (const string text : {"message",
                            "message M",
                            "message M {",
                            "message M { int",
                            "message M { int a[",
                            "task T { tag",
                            "task T { tag A",
                            "task T { tag A(",
                            "task T { tag A(B",
                            "task T { tag A() =",
                            "task T { int a = {",
                            "message M { , };",
                            "message M { * };",
                            "message M { int *; };",
                            "message M { { };",
                            "} } ) ] ;",
                            "\"open",
                            "'",
                            "/* open",
                            "# 5",
                            "# 99999999999999999999 \"x",
                            "task T { (",
                            "int f( {",
                            "\\"}) {
    write("odd_" + std::to_string(number++) + ".c", "#include <orrery/task.h>\n" + text);
  }
  EXPECT_EQ(run("timeout 60 orrery-cc -fsyntax-only odd_*.c"), 1) << said();
  EXPECT_NE(said().find("odd_0.c:"), string::npos) << said();
}

}  // namespace
