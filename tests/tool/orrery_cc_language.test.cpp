// SPDX-License-Identifier: Apache-2.0
// What `orrery-cc` makes of C: strings of every kind, and tags; and what it takes for C.
#include "orrery_cc_support.hpp"

#include <string>

#include <gtest/gtest.h>

namespace {

using namespace orrery_cc_tests;  // NOLINT: the fixture of all files

using orrery_cc_language = orrery_cc;

TEST_F(orrery_cc_language, takes_raw_strings_for_strings) {
  write("raw.c", "const char *s = R\"(x)\";\n");
  if (run("$ORRERY_CC $ORRERY_CC_FLAGS -fsyntax-only raw.c") != 0) GTEST_SKIP() << "this C has none";
  write("raw.c", R"c(#include <orrery/task.h>
#include <string.h>
static const char *usage = R"(usage: {
# 5 "x" )";
static const char *help = R"help(Write
  a; message M { int x; };
)" )help";
message M { int n; };
int main(void) {
  return M_type.bytes != sizeof(int) || strcmp(usage, "usage: {\n# 5 \"x\" ") != 0 ||
         strcmp(help, "Write\n  a; message M { int x; };\n)\" ") != 0;
}
)c");
  ASSERT_EQ(run("orrery-cc raw.c -o raw && ./raw --orrery-pes=1"), 0) << said();
}

TEST_F(orrery_cc_language, tells_sources_from_what_else_stands_among_them) {
  write("one.c", R"(#include <orrery/task.h>
message M { int x; };
int other(void);
int main(void) { return other(); }
)");
  write("plain.c", "int plain;\n");
  write("link.ld", "");
  write("head.h", "");
  for (const string name : {"one", "plain"})
    EXPECT_EQ(run("orrery-cc -c " + name + ".c link.ld -o " + name + ".o && test -e " + name + ".o"), 0) << said();
  EXPECT_EQ(run("orrery-cc -c one.c head.h && test ! -e head.o"), 0) << said();
  EXPECT_EQ(run("orrery-cc -c one.c -x c++ - -o one.o < plain.c"), 1) << said();
  write("other.txt", "extern \"C\" int other() { return sizeof 'a' == 1 ? 0 : 3; }\n");
  ASSERT_EQ(run("orrery-cc one.c -x c++ - -o all < other.txt && ./all --orrery-pes=1"), 0) << said();
}

// As what a tag does not carry is dropped.
TEST_F(orrery_cc_language, gives_no_message_to_a_tag_that_carries_none) {
  write("none.c", R"(#include <orrery/task.h>
message M { int value; };
task T { tag STOP(); tag GO(M); tag ENDED(); };
static void T_handle_STOP(T this) { (void)this; orrery_exit(); }
static void T_handle_GO(T this, M message) { (void)this; orrery_log("value %d", message->value); }
static void T_handle_ENDED(T this) { (void)this; orrery_log("ended"); }
static void T_start(T this) { T_serve(this); }
int main(int argc, char **argv) {
  (void)argv;
  orrery_task t = T_create();
  if (argc > 1) M_send(t, T_STOP, &(struct M){1});
  T_send_GO(t, &(struct M){2});
  orrery_send_bytes(t, T_ENDED, "as orrery_watch has it", 22, ORRERY_WAIT);
  return T_send_STOP(t) || orrery_join(t, ORRERY_FOREVER);
}
)");
  ASSERT_EQ(run("orrery-cc none.c -o none && ./none --orrery-pes=1"), 0) << said();
  EXPECT_EQ(run("./none 1 --orrery-pes=1"), 1) << said();
  for (const string text : {"message with tag STOP has a type", "value 2", "ended"})
    EXPECT_NE(said().find(text), string::npos) << text << "\n" << said();
}

}  // namespace
