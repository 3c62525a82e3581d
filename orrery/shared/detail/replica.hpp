// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/shared/detail/access.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orrery::detail {

/// A new value of one element, as the owner tells those who have a replica.
struct replica_update {
  std::uint32_t part = 0;
  std::uint64_t local = 0;
  std::uint64_t turn = 0;  ///< its place in the order of all updates of the part
  std::vector<std::byte> value;

  template <class A>
  void serialize(A& a) {
    a & part & local & turn & value;
  }
};

/// A copy of all elements of a vector on a PE that shares no memory with some owner of it.
///
/// Problem: a read must cost no message, and who has written an element must know that nobody reads
/// the old value any more. So each owner knows its readers and tells them of each write; the write
/// is complete when all have answered. While the copy is fetched, updates are kept and put into it
/// afterwards.
///
/// Owned by the open read-mostly scopes of its PE together; used on that PE only.
///
/// Invariants
///   R1  The owner numbers the updates of its part, and sends each to all who were readers then.
///   R2  An element has the value of the latest update that has arrived, or a later one: messages
///       may overtake each other, so an update is dropped if the copy of its element, or another
///       update of it, is newer.
class replica {
 public:
  replica(std::shared_ptr<const shared_object> o, std::uint64_t number);
  replica(const replica&) = delete;
  replica& operator=(const replica&) = delete;

  /// Elements in the order of their indices.
  [[nodiscard]] const std::byte* elements() const noexcept { return memory_.get(); }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] const shared_object& of() const noexcept { return *object_; }
  /// Parks until the copy is complete: the first caller fetches it, the others wait for that one.
  /// Throws node_lost, usage_error (destroyed), stopped.
  void await();
  /// An owner tells of a write. Does not park. Throws bad_message.
  void update(replica_update u);

  std::uint32_t scopes = 0;  ///< that are open

 private:
  struct part_state {
    std::uint64_t through = 0;  ///< all updates up to here have arrived
    std::map<std::uint64_t, std::uint64_t> beyond;  ///< others that have: turn and element
    std::vector<std::uint64_t> fetched;  ///< the turn of the owner when each piece was read
  };
  struct free_memory {
    void operator()(std::byte* p) const noexcept;
  };
  enum class state : std::uint8_t { empty, fetching, complete, failed };

  void fetch();
  void put(const replica_update& u);
  void store(std::uint32_t part, std::uint64_t local, const std::byte* value) noexcept;

  std::shared_ptr<const shared_object> object_;
  std::uint64_t number_;
  wire::unique_ptr<std::byte, free_memory> memory_;
  std::vector<part_state> parts_;
  std::vector<replica_update> early_;  ///< came while the copy was fetched
  state state_ = state::empty;
  std::exception_ptr failure_;
  std::deque<future_access<void>::owner> waiting_;
};

/// The read-mostly scopes of a PE: the replicas that it reads, and the readers of what it owns.
/// Owned by the PE's directory; used on its thread.
class replica_table {
 public:
  struct reader {
    std::uint32_t pe;
    std::uint64_t number;  ///< of the replica there
    friend bool operator==(const reader&, const reader&) = default;
  };
  /// The readers of the part of an object that this PE owns.
  struct audience {
    std::uint64_t turn = 0;
    std::vector<reader> readers;
  };

  /// The replica of this PE, made if there is none.
  [[nodiscard]] std::shared_ptr<replica> join(std::shared_ptr<const shared_object> o);
  /// The last scope that leaves ends the replica, and tells the owners, without waiting for them.
  void leave(const std::shared_ptr<replica>& r) noexcept;
  [[nodiscard]] replica* find(const shared_id& id, std::uint64_t number) const noexcept;
  void forget(const shared_id& id) noexcept { audiences.erase(id); }

  std::unordered_map<shared_id, audience> audiences;

 private:
  std::unordered_map<shared_id, std::shared_ptr<replica>> replicas_;
  std::uint64_t last_number_ = 0;
};

// Writes of a read-mostly scope, in a world of several domains: the owner writes, and all replicas
// have it when the function returns. They park and throw as those of access.hpp.

void write_replicated(const shared_object& o, std::uint64_t row, const void* value);
void change_replicated(const shared_object& o, std::uint64_t row, element_change what, scalar type, const void* operand,
                       void* old);
bool compare_exchange_replicated(const shared_object& o, std::uint64_t row, void* expected, const void* desired);

}  // namespace orrery::detail
