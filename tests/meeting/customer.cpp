// SPDX-License-Identifier: Apache-2.0
// Joins the world of shop.cpp.

#include "shop.hpp"

#include <cstdio>

namespace {

int failures = 0;

[[maybe_unused]] void check(bool good, const char* what) {
  if (good) return;
  ++failures;
  std::fprintf(stderr, "not so: %s\n", what);
}

#if !defined(OTHER_FIELD) && !defined(OTHER_SIGNATURE)
struct basket {  // only here
  int put(int n) { return n; }
};
ORRERY_PROCESS(basket, put);

int twice(int n) { return 2 * n; }

// What the error says that f ends with.
template <class Error, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another exception: ") + e.what();
  }
  return "no error";
}

bool has(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return true;
  std::fprintf(stderr, "'%.*s' is not in: %s\n", static_cast<int>(part.size()), part.data(), text.c_str());
  return false;
}

void go_shopping(const orrery::remote<shop::counter>& counter) {
  const orrery::placement there = orrery::pe(0);
  check(counter->add(2) == 2 && start(counter)->add(3).get() == 5, "calls");
  post(counter)->add(1);
  check(counter->add(0) == 6, "a post");
  const shop::price p = counter->quote("tea", {1, 2, 3});
  check(p.of == "tea" && p.euros == 6, "arguments and results of standard types");
  check(has(error_of<std::out_of_range>([&] { counter->refuse("no credit"); }), "no credit"), "an exception");
  check(counter->mark(5) == 5, "the overload that the shop has");

  const auto ear = orrery::spawn<shop::listener>(orrery::here());
  check(counter->tell(ear, "hello") == 5, "a call back");

  const auto shelves = counter->shelves();
  check(shelves[1]->put(3) == 3 && start(shelves[2])->put(4).get() == 4, "calls of elements");
  post(shelves)->fill(10);
  quiescence(shelves);
  check(shelves[0]->put(1) == 11, "a broadcast");
  check(counter->best()->put(5) == 5, "a call of an element that was handed over alone");
  const auto clerks = counter->clerks();
  check(clerks->greet("Ada") == std::vector{3, 3} && clerks[1]->greet("Bob") == 6, "calls of a group");

  const auto words = counter->words();
  words[1] = "tea";
  words[2] = words[1].exchange("milk");
  words.fill(words[2]);
  check(words[3] == "tea", "shared data of strings");

  const std::string part = "program 'test', which PE 0 runs, has no such method";
  using orrery::bad_message;
  check(has(error_of<bad_message>([&] { (void)counter->mark(std::string("x")); }), "counter::mark: " + part),
        "the other overload");
  check(has(error_of<bad_message>([&] { (void)orrery::spawn<basket>(there); }), part), "a class of this program only");
  check(has(error_of<bad_message>([&] { (void)orrery::call<&twice>(there, 2); }), part), "a function of it");
  check(has(error_of<bad_message>([&] { (void)orrery::spawn(there, [] {}); }), part), "a lambda");
  check(has(error_of<bad_message>([&] { (void)orrery::spawn(there, &twice, 2); }),
            "a pointer to a function came from another build of the program"),
        "a pointer to a function");
  const std::string large(100'000, 'x');
  check(has(error_of<bad_message>([&] { (void)counter->mark(large); }), part), "what travels in a block");
  post(counter)->mark(std::string("unheard"));
  check(counter->add(1) == 7, "all goes on");
}
#endif

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](const orrery::args&) {
    const auto counter = orrery::lookup<shop::counter>("/counter");
#if defined(OTHER_FIELD)
    (void)counter->quote("tea", {1});
#elif defined(OTHER_SIGNATURE)
    (void)counter->add(1);
#else
    go_shopping(counter);
#endif
    orrery::send(orrery::lookup<orrery::function>("/main"), 1);
    return failures == 0 ? 0 : 1;
  });
}
