// SPDX-License-Identifier: Apache-2.0
// What recurses without end dies by SIGSEGV, after one line that names it. Each test starts this program again (--scenario=NAME and
// the runtime's options) and reads what it says.
#include <orrery/orrery.hpp>
#include <orrery/scheduler/stack.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace overflow_test {

using orrery::call;
using orrery::pe;
using orrery::remote;
using orrery::spawn;
using orrery::world_pes;

constexpr int endless = 1'000'000'000;

/// Takes some 600 bytes of stack at each level.
[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[512];
  frame[depth % 512] = static_cast<char>(depth);
  if (depth == 0) return 0;
  return recurse(depth - 1) + (frame[depth % 512] == static_cast<char>(depth) ? 1 : 0);
}

/// Takes more stack at once than a guard and all stacks beside it have.
[[gnu::noinline]] int wide(int at) {
  volatile char frame[1 << 20];
  frame[at] = 1;
  return frame[at];
}

class Deep {
 public:
  explicit Deep(int in_constructor = 0, int in_destructor = 0) : in_destructor_(in_destructor) {
    recurse(in_constructor);
  }
  ~Deep() { recurse(in_destructor_); }
  int dive(int depth) { return recurse(depth); }
  int widen(int at) { return wide(at); }
  int dive_at(remote<Deep> other, int depth) { return other->dive(depth); }
  int dive_while_handling(int depth) {
    try {
      throw 1;
    } catch (int) {
      orrery::yield();
      return recurse(depth);
    }
  }
  void crash() {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  }
  void signal_itself() { (void)std::raise(SIGSEGV); }
  ORRERY_PROCESS_MEMBERS(Deep, dive, widen, dive_at, dive_while_handling, crash, signal_itself)

 private:
  int in_destructor_;
};

std::uint32_t last_pe() { return world_pes() - 1; }

void in_method() { spawn<Deep>(pe(last_pe()))->dive(endless); }
void in_method_with_a_large_array() { spawn<Deep>(pe(last_pe()))->widen(1); }
void in_process_function_with_a_large_array() {
  spawn(pe(last_pe()), wide, 1);
  (void)orrery::receive<int>();
}
void in_method_called_by_a_method() {
  const auto first = spawn<Deep>(pe(last_pe()));
  first->dive_at(spawn<Deep>(pe(last_pe())), endless);
}
void in_catch_block() { spawn<Deep>(pe(last_pe()))->dive_while_handling(endless); }
void in_constructor() { spawn<Deep>(pe(last_pe()), endless); }
void in_destructor() { destroy(spawn<Deep>(pe(last_pe()), 0, endless)); }
void in_destructor_at_the_end() { spawn<Deep>(pe(last_pe()), 0, endless); }
void in_process_function() {
  spawn(pe(last_pe()), recurse, endless);
  (void)orrery::receive<int>();
}
void in_remote_function() { call<&recurse>(pe(last_pe()), endless); }
void in_main() { recurse(endless); }
/// 600 KiB: as deep as it goes on a stack of 1 MiB.
void deep_method() {
  if (spawn<Deep>(pe(last_pe()))->dive(1000) != 1000) std::abort();
}
void elsewhere() { spawn<Deep>(pe(last_pe()))->crash(); }
void sent() { spawn<Deep>(pe(last_pe()))->signal_itself(); }
void on_lost_node() {
  try {
    in_method();
  } catch (const orrery::node_lost&) {
    fmt::print(stderr, "the other node was lost\n");
    std::fflush(stderr);
  }
}
void nothing() {}

void say_mine() {
  constexpr std::string_view text = "the program's own handler\n";
  (void)!write(STDERR_FILENO, text.data(), text.size());
  _exit(7);
}
void plain_handler(int) { say_mine(); }
void info_handler(int, siginfo_t*, void*) { say_mine(); }
void install_plain() { std::signal(SIGSEGV, plain_handler); }
void install_info() {
  struct sigaction action{};
  action.sa_sigaction = info_handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

struct scenario {
  void (*run)();
  void (*before)() = nothing;
};
const std::map<std::string_view, scenario> scenarios{
    {"in_method", {in_method}},
    {"in_method_with_a_large_array", {in_method_with_a_large_array}},
    {"in_process_function_with_a_large_array", {in_process_function_with_a_large_array}},
    {"in_method_called_by_a_method", {in_method_called_by_a_method}},
    {"in_catch_block", {in_catch_block}},
    {"in_constructor", {in_constructor}},
    {"in_destructor", {in_destructor}},
    {"in_destructor_at_the_end", {in_destructor_at_the_end}},
    {"in_process_function", {in_process_function}},
    {"in_remote_function", {in_remote_function}},
    {"in_main", {in_main}},
    {"deep_method", {deep_method}},
    {"elsewhere", {elsewhere}},
    {"sent", {sent}},
    {"on_lost_node", {on_lost_node}},
    {"in_method_with_handler", {in_method, install_plain}},
    {"elsewhere_with_plain_handler", {elsewhere, install_plain}},
    {"elsewhere_with_info_handler", {elsewhere, install_info}},
    {"sent_with_plain_handler", {sent, install_plain}},
    {"handler_comes_back", {nothing, install_plain}},
};

int run_scenario(std::string_view name, int argc, char** argv) {
  const scenario& s = scenarios.at(name);
  s.before();
  const int result = orrery::run(argc, argv, [&](const orrery::args&) {
    s.run();
    return 0;
  });
  if (name == "handler_comes_back") (void)std::raise(SIGSEGV);
  return result;
}

// --- the tests -----------------------------------------------------------------------------------------------------

struct outcome {
  int status = -1;
  std::string text;

  [[nodiscard]] bool died_of_sigsegv() const { return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV; }
  [[nodiscard]] bool exited_with(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
  [[nodiscard]] std::ptrdiff_t lines() const { return std::ranges::count(text, '\n'); }
};

std::string program() {
  std::string path(4096, '\0');
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return path;
}

outcome run(std::string_view name, std::string_view options) {
  outcome o;
  const std::string line =
      fmt::format("ulimit -c 0; exec '{}' --scenario={} {} 2>&1 </dev/null", program(), name, options);
  std::FILE* out = popen(line.c_str(), "r");
  if (out == nullptr) return o;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, out)) o.text.append(buffer, n);
  o.status = pclose(out);
  return o;
}

class stack_overflow : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(ORRERY_ASAN) || defined(ORRERY_TSAN)
    GTEST_SKIP() << "SIGSEGV belongs to the sanitizer";
#endif
  }
  /// Dies after one line with these words.
  static void expect_line(std::string_view name, std::string_view where, std::uint32_t pe, std::string_view option) {
    const outcome o = run(name, fmt::format("--orrery-pes={}", pe + 1));
    EXPECT_TRUE(o.died_of_sigsegv()) << "status " << o.status;
    EXPECT_EQ(o.lines(), 1) << o.text;
    EXPECT_TRUE(o.text.starts_with(fmt::format("orrery: stack overflow in {} on PE {}: its stack of ", where, pe)))
        << o.text;
    EXPECT_TRUE(o.text.ends_with(fmt::format("or raise {}\n", option))) << o.text;
  }
};

constexpr std::string_view method_option = "--orrery-method-stack";
constexpr std::string_view function_option = "--orrery-function-stack";

TEST_F(stack_overflow, in_a_method_names_it_and_its_pe) {
  expect_line("in_method", "overflow_test::Deep::dive", 0, function_option);  // inline, on the main function's stack
  expect_line("in_method", "overflow_test::Deep::dive", 1, method_option);
}
TEST_F(stack_overflow, of_an_array_that_reaches_beyond_the_guard_is_named_too) {
  expect_line("in_method_with_a_large_array", "overflow_test::Deep::widen", 1, method_option);
  expect_line("in_process_function_with_a_large_array", "process function", 1, function_option);
}
TEST_F(stack_overflow, in_a_method_that_was_called_inline_names_that_one) {
  expect_line("in_method_called_by_a_method", "overflow_test::Deep::dive", 1, method_option);
}
TEST_F(stack_overflow, while_an_exception_is_handled_after_a_wait_is_named_too) {
  expect_line("in_catch_block", "overflow_test::Deep::dive_while_handling", 1, method_option);
}
TEST_F(stack_overflow, in_a_constructor_names_it) {
  expect_line("in_constructor", "overflow_test::Deep::(constructor)", 0, function_option);
  expect_line("in_constructor", "overflow_test::Deep::(constructor)", 1, method_option);
}
TEST_F(stack_overflow, in_a_destructor_names_it) {
  expect_line("in_destructor", "overflow_test::Deep::(destructor)", 0, method_option);
  expect_line("in_destructor", "overflow_test::Deep::(destructor)", 1, method_option);
}
TEST_F(stack_overflow, in_a_destructor_at_the_end_of_the_program_names_its_class) {
  expect_line("in_destructor_at_the_end", "overflow_test::Deep", 1, method_option);
}
TEST_F(stack_overflow, in_a_process_function_says_so) {
  expect_line("in_process_function", "process function", 0, function_option);
  expect_line("in_process_function", "process function", 1, function_option);
  expect_line("in_main", "process function", 0, function_option);
}
TEST_F(stack_overflow, in_a_remote_function_names_it) {
  expect_line("in_remote_function", "function::overflow_test::recurse", 1, method_option);
}
TEST_F(stack_overflow, does_not_come_on_a_stack_that_is_large_enough) {
  EXPECT_TRUE(run("deep_method", "--orrery-pes=2").died_of_sigsegv());
  const outcome o = run("deep_method", "--orrery-pes=2 --orrery-method-stack=1M");
  EXPECT_TRUE(o.exited_with(0)) << o.text;
  EXPECT_EQ(o.text, "");
}
TEST_F(stack_overflow, of_one_node_is_named_and_the_others_go_on) {
  const outcome o = run("on_lost_node", "--orrery-pes=1 --orrery-nodes=2");
  EXPECT_NE(o.text.find("orrery: stack overflow in overflow_test::Deep::dive on PE 1: "), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("the other node was lost\n"), std::string::npos) << o.text;
}

TEST_F(stack_overflow, is_named_whatever_handler_the_program_has) {
  const outcome o = run("in_method_with_handler", "--orrery-pes=2");
  EXPECT_TRUE(o.died_of_sigsegv()) << "status " << o.status;
  EXPECT_TRUE(o.text.starts_with("orrery: stack overflow in overflow_test::Deep::dive on PE 1: ")) << o.text;
}

class other_fault : public stack_overflow {};

TEST_F(other_fault, ends_the_program_without_a_word) {
  for (const auto* name : {"elsewhere", "sent"}) {
    const outcome o = run(name, "--orrery-pes=2");
    EXPECT_TRUE(o.died_of_sigsegv()) << "status " << o.status;
    EXPECT_EQ(o.text, "");
  }
}
TEST_F(other_fault, reaches_the_handler_that_the_program_had_before) {
  for (const auto* name : {"elsewhere_with_plain_handler", "elsewhere_with_info_handler", "sent_with_plain_handler"}) {
    const outcome o = run(name, "--orrery-pes=2");
    EXPECT_TRUE(o.exited_with(7)) << "status " << o.status;
    EXPECT_EQ(o.text, "the program's own handler\n");
  }
}
TEST_F(other_fault, after_the_run_reaches_the_handler_that_was_there_before) {
  const outcome o = run("handler_comes_back", "--orrery-pes=2");
  EXPECT_TRUE(o.exited_with(7)) << "status " << o.status;
  EXPECT_EQ(o.text, "the program's own handler\n");
}

}  // namespace overflow_test

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (const std::string_view a = argv[i]; a.starts_with("--scenario="))
      return overflow_test::run_scenario(a.substr(11), argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
