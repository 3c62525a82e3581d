// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/here_pe.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/wait_watcher.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/replica.hpp>
#include <orrery/shared/detail/team_gather.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace orrery::detail {

class access_census;
class sharing_recorder;
class sharing_referee;

/// The shared objects of one PE.
///
/// Problem: each access by default looks its object up. So the last objects lie in a small table
/// that is indexed by a part of the id, and the others behind it in a hash table.
///
/// Owned by the PE as the state of its layer; used on its thread.
///
/// Invariant: an entry of the small table is in the hash table, too.
class shared_directory final : public scheduler::layer_state, scheduler::wait_watcher {
 public:
  shared_directory();
  ~shared_directory() override;
  /// The keeper's entry of an object.
  struct kept {
    shared_description about;
    std::shared_ptr<shared_memory> memory;
    std::vector<std::uint32_t> users;  ///< PEs of this node, but for the keeper itself
  };
  /// The maker's entry of an object.
  struct made {
    shared_description about;
    std::unordered_map<std::uint32_t, memory_name> memories;  ///< of each domain
    std::vector<std::uint32_t> keepers;  ///< of the nodes that use it
  };

  /// An object that processes of this PE have asked for, and wait to hear of. It may be destroyed
  /// behind the answer, before they go on.
  struct asked {
    std::uint32_t processes = 0;
    bool dropped = false;
  };

  /// An object that was destroyed, for errors.
  struct ended {
    shared_id id;
    std::string label;
    std::string destroyed_at;
  };
  static constexpr std::size_t most_ended = 256;

  [[nodiscard]] static shared_directory& of_this_pe() {
    auto& state = here_pe().layers().of(scheduler::upper_layer::shared);
    if (state == nullptr) [[unlikely]]
      state = wire::make_unique<shared_directory>();
    return static_cast<shared_directory&>(*state);
  }

  /// Null if this PE has used nothing shared yet.
  [[nodiscard]] static const shared_directory* of_this_pe_if_any() {
    return static_cast<const shared_directory*>(here_pe().layers().of(scheduler::upper_layer::shared).get());
  }

  /// Null if it is not among those that were used last.
  [[nodiscard]] const shared_object* find_recent(const shared_id& id) const noexcept {
    const recent_entry& r = recent_[id.number % recent_.size()];
    return r.id == id && r.object != nullptr ? r.object->get() : nullptr;
  }
  [[nodiscard]] const std::shared_ptr<const shared_object>* find(const shared_id& id) noexcept {
    const recent_entry& r = recent_[id.number % recent_.size()];
    if (r.id == id && r.object != nullptr) [[likely]]
      return r.object;
    return find_slowly(id);
  }
  const std::shared_ptr<const shared_object>* add(std::shared_ptr<const shared_object> o);
  void remove(const shared_id& id) noexcept;
  [[nodiscard]] std::uint32_t new_number() noexcept { return ++last_number_; }

  std::unordered_map<shared_id, kept> keeps;
  std::unordered_map<shared_id, made> has_made;
  std::unordered_map<shared_id, asked> asks_for;
  std::deque<ended> has_ended;  ///< the last of those that it made, or as for a lost maker
  replica_table replicas;
  gathered_pieces gathers;
  wire::unique_ptr<sharing_recorder> recorder;  ///< of what processes here access, if it is checked
  wire::unique_ptr<access_census> census;  ///< of the same, if it is counted
  wire::unique_ptr<sharing_referee> referee;  ///< of the objects that this PE has made

 private:
  // A writer of an element of a lost PE is to hear of the loss: accesses go by find() from now on.
  void pes_lost(scheduler::pe& self) noexcept override;
  void cancel_waits(scheduler::pe&) noexcept override {}
  void process_ended(const address& gone) noexcept override { gathers.forget(gone); }

  struct recent_entry {
    shared_id id;
    const std::shared_ptr<const shared_object>* object = nullptr;
  };
  const std::shared_ptr<const shared_object>* find_slowly(const shared_id& id) noexcept;

  std::array<recent_entry, 64> recent_;
  std::unordered_map<shared_id, std::shared_ptr<const shared_object>> objects_;
  std::uint32_t last_number_ = 0;
};

/// The object as this PE knows it; valid until the process parks. May park at the first use on a
/// PE. Throws usage_error for a null handle and for an object that was destroyed, node_lost.
[[nodiscard]] inline const shared_object& find_object(const shared_id& id) {
  if (const auto* o = shared_directory::of_this_pe().find(id)) [[likely]]
    return **o;
  return find_unknown_object(id);
}

}  // namespace orrery::detail
