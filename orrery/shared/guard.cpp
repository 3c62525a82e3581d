// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/invoke.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/guard.hpp>
#include <orrery/shared/object.hpp>
#include <orrery/shared/scope.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

std::string place(const std::source_location& where) {
  std::string_view file = where.file_name();
  file.remove_prefix(file.rfind('/') + 1);
  return fmt::format("{}:{}", file, where.line());
}

using text = std::atomic<std::uint64_t>[memory_head::text_words];

std::string read_text(const text& from) {
  char all[sizeof(text)];
  for (std::size_t i = 0; i < memory_head::text_words; ++i) {
    const std::uint64_t word = from[i].load(std::memory_order_relaxed);
    std::memcpy(all + i * sizeof word, &word, sizeof word);
  }
  return {all, ::strnlen(all, sizeof all)};  // another node may have written nonsense
}

void write_text(text& to, std::string words) {
  words.resize(sizeof(text));
  for (std::size_t i = 0; i < memory_head::text_words; ++i) {
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

/// Counts one more scope of this node. The place of its count; memory_head::nodes: that of all nodes.
std::size_t count_one(memory_head& h, scope_guard::kind k) {
  scheduler::node& n = here_pe().owner();
  const std::uint32_t self = n.pes_of(n.node_of(here_pe().id())).first + 1;
  // The own place comes first, then a free one, or that of a node that is lost.
  for (const bool own : {true, false})
    for (std::size_t i = 0; i < memory_head::nodes; ++i) {
      node_scopes before{h.scopes_of[i].load()};
      for (;;) {
        const bool mine = before.holder() == self && before.count(k) != node_scopes::most;
        const bool free = before.holder() == 0 || (before.holder() != self && !is_there(before.holder()));
        if (own ? !mine : !free) break;
        const node_scopes after = (own ? before : node_scopes{self}).plus_one(k);
        // SYNC: seq_cst, with the loads of is_open in the other kind of scope: one of two that open at
        // once sees the other.
        if (h.scopes_of[i].compare_exchange_strong(before.word, after.word)) return i;
      }
    }
  (k == scope_guard::kind::view ? h.views : h.writers).fetch_add(1);  // SYNC: the same
  return memory_head::nodes;
}

void count_one_less(memory_head& h, scope_guard::kind k, std::size_t place) noexcept {
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

}  // namespace

void scope_guard::begin(std::shared_ptr<const shared_object> o, kind k, const std::source_location& where) {
  kind_ = k;
  if (o->memory == nullptr)
    return;  // nothing of it lies here: who writes sends messages, which are checked where they arrive
  memory_head& h = o->memory->head();
  place_ = count_one(h, k);
  const std::string here = place(where);
  if (is_open(h, k == kind::view ? kind::write : kind::view)) {
    count_one_less(h, k, place_);
    const std::string there = read_text(k == kind::view ? h.written_at : h.viewed_at);
    throw usage_error(
        errc::bad_argument,
        k == kind::view
            ? fmt::format("{}: read_view at {} while a scope at {} may write it; end that one first, or use read_cache",
                          o->about.label, here, there)
            : fmt::format("{}: a scope at {} may write it while a read_view at {} is open; end that one first, or use "
                          "read_cache there",
                          o->about.label, here, there));
  }
  write_text(k == kind::view ? h.viewed_at : h.written_at, here);
  object_ = std::move(o);
}

void scope_guard::end() noexcept {
  if (object_ == nullptr) return;
  count_one_less(object_->memory->head(), kind_, place_);
  object_.reset();
}

void scope_guard::require_no_view(const shared_object& o) {
  if (o.memory == nullptr || !is_open(o.memory->head(), kind::view)) return;
  throw usage_error(
      errc::bad_argument,
      fmt::format("{}: another machine writes it in a scope while a read_view at {} is open; end that one "
                  "first, or use read_cache there",
                  o.about.label, read_text(o.memory->head().viewed_at)));
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
