// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/detail/object.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace orrery::detail {

/// A rectangle of a shared object. For a vector: rows with one column.
struct region {
  std::uint64_t row = 0;
  std::uint64_t rows = 0;
  std::uint64_t column = 0;
  std::uint64_t columns = 1;

  template <class A>
  void serialize(A& a) {
    a & row & rows & column & columns;
  }
};

/// The rectangle of one part that lies in a region, in numbers within the part. Its rows follow
/// each other there, whatever the distribution.
struct part_region {
  std::uint32_t part = 0;
  std::uint64_t row = 0;
  std::uint64_t rows = 0;
  std::uint64_t column = 0;
  std::uint64_t columns = 0;
};
/// That of one part; without rows or columns if nothing of it lies in the region.
[[nodiscard]] part_region part_of_region(const layout& l, std::uint32_t part, const region& r);
/// There is such a part, and it has these rows and columns; for regions that come in messages.
[[nodiscard]] bool is_inside(const layout& l, const part_region& w);

/// Bytes from a row of a part to the next in the memory of its domain.
[[nodiscard]] std::uint64_t part_pitch(const shared_object& o, std::uint32_t part);
/// Where a piece begins in the memory of this domain, in which its part lies.
[[nodiscard]] std::byte* first_of(const shared_object& o, const part_region& w);

/// Throws std::out_of_range if the region is not inside.
void require_inside(const shared_object& o, const region& r);

/// Throws std::out_of_range if the element is not in the region that a scope is open for.
void require_in_scope(const shared_object& o, const region& r, std::uint64_t row, std::uint64_t column);

/// A region as memory here: its rows lie `pitch` elements apart, each in the order of its indices.
/// `first` is null if it does not lie so in this domain.
struct region_in_place {
  const std::byte* first = nullptr;
  std::uint64_t pitch = 0;
};
/// The region is inside.
[[nodiscard]] region_in_place find_in_place(const shared_object& o, const region& r);

/// Copies a region of a shared object to local memory, in the order of the indices: from memory
/// where it lies in this domain, by requests to the owners of the rest, many at a time and none
/// larger than a piece.
///
/// Owned by who wants the copy, and used on one PE. begin() asks, finish() waits: work may be done
/// in between. The destination must outlive it. Elements that others write meanwhile may be torn if
/// they are larger than a word.
class region_reader {
 public:
  region_reader() = default;
  region_reader(const region_reader&) = delete;
  region_reader& operator=(const region_reader&) = delete;

  /// `pitch`: bytes from a row of the destination to the next. May park while there is no room for
  /// requests. Throws std::out_of_range, node_lost.
  void begin(std::shared_ptr<const shared_object> from, const region& r, std::byte* to, std::uint64_t pitch);
  /// Parks until all is there. Throws node_lost, stopped, usage_error (destroyed meanwhile).
  void finish();

 private:
  struct request {
    part_region what;
    future<std::vector<std::byte>> answer;
  };
  void ask();
  void place(const part_region& what, const std::byte* elements, std::uint64_t from_pitch) const;

  std::shared_ptr<const shared_object> from_;
  region region_;
  std::byte* to_ = nullptr;
  std::uint64_t pitch_ = 0;
  std::deque<part_region> waiting_;
  std::deque<request> asked_;
};

/// Copies local memory to regions of shared objects. When begin() has returned, the memory may be
/// used for something else; when finish() has, everybody sees the elements.
///
/// Owned by who writes, and used on one PE.
class region_writer {
 public:
  explicit region_writer(const write_site& site) noexcept : site_(site) {}
  region_writer(const region_writer&) = delete;
  region_writer& operator=(const region_writer&) = delete;

  /// May park, and throws, as region_reader::begin; also usage_error if somebody views them. For
  /// any number of regions.
  void begin(const shared_object& to, const region& r, const std::byte* from, std::uint64_t pitch);
  /// Parks until all is there. Throws as region_reader::finish.
  void finish();

 private:
  void send(const shared_object& to, const region& r, const std::byte* from, std::uint64_t pitch);

  write_site site_;
  std::deque<future<void>> sent_;
};

/// Calls f(piece) for each part that the region meets; those of other domains cut into pieces of a
/// size that may travel.
void for_each_piece_of(const shared_object& o, const region& r, const std::function<void(const part_region&)>& f);
/// Copies a piece, which lies row after row, to where it belongs in the memory of the region.
void place_piece(const shared_object& o, const region& r, const part_region& what, const std::byte* elements,
                 std::uint64_t from_pitch, std::byte* to, std::uint64_t pitch);

/// Copies local memory to a region of a shared object: complete when it returns. Parks. Throws as
/// region_writer.
void write_region(const shared_object& o, const region& r, const std::byte* from, std::uint64_t pitch,
                  const write_site& site);
/// Writes one value to all elements, on all owners at once. Parks. Throws usage_error where
/// somebody views them.
void fill_object(const shared_id& id, std::span<const std::byte> value, const write_site& site);
/// The same at the owner of a part. Throws bad_message if it makes no sense.
void fill_at_owner(shared_id id, std::uint32_t part, std::span<const std::byte> value, std::string_view writer);

}  // namespace orrery::detail
