// SPDX-License-Identifier: Apache-2.0
// Several programs in one launch: the numbers of their words. Each rank enters the vocabularies of
// all programs, in the order of their first ranks, into a registry of its own; so all have the same
// numbers, and refuse the same contradictions.
#include <orrery/transport/mpi/world.hpp>
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/registry.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/serialize.hpp>

#include <algorithm>
#include <optional>
#include <span>

namespace orrery::transport {

using internal::fail;

namespace {

struct sent_word {
  std::uint64_t key = 0;
  std::uint64_t shape = 0;
  std::uint64_t place = 0;
  std::string of;
  std::string method;
  std::string parts;
  std::vector<std::uint32_t> types;
};
struct sent_type {
  std::string key;
  std::string layout;
};
struct sent_vocabulary {
  std::uint64_t id = 0;
  std::vector<sent_word> words;
  std::vector<sent_type> types;
};

std::vector<std::byte> packed(const vocabulary& v) {
  sent_vocabulary s{v.id, {}, {}};
  for (const auto& w : v.words)
    s.words.push_back({w.key, w.shape, w.place, std::string(w.of), std::string(w.method), w.parts, w.types});
  for (const auto& t : v.types) s.types.push_back({std::string(t.key), t.layout});
  std::vector<std::byte> bytes(wire_size(s));
  writer w(bytes);
  write(w, s);
  return bytes;
}

// Nothing if it cannot be: another rank may have sent anything. The registry leaves out texts that
// are too long for it.
std::optional<sent_vocabulary> received(std::span<const std::byte> bytes) {
  try {
    reader r(bytes);
    auto s = read<sent_vocabulary>(r);
    r.finish();
    const auto names_types = [&](const sent_word& w) {
      return std::ranges::all_of(w.types, [&](std::uint32_t t) { return t < s.types.size(); });
    };
    if (std::ranges::all_of(s.words, names_types)) return s;
  } catch (const error&) {
  }
  return std::nullopt;
}

vocabulary unpacked(const sent_vocabulary& s) {
  vocabulary v;
  v.id = s.id;
  for (const auto& w : s.words) v.words.push_back({w.key, w.shape, w.place, w.of, w.method, w.parts, w.types});
  for (const auto& t : s.types) v.types.push_back({t.key, t.layout});
  return v;
}

}  // namespace

result<void> mpi_world::number_words(const vocabulary& own, const std::vector<program_of_rank>& programs) {
  if (std::ranges::all_of(programs, [&](const auto& p) { return p.vocabulary == own.id; })) return {};
  auto memory = segment::create("orrery-words", world_registry::bytes);
  if (auto good = agree(memory ? result<void>{} : internal::pass(memory)); !good) return good;
  const world_registry registry(*memory, 0);
  std::vector<std::string> users;  // by place
  std::vector<std::uint64_t> known;
  for (std::uint32_t rank = 0; rank < programs.size(); ++rank) {
    const program_of_rank& program = programs[rank];
    if (std::ranges::find(known, program.vocabulary) != known.end()) continue;
    known.push_back(program.vocabulary);
    auto bytes = library_->broadcast(rank == node_ ? packed(own) : std::vector<std::byte>{}, rank);
    if (!bytes) return internal::pass(bytes);
    const auto sent = received(*bytes);
    if (!sent)
      return fail(transport_errc::damaged, 0, "what program '{}' of rank {} knows came damaged", program.name, rank);
    const auto entered = registry.enter(unpacked(*sent), [&](std::uint32_t place) {
      return place < users.size() ? std::optional(users[place]) : std::nullopt;
    });
    if (!entered)
      return fail(
          transport_errc::different_build, 0,
          "program '{}' of rank {} contradicts a program of the ranks before it: {}; build both from the same sources",
          program.name, rank, entered.error().message);
    users.resize(std::max<std::size_t>(users.size(), entered->place + 1));
    users[entered->place] = program.name;
    if (program.vocabulary == own.id) word_numbers_ = entered->numbers;
  }
  return {};
}

}  // namespace orrery::transport
