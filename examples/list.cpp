// SPDX-License-Identifier: Apache-2.0
// An ordered list as a service. One program makes it and publishes it; another one joins the world,
// finds it by its name, and uses it, many requests at a time.
// run: ./list
// run: ./list --orrery-nodes=2
// run: ./list serve --orrery-world=list-$$ & server=$!; ./list use --orrery-world=list-$$ && wait $server
#include <orrery/orrery.hpp>
#include <orrery/service/ordered_list.hpp>

#include <cstdio>
#include <sstream>
#include <string>

using words = orrery::ordered_list<std::string, int>;

// Counts the words of a text.
int count(words::session& s, const std::string& text) {
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    if (s.insert(word, 1)) continue;
    for (;;) {  // others may count the same word
      const int n = s.find(word).value_or(0);
      if (s.compare_and_update(word, n, n + 1)) break;
    }
  }
  return static_cast<int>(s.size());
}

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args args) {
    using namespace std::chrono_literals;
    const std::string what = args.size() > 1 ? args[1] : "";
    words list = what == "use" ? words::await_name("/example/words", 20s) : words::make({.range_items = 4});
    if (what == "serve") {
      try {
        list.publish("/example/words");
        auto s = list.open();
        while (!s.find("(end)")) orrery::sleep_for(1ms);
      } catch (const orrery::stopped&) {
        // the other program was the first one, and its end is the end of the world
      }
      return 0;
    }

    auto s = list.open({.window = 64});
    const int different = count(s, "the quick brown fox jumps over the lazy dog and the other lazy dog");
    std::printf("%d different words; the first is '%s'\n", different, s.first()->first.c_str());

    // Many requests at a time: their replies come as they are ready.
    int sum = 0;
    for (const char* word : {"the", "dog", "lazy", "cat"}) s.start_find(word);
    while (const auto reply = s.receive()) sum += reply->value.value_or(0);

    auto walk = s.scan("b", "p");  // in parts, each of which is one moment's
    for (auto part = walk.next(); !part.empty(); part = walk.next())
      for (const auto& [word, n] : part) std::printf("  %-6s %d\n", word.c_str(), n);
    if (what == "use") s.insert("(end)", 0);
    return different == 10 && sum == 7 ? 0 : 1;
  });
}
