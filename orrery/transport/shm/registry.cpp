// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/registry.hpp>

#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/wire/type_key.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <xxhash.h>

namespace orrery::transport {

using internal::fail;

// Where text lies, from the begin of its place.
struct world_registry::text_range {
  std::uint32_t at;
  std::uint32_t bytes;
};

struct world_registry::header {
  std::atomic<std::uint32_t> words;  // numbers given out
  std::atomic<std::uint32_t> turns;  // places written
  std::atomic<std::uint32_t> ready[max_vocabularies];
};

struct world_registry::place_header {
  std::uint64_t id;
  std::uint32_t turn;
  std::uint32_t words;
  std::uint32_t types;
};

struct world_registry::word_entry {
  std::uint64_t key;
  std::uint64_t shape;
  std::uint64_t place;
  std::uint32_t number;
  std::uint32_t pad;
  text_range of;
  text_range method;
  text_range parts;
};

struct world_registry::type_entry {
  text_range key;
  text_range layout;
};

// A place that was found good.
struct world_registry::place {
  const std::byte* begin = nullptr;  // null: nothing is there
  std::uint32_t turn = 0;
  std::uint64_t id = 0;
  std::uint32_t words = 0;
  std::uint32_t types = 0;

  static constexpr std::uint64_t words_at = 64;
  [[nodiscard]] std::uint64_t types_at() const noexcept { return words_at + std::uint64_t{words} * sizeof(word_entry); }
  [[nodiscard]] word_entry word(std::uint32_t i) const noexcept {
    word_entry e;
    std::memcpy(&e, begin + words_at + std::uint64_t{i} * sizeof e, sizeof e);
    return e;
  }
  [[nodiscard]] type_entry type(std::uint32_t i) const noexcept {
    type_entry e;
    std::memcpy(&e, begin + types_at() + std::uint64_t{i} * sizeof e, sizeof e);
    return e;
  }
  // As it is there now: printable, and within the place.
  [[nodiscard]] std::string text(text_range r) const {
    if (r.at > place_bytes || r.bytes > place_bytes - r.at) return "?";
    std::string t(reinterpret_cast<const char*>(begin) + r.at, r.bytes);
    for (char& c : t)
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = '?';
    return t;
  }
};

namespace {

std::uint64_t page_up(std::uint64_t bytes) noexcept { return (bytes + 4095) / 4096 * 4096; }

// One part of a layout: "low=<key>".
struct part {
  std::string_view field;
  std::string_view key;
};
std::vector<part> parts_of(std::string_view layout) {
  std::vector<part> all;
  while (!layout.empty()) {
    const std::size_t end = std::min(layout.find('\n'), layout.size());
    const std::string_view line = layout.substr(0, end);
    if (const std::size_t is = line.find('='); is != std::string_view::npos)
      all.push_back({line.substr(0, is), line.substr(is + 1)});
    layout.remove_prefix(std::min(end + 1, layout.size()));
  }
  return all;
}

// "int Counter::tick(long)".
std::string declaration(std::string_view of, std::string_view method, std::string_view parts) {
  std::string text;
  const auto all = parts_of(parts);
  if (!all.empty()) text = wire::readable_key(all[0].key) + " ";
  text.append(of).append("::").append(method).append(1, '(');
  for (std::size_t i = 1; i < all.size(); ++i) text.append(i == 1 ? "" : ", ").append(wire::readable_key(all[i].key));
  return text + ")";
}

// "{double low, double high; 16 bytes}".
std::string definition(std::string_view layout) {
  std::string text = "{";
  for (const part& p : parts_of(layout)) {
    if (text.size() > 1) text += ", ";
    text += wire::readable_key(p.key);
    if (!p.field.empty()) text.append(1, ' ').append(p.field);
  }
  return text.append("; ").append(layout.substr(0, layout.find('\n'))).append(" bytes}");
}

// The first field that is another one, if that is all: "reading.high is double here, long there".
std::string difference(std::string_view type, std::string_view here, std::string_view there, std::string_view program) {
  const std::string name = wire::readable_key(type);
  const auto mine = parts_of(here);
  const auto theirs = parts_of(there);
  if (mine.size() == theirs.size())
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (mine[i].field == theirs[i].field && mine[i].key != theirs[i].key && !mine[i].field.empty())
        return fmt::format("{}::{} is {} here, {} in program {}", name, mine[i].field, wire::readable_key(mine[i].key),
                           wire::readable_key(theirs[i].key), program);
  return fmt::format("{} is {} here, {} in program {}", name, definition(here), definition(there), program);
}

struct contradictions {
  std::size_t count = 0;
  std::string first;

  template <class Text>
  void add(Text text) {
    if (count++ == 0) first = text();
  }
};

constexpr std::uint32_t none = 0xffff'ffff;

// The words of a vocabulary, by what those of other programs are compared with.
struct word_index {
  std::unordered_map<std::uint64_t, std::uint32_t> by_key;
  std::unordered_map<std::uint64_t, std::uint32_t> by_place;

  explicit word_index(const vocabulary& own) {
    for (std::uint32_t i = 0; i < own.words.size(); ++i) {
      by_key.emplace(own.words[i].key, i);
      if (own.words[i].place != 0) by_place.emplace(own.words[i].place, i);
    }
  }
};

// The type of a word that a program at a place declares in another way.
template <class Place>
std::string describe_types(const vocabulary& own, const vocabulary::word& w, const Place& p, std::string_view user) {
  std::unordered_map<std::string, std::string> theirs;
  for (std::uint32_t i = 0; i < p.types; ++i) theirs.emplace(p.text(p.type(i).key), p.text(p.type(i).layout));
  for (const std::uint32_t t : w.types) {
    const vocabulary::type& mine = own.types[t];
    const auto it = theirs.find(std::string(mine.key));
    if (it != theirs.end() && it->second != mine.layout)
      return difference(mine.key, mine.layout, it->second, user) + fmt::format(" ({}::{})", w.of, w.method);
  }
  return fmt::format("{} has other types in program {}", declaration(w.of, w.method, w.parts), user);
}

// Takes over the numbers of the words that are at a place, too, and notes those that contradict.
// `user`: the program that uses the place, if there is one.
template <class Place>
void compare_words(const vocabulary& own, const word_index& index, const Place& p,
                   const std::optional<std::string>& user, std::vector<std::uint32_t>& numbers, contradictions& wrong) {
  for (std::uint32_t i = 0; i < p.words; ++i) {
    const auto e = p.word(i);
    if (const auto it = index.by_key.find(e.key); it != index.by_key.end()) {
      const vocabulary::word& w = own.words[it->second];
      if (w.shape == e.shape && e.number < world_registry::max_words) {
        if (numbers[it->second] == none || user) numbers[it->second] = e.number;
      } else if (user) {
        wrong.add([&] { return describe_types(own, w, p, *user); });
      }
    } else if (const auto other = e.place != 0 ? index.by_place.find(e.place) : index.by_place.end();
               other != index.by_place.end() && user) {
      const vocabulary::word& w = own.words[other->second];
      wrong.add([&] {
        return fmt::format("{} here, {} in program {}", declaration(w.of, w.method, w.parts),
                           declaration(p.text(e.of), p.text(e.method), p.text(e.parts)), *user);
      });
    }
  }
}

}  // namespace

world_registry::place world_registry::at(std::uint32_t n) const noexcept {
  place p;
  if (n >= max_vocabularies) return p;
  // SYNC: acquire, with write. A place that is not ready may have no memory.
  if (reinterpret_cast<const header*>(memory_->data() + at_)->ready[n].load(std::memory_order_acquire) != 1) return p;
  const std::byte* const begin = memory_->data() + at_ + 4096 + place_bytes * n;
  place_header h;
  std::memcpy(&h, begin, sizeof h);
  p.turn = h.turn;
  p.id = h.id;
  p.words = h.words;
  p.types = h.types;
  const std::uint64_t most = place_bytes - place::words_at;
  if (p.words > most / sizeof(word_entry) || p.types > most / sizeof(type_entry) ||
      p.types_at() + std::uint64_t{p.types} * sizeof(type_entry) > place_bytes)
    return {};
  p.begin = begin;
  return p;
}

result<world_registry::entry> world_registry::enter(const vocabulary& own, const program_at& program) const {
  if (auto backed = memory_->back(at_, 4096); !backed) return internal::pass(backed);

  const word_index index(own);
  entry result{none, std::vector<std::uint32_t>(own.words.size(), none)};
  std::uint32_t empty = none;
  std::uint32_t unused = none;
  std::uint32_t unused_turn = 0;
  contradictions wrong;
  for (std::uint32_t n = 0; n < max_vocabularies; ++n) {
    const place p = at(n);
    if (p.begin == nullptr) {
      if (empty == none) empty = n;
      continue;
    }
    const std::optional<std::string> user = program(n);
    if (!user && (unused == none || p.turn < unused_turn)) {
      unused = n;
      unused_turn = p.turn;
    }
    if (p.id == own.id && p.words == own.words.size()) result.place = n;
    compare_words(own, index, p, user, result.numbers, wrong);
  }
  if (wrong.count != 0) {
    return fail(transport_errc::different_build, 0, "{}{}", wrong.first,
                wrong.count == 1 ? std::string() : fmt::format(", and {} more", wrong.count - 1));
  }
  if (result.place != none && std::ranges::find(result.numbers, none) == result.numbers.end()) return result;

  auto& h = *reinterpret_cast<header*>(memory_->data() + at_);
  std::uint32_t next = h.words.load(std::memory_order_relaxed);
  for (std::uint32_t& n : result.numbers)
    if (n == none) n = next++;
  if (next > max_words) {
    return fail(transport_errc::full, 0, "its programs have had {} different methods and messages; start a new world",
                max_words);
  }
  // before they are used: who is killed here wastes them
  h.words.store(next, std::memory_order_relaxed);
  if (result.place == none) result.place = empty != none ? empty : unused;
  if (result.place == none) {
    return fail(transport_errc::full, 0, "{} different programs are in it; end one, or start a new world",
                max_vocabularies);
  }
  if (auto written = write(result.place, own, result.numbers); !written) return internal::pass(written);
  return result;
}

result<void> world_registry::write(std::uint32_t n, const vocabulary& own,
                                   const std::vector<std::uint32_t>& numbers) const {
  const std::uint64_t begin = at_ + 4096 + place_bytes * n;
  std::vector<word_entry> words;
  std::vector<type_entry> types;
  const std::uint64_t fixed =
      place::words_at + own.words.size() * sizeof(word_entry) + own.types.size() * sizeof(type_entry);
  if (fixed > place_bytes) {
    return fail(transport_errc::full, 0,
                "the program has {} methods and messages, which are more than there is room for", own.words.size());
  }
  std::string text;
  const auto put = [&](std::string_view t) -> text_range {
    if (t.size() > place_bytes - fixed - text.size()) t = {};  // errors say less, then
    text += t;
    return {static_cast<std::uint32_t>(fixed + text.size() - t.size()), static_cast<std::uint32_t>(t.size())};
  };
  for (std::size_t i = 0; i < own.words.size(); ++i) {
    const vocabulary::word& w = own.words[i];
    word_entry e{w.key, w.shape, w.place, numbers[i], 0, {}, {}, {}};
    if (w.place != 0) {  // only such a word is named in an error
      e.of = put(w.of);
      e.method = put(w.method);
      e.parts = put(w.parts);
    }
    words.push_back(e);
  }
  for (const vocabulary::type& t : own.types) types.push_back({put(t.key), put(t.layout)});

  if (auto backed = memory_->back(begin, page_up(fixed + text.size())); !backed) return backed;
  std::byte* const to = memory_->data() + begin;
  auto& h = *reinterpret_cast<header*>(memory_->data() + at_);
  h.ready[n].store(0, std::memory_order_release);
  const place_header head{own.id, h.turns.fetch_add(1, std::memory_order_relaxed),
                          static_cast<std::uint32_t>(words.size()), static_cast<std::uint32_t>(types.size())};
  std::memcpy(to, &head, sizeof head);
  std::byte* out = to + place::words_at;
  const auto copy = [&](const void* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(out, from, bytes);
    out += bytes;
  };
  copy(words.data(), words.size() * sizeof(word_entry));
  copy(types.data(), types.size() * sizeof(type_entry));
  copy(text.data(), text.size());
  // SYNC: release, with at(): all of it is there
  h.ready[n].store(1, std::memory_order_release);
  return {};
}

std::optional<std::vector<std::uint32_t>> world_registry::numbers_at(std::uint32_t place_number,
                                                                     const vocabulary& own) const {
  const place p = at(place_number);
  if (p.begin == nullptr || p.id != own.id || p.words != own.words.size()) return std::nullopt;
  std::unordered_map<std::uint64_t, std::uint32_t> by_key;
  for (std::uint32_t i = 0; i < p.words; ++i)
    if (const word_entry e = p.word(i); e.number < max_words) by_key.emplace(e.key, e.number);
  std::vector<std::uint32_t> numbers;
  for (const vocabulary::word& w : own.words) {
    const auto it = by_key.find(w.key);
    if (it == by_key.end()) return std::nullopt;
    numbers.push_back(it->second);
  }
  return numbers;
}

}  // namespace orrery::transport
