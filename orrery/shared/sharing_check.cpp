// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/at_end.hpp>
#include <orrery/process/future.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/causality.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/detail/sharing_referee.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

// records of a PE; then they are looked for no more, but begun anew
constexpr std::size_t most_open = 4096;

scheduler::causality& order_of_this_pe() { return *here_pe().order().recorder(); }

sharing_recorder& recorder_of_this_pe() {
  auto& r = shared_directory::of_this_pe().recorder;
  if (r == nullptr) r = wire::make_unique<sharing_recorder>();
  return *r;
}

access_record begin_record(access_kind k, const std::source_location& where, const char* what) {
  access_record r;
  r.kind = k;
  r.pe = here_pe().id();
  (void)order_of_this_pe().now();
  r.before = order_of_this_pe().clock();
  r.where = place_text(where, what);
  return r;
}

void end_record(access_record& r) {
  const auto stamp = order_of_this_pe().now();
  r.strand = stamp.strand;
  r.time = stamp.time;
}

judged_object judged(const shared_object& o) { return {o.about.id, o.about.label, o.columns, o.columns == 1}; }

void judge_here(const judged_object& o, std::vector<access_record> records) {
  auto& referee = shared_directory::of_this_pe().referee;
  if (referee == nullptr) referee = wire::make_unique<sharing_referee>();
  referee->judge(o, std::move(records));
  // Records may come when it has ended; this PE has made it.
  const auto& d = shared_directory::of_this_pe();
  if (o.id.maker == here_pe().id() && !d.has_made.contains(o.id)) referee->end(o.id);
}

void deliver_in_turn_here() { recorder_of_this_pe().deliver_in_turn(); }
void deliver_all_here() { recorder_of_this_pe().deliver_all(); }
/// A program with mistakes has not done what it was to do, whatever it says.
int tell_mistakes(int result) {
  if (!checks_sharing()) return result;
  const std::size_t n = sharing_mistakes().size();
  if (n == 0) return result;
  std::fputs(fmt::format("orrery: nothing orders accesses to shared data at {} pair{} of places{}\n", n,
                         n == 1 ? "" : "s", result == 0 ? ", so the exit code is 1" : "")
                 .c_str(),
             stderr);
  return result == 0 ? 1 : result;
}
[[maybe_unused]] const bool told_at_the_end = at_end_of_main(&tell_mistakes);

std::vector<std::string> mistakes_here() {
  const auto& referee = shared_directory::of_this_pe().referee;
  return referee == nullptr ? std::vector<std::string>{} : referee->mistakes();
}

}  // namespace

std::string place_text(const std::source_location& where, const char* what) {
  std::string_view file = where.file_name();
  file.remove_prefix(file.rfind('/') + 1);
  if (file.empty()) return what;
  return fmt::format("{}:{} ({})", file, where.line(), what);
}

bool checks_sharing() noexcept { return here_pe().order().recorder() != nullptr; }

// --- the recorder --------------------------------------------------------------------------------

void sharing_recorder::add(const shared_object& o, std::uint64_t number, access_kind k,
                           const std::source_location& where) {
  static_assert(sizeof where == sizeof(std::uintptr_t), "a place is one pointer, which tells places apart");
  const auto stamp = order_of_this_pe().now();
  const place of{o.about.id, std::bit_cast<std::uintptr_t>(where), k};
  const std::uint64_t hash = ((of.where >> 3) + of.id.number + static_cast<std::uint64_t>(k)) * 0x9E3779B97F4A7C15U;
  recent_accesses* alike = nullptr;
  for (std::uint32_t i = 0; i < looked_at; ++i) {
    recent_accesses& r = recent_[((hash >> 32) + i) % places];
    if (!(r.of == of)) continue;
    if (r.version == stamp.version) {
      if (r.open != 0) return open_[r.open - 1].record.elements.add(number, number + 1);
      return r.told.has(number) ? void() : begin(r, o, number, where);
    }
    if (r.version != 0 && r.strand == stamp.strand) alike = &r;
  }
  recent_accesses& r = alike != nullptr ? *alike : recent_[((hash >> 32) + next_looked_at_++ % looked_at) % places];
  const bool was_open = alike != nullptr && r.open != 0 && open_[r.open - 1].record.elements.is_only(number);
  r.version = stamp.version;
  r.of = of;
  r.strand = stamp.strand;
  r.told = {};
  r.alike = was_open ? r.alike + 1 : 1;
  if (r.alike <= most_alike) return begin(r, o, number, where);
  access_record& last = open_[r.open - 1].record;
  last.before = order_of_this_pe().clock();
  last.time = stamp.time;
}

void sharing_recorder::begin(recent_accesses& r, const shared_object& o, std::uint64_t number,
                             const std::source_location& where) {
  const access_kind k = r.of.kind;
  access_record record = begin_record(k, where, k == access_kind::update ? "change" : "element");
  end_record(record);
  record.elements.add(number, number + 1);
  open_.push_back({std::move(record), judged(o)});
  r.open = static_cast<std::uint32_t>(open_.size());
  deliver_later();
}

void sharing_recorder::add(const shared_object& o, access_record r) {
  if (r.elements.empty()) return;
  open_.push_back({std::move(r), judged(o)});
  deliver_later();
}

void sharing_recorder::deliver_later() {
  if (scheduled_ && open_.size() % most_open != 0) return;
  scheduled_ = true;
  // The function that delivers accesses nothing. If it were told of each look, each would be new.
  const scheduler::causality::request_only quiet(&order_of_this_pe());
  try {
    post_call<&deliver_in_turn_here>(here());
  } catch (const error&) {  // the runtime ends: nobody will read what is found
  }
}

void sharing_recorder::deliver() {
  std::vector<open_record> all = std::exchange(open_, {});
  for (open_record& r : all) r.record.elements.tidy();
  for (recent_accesses& r : recent_) {
    if (r.open == 0) continue;
    const element_ranges& now = all[std::exchange(r.open, 0) - 1].record.elements;
    if (r.told.count() + now.count() > most_told) r.told = {};
    if (now.count() <= most_told) r.told.add(now);
  }
  struct batch {
    judged_object of;
    std::vector<access_record> records;
  };
  std::map<shared_id, batch> batches;
  for (open_record& r : all) {
    batch& b = batches[r.about.id];
    b.of = std::move(r.about);
    b.records.push_back(std::move(r.record));
  }
  struct count {
    std::uint32_t& of;
    explicit count(std::uint32_t& n) : of(n) { ++of; }
    count(const count&) = delete;
    ~count() { --of; }
  } const busy(delivering_);
  for (auto& [id, b] : batches) {
    try {
      call<&judge_here>(orrery::pe(id.maker), b.of, b.records);
    } catch (const node_lost&) {  // the objects of that node are gone, too
    }
  }
}

void sharing_recorder::deliver_in_turn() {
  try {
    deliver();
  } catch (...) {
    scheduled_ = false;
    throw;
  }
  scheduled_ = false;
  if (!open_.empty()) deliver_later();
}

void sharing_recorder::deliver_all() {
  do {
    deliver();
    while (delivering_ != 0) here_pe().yield();
  } while (!open_.empty());
}

// --- scopes --------------------------------------------------------------------------------------

struct watched_access::state {
  std::shared_ptr<const shared_object> object;
  access_record record;
  std::vector<access_record> earlier;
  std::uint64_t version = 0;  // of what is added now
  // The sets that are compared at the end.
  std::source_location where;
  const char* what = "";
  const std::byte* elements = nullptr;
  std::vector<std::byte> copy;
  axis_walk rows;
  std::uint64_t column = 0;
  std::uint64_t columns = 0;
  std::uint64_t pitch = 0;

  void add_changed(access_record& to) const {
    const std::uint64_t size = object->element_bytes();
    std::uint64_t at = 0;
    for (const std::uint64_t row : rows) {
      for (std::uint64_t j = 0; j < columns; ++j, at += size)
        if (std::memcmp(elements + at, copy.data() + at, size) != 0) {
          const std::uint64_t number = row * object->columns + column + j;
          to.elements.add(number, number + 1);
        }
      at += (pitch - columns) * size;
    }
  }
};

watched_access::watched_access() noexcept = default;
watched_access::~watched_access() { end(); }

void watched_access::begin(const std::shared_ptr<const shared_object>& o, access_kind k,
                           const std::source_location& where, const char* what) {
  if (!checks_sharing()) return;
  state_ = wire::make_unique<state>();
  state_->object = o;
  state_->where = where;
  state_->what = what;
  state_->record = begin_record(k, where, what);
}

void watched_access::add(std::uint64_t row, std::uint64_t column, std::uint64_t columns) {
  const std::uint64_t first = row * state_->object->columns + column;
  state_->record.elements.add(first, first + columns);
}

void watched_access::add_rows(const axis_walk& rows, std::uint64_t column, std::uint64_t columns) {
  for (const std::uint64_t row : rows) add(row, column, columns);
}

void watched_access::add_now(std::uint64_t row, std::uint64_t column) {
  const auto stamp = order_of_this_pe().now();
  if (stamp.version != state_->version) {
    state_->version = stamp.version;
    if (!state_->record.elements.empty()) state_->earlier.push_back(state_->record);
    state_->record.elements = {};
    state_->record.before = order_of_this_pe().clock();
  }
  add(row, column, 1);
}

void watched_access::is_view() {
  state_->record.view = true;
  order_of_this_pe().tick();  // its own process comes after the beginning
}

void watched_access::remember(const std::byte* elements, const axis_walk& rows, std::uint64_t column,
                              std::uint64_t columns, std::uint64_t pitch) {
  state_->elements = elements;
  state_->rows = rows;
  state_->column = column;
  state_->columns = columns;
  state_->pitch = pitch;
  if (elements != nullptr && rows.size() != 0)
    state_->copy.assign(elements, elements + ((rows.size() - 1) * pitch + columns) * state_->object->element_bytes());
}

void watched_access::end() noexcept {
  const wire::unique_ptr<state> s = std::move(state_);
  if (s == nullptr || here_pe().active() == nullptr) return;
  try {
    if (s->record.view) order_of_this_pe().tick();
    std::vector<access_record> all = std::move(s->earlier);
    if (!s->copy.empty()) {
      access_record written = s->record;
      written.kind = access_kind::write;
      written.elements = {};
      s->add_changed(written);
      all.push_back(std::move(written));
    }
    all.push_back(std::move(s->record));
    for (access_record& r : all) {
      end_record(r);
      recorder_of_this_pe().add(*s->object, std::move(r));
    }
  } catch (const std::exception&) {  // no memory for it: this one is not checked
  }
}

void note_element(const shared_object& o, std::uint64_t row, std::uint64_t column, access_kind k,
                  std::source_location where) {
  if (here_pe().active() == nullptr || here_pe().order().recorder() == nullptr) return;
  recorder_of_this_pe().add(o, row * o.columns + column, k, where);
}

}  // namespace orrery::detail

namespace orrery {

std::vector<std::string> sharing_mistakes() {
  if (!detail::checks_sharing()) return {};
  std::vector<future<void>> delivered;
  for (const std::uint32_t p : program_pes()) delivered.push_back(start_call<&detail::deliver_all_here>(pe(p)));
  for (auto& f : delivered) f.get();
  std::vector<std::string> all;
  for (const std::uint32_t p : program_pes())
    for (std::string& m : call<&detail::mistakes_here>(pe(p))) all.push_back(std::move(m));
  return all;
}

}  // namespace orrery
