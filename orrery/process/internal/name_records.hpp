// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/internal/class_chain.hpp>
#include <orrery/process/internal/membership.hpp>
#include <orrery/process/internal/name_board.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/address.hpp>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

// The messages of shards and nodes when names move.
namespace orrery::detail {

/// Large answers are given in slices of the space of hashes.
struct slice {
  std::uint32_t index = 0;
  std::uint32_t count = 0;  ///< 0: not known yet

  [[nodiscard]] bool has(std::uint64_t hash) const noexcept { return count <= 1 || (hash >> 32) % count == index; }
};
inline constexpr std::size_t names_per_answer = 4096;

/// Names and processes: their number and a sum of hashes, whatever their order.
struct digest {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;

  void add(std::uint64_t name, const address& process) noexcept;
  friend bool operator==(const digest&, const digest&) = default;
};

/// A shard asks a node: which names of your processes are mine now?
struct pull {
  std::uint64_t membership = 0;
  std::uint32_t shard = 0;
  std::vector<member> base;  ///< what the shard has are names that were its own among these members
  digest kept;               ///< of what it has, and is still its own
  slice part;
  bool whole = false;        ///< in all slices but the first: what the first answer said
};

struct pulled_name {
  std::string name;
  address process;
  std::uint32_t cls = 0;  ///< index in `classes`
  bool confirmed = false;
};
struct pulled {
  bool retry = false;  ///< the node sees another membership
  bool whole = false;  ///< all names; else only those that the shard did not have among `base`
  std::uint32_t slices = 1;
  std::vector<class_chain> classes;
  std::vector<pulled_name> names;
};

// The names of the processes of one node: the record that counts.
//
// Problem: a shard that is lost takes its names with it, though the processes that they name live
// on. So the node where the process lives keeps them too, and answers new shards from here.
//
// A record is pending from claim() until confirm(): the shard may have it or not. Pending names are
// given to new shards as well, so that a name that a shard has accepted is never unknown to the
// next one.
//
// Owned by the repository of the node; outlives the node and its world, whose threads may ask for
// the list. Thread-safe.
// Invariants: (1) a name that was confirmed and not dropped is known to the shard that owns it in
// this node's membership, or will be, from here, before that shard answers anything in that
// membership; (2) `membership` is the newest that was used in any answer.
class name_records {
 public:
  struct record {
    address process;
    const scheduler::class_info* cls = nullptr;
    std::uint64_t hash = 0;
    std::uint32_t owner = no_pe;  ///< the PE of its shard
    bool confirmed = false;
  };

  /// `cache` is null but in a simulation, and outlives the records.
  explicit name_records(const scheduler::node& owner, membership_cache* cache = nullptr);
  name_records(const name_records&) = delete;
  name_records& operator=(const name_records&) = delete;

  /// The newest membership; `sure`: look at the nodes even if the epoch is the same.
  [[nodiscard]] membership_ptr members(bool sure);

  /// The record of that name, after a pending one was made if there was none.
  [[nodiscard]] record claim(std::string_view name, const address& process, const scheduler::class_info& cls);
  enum class outcome : std::uint8_t { done, moved, gone };
  /// A shard has accepted the name. `moved`: in a membership that is not the newest any more;
  /// `gone`: it was dropped meanwhile.
  [[nodiscard]] outcome confirm(std::string_view name, const address& process, std::uint64_t membership);
  /// Whether this is still the membership.
  [[nodiscard]] bool is_current(std::uint64_t membership);
  /// Forgets the name if it names that process.
  bool drop(std::string_view name, const address& process);
  /// Forgets and returns all names of the process.
  [[nodiscard]] std::vector<std::string> take(const address& process);
  /// Throws bad_message.
  [[nodiscard]] pulled answer(const pull& request);
  /// The names that were confirmed, as many as fit into `room` bytes on the wire.
  [[nodiscard]] names_on_board list(std::size_t room);

 private:
  void look(bool sure);

  const scheduler::node& node_;
  membership_cache* const cache_;
  std::mutex mutex_;
  membership_ptr members_;
  std::unordered_map<std::string, record, name_hash, std::equal_to<>> records_;
  std::unordered_map<address, std::vector<std::string>> of_process_;
  name_board board_;  // the last, as its thread uses the others
};

}  // namespace orrery::detail
