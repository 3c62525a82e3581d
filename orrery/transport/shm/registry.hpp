// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/shm/segment.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::transport {

inline constexpr std::uint32_t no_vocabulary = 0xffff'ffff;

/// The words of a program: one word for each of its methods and other messages.
struct vocabulary {
  struct word {
    std::uint64_t key = 0;    ///< what it is
    std::uint64_t shape = 0;  ///< of what travels with it
    std::uint64_t place = 0;  ///< of a method that is not overloaded: its class and name; else 0
    std::string_view of;      ///< for people: class and method
    std::string_view method;
    /// The keys of its result and its arguments, as in wire::type_description::layout.
    std::string parts;
    std::vector<std::uint32_t> types;  ///< in `types`: all that travel with it
  };
  struct type {
    std::string_view key;
    std::string layout;  ///< as in wire::type_description::layout
  };
  std::uint64_t id = 0;  ///< of all of it; equal vocabularies have one id
  std::vector<word> words;
  std::vector<type> types;
};

/// The methods that the programs of a world have, in its shared memory.
///
/// Problem: programs that meet know only what they use in common, each has more, and compilers give
/// them other names. Messages name a method by a number, which must mean the same in all nodes, and
/// what has one name and two meanings must not be sent at all.
///
/// So each program that comes brings its vocabulary. A word that another program has brought keeps
/// its number; a new word gets the next one. Numbers are never used again: messages that name a
/// method of a program that has left stay unknown. A vocabulary has one of `max_vocabularies`
/// places, which all nodes that run its program share. When no place is free, one whose program has
/// no node left is given away. So programs that come and go leave nothing behind, and words stay
/// known as long as there is room. A program is refused if a program that runs has a word of the
/// same key and another shape, or another word at the same place.
///
/// A view of memory that it does not own; copied at will. enter() is called by one node of the
/// world at a time (who holds the door of a named world, or makes one); the others may be called at
/// any time.
///
/// Invariants
///   I1  A place is `ready` only while all of it is written; what was being written by a node that
///       was killed is not.
///   I2  Two places that are ready and in use give a word of one key and shape the same number.
///   I3  Whatever is read was checked: other nodes can write here.
class world_registry {
 public:
  static constexpr std::uint32_t max_vocabularies = 64;
  static constexpr std::uint32_t max_words = 1U << 20;  ///< numbers ever given out
  static constexpr std::uint64_t place_bytes = std::uint64_t{2} << 20;
  static constexpr std::uint64_t bytes = 4096 + place_bytes * max_vocabularies;

  /// A vocabulary in its place, and the number of each of its words.
  struct entry {
    std::uint32_t place = 0;
    std::vector<std::uint32_t> numbers;
  };
  /// The program that uses the vocabulary at a place; nothing if no node does.
  using program_at = std::function<std::optional<std::string>(std::uint32_t place)>;

  /// `at`: where it lies in the segment, whose memory there is zero or was written by enter().
  world_registry(const segment& memory, std::uint64_t at) noexcept : memory_(&memory), at_(at) {}

  /// Finds or makes the place of a vocabulary. Fails with `different_build` if a program that is
  /// there contradicts it, and says which of its words; with `full` if there is no room.
  [[nodiscard]] result<entry> enter(const vocabulary& own, const program_at& program) const;
  /// The numbers of a vocabulary that is said to be at that place; nothing if it is not.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> numbers_at(std::uint32_t place, const vocabulary& own) const;

 private:
  struct header;
  struct place_header;
  struct word_entry;
  struct type_entry;
  struct place;
  struct text_range;

  [[nodiscard]] place at(std::uint32_t n) const noexcept;
  [[nodiscard]] result<void> write(std::uint32_t n, const vocabulary& own,
                                   const std::vector<std::uint32_t>& numbers) const;

  const segment* memory_;
  std::uint64_t at_;
};

}  // namespace orrery::transport
