// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/internal/name_records.hpp>
#include <orrery/process/internal/name_shard.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <string>
#include <string_view>

namespace orrery::detail {

/// Asks the shard of a name, again while it says "retry": f(shard, membership) gives an answer or
/// nothing. Parks. Throws what f throws, stopped; node_lost only if this node alone does not trust
/// the node of the shard any more.
class shard_calls {
 public:
  explicit shard_calls(pe& self, std::string_view what) : self_(self), what_(what) {}

  template <class F>
  auto at(std::string_view name, F&& f) {
    const std::uint64_t hash = hash_of(name);
    for (;;) {
      const membership_ptr now = members();
      const std::uint32_t owner = owner_of(hash, now->keepers);
      try {
        if (auto answer = f(system_process<name_shard>(owner), *now)) return *answer;
      } catch (const node_lost&) {
        if (!has_changed(*now)) throw;
        continue;
      } catch (const process_gone&) {  // its node is leaving, or the world ends: members() will say
      }
      pause();
    }
  }

  /// The membership to ask in. Throws stopped when this node takes part no more.
  [[nodiscard]] membership_ptr members();
  [[nodiscard]] bool has_changed(const world_membership& m);
  /// Lets a moment pass; longer each time.
  void pause();

 private:
  pe& self_;
  std::string_view what_;
  bool sure_ = false;
  std::int64_t pause_ns_ = 10'000;
};

// The names of one node, and what its PEs have to do with them: makes the shards, publishes where
// the process lives, and clears the names of a process that ends.
//
// Owned by run(); outlives the node's PEs.
class name_repository final : public scheduler::process_layer {
 public:
  /// In a simulation its nodes share `cache`, which outlives them.
  explicit name_repository(membership_cache* cache = nullptr) noexcept : cache_(cache) {}

  void prepare(pe& at) override;
  void membership_changed(pe& at) noexcept override;
  void before_end(pe& at, scheduler::slot& s) noexcept override;
  void after_end(pe& at, address gone) noexcept override;

 private:
  membership_cache* cache_;
  wire::unique_ptr<name_records> records_;
};

/// Lets all shards make themselves complete, where programs can join the world and none has yet: so
/// they need not ask those that do, which may be stopped. By a process of the world's first node.
/// Does not wait for them.
void open_names(pe& self);
/// On the PE where the process lives. Parks. Throws name_taken, process_gone, usage_error, stopped.
void publish_here(std::string_view name, address process);
/// On the PE where the process lives. Parks. False if it did not have the name.
bool unpublish_here(std::string_view name, address process);

}  // namespace orrery::detail
