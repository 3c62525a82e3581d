// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

void scope_guard::begin(std::shared_ptr<const shared_object> o, kind k, const std::source_location& where) {
  kind_ = k;
  if (o->memory == nullptr)
    return;  // nothing of it lies here: who writes sends messages, which are checked where they arrive
  memory_head& h = o->memory->head();
  auto& mine = k == kind::view ? h.views : h.writers;
  auto& theirs = k == kind::view ? h.writers : h.views;
  mine.fetch_add(
      1);  // SYNC: with the load of `theirs` in the other kind of scope: one of two that open at once sees the other
  const std::string here = place(where);
  if (theirs.load() != 0) {
    mine.fetch_sub(1);
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
  memory_head& h = object_->memory->head();
  (kind_ == kind::view ? h.views : h.writers).fetch_sub(1);
  object_.reset();
}

void scope_guard::require_no_view(const shared_object& o) {
  if (o.memory == nullptr || o.memory->head().views.load() == 0) return;
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
