// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace orrery::detail {

/// Names memory that OS processes of one machine can map. Nobody but its own OS process can map it
/// if there is no descriptor.
struct memory_name {
  std::int32_t pid = 0;
  std::int32_t fd = -1;
  std::uint64_t started = 0;  ///< when the OS process began: a pid comes back
  std::uint64_t bytes = 0;

  template <class A>
  void serialize(A& a) {
    a & pid & fd & started & bytes;
  }
};

/// The header before the elements in the memory of a shared object on a machine. Nodes may be
/// killed at any instruction, so nothing here has to be consistent with anything else.
struct memory_head {
  static constexpr std::size_t locks = 32;
  static constexpr std::size_t nodes = 16;
  static constexpr std::size_t text_words = 14;  ///< of 8 bytes
  static constexpr std::size_t parts = 12;
  static constexpr std::size_t part_text_words = 7;
  static constexpr std::size_t bytes = 1664;  ///< room for it; the elements begin behind

  std::atomic<std::uint32_t> lock[locks];  ///< the PE that holds it + 1
  /// Scopes of one node that are open: its first PE + 1 in the lower half, then 16 bits of read
  /// views and 16 of write scopes. 0: free. See guard.hpp.
  std::atomic<std::uint64_t> scopes_of[nodes];
  /// Counts for nodes that have found no entry.
  std::atomic<std::uint32_t> views;
  std::atomic<std::uint32_t> writers;
  /// Elements were changed by fetch_add and the like, in a program that is checked: who reads one
  /// is to ask its owner, who knows what comes before.
  std::atomic<std::uint32_t> changed;
  /// The id of the object, so that memory which is opened late is not taken for that of another.
  std::atomic<std::uint64_t> object;
  /// Where the last scope of each kind was opened, for people: two that open at once may mix their
  /// texts.
  std::atomic<std::uint64_t> viewed_at[text_words];
  std::atomic<std::uint64_t> written_at[text_words];

  /// A scope of a part of the elements that is open.
  struct part_scope {
    std::atomic<std::uint64_t> holder;  ///< its node's first PE + 1, and flags; 0: free
    std::atomic<std::uint64_t> row, rows, column, columns;
    std::atomic<std::uint64_t> at[part_text_words];
  };
  part_scope part[parts];
};
static_assert(sizeof(memory_head) <= memory_head::bytes);

/// The memory of a shared object on one machine, all zero at first: plain memory of this OS
/// process, or an anonymous file that the nodes of the machine map.
///
/// Owned by the keepers of the object (object.hpp) and by open scopes together; unmapped when the
/// last of them lets go, so that a pointer into it stays good as long as its scope.
class shared_memory {
 public:
  /// Throws world_error if this machine has less memory than so many elements of `each` bytes.
  static void require(std::uint64_t elements, std::uint64_t each, std::string_view label);
  /// New memory for `bytes` of elements; with a name if `for_others`. Throws std::bad_alloc,
  /// world_error.
  [[nodiscard]] static std::shared_ptr<shared_memory> make(std::uint64_t bytes, bool for_others,
                                                           std::string_view label);
  /// Opens the memory of another node of this machine. Throws node_lost if it is gone, world_error.
  [[nodiscard]] static std::shared_ptr<shared_memory> open(const memory_name& name, std::string_view label);

  virtual ~shared_memory() = default;
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;

  [[nodiscard]] memory_head& head() const noexcept { return *reinterpret_cast<memory_head*>(begin_); }
  [[nodiscard]] std::byte* elements() const noexcept { return begin_ + memory_head::bytes; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return name_.bytes; }  ///< of the elements
  [[nodiscard]] const memory_name& name() const noexcept { return name_; }

 protected:
  shared_memory() = default;
  std::byte* begin_ = nullptr;
  memory_name name_;
};

}  // namespace orrery::detail
