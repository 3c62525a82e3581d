// SPDX-License-Identifier: Apache-2.0
// Lines, strings and comments with what looks like definitions.
#include <stdio.h>
#include <string.h>
#define JOIN(a, b) a##b
#define TEXT(...) #__VA_ARGS__
#define EACH(X) X(one) X(two) X(three)
#define AS_ENUM(n) JOIN(VALUE_, n),
#define AS_CASE(n)      \
  case JOIN(VALUE_, n): \
    return TEXT(n);
enum { EACH(AS_ENUM) COUNT };
static const char* name(int n) {
  switch (n) { EACH(AS_CASE) }
  return "none";
}
/* message M { int n; }; task T { tag GO(M); }; */
// task T { int a; };
static const char* text =
    "message M { int n; };"
    " task T \"{ };"
    "\\"
    "\n"
    u8"é"
    "\x41\101";
static const char* lines = "ab";
#line 500 "elsewhere.c"
static int at = __LINE__;
#if 0
task Never { here; };
#elif defined(COUNT) || __STDC_VERSION__ < 201112L
#error not here
#endif
static char quotes[] = {'"', '\'', '{', '}', '\\', 'ab' & 0x7f};
int main(void) {
  printf("%s %s %s %d %s", name(VALUE_two), name(7), lines, at, text);
  printf(" %s %zu %s\n", __FILE__, strlen(text), TEXT(a, "b", '\''));
  return quotes[0] - '"' + COUNT - 3;
}
