// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/at_end.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/shared/detail/access_census.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

struct place {
  const char* file;
  std::uint32_t line;
  std::uint32_t column;
  friend bool operator==(const place&, const place&) noexcept = default;
};

/// The rows or columns of this PE, [first, first + count) of `size`.
struct own_range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t size = 0;

  struct distance {
    std::uint64_t of;
    bool over_edge;
  };
  [[nodiscard]] distance to(std::uint64_t i) const noexcept {
    const std::uint64_t end = first + count;
    if (i >= first && i < end) return {0, false};
    const std::uint64_t straight = i < first ? first - i : i - end + 1;
    const std::uint64_t around = i < first ? i + size - end + 1 : first + size - i;
    return straight <= around ? distance{straight, false} : distance{around, true};
  }
};

// Here and not beside tell_advice, whose file is linked only where something refers to it.
[[maybe_unused]] const bool told_at_the_end = at_end_of_main(&tell_advice);

}  // namespace

/// The counts of one object on one PE.
struct counted_object {
  used_object of;
  std::vector<std::uint32_t> read_in;  // by element: the phase
  own_range rows;
  own_range columns;
  std::uint64_t own_rows = 0;  // of what this PE owns, if that is one rectangle
  std::vector<std::uint8_t> far;  // by part: it belongs to another PE

  const std::uint32_t* now = nullptr;  // the number of the phase that it is
  const std::vector<std::uint32_t>* members_in = nullptr;  // by phase

  // This phase.
  std::uint32_t phase = 0;
  std::array<std::uintptr_t, 64> seen_lately{};  // places
  std::vector<place> places;
  std::vector<part_use> parts;
  std::uint32_t own_part = 0;
  part_use* own_use = nullptr;
  std::uint32_t* stamps = nullptr;  // read_in, if it has elements
  std::vector<std::uint32_t> touched;
  std::uint64_t next_read = UINT64_MAX;
  std::uint64_t next_write = UINT64_MAX;
  std::uint64_t least_row = UINT64_MAX;
  std::uint64_t most_row = 0;
  std::uint64_t halo = 0;
  bool over_edges = false;

  void see(const std::source_location& where) {
    static_assert(sizeof where == sizeof(const void*), "a place is one pointer, which tells places apart");
    const auto key = std::bit_cast<std::uintptr_t>(where);
    std::uintptr_t& lately = seen_lately[key / 8 % seen_lately.size()];
    if (lately == key) return;
    lately = key;
    const place p{where.file_name(), where.line(), where.column()};
    if (std::ranges::find(places, p) == places.end()) places.push_back(p);
  }
  [[nodiscard]] bool owns(std::uint64_t row, std::uint64_t column) const noexcept {
    return row - rows.first < own_rows && column - columns.first < columns.count;
  }
  /// An element of this PE's rectangle, from a place that this phase has seen lately.
  [[nodiscard]] bool knows(std::uint64_t row, std::uint64_t column, const std::source_location& where) const noexcept {
    const auto key = std::bit_cast<std::uintptr_t>(where);
    return phase == *now && seen_lately[key / 8 % seen_lately.size()] == key && owns(row, column);
  }
  void follow_read(part_use& u, std::uint64_t number) {
    ++u.reads;
    u.read_runs += number != next_read ? 1 : 0;
    next_read = number + 1;
    if (stamps == nullptr) [[unlikely]] {
      ++u.distinct_reads;
      return;
    }
    u.distinct_reads += stamps[number] != phase ? 1 : 0;
    stamps[number] = phase;
  }
  void follow_write(part_use& u, std::uint64_t number) {
    u.write_runs += number != next_write ? 1 : 0;
    next_write = number + 1;
  }
  void end_phase();
  /// An element of another PE.
  void reach(std::uint64_t row, std::uint64_t column) {
    least_row = std::min(least_row, row);
    most_row = std::max(most_row, row);
    const auto down = rows.to(row);
    const auto across = columns.to(column);
    halo = std::max({halo, down.of, across.of});
    over_edges |= down.over_edge || across.over_edge;
  }
};

void part_use::add(const part_use& more) noexcept {
  reads += more.reads;
  writes += more.writes;
  changes += more.changes;
  distinct_reads += more.distinct_reads;
  read_runs += more.read_runs;
  write_runs += more.write_runs;
  hull += more.hull;
}

access_census::access_census() = default;
access_census::~access_census() = default;

counted_object& access_census::find(const shared_object& o) {
  auto& entry = objects_[o.about.id];
  if (entry == nullptr) {
    entry = wire::make_unique<counted_object>();
    counted_object& c = *entry;
    const layout& l = o.how();
    c.of.id = o.about.id;
    c.of.label = o.about.label;
    c.of.how = l;
    c.rows.size = l.rows.size();
    c.columns.size = l.columns.size();
    if (o.own_part < l.parts() && l.elements_of(o.own_part) != 0) {
      const std::uint32_t rp = l.row_part(o.own_part);
      const std::uint32_t cp = l.column_part(o.own_part);
      c.rows = {l.rows.index(rp, 0), l.rows.count(rp), l.rows.size()};
      c.columns = {l.columns.index(cp, 0), l.columns.count(cp), l.columns.size()};
      if (l.rows.contiguous() && l.columns.contiguous()) c.own_rows = c.rows.count;
    }
    for (std::uint32_t p = 0; p < l.parts(); ++p) c.far.push_back(p != o.own_part ? 1 : 0);
    c.parts.resize(l.parts());
    c.own_part = o.own_part;
    if (c.own_rows != 0) c.own_use = &c.parts[o.own_part];
    c.now = &phase_;
    c.members_in = &members_;
    if (o.rows * o.columns <= most_stamped) c.read_in.resize(o.rows * o.columns);
    if (!c.read_in.empty()) c.stamps = c.read_in.data();
  }
  return *entry;
}

namespace {

/// Where the access is counted; begins a phase if it is the first one of it.
struct counted_part {
  part_use& use;
  bool far;
};
[[gnu::always_inline]] inline counted_part find_part(counted_object& c, const shared_object& o, std::uint64_t row,
                                                     std::uint64_t column, const std::source_location& where) {
  if (c.phase != *c.now) [[unlikely]] {
    c.end_phase();
    c.phase = *c.now;
  }
  c.see(where);
  if (c.owns(row, column)) return {*c.own_use, false};
  const std::uint32_t part = o.how().find(row, column).part;
  part_use& use = c.parts[part];
  if (use.all() == 0) c.touched.push_back(part);
  return {use, c.far[part] != 0};
}

}  // namespace

namespace {

[[gnu::noinline]] void count_read_anywhere(counted_object& c, const shared_object& o, std::uint64_t row,
                                           std::uint64_t column, std::source_location where) {
  const counted_part part = find_part(c, o, row, column, where);
  c.follow_read(part.use, row * o.columns + column);
  if (part.far) c.reach(row, column);
}
[[gnu::noinline]] void count_write_anywhere(counted_object& c, const shared_object& o, std::uint64_t row,
                                            std::uint64_t column, std::source_location where) {
  const counted_part part = find_part(c, o, row, column, where);
  ++part.use.writes;
  c.follow_write(part.use, row * o.columns + column);
  if (part.far) c.reach(row, column);
}

}  // namespace

// The usual case without a call, so that these need no stack.
void count_read(counted_object& c, const shared_object& o, std::uint64_t row, std::uint64_t column,
                std::source_location where) {
  if (!c.knows(row, column, where)) [[unlikely]]
    return count_read_anywhere(c, o, row, column, where);
  c.follow_read(*c.own_use, row * o.columns + column);
}

void count_write(counted_object& c, const shared_object& o, std::uint64_t row, std::uint64_t column,
                 std::source_location where) {
  if (!c.knows(row, column, where)) [[unlikely]]
    return count_write_anywhere(c, o, row, column, where);
  ++c.own_use->writes;
  c.follow_write(*c.own_use, row * o.columns + column);
}

namespace {

void count_change(counted_object& c, const shared_object& o, std::uint64_t row, std::uint64_t column,
                  std::source_location where) {
  part_use& u = find_part(c, o, row, column, where).use;
  ++u.changes;
  c.follow_write(u, row * o.columns + column);
}

}  // namespace

void access_census::add(const shared_object& o, std::uint64_t row, std::uint64_t column, access_kind k,
                        std::source_location where) {
  counted_object& c = find(o);
  // else the checker wants to know, too, or the element is not to be found so easily
  if (here_pe().order().recorder() == nullptr && o.in_order != nullptr) o.counts = &c;
  if (k == access_kind::write) return count_write(c, o, row, column, where);
  if (k == access_kind::update) return count_change(c, o, row, column, where);
  count_read(c, o, row, column, where);
}

void counted_object::end_phase() {
  if (own_use != nullptr && own_use->all() != 0) touched.push_back(own_part);
  if (touched.empty()) return;
  std::vector<std::string> names;
  for (const place& p : places) {
    std::string_view file = p.file;
    file.remove_prefix(file.rfind('/') + 1);
    names.push_back(fmt::format("{}:{}:{}", file, p.line, p.column));
  }
  std::ranges::sort(names);
  auto use = std::ranges::find(of.uses, names, &object_use::places);
  if (use == of.uses.end()) {
    of.uses.emplace_back().places = std::move(names);
    use = of.uses.end() - 1;
  }
  ++use->phases;
  use->members = std::max<std::uint64_t>(use->members, (*members_in)[phase]);
  use->halo = std::max(use->halo, halo);
  use->over_edges |= over_edges;
  for (const std::uint32_t p : touched) use->parts[p].add(std::exchange(parts[p], {}));
  if (least_row != UINT64_MAX) {
    const layout& l = of.how;
    for (std::uint32_t p = 0; p < l.parts(); ++p) {
      if (!far[p]) continue;
      const std::uint64_t seen = l.rows.below(l.row_part(p), most_row + 1) - l.rows.below(l.row_part(p), least_row);
      if (seen != 0) use->parts[p].hull += seen * l.columns_of(p);
    }
  }
  places.clear();
  seen_lately = {};
  touched.clear();
  next_read = next_write = UINT64_MAX;
  least_row = UINT64_MAX;
  most_row = 0;
  halo = 0;
  over_edges = false;
}

void access_census::enter_phase(std::uint64_t team, std::uint64_t collective) {
  if (team == team_ && collective == collective_) {
    ++members_[phase_];
    return;
  }
  team_ = team;
  collective_ = collective;
  next_phase();
}

void access_census::next_phase() {
  ++phase_;
  members_.push_back(1);
}

std::vector<used_object> access_census::take() {
  next_phase();
  std::vector<used_object> all;
  for (auto& [id, c] : objects_) {
    c->end_phase();
    all.push_back(c->of);
  }
  std::ranges::sort(all, {}, &used_object::id);
  return all;
}

bool counts_accesses() noexcept { return here_pe().settings().advise_for.has_value(); }

void enter_phase_of_team(std::uint64_t team, std::uint64_t collective) {
  if (!counts_accesses()) return;
  auto& census = shared_directory::of_this_pe().census;
  if (census == nullptr) census = wire::make_unique<access_census>();
  census->enter_phase(team, collective);
}

}  // namespace orrery::detail
