// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/access_record.hpp>
#include <orrery/shared/detail/axis.hpp>
#include <orrery/shared/detail/sharing_referee.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

namespace orrery {

/// The findings of `--orrery-check-sharing` so far, a line for each pair of places in the source
/// that access the same elements without an order between them; none if the program was not started
/// with it. Waits until all accesses so far are compared. Parks. Throws node_lost, stopped.
[[nodiscard]] std::vector<std::string> sharing_mistakes();

}  // namespace orrery

namespace orrery::detail {

struct shared_object;

/// "mm2.cpp:41 (read_cache)"
[[nodiscard]] std::string place_text(const std::source_location& where, const char* what);
/// An element was accessed by default. Does nothing where the program is not checked.
void note_element(const shared_object& o, std::uint64_t row, std::uint64_t column, access_kind k,
                  std::source_location where);

/// The program was started with --orrery-check-sharing.
[[nodiscard]] bool checks_sharing() noexcept;

/// The accesses of the processes of one PE to shared data, until they are given to the referee of
/// the object, the PE that made it.
///
/// Problem: an access by default is an element, and there may be millions between two barriers;
/// and a process that waits for a value looks at its element again and again. So accesses of one
/// strand from one place are put together as ranges as long as nothing changes what came before
/// them, and a referee is not told again what it has been told. Accesses leave when the PE's loop
/// has its next turn, or when those before them have come to the referee: a PE tells one batch at a
/// time. A process that tries to take a lock again and again makes accesses to one element that
/// differ only in what came before them: a batch has the first ones and the last.
///
/// Owned by the directory of its PE, if the program is checked; used on its thread.
class sharing_recorder {
 public:
  /// One element by default, now.
  void add(const shared_object& o, std::uint64_t number, access_kind k, const std::source_location& where);
  /// Notes the accesses of a scope or a copy.
  void add(const shared_object& o, access_record r);
  /// Gives all to the referees, and waits for them. Parks.
  void deliver();
  /// The same, and then what has come meanwhile, later.
  void deliver_in_turn();
  /// The same, and waits for what others deliver.
  void deliver_all();

  static constexpr std::uint32_t most_alike = 4;  ///< in a batch, that differ as said above

 private:
  struct place {
    shared_id id;
    std::uintptr_t where = 0;
    access_kind kind{};
    friend bool operator==(const place&, const place&) noexcept = default;
  };
  struct open_record {
    access_record record;
    judged_object about;
  };
  /// Accesses from one place with one version of the order.
  struct recent_accesses {
    std::uint64_t version = 0;  // 0: none
    place of;
    std::uint32_t open = 0;  // index into open_ + 1; 0: they have been told
    std::uint32_t alike = 1;
    std::uint64_t strand = 0;
    element_ranges told;
  };
  void begin(recent_accesses& r, const shared_object& o, std::uint64_t number, const std::source_location& where);
  void deliver_later();

  std::vector<open_record> open_;
  static constexpr std::size_t places = 64;
  static constexpr std::uint32_t looked_at = 4;  // that one may be in
  static constexpr std::size_t most_told = 16;  // ranges
  std::uint32_t next_looked_at_ = 0;  // to be given to a new one
  recent_accesses recent_[places];
  bool scheduled_ = false;
  std::uint32_t delivering_ = 0;
};

/// Accesses of a scope or a bulk transfer, from when it begins until it ends; held by the scope.
/// Does nothing, and costs a null pointer, where the program is not checked.
class watched_access {
 public:
  watched_access() noexcept;
  watched_access(const watched_access&) = delete;
  watched_access& operator=(const watched_access&) = delete;
  ~watched_access();
  /// `what` is the behaviour's name.
  void begin(const std::shared_ptr<const shared_object>& o, access_kind k, const std::source_location& where,
             const char* what);
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  /// Elements of a row that follow each other; only where it has begun.
  void add(std::uint64_t row, std::uint64_t column, std::uint64_t columns);
  /// The same of many rows.
  void add_rows(const axis_walk& rows, std::uint64_t column, std::uint64_t columns);
  /// Accesses that are added next come after those before.
  void add_now(std::uint64_t row, std::uint64_t column);
  /// Memory itself is shown until it ends.
  void is_view();
  /// Remembers what these elements are, whose rows lie `pitch` elements apart; end() adds those
  /// that have changed
  /// as written. They must stay there.
  void remember(const std::byte* elements, const axis_walk& rows, std::uint64_t column, std::uint64_t columns,
                std::uint64_t pitch);
  /// It is over. Does not park.
  void end() noexcept;

 private:
  struct state;
  wire::unique_ptr<state> state_;
};

}  // namespace orrery::detail
