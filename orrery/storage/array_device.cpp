// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/array_device.hpp>

#include <orrery/process/function.hpp>
#include <orrery/storage/internal/waiting.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdio>
#include <exception>
#include <list>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery::storage {

// Invariants: (1) a clean entry is in `clean`, a dirty one is not; (2) dirty = entries with
// `dirty`; (3) waiting = write-backs that were begun and have not ended; (4) an entry with an error
// is dirty and has no write-back under way.
struct array_device::cache {
  struct entry {
    page bytes;
    bool dirty = false;
    bool used = false;  // somebody has read it
    bool reported = false;  // its error was thrown to somebody
    bool asked = false;  // a message to write it back is on its way
    std::exception_ptr error;
    std::list<std::uint64_t>::iterator place;  // in `clean`
  };
  explicit cache(const cache_options& o) : options(o) {}

  cache_options options;
  std::unordered_map<std::uint64_t, entry> entries;
  std::list<std::uint64_t> clean;  // the longest unused first
  std::uint32_t dirty = 0;
  std::uint32_t waiting = 0;
  std::uint32_t unreported = 0;  // errors
  internal::wait_queue room;  // for dirty pages
  internal::wait_queue settled;  // nothing is being written back

  void forget(std::uint64_t index) {
    const auto at = entries.find(index);
    if (at == entries.end() || at->second.dirty) return;
    clean.erase(at->second.place);
    entries.erase(at);
  }
  // Makes place for a clean page, if that can be.
  bool make_place() {
    if (clean.size() < options.cache_pages) return true;
    for (const std::uint64_t index : clean) {
      if (!entries.at(index).used) continue;
      forget(index);
      return true;
    }
    return false;
  }
};

array_device::array_device(std::string file, std::uint64_t pages, const index3& shape, element_type type,
                           device_options options, cache_options cache_with)
    : array_page_device(std::move(file), pages, shape, type, std::move(options)),
      cache_(wire::make_unique<cache>(cache_with)) {}

array_device::array_device(const remote<page_device>& existing, const index3& shape, element_type type,
                           cache_options cache_with)
    : array_page_device(existing, shape, type), cache_(wire::make_unique<cache>(cache_with)) {}

array_device::~array_device() {
  for (auto& [index, e] : cache_->entries) {
    if (!e.dirty) continue;
    std::string why;
    try {
      store_now(e.bytes, index);
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (why.empty()) continue;
    const std::string line = fmt::format("orrery: page {} of {} was lost: {}\n", index, file_name(), why);
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
}

// --- reading -------------------------------------------------------------------------------------

page array_device::fetch(std::uint64_t index) {
  if (const auto at = cache_->entries.find(index); at != cache_->entries.end()) {
    ++statistics_.cache_hits;
    at->second.used = true;
    if (!at->second.dirty) cache_->clean.splice(cache_->clean.end(), cache_->clean, at->second.place);
    return at->second.bytes;
  }
  page p = array_page_device::fetch(index);
  keep(p, index, true);
  return p;
}

void array_device::keep(const page& p, std::uint64_t index, bool used) {
  if (cache_->entries.contains(index) || !cache_->make_place()) return;
  const auto place = cache_->clean.insert(cache_->clean.end(), index);
  cache_->entries.emplace(index, cache::entry{p, false, used, false, false, nullptr, place});
}

void array_device::read_into_cache(std::uint64_t index) {
  check(index);
  // whoever reads the page meanwhile waits, and finds it in the cache
  const page_lock lock(*this, index, true);
  if (cache_->entries.contains(index)) return;
  if (!cache_->make_place()) {
    ++statistics_.prefetches_dropped;
    return;
  }
  // The place is taken before the page is there, so that hints that come meanwhile see it.
  const auto place = cache_->clean.insert(cache_->clean.end(), index);
  cache_->entries.emplace(index, cache::entry{{}, false, false, false, false, nullptr, place});
  const auto give_up = [&] {
    cache_->forget(index);
    ++statistics_.prefetches_dropped;
  };
  try {
    page p = array_page_device::fetch(index);
    cache_->entries.at(index).bytes = std::move(p);
    ++statistics_.prefetches;
  } catch (const stopped&) {
    give_up();
    throw;
  } catch (const std::exception&) {  // whoever reads the page will hear of it
    give_up();
  } catch (...) {
    give_up();
    throw;
  }
}

void array_device::drop_cache() {
  for (auto at = cache_->clean.begin(); at != cache_->clean.end();) {
    const std::uint64_t index = *at++;
    if (!cache_->entries.at(index).bytes.empty()) cache_->forget(index);  // else it is on its way
  }
}

// --- writing -------------------------------------------------------------------------------------

void array_device::throw_error_of_the_past() {
  cache& c = *cache_;
  if (c.unreported == 0) return;
  std::exception_ptr first;
  for (auto& [index, e] : c.entries) {
    if (e.error == nullptr || e.reported) continue;
    if (first == nullptr) first = e.error;
    e.reported = true;
  }
  const std::uint32_t others = std::exchange(c.unreported, 0) - 1;
  if (others == 0) std::rethrow_exception(first);
  try {
    std::rethrow_exception(first);
  } catch (const std::system_error& e) {
    detail::throw_errno(
        e.code().value(),
        fmt::format("{} pages of {} could not be written after their writes had returned (they are kept "
                    "in memory, and the next flush tries again); the first: {}",
                    others + 1, file_name(), e.what()));
  }
}

void array_device::store(const page& p, std::uint64_t index) {
  cache& c = *cache_;
  if (c.options.write_behind_pages == 0) {
    c.forget(index);
    array_page_device::store(p, index);
    return;
  }
  throw_error_of_the_past();
  const auto at_first = c.entries.find(index);
  const bool replaces = at_first != c.entries.end() && at_first->second.dirty;
  while (!replaces && c.dirty >= c.options.write_behind_pages) {
    if (c.waiting == 0) {  // none of them can be written
      for (const auto& [i, e] : c.entries)
        if (e.error != nullptr) std::rethrow_exception(e.error);
    }
    c.room.wait();
    throw_error_of_the_past();
  }
  c.forget(index);
  cache::entry& e = c.entries[index];
  e.bytes = p;
  e.used = false;
  e.error = nullptr;
  e.reported = false;
  if (!std::exchange(e.dirty, true)) ++c.dirty;
  begin_write_back(index);
}

void array_device::begin_write_back(std::uint64_t index) {
  // If a message is on its way, no other need be sent. Once that one has begun it holds the page's
  // lock, and nobody comes here.
  cache::entry& e = cache_->entries.at(index);
  if (e.asked) return;
  // If the device is destroyed before it comes to that, its destructor writes the page. An error is
  // kept with the page.
  orrery::detail::future_access<void>::disregard(start(this_process<array_device>())->write_back(index));
  e.asked = true;
  ++cache_->waiting;
}

void array_device::write_back(std::uint64_t index) {
  cache& c = *cache_;
  {
    // others may read the page, from the cache, but not write it
    const page_lock lock(*this, index, false);
    if (const auto at = c.entries.find(index); at != c.entries.end() && at->second.asked) {
      at->second.asked = false;
      const page p = at->second.bytes;
      std::exception_ptr error;
      try {
        array_page_device::store(p, index);
      } catch (...) {
        error = std::current_exception();
      }
      cache::entry& e = c.entries.at(index);
      if (error != nullptr) {
        e.error = error;
        e.reported = false;
        ++c.unreported;
      } else {
        e.dirty = false;
        --c.dirty;
        e.error = nullptr;
        e.place = c.clean.insert(c.clean.begin(), index);
        if (c.clean.size() > c.options.cache_pages)
          c.forget(index);
        else
          e.used = true;
      }
    }
  }
  --c.waiting;
  (void)c.room.wake_one();
  if (c.waiting == 0) {
    c.settled.wake_all();
    c.room.wake_all();
  }
}

void array_device::flush() {
  cache& c = *cache_;
  check_open();
  await_writes();
  std::vector<std::uint64_t> again;
  for (const auto& [index, e] : c.entries)
    if (e.error != nullptr && e.reported) again.push_back(index);
  for (const std::uint64_t index : again) {
    c.entries.at(index).error = nullptr;
    begin_write_back(index);
  }
  while (c.waiting > 0) c.settled.wait();
  throw_error_of_the_past();
  array_page_device::flush();
}

void array_device::close() {
  flush();
  drop_cache();
  array_page_device::close();
}

}  // namespace orrery::storage
