// SPDX-License-Identifier: Apache-2.0
// An index of the words of a text, each word an element of an array. With the Debian package bible-
// kjv: bible -f Gen1:1-Rev22:21 > kjv.txt
// run: cat /usr/share/common-licenses/GPL-* >index_a.txt; ./document_index index_a.txt --check --orrery-pes=3
// run: cat /usr/share/common-licenses/GPL-* >index_b.txt; ./document_index index_b.txt --check --wander 20 --orrery-nodes=2
// run: { bible -f Gen1:1-Rev22:21 </dev/null || cat /usr/share/common-licenses/*; } >index_c.txt; ./document_index index_c.txt --check --wander 5 --orrery-nodes=2 --picture index_test.png
#include "../picture.hpp"
#include "word.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace {

using namespace document_index;

struct options {
  std::string file;
  std::vector<std::string> all_of{"god made", "and the light"};
  std::vector<std::string> phrase{"in the beginning", "the terms of this license"};
  std::uint32_t wander = 0;
  bool check = false;
  std::string picture;
};

totals statistics(word_index index) {
  auto [target, result] = orrery::expect_result<totals>();
  post(index)->report(target);
  return result.get();
}

word_index build(const options& o) {
  auto index = orrery::create_array<Word, std::string>({.name = "index"});
  std::vector<orrery::future<void>> readers;
  const std::uint32_t pes = orrery::world_pes();
  for (std::uint32_t p = 0; p < pes; ++p)
    readers.push_back(orrery::start_call<&read_share>(orrery::pe(p), index, o.file, p, pes));
  for (std::uint32_t round = 0; round < o.wander; ++round) {  // while words come
    post(index)->wander(round);
    orrery::yield();
  }
  for (auto& r : readers) r.get();
  orrery::quiescence();  // the last words have arrived
  post(index)->sort();
  return index;
}

bool agrees(word_index index, const options& o) {
  const auto lines = lines_of(o.file);
  word_map expected;
  for (std::size_t i = 0; i < lines.size(); ++i) add_line(expected, static_cast<std::uint32_t>(i), lines[i]);
  totals t;
  bool same = true;
  for (const auto& [word, places] : expected) {
    t += {1, places.size(), places.size(), word};
    same &= index[word]->begins(0) == places;
  }
  same &= statistics(index) == t;
  for (const auto& text : o.all_of) same &= find(index, words_of(text), false) == scan(lines, words_of(text), false);
  for (const auto& text : o.phrase) same &= find(index, words_of(text), true) == scan(lines, words_of(text), true);
  same &= find(index, {"the", "xyzzy"}, false).empty();
  return same;
}

// How often words occur, the most frequent on the left, both scales logarithmic: nearly a straight
// line (Zipf's law). The colour is the word's PE.
void paint(word_index index, const options& o) {
  constexpr std::ptrdiff_t width = 720;
  constexpr std::ptrdiff_t height = 420;
  constexpr double decade = 140;  // pixels
  word_map words;
  const auto lines = lines_of(o.file);
  for (std::size_t i = 0; i < lines.size(); ++i) add_line(words, static_cast<std::uint32_t>(i), lines[i]);
  std::vector<std::pair<std::size_t, std::uint32_t>> all;  // places, PE
  for (const auto& [word, places] : words) all.emplace_back(index[word]->count(), index[word]->where());
  std::ranges::sort(all, std::greater{});
  examples::picture p(width, height);
  const double scale = decade * 5 / std::max(5.0, std::ceil(std::log10(static_cast<double>(all.front().first) + 1)));
  for (int d = 0; d < 6; ++d) {
    p.fill(std::lround(d * decade) + 10, 0, 1, height, {224, 224, 224});
    p.fill(0, height - 10 - std::lround(d * scale * 0.57), width, 1, {224, 224, 224});
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto x = std::lround(std::log10(static_cast<double>(i) + 1) * decade) + 10;
    const auto y = height - 10 - std::lround(std::log10(static_cast<double>(all[i].first)) * scale * 0.57);
    p.fill(x - 1, y - 1 - static_cast<std::ptrdiff_t>(all[i].second % 8), 3, 3, examples::of_pe(all[i].second));
  }
  p.write(o.picture);
}

int run(const options& o) {
  const auto begin = std::chrono::steady_clock::now();
  auto index = build(o);
  const totals t = statistics(index);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  fmt::print("{} words at {} places in {:.2f} s; the most frequent is '{}', {} times\n", t.words, t.postings,
             time.count(), t.longest_word, t.longest);
  for (const auto& text : o.all_of)
    fmt::print("  {} lines have all of '{}'\n", find(index, words_of(text), false).size(), text);
  for (const auto& text : o.phrase)
    fmt::print("  {} lines have the phrase '{}'\n", find(index, words_of(text), true).size(), text);
  if (!o.picture.empty()) paint(index, o);
  const bool good = !o.check || agrees(index, o);
  if (o.check) fmt::print("it {} with an index made without parallelism\n", good ? "agrees" : "does NOT agree");
  orrery::destroy(index);
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args words) {
    CLI::App app{"An index of the words of a text, as an array of words"};
    options o;
    app.add_option("file", o.file, "a text, of which each line counts as a document")->required();
    app.add_option("--all-of", o.all_of, "words to be found in one line; may be given several times");
    app.add_option("--phrase", o.phrase, "words to be found one after the other");
    app.add_option("--wander", o.wander, "so often all words migrate at random while the index grows");
    app.add_flag("--check", o.check, "compares all of it with an index made without parallelism");
    app.add_option("--picture", o.picture, "a PNG: how often words occur, and their PEs");
    try {
      app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    } catch (const CLI::ParseError& e) {
      return app.exit(e);
    }
    return run(o);
  });
}
