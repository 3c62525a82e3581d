// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/here_pe.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/scope.hpp>
#include <orrery/shared/shared_element.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

template <std::size_t N>
using text = std::atomic<std::uint64_t>[N];

template <std::size_t N>
std::string read_text(const text<N>& from) {
  char all[sizeof from];
  for (std::size_t i = 0; i < N; ++i) {
    const std::uint64_t word = from[i].load(std::memory_order_relaxed);
    std::memcpy(all + i * sizeof word, &word, sizeof word);
  }
  return {all, ::strnlen(all, sizeof all)};  // another node may have written nonsense
}

template <std::size_t N>
void write_text(text<N>& to, std::string words) {
  words.resize(sizeof to);
  for (std::size_t i = 0; i < N; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, words.data() + i * sizeof word, sizeof word);
    to[i].store(word, std::memory_order_relaxed);
  }
}

/// The counts of one node, as one word.
struct node_scopes {
  std::uint64_t word = 0;

  [[nodiscard]] std::uint32_t holder() const noexcept { return static_cast<std::uint32_t>(word); }
  [[nodiscard]] std::uint64_t count(scope_guard::kind k) const noexcept { return word >> shift(k) & most; }
  [[nodiscard]] node_scopes plus_one(scope_guard::kind k) const noexcept {
    return {word + (std::uint64_t{1} << shift(k))};
  }
  [[nodiscard]] node_scopes minus_one(scope_guard::kind k) const noexcept {
    const node_scopes left{word - (std::uint64_t{1} << shift(k))};
    return left.word >> 32 == 0 ? node_scopes{} : left;
  }
  static constexpr std::uint64_t most = 0xffff;
  static int shift(scope_guard::kind k) noexcept { return k == scope_guard::kind::view ? 32 : 48; }
};

bool is_there(std::uint32_t holder) { return here_pe().owner().reachable(holder - 1); }
/// The first PE of this node + 1.
std::uint32_t this_node() {
  scheduler::node& n = here_pe().owner();
  return n.pes_of(n.node_of(here_pe().id())).first + 1;
}

constexpr std::uint64_t listed = std::uint64_t{1} << 32;  // its rectangle is there
constexpr std::uint64_t writes = std::uint64_t{1} << 33;
std::uint64_t flags_of(scope_guard::kind k) { return k == scope_guard::kind::view ? listed : listed | writes; }

bool overlap(const scope_guard::rectangle& a, const scope_guard::rectangle& b) {
  const auto meet = [](std::uint64_t first, std::uint64_t n, std::uint64_t other, std::uint64_t m) {
    return n != 0 && m != 0 && first < other + m && other < first + n;
  };
  return meet(a.row, a.rows, b.row, b.rows) && meet(a.column, a.columns, b.column, b.columns);
}

/// Lists a scope of a part. Its number; memory_head::parts: there is no room.
std::size_t list_part(memory_head& h, scope_guard::kind k, const scope_guard::rectangle& r, const std::string& where) {
  const std::uint32_t self = this_node();
  for (std::size_t i = 0; i < memory_head::parts; ++i) {
    memory_head::part_scope& s = h.part[i];
    std::uint64_t before = s.holder.load();
    const auto holder = static_cast<std::uint32_t>(before);
    if (holder != 0 && (holder == self || is_there(holder))) continue;
    if (!s.holder.compare_exchange_strong(before, self)) continue;
    s.row = r.row;
    s.rows = r.rows;
    s.column = r.column;
    s.columns = r.columns;
    write_text(s.at, where);
    // SYNC: seq_cst, with is_listed in the other kind of scope: one of two that open at once sees
    // the other.
    s.holder.store(self | flags_of(k));
    return i;
  }
  return memory_head::parts;
}

/// A part that some living node has open, and that has elements of the rectangle; null: none.
const memory_head::part_scope* is_listed(const memory_head& h, scope_guard::kind k, const scope_guard::rectangle& r) {
  for (const memory_head::part_scope& s : h.part) {
    const std::uint64_t word = s.holder.load();  // SYNC: with list_part
    if (word >> 32 << 32 != flags_of(k) || !is_there(static_cast<std::uint32_t>(word))) continue;
    if (overlap(r, {s.row.load(), s.rows.load(), s.column.load(), s.columns.load()})) return &s;
  }
  return nullptr;
}

/// Counts one more scope of this node. The place of its count; memory_head::nodes: that of all
/// nodes.
std::size_t count_one(memory_head& h, scope_guard::kind k) {
  const std::uint32_t self = this_node();
  // The own place comes first, then a free one, or that of a node that is lost.
  for (const bool own : {true, false})
    for (std::size_t i = 0; i < memory_head::nodes; ++i) {
      node_scopes before{h.scopes_of[i].load()};
      for (;;) {
        const bool mine = before.holder() == self && before.count(k) != node_scopes::most;
        const bool free = before.holder() == 0 || (before.holder() != self && !is_there(before.holder()));
        if (own ? !mine : !free) break;
        const node_scopes after = (own ? before : node_scopes{self}).plus_one(k);
        // SYNC: seq_cst, with the loads of is_open in the other kind of scope: one of two that open
        // at once sees the other.
        if (h.scopes_of[i].compare_exchange_strong(before.word, after.word)) return i;
      }
    }
  (k == scope_guard::kind::view ? h.views : h.writers).fetch_add(1);  // SYNC: the same
  return memory_head::nodes;
}

void count_one_less(memory_head& h, scope_guard::kind k, std::size_t place) noexcept {
  if (place > memory_head::nodes) {
    h.part[place - memory_head::nodes - 1].holder.store(0);  // SYNC: seq_cst, as below
    return;
  }
  if (place == memory_head::nodes) {
    (k == scope_guard::kind::view ? h.views : h.writers).fetch_sub(1);
    return;
  }
  node_scopes before{h.scopes_of[place].load()};
  // SYNC: seq_cst, with is_open: who opens a scope then sees what was written in this one.
  while (!h.scopes_of[place].compare_exchange_strong(before.word, before.minus_one(k).word)) {
  }
}

/// Some living node has a scope of the kind open.
bool is_open(const memory_head& h, scope_guard::kind k) {
  if ((k == scope_guard::kind::view ? h.views : h.writers).load() != 0) return true;
  for (const auto& word : h.scopes_of) {
    const node_scopes s{word.load()};  // SYNC: with count_one
    if (s.count(k) != 0 && is_there(s.holder())) return true;
  }
  return false;
}

/// Where a scope of the other kind is open that has elements of the rectangle, if there is one.
std::optional<std::string> other_scope(const memory_head& h, scope_guard::kind k, const scope_guard::rectangle& r) {
  const bool views = k == scope_guard::kind::view;
  const auto other = views ? scope_guard::kind::write : scope_guard::kind::view;
  if (is_open(h, other)) return read_text(views ? h.written_at : h.viewed_at);
  if (const memory_head::part_scope* const part = is_listed(h, other, r)) return read_text(part->at);
  return std::nullopt;
}

}  // namespace

void scope_guard::begin(std::shared_ptr<const shared_object> o, kind k, const std::source_location& where) {
  const rectangle all{0, o->rows, 0, o->columns};
  begin(std::move(o), k, where, all);
}

void scope_guard::begin(std::shared_ptr<const shared_object> o, kind k, const std::source_location& where,
                        const rectangle& part) {
  kind_ = k;
  // nothing of it lies here: who writes sends messages, which are checked where they arrive
  if (o->memory == nullptr) return;
  memory_head& h = o->memory->head();
  const std::string here = line_of(where);
  const auto refuse = [&](const std::string& there) {
    throw usage_error(
        errc::bad_argument,
        k == kind::view
            ? fmt::format("{}: a view at {} while a scope at {} may write it; end that one first, or make a copy: "
                          "read_cache, halo_cache of a matrix without room for it",
                          o->about.label, here, there)
            : fmt::format(
                  "{}: a scope at {} may write it while a view at {} is open; end that one first, or make a copy "
                  "there: read_cache, halo_cache of a matrix without room for it",
                  o->about.label, here, there));
  };
  // Before it is counted, too: others are to see none that is refused.
  if (const auto there = other_scope(h, k, part)) refuse(*there);
  const bool all = part.rows == o->rows && part.columns == o->columns;
  const std::size_t number = all ? memory_head::parts : list_part(h, k, part, here);
  // A scope that sees it finds its place.
  if (number == memory_head::parts) write_text(k == kind::view ? h.viewed_at : h.written_at, here);
  place_ = number == memory_head::parts ? count_one(h, k) : memory_head::nodes + 1 + number;
  if (const auto there = other_scope(h, k, part)) {  // of two that open at once both may end here
    count_one_less(h, k, place_);
    refuse(*there);
  }
  object_ = std::move(o);
}

void scope_guard::end() noexcept {
  if (object_ == nullptr) return;
  count_one_less(object_->memory->head(), kind_, place_);
  object_.reset();
}

namespace {

[[noreturn]] void throw_viewed(const shared_object& o, std::string_view writer, const std::string& view) {
  throw usage_error(errc::bad_argument,
                    fmt::format("{}: {} writes it while a view at {} is open; end that one first, or make a copy "
                                "there: read_cache, halo_cache of a matrix without room",
                                o.about.label, writer, view));
}

}  // namespace

std::string write_site::text() const {
  return told_.empty() ? fmt::format("{} at {}", what_, line_of(where_)) : std::string(told_);
}

bool scope_guard::is_viewed(const shared_object& o) {
  if (o.memory == nullptr) return false;
  const memory_head& h = o.memory->head();
  return is_open(h, kind::view) || is_listed(h, kind::view, {0, o.rows, 0, o.columns}) != nullptr;
}

void scope_guard::require_no_view(const shared_object& o, std::string_view writer) {
  require_not_viewed(o, {0, o.rows, 0, o.columns}, writer);
}

void scope_guard::require_not_viewed(const shared_object& o, const rectangle& r, const write_site& writer) {
  if (is_viewed(o)) [[unlikely]]
    require_not_viewed(o, r, writer.text());
}

void scope_guard::require_not_viewed(const shared_object& o, const rectangle& r, std::string_view writer) {
  if (o.memory == nullptr || r.rows == 0 || r.columns == 0) return;
  const memory_head& h = o.memory->head();
  if (is_open(h, kind::view)) throw_viewed(o, writer, read_text(h.viewed_at));
  if (const auto* s = is_listed(h, kind::view, r)) throw_viewed(o, writer, read_text(s->at));
}

void scope_guard::require_not_viewed(const shared_object& o, std::uint32_t part, std::uint64_t first,
                                     std::uint64_t count, std::string_view writer) {
  const layout& l = o.how();
  const std::uint64_t pitch = l.pitch_of(part);
  for (std::uint64_t i = first; i < first + count; ++i)
    require_not_viewed(
        o, {l.rows.index(l.row_part(part), i / pitch), 1, l.columns.index(l.column_part(part), i % pitch), 1}, writer);
}

void report_unended_scope(const std::exception_ptr& why) noexcept {
  try {
    std::rethrow_exception(why);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "orrery: a scope that an exception left could not be ended: %s\n", e.what());
  } catch (...) {
    std::fputs("orrery: a scope that an exception left could not be ended\n", stderr);
  }
}

}  // namespace orrery::detail
