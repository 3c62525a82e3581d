// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/layout.hpp>
#include <orrery/shared/detail/memory.hpp>
#include <orrery/shared/detail/shared_id.hpp>
#include <orrery/wire/containers.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Shared objects, without their types: elements are bytes of a size.
//
// Problem: a handle is a small value that anybody may get, but reading an element must cost no
// message where its memory is at hand, and the object must end everywhere when it is destroyed. So
// each PE that uses an object has a `shared_object`: the layout, and where the elements on its
// machine lie. Three PEs have a part in its life:
//   the maker, which made it, knows all nodes that use it;
//   the keeper of each node, its first PE, holds the node's mapping and knows the node's PEs that
//   use it;
//   the owner of a part answers for its elements to other machines.
// A PE that meets an unknown id asks its keeper, and the keeper the maker.

namespace orrery::detail {

struct counted_object;

/// The maker's description of an object.
struct shared_description {
  shared_id id;
  std::string label;  ///< "shared vector made at mm2.cpp:12", for errors
  layout how;
  std::vector<std::uint32_t> domains;  ///< of each part: PEs of one domain share memory
  std::uint32_t held_size = 0;  ///< that its owner holds for each element beside this memory

  template <class A>
  void serialize(A& a) {
    a & id & label & how & domains & held_size;
  }
};

/// An object as one PE uses it. Owned by the PE's directory and by the open scopes of its
/// processes; used on that PE only. Nothing changes in it but `counts`, which is set once, and
/// `whole`, which ends when an owner is lost.
struct shared_object {
  // The members that an access by default reads, in one cache line.
  /// All elements in the order of their indices, if they are so here, nobody watches, and all
  /// owners are there.
  mutable std::byte* whole = nullptr;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::size_t bytes = 1;  ///< of an element

  shared_description about;
  std::shared_ptr<shared_memory> memory;  ///< of this domain; null if no part lies here
  std::vector<std::byte*> base;  ///< of each part; null if it lies in another domain
  std::uint32_t own_part = 0;  ///< of this PE; parts() if it owns none
  bool watched = false;  ///< accesses to elements are checked or counted
  bool only_checked = false;  ///< not counted, and `in_order` is there
  /// Accesses are only counted, and `in_order` is there; of the PE's census.
  mutable counted_object* counts = nullptr;
  std::byte* in_order = nullptr;  ///< `whole`, also if somebody watches
  mutable std::shared_ptr<void> held;  ///< elements that this PE holds as objects; see held.hpp

  [[nodiscard]] const layout& how() const noexcept { return about.how; }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return bytes; }
};

/// The domain of a PE: those of one domain share memory. Nodes of one machine do, simulated ones
/// never.
[[nodiscard]] std::uint32_t domain_of(std::uint32_t pe);

/// All PEs of the world are in one domain.
[[nodiscard]] bool one_domain();

/// Makes an object: parks until its memory is there on all machines. Throws usage_error,
/// std::bad_alloc, world_error, node_lost, stopped.
[[nodiscard]] shared_id make_shared_object(layout how, std::string label, std::uint32_t held_size);
/// Ends it everywhere; parks. Memory that open scopes use stays until they end. `where`, such as
/// "mm2.cpp:40", is told to who uses it later. Throws as find_unknown_object.
void destroy_shared_object(const shared_id& id, std::string_view where);

/// An object that is not in the directory of this PE (see find_object of directory.hpp): asks for
/// it. Parks. Throws usage_error for a null handle and for an object that was destroyed, node_lost.
[[nodiscard]] const shared_object& find_unknown_object(const shared_id& id);
/// The object as this PE knows it, to be kept. May park and throws as find_unknown_object.
[[nodiscard]] std::shared_ptr<const shared_object> hold_object(const shared_id& id);

/// Throws node_lost if a PE that owns elements is gone.
void require_owners(const shared_object& o);
/// The same of the elements of a region.
void require_owners(const shared_object& o, std::uint64_t row, std::uint64_t rows, std::uint64_t column,
                    std::uint64_t columns);
/// Throws node_lost if the owner of the part is gone.
void require_owner(const shared_object& o, std::uint32_t part);

[[noreturn]] void throw_outside(const shared_object& o, std::uint64_t row, std::uint64_t column);
/// Throws usage_error if there is room for a halo between the rows; `what` needs them without.
void require_no_halo(const shared_object& o, const char* what);
struct region;
[[noreturn]] void throw_outside_matrix(const shared_object& o, const region& r);
[[noreturn]] void throw_outside_rows(const shared_object& o, std::uint64_t first, std::uint64_t count);

}  // namespace orrery::detail
