// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/shm/segment.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

namespace orrery::transport {

// Hands out blocks of a segment to the threads of the node that owns it.
//
// Problem: what a node sends lies in its own segment, and blocks come and go with every large
// message. Memory that is in the caches and page tables should be used again before memory that is
// not; the system may have none left; and what other nodes can write must not decide where the next
// block lies.
//
// So blocks have places of powers of two, from 4 KiB to 1 TiB, and a block that comes back is the
// first to be used again, without a system call. All bookkeeping is in private memory. Memory is
// asked for with fallocate when a place is used for the first time, and only for the pages that
// were asked for: a block of 33 MiB takes 64 MiB of address space but 33 MiB of memory. Places
// without memory are merged with their buddies. Memory goes back to the system when the limit is
// reached or by trim().
//
// The system takes seconds to make some GiB of memory, or to take them back. Nobody holds the mutex
// while it works on more than 64 MiB: a carrier that waited for it would give no sign of life. A
// place on which the system works is neither free nor in use; the thread that has asked for it is
// the only one that looks at it.
//
// Ownership: lives as long as the segment, which it does not own. All calls are thread-safe; none
// parks its fiber. A thread that finds no room waits for memory that another thread gives back. A
// block that is used again costs one uncontended mutex and a few loads.
//
// Invariants
//   I1  A block is aligned to its place's size; no two places overlap.
//   I2  The memory of all places, in use, idle or being made, is never more than limit() and what
//       allocate_beyond has given. Memory is reserved before it is made. Memory that is being given
//       back counts until the system has it, but not against allocate_beyond.
//   I3  A place is in use, idle (has memory, waits to be used again), vacant (has none), or the
//       system makes or takes back its memory. In the last two states it is in no list, is not
//       merged with its buddy, and no block begins there for release().
//   I4  What lies in the reserved range is never handed out.
//
// Glossary: *order* the logarithm of a place's size; *place* an aligned range of the segment.
class arena {
 public:
  static constexpr unsigned min_order = 12;  ///< 4 KiB
  static constexpr unsigned max_order = 40;  ///< 1 TiB

  struct block {
    std::uint64_t offset;
    std::uint64_t bytes;  ///< what was asked for, rounded up to whole pages
    bool zeroed;  ///< never used before; else it holds what it held
  };
  struct statistics {
    std::uint64_t limit;
    std::uint64_t in_use;  ///< bytes of memory
    std::uint64_t idle;  ///< bytes of memory that wait to be used again
  };

  /// The first `reserved` bytes of the segment are not the arena's.
  arena(const segment& memory, std::uint64_t limit, std::uint64_t reserved);
  arena(const arena&) = delete;
  ~arena();

  /// How large the segment of an arena of `limit` bytes is best: sparse, with room against
  /// fragmentation, and for one block of all these bytes.
  [[nodiscard]] static std::uint64_t segment_bytes(std::uint64_t limit) noexcept;
  /// Bytes that programs on this machine may have in all: those of the machine, or the limit of the
  /// control group when it is first asked.
  [[nodiscard]] static std::uint64_t machine_memory();
  /// A quarter of the memory that this OS process may use (of the machine or of its control group).
  [[nodiscard]] static std::uint64_t default_limit();

  /// Fails with `no_space` if that much is not free or the system has none, `bad_argument` above
  /// the limit, where waiting for others to be released would not help.
  [[nodiscard]] result<block> allocate(std::uint64_t bytes);
  /// The same, but not within the limit, which stays what it was for all else: until it is
  /// released, such a block is no part of what the limit bounds.
  [[nodiscard]] result<block> allocate_beyond(std::uint64_t bytes);
  /// False, and nothing happens, if no block begins at `offset`: offsets may come from other nodes.
  [[nodiscard]] bool release(std::uint64_t offset);
  /// Bytes of the block that begins at `offset`; 0 if there is none.
  [[nodiscard]] std::uint64_t block_bytes(std::uint64_t offset) const;
  /// Gives memory of idle places back to the system until at most `keep` bytes of it are left.
  void trim(std::uint64_t keep = 0);

  [[nodiscard]] statistics stats() const;
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::byte* data() const noexcept { return memory_.data(); }
  /// Walks everything and checks the invariants: for tests and debug builds.
  [[nodiscard]] bool consistent() const;

 private:
  enum class use : std::uint8_t { none = 0, vacant, idle, taken, making, giving };
  using guard = std::unique_lock<std::mutex>;
  /// Kept at the first page of a place; all zero elsewhere.
  struct place {
    std::uint32_t pages;  // that have memory, or will have it
    std::uint8_t order;
    use state;
    bool clean;  // all its memory is fresh
    bool beyond;  // while it is taken: the limit does not count it
  };
  static constexpr unsigned orders = max_order + 1;
  struct free_delete {
    void operator()(place* p) const noexcept;
  };

  // Those with a guard let go of it while the system works.
  [[nodiscard]] result<block> find(guard& lock, std::uint32_t pages, bool beyond);
  [[nodiscard]] std::uint64_t bound() const noexcept { return limit_ + beyond_; }
  [[nodiscard]] std::uint64_t used() const noexcept { return in_use_ + idle_bytes_ + making_ + giving_; }
  [[nodiscard]] result<block> reuse(guard& lock, unsigned order, std::uint32_t pages, bool beyond);
  [[nodiscard]] result<block> take_fresh(guard& lock, unsigned order, std::uint32_t pages, bool beyond);
  [[nodiscard]] result<void> back(guard& lock, const place& from, std::uint64_t offset, std::uint32_t to,
                                  std::uint64_t beyond);
  [[nodiscard]] bool split_idle(unsigned order, std::uint64_t& offset, bool& clean);
  void split(std::uint64_t offset, unsigned from, unsigned to, bool clean);
  [[nodiscard]] bool take_vacant(unsigned order, std::uint64_t& offset);
  void make_vacant(std::uint64_t offset, unsigned order);
  bool make_room(guard& lock, std::uint64_t bytes);
  template <class F>
  void without(guard& lock, std::uint64_t bytes, F work);
  [[nodiscard]] bool discard(guard& lock, std::uint64_t offset);
  bool discard_coldest(guard& lock);
  void set(std::uint64_t offset, std::uint32_t pages, unsigned order, use state, bool clean) noexcept;
  block hand_out(std::uint64_t offset, unsigned order, std::uint32_t pages, bool clean, bool beyond) noexcept;
  [[nodiscard]] place& at(std::uint64_t offset) const noexcept { return places_[offset >> min_order]; }

  const segment& memory_;
  std::uint64_t limit_;
  std::uint64_t reserved_;
  mutable std::mutex mutex_;
  std::uint64_t in_use_ = 0;
  std::uint64_t beyond_ = 0;  // bytes in use that the limit does not count
  std::uint64_t idle_bytes_ = 0;
  std::uint64_t making_ = 0;  // bytes of places on which the system works
  std::uint64_t giving_ = 0;
  std::condition_variable given_back_;
  std::mutex large_;  // held while the system works on much, without the other one
  wire::unique_ptr<place[], free_delete> places_;  // one for each page, touched lazily
  std::array<std::vector<std::uint64_t>, orders> idle_;  // the hottest is the last
  std::array<std::set<std::uint64_t>, orders> vacant_;
};

}  // namespace orrery::transport
