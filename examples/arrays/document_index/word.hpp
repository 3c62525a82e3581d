// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "text.hpp"

#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

// An index of words as an array: each word is an element, addressed by the word itself, that keeps
// the list of its places. Nobody creates it: the first message does.

namespace document_index {

/// The totals of many words.
struct totals {
  std::uint64_t words = 0;
  std::uint64_t postings = 0;
  std::uint64_t longest = 0;  ///< list
  std::string longest_word;
  friend bool operator==(const totals&, const totals&) = default;
  /// If two words have equally long lists, the first in the alphabet counts, so that the order of a
  /// reduction does not matter.
  totals& operator+=(const totals& o) {
    words += o.words;
    postings += o.postings;
    if (o.longest > longest || (o.longest == longest && o.longest_word < longest_word)) {
      longest = o.longest;
      longest_word = o.longest_word;
    }
    return *this;
  }
};

struct Word;
ORRERY_PROCESS(Word, add, sort, count, lines, lines_among, begins, begins_among, report, wander, where);

struct Word : orrery::element<Word, std::string> {
  /// The first places of a word create it. A query for a word that is nowhere fails at once with
  /// process_gone.
  static constexpr orrery::early when_early(std::string_view method) {
    return method == "add" ? orrery::early::create_at_home : orrery::early::refuse;
  }

  void add(const std::vector<posting>& more) { places_.insert(places_.end(), more.begin(), more.end()); }
  /// To be called when all is there: messages of several readers come in any order.
  void sort() { std::ranges::sort(places_); }

  [[nodiscard]] std::size_t count() const { return places_.size(); }
  /// The lines with this word.
  [[nodiscard]] std::vector<std::uint32_t> lines() const {
    std::vector<std::uint32_t> all;
    for (const posting& p : places_)
      if (all.empty() || all.back() != p.line) all.push_back(p.line);
    return all;
  }
  /// Those of some lines that have this word too.
  [[nodiscard]] std::vector<std::uint32_t> lines_among(const std::vector<std::uint32_t>& some) const {
    const auto own = lines();
    std::vector<std::uint32_t> both;
    std::ranges::set_intersection(own, some, std::back_inserter(both));
    return both;
  }
  /// Where phrases begin that have this word as number `nth`.
  [[nodiscard]] std::vector<posting> begins(std::uint32_t nth) const {
    std::vector<posting> all;
    for (const posting& p : places_)
      if (p.place >= nth) all.push_back({p.line, p.place - nth});
    return all;
  }
  [[nodiscard]] std::vector<posting> begins_among(const std::vector<posting>& some, std::uint32_t nth) const {
    std::vector<posting> both;
    std::ranges::copy_if(some, std::back_inserter(both), [&](const posting& p) {
      return std::ranges::binary_search(places_, posting{p.line, p.place + nth});
    });
    return both;
  }

  void report(const orrery::result_target& target) {
    contribute(totals{1, places_.size(), places_.size(), this_index()}, orrery::sum, target);
  }
  /// Moves to any PE: for tests.
  void wander(std::uint32_t round) {
    migrate_to(static_cast<std::uint32_t>(std::hash<std::string>{}(this_index() + std::to_string(round))) %
               orrery::world_pes());
  }
  [[nodiscard]] std::uint32_t where() const { return orrery::this_pe(); }

  template <class A>
  void serialize(A& a) {
    a & places_;
  }

 private:
  std::vector<posting> places_;
};

using word_index = orrery::array<Word, std::string>;

/// Indexes one PE's share of the lines of a file.
inline void read_share(word_index index, std::string path, std::uint32_t part, std::uint32_t parts) {
  const auto lines = lines_of(path);
  const std::size_t first = lines.size() * part / parts;
  const std::size_t last = lines.size() * (part + 1) / parts;
  // Frequent words are in nearly every line: one message for some lines together instead of one for
  // each.
  constexpr std::size_t batch = 100;
  for (std::size_t begin = first; begin < last; begin += batch) {
    word_map found;
    for (std::size_t i = begin; i < std::min(begin + batch, last); ++i)
      add_line(found, static_cast<std::uint32_t>(i), lines[i]);
    for (auto& [word, places] : found) post(index[word])->add(std::move(places));
  }
}

/// Lines with all the words, or with them one after the other as a phrase. The candidates travel
/// from word to word, from the rarest on: so long lists stay where they are.
inline std::vector<std::uint32_t> find(word_index index, const std::vector<std::string>& words, bool phrase) try {
  std::vector<orrery::future<std::size_t>> counting;
  for (const auto& w : words) counting.push_back(start(index[w])->count());
  std::vector<std::pair<std::size_t, std::uint32_t>> order;  // how many places, which word
  for (auto& c : counting) order.emplace_back(c.get(), static_cast<std::uint32_t>(order.size()));
  std::ranges::sort(order);

  const std::uint32_t rarest = order.front().second;
  std::vector<std::uint32_t> lines;
  if (phrase) {
    std::vector<posting> begins = index[words[rarest]]->begins(rarest);
    for (std::size_t i = 1; i < order.size(); ++i)
      begins = index[words[order[i].second]]->begins_among(begins, order[i].second);
    for (const posting& p : begins) lines.push_back(p.line);
  } else {
    lines = index[words[rarest]]->lines();
    for (std::size_t i = 1; i < order.size(); ++i) lines = index[words[order[i].second]]->lines_among(lines);
  }
  const auto twice = std::ranges::unique(lines);
  lines.erase(twice.begin(), twice.end());
  return lines;
} catch (const orrery::process_gone&) {
  return {};  // one of the words is nowhere
}

}  // namespace document_index
