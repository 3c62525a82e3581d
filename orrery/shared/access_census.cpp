// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/at_end.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/shared/access_census.hpp>
#include <orrery/shared/directory.hpp>
#include <orrery/shared/object.hpp>

#include <algorithm>
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

struct access_census::counted {
  used_object of;
  std::vector<std::uint32_t> read_in;  // by element: the phase
  own_range rows;
  own_range columns;
  std::vector<bool> far;  // by part: it belongs to another PE

  // This phase.
  std::uint32_t phase = 0;
  std::uint64_t members = 1;
  std::vector<place> places;
  std::vector<part_use> parts;
  std::vector<std::uint32_t> touched;
  std::uint64_t next_read = UINT64_MAX;
  std::uint64_t next_write = UINT64_MAX;
  std::uint64_t least_row = UINT64_MAX;
  std::uint64_t most_row = 0;
  std::uint64_t halo = 0;
  bool over_edges = false;

  void see(place p) {
    if (!places.empty() && places.back() == p) return;
    const auto at = std::ranges::find(places, p);
    if (at == places.end()) {
      places.push_back(p);
    } else {
      std::iter_swap(at, places.end() - 1);  // loops come back to the same few
    }
  }
  void read_far(std::uint64_t row, std::uint64_t column) {
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

access_census::counted& access_census::find(const shared_object& o) {
  if (last_ != nullptr && last_->of.id == o.about.id) return *last_;
  auto& entry = objects_[o.about.id];
  if (entry == nullptr) {
    entry = std::make_unique<counted>();
    counted& c = *entry;
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
    }
    for (std::uint32_t p = 0; p < l.parts(); ++p) c.far.push_back(p != o.own_part);
    c.parts.resize(l.parts());
    if (o.rows * o.columns <= most_stamped) c.read_in.resize(o.rows * o.columns);
  }
  last_ = entry.get();
  return *last_;
}

void access_census::add(const shared_object& o, const layout::place& at, std::uint64_t row, std::uint64_t column,
                        access_kind k, std::source_location where) {
  counted& c = find(o);
  if (c.phase != phase_) [[unlikely]] {
    end_phase(c);
    c.phase = phase_;
  }
  c.members = members_;
  c.see({where.file_name(), where.line(), where.column()});
  part_use& u = c.parts[at.part];
  if (u.all() == 0) c.touched.push_back(at.part);
  const std::uint64_t number = row * o.columns + column;
  if (k == access_kind::read || k == access_kind::element_read) {
    ++u.reads;
    if (number != c.next_read) ++u.read_runs;
    c.next_read = number + 1;
    if (c.read_in.empty()) {
      ++u.distinct_reads;
    } else if (c.read_in[number] != phase_) {
      c.read_in[number] = phase_;
      ++u.distinct_reads;
    }
    if (c.far[at.part]) c.read_far(row, column);
    return;
  }
  ++(k == access_kind::update ? u.changes : u.writes);
  if (number != c.next_write) ++u.write_runs;
  c.next_write = number + 1;
}

void access_census::end_phase(counted& c) {
  if (c.touched.empty()) return;
  std::vector<std::string> places;
  for (const place& p : c.places) {
    std::string_view file = p.file;
    file.remove_prefix(file.rfind('/') + 1);
    places.push_back(fmt::format("{}:{}:{}", file, p.line, p.column));
  }
  std::ranges::sort(places);
  auto use = std::ranges::find(c.of.uses, places, &object_use::places);
  if (use == c.of.uses.end()) {
    c.of.uses.emplace_back().places = std::move(places);
    use = c.of.uses.end() - 1;
  }
  ++use->phases;
  use->members = std::max(use->members, c.members);
  use->halo = std::max(use->halo, c.halo);
  use->over_edges |= c.over_edges;
  for (const std::uint32_t p : c.touched) use->parts[p].add(std::exchange(c.parts[p], {}));
  if (c.least_row != UINT64_MAX) {
    const layout& l = c.of.how;
    for (std::uint32_t p = 0; p < l.parts(); ++p) {
      if (!c.far[p]) continue;
      const std::uint64_t rows = l.rows.below(l.row_part(p), c.most_row + 1) - l.rows.below(l.row_part(p), c.least_row);
      if (rows != 0) use->parts[p].hull += rows * l.columns_of(p);
    }
  }
  c.places.clear();
  c.touched.clear();
  c.next_read = c.next_write = UINT64_MAX;
  c.least_row = UINT64_MAX;
  c.most_row = 0;
  c.halo = 0;
  c.over_edges = false;
}

void access_census::enter_phase(std::uint64_t team, std::uint64_t collective) {
  if (team == team_ && collective == collective_) {
    ++members_;
    return;
  }
  team_ = team;
  collective_ = collective;
  members_ = 1;
  ++phase_;
}

std::vector<used_object> access_census::take() {
  ++phase_;
  std::vector<used_object> all;
  for (auto& [id, c] : objects_) {
    end_phase(*c);
    all.push_back(c->of);
  }
  std::ranges::sort(all, {}, &used_object::id);
  return all;
}

bool counts_accesses() noexcept { return here_pe().settings().advise_for.has_value(); }

void enter_phase_of_team(std::uint64_t team, std::uint64_t collective) {
  if (!counts_accesses()) return;
  auto& census = shared_directory::of_this_pe().census;
  if (census == nullptr) census = std::make_unique<access_census>();
  census->enter_phase(team, collective);
}

}  // namespace orrery::detail
