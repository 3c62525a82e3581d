// SPDX-License-Identifier: Apache-2.0
// Programs that `orrery-cc` makes, in worlds of several nodes and programs.
#include "orrery_cc_support.hpp"

#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using namespace orrery_cc_tests;  // NOLINT: the fixture of all files

using orrery_cc_worlds = orrery_cc;

// Its node runs no main.
TEST_F(orrery_cc_worlds, builds_programs_with_roles) {
  write("roles.c", R"(#include <orrery/task.h>
#include <stdio.h>
message Hello { char *from; };
task Host { tag HELLO(Hello); };
static void Host_start(Host this) {
  orrery_set_name(this->taskID, "host");
  Host_receive(this);
}
static void Host_handle_HELLO(Host this, Hello message) { (void)this; printf("hello, %s\n", message->from); }
static int guest(int argc, char **argv) {
  orrery_task host;
  if (orrery_find("host", &host, ORRERY_FOREVER) != ORRERY_OK) return 1;
  struct Hello h = {argc > 1 ? argv[1] : "nobody"};
  Host_send_HELLO(host, &h);
  return 7;
}
ORRERY_ROLE(guest);
int main(void) {
  return orrery_join(Host_create(), 20000000000LL) != ORRERY_OK;
}
)");
  ASSERT_EQ(run("orrery-cc -Wall -Wextra -Werror -pedantic roles.c -o roles"), 0) << said();
  EXPECT_EQ(run("./roles you --orrery-nodes=2 --orrery-pes=1 --orrery-role=guest"), 0) << said();
  EXPECT_EQ(said(), "hello, you\n");
  EXPECT_NE(run("./roles --orrery-nodes=2 --orrery-role=ghost"), 0);
  EXPECT_NE(said().find("the roles of this program are guest"), string::npos) << said();
  write("more.c", R"(#include <orrery/task.h>
static int guest(int argc, char **argv) { (void)argv; return argc; }
ORRERY_ROLE(guest);
)");
  ASSERT_EQ(run("orrery-cc roles.c more.c -o roles"), 0) << said();
  EXPECT_EQ(run("./roles"), 1);
  EXPECT_NE(said().find("orrery_add_role: two roles have the name \"guest\""), string::npos) << said();
}

// Programs that mean something else by a message are told apart, whatever has changed.
TEST_F(orrery_cc_worlds, gives_a_message_a_number_of_all_that_it_is_made_of) {
  write("told.h", R"(#include <orrery/task.h>
#include <stdbool.h>
#include <time.h>
enum kind { FIRST, MORE };
struct pos { POS };
typedef struct { struct pos from, to; NAMED } way;
message Inner { INNER };
message M { way along; Inner in; enum kind kind; bool yes; time_t when; int n; double v[n]; };
)");
  write("told.c", "#include \"told.h\"\nint main(void) { return (int)(M_type.id & 0); }\n");
  const auto number = [&](const string& what, const string& options) {
    const string command =
        "orrery-cc " + what + " -DPOS='float x, y;' -DNAMED= -DINNER='int a;' -DMORE=LAST " + options;
    EXPECT_EQ(run(command + " > made && grep -o '\"M\", (0x[0-9a-f]*' made"), 0) << said();
    return said();
  };
  const string in_c = "--emit-c told.c";
  const string usual = number(in_c, "");
  EXPECT_EQ(number("--emit-cpp-header told.h", ""), usual);
  EXPECT_EQ(number(in_c, "-UMORE -DMORE='LAST, MOST'"), usual);
  EXPECT_EQ(number(in_c, "-UINNER -DINNER='int   a ;'"), usual);
  EXPECT_EQ(number(in_c, "-std=gnu2x"), usual);
  for (const string other : {"-UPOS -DPOS='int lat, lon;'", "-UNAMED -DNAMED='int m;'", "-UINNER -DINNER='float a;'"})
    EXPECT_NE(number(in_c, other), usual) << other;
  ASSERT_EQ(run("orrery-cc -Wall -Wextra -Werror -pedantic -DPOS='float x, y;' -DNAMED= -DINNER='int a;' told.c"), 0)
      << said();
}

// As include folders of packages are given by some build tools as those of the system.
TEST_F(orrery_cc_worlds, gives_a_message_one_number_however_its_header_is_found) {
  ASSERT_EQ(run("mkdir -p inc/types inc/posts"), 0) << said();
  write("inc/types/pos.h", "#pragma once\nstruct pos { POS };\n");
  write("inc/posts/post.h",
        "#include <orrery/task.h>\n#include <time.h>\n#include <types/pos.h>\n"
        "message M { struct pos at; time_t when; };\n");
  write("post.c", "#include <posts/post.h>\nint main(void) { return (int)(M_type.id & 0); }\n");
  const auto number = [&](const string& options) {
    EXPECT_EQ(run("orrery-cc " + options + " > made && grep -o '\"M\", (0x[0-9a-f]*' made"), 0) << said();
    return said();
  };
  const string usual = number("--emit-c post.c -DPOS='float x, y;' -I inc");
  EXPECT_EQ(number("--emit-c post.c -DPOS='float x, y;' -isystem inc"), usual);
  EXPECT_EQ(number("--emit-c post.c -DPOS='float x, y;' -isystem \"$PWD/inc\""), usual);
  EXPECT_EQ(number("--emit-cpp-header inc/posts/post.h -DPOS='float x, y;' -I inc"), usual);
  const string other = number("--emit-c post.c -DPOS='int lat, lon;' -isystem inc");
  EXPECT_NE(other, usual);
  EXPECT_EQ(number("--emit-c post.c -DPOS='int lat, lon;' -I inc"), other);
}

TEST_F(orrery_cc_worlds, makes_the_number_of_a_message_of_structures_with_attributes) {
  const auto number = [&](const string& type, const string& name) {
    write("form.c", "#include <orrery/task.h>\n" + type + "\nmessage M { " + name + " at; };\n");
    EXPECT_EQ(run("orrery-cc --emit-c form.c > made && grep -o '\"M\", (0x[0-9a-f]*' made"), 0) << said();
    return said();
  };
  const auto differ = [&](const string& before, const string& behind, const string& name) {
    EXPECT_NE(number(before + "{ float x, y; }" + behind, name), number(before + "{ int lat, lon; }" + behind, name))
        << before << behind;
  };
  differ("struct __attribute__((packed)) pos ", ";", "struct pos");
  differ("struct pos ", " __attribute__((packed));", "struct pos");
  differ("struct pos ", " origin;", "struct pos");
  differ("static struct pos ", " __attribute__((packed)) origin = {1, 2};", "struct pos");
  differ("typedef struct ", " pos __attribute__((aligned(8)));", "pos");
  differ("typedef struct __attribute__((packed)) pos ", " way;", "struct pos");
  // Variables are no part of it.
  EXPECT_EQ(number("struct pos { int x; } a;", "struct pos"), number("struct pos { int x; } b = {2};", "struct pos"));
}

// Functions of one program are not to be found in another one.
TEST_F(orrery_cc_worlds, creates_tasks_on_the_pes_of_the_own_program) {
  write("meet.c", R"(#include <orrery/task.h>
#include <stdio.h>
static orrery_task host;
static void work(void *argument, size_t size) {
  (void)size;
  orrery_send_bytes(*(orrery_task *)argument, 1, "", 0, ORRERY_WAIT);
}
static int run_host(void) {
  orrery_message m;
  orrery_set_name(orrery_self(), "host");
  fclose(fopen("ready", "w"));
  for (int i = 0; i < 4; i++) {
    if (orrery_receive(&m, 20000000000LL) != ORRERY_OK) return 2;
    orrery_release(&m);
  }
  return 0;
}
static int run_guest(void) {
  orrery_task t;
  if (orrery_find("host", &host, 20000000000LL) != ORRERY_OK) return 3;
  const orrery_status there = orrery_create(work, &host, sizeof host, orrery_pe(0), &t);
  printf("%s\n", there == ORRERY_NO_PLACE ? orrery_error() : orrery_status_text(there));
  printf("%u of %u\n", orrery_program_pes(), orrery_pes());
  for (unsigned i = 0; i < 4; i++)
    if (orrery_create(work, &host, sizeof host, orrery_program_pe(i), &t) != ORRERY_OK) return 4;
  return 0;
}
static int main_task(int argc, char **argv) {
  (void)argv;
  return argc > 1 ? run_host() : run_guest();
}
int main(int argc, char **argv) {
  return orrery_run(argc, argv, main_task);
}
)");
  ASSERT_EQ(run("orrery-cc -DHOST meet.c -o host && orrery-cc -O2 meet.c -o guest"), 0) << said();
  const string world = "--orrery-world=meet." + std::to_string(::getpid());
  EXPECT_EQ(run("sh -c './host serve " + world +
                " --orrery-pes=1 & for i in $(seq 2000); do [ -e ready ] && break; sleep 0.01; done; ./guest " + world +
                " --orrery-pes=2 && wait'"),
            0)
      << said();
  EXPECT_NE(said().find("that PE runs another program, or another build of this one"), string::npos) << said();
  EXPECT_NE(said().find("2 of 3\n"), string::npos) << said();
}

}  // namespace
