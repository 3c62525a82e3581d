// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/shm/internal/fail.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>

#include <unistd.h>

namespace orrery::transport {

using internal::fail;

namespace {

constexpr std::uint64_t page = std::uint64_t{1} << arena::min_order;
// The system takes some 30 ms for so many bytes: others wait.
constexpr std::uint64_t much = std::uint64_t{64} << 20;

// Memory for small blocks is asked for in pieces of this order: a system call costs as much as its
// pages.
constexpr unsigned piece_order = 16;

constexpr std::uint64_t size_of(unsigned order) noexcept { return std::uint64_t{1} << order; }

// The number in a file of one line; nothing for "max" or no file.
std::uint64_t limit_in(const std::string& path) {
  std::ifstream file{path};
  std::uint64_t value = 0;
  return file >> value ? value : UINT64_MAX;
}

// The memory limit of this control group and of all above it, versions 1 and 2.
std::uint64_t group_limit() {
  std::uint64_t least = UINT64_MAX;
  std::ifstream groups{"/proc/self/cgroup"};
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers != "memory") continue;
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const std::string file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    for (std::string group = line.substr(second + 1);;) {
      least = std::min(least, limit_in(root + group + file));
      const std::size_t slash = group.rfind('/');
      if (group.empty() || slash == std::string::npos) break;
      group.resize(slash);
    }
  }
  return least;
}

}  // namespace

void arena::free_delete::operator()(place* p) const noexcept { std::free(p); }

arena::arena(const segment& memory, std::uint64_t limit, std::uint64_t reserved)
    : memory_(memory), limit_(limit), reserved_((reserved + page - 1) / page * page) {
  // calloc and not a vector: only the pages of the table that are used shall take memory.
  auto* table = static_cast<place*>(std::calloc(memory.size() >> min_order, sizeof(place)));
  if (table == nullptr) throw std::bad_alloc{};
  places_.reset(table);
  std::uint64_t offset = reserved_;
  while (offset < memory_.size()) {
    unsigned order = std::min<unsigned>(max_order, static_cast<unsigned>(std::countr_zero(offset)));
    if (offset == 0) order = max_order;
    while (order > min_order && size_of(order) > memory_.size() - offset) --order;
    if (size_of(order) > memory_.size() - offset) break;
    make_vacant(offset, order);
    offset += size_of(order);
  }
}

arena::~arena() = default;

std::uint64_t arena::segment_bytes(std::uint64_t limit) noexcept {
  constexpr unsigned usual = 30;
  const auto wanted = static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(limit, 1) - 1));
  const std::uint64_t largest = size_of(std::clamp(wanted, usual, max_order));
  // no such place lies at its beginning
  return (2 * limit + largest - 1) / largest * largest + largest;
}

std::uint64_t arena::machine_memory() {
  static const std::uint64_t bytes = std::min(
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)),
      group_limit());
  return bytes;
}

std::uint64_t arena::default_limit() {
  const std::uint64_t quarter = machine_memory() / 4;
  return std::max(quarter / page * page, std::uint64_t{16} << 20);
}

namespace {
constexpr std::uint32_t pages_of(std::uint64_t bytes) noexcept {
  return static_cast<std::uint32_t>((std::max<std::uint64_t>(bytes, 1) + page - 1) / page);
}
auto too_large(std::uint64_t bytes, std::uint64_t limit) {
  return fail(
      transport_errc::bad_argument, 0,
      "a block of {} bytes of shared memory was asked for; messages of this node on their way may take {} in all: "
      "raise its memory limit (--orrery-memory), or send it in parts",
      bytes, limit);
}
}  // namespace

result<arena::block> arena::allocate(std::uint64_t bytes) {
  if (bytes > std::min(limit_, size_of(max_order))) return too_large(bytes, limit_);
  guard lock{mutex_};
  return find(lock, pages_of(bytes), false);
}

result<arena::block> arena::allocate_beyond(std::uint64_t bytes) {
  if (bytes > size_of(max_order)) return too_large(bytes, limit_);
  guard lock{mutex_};
  return find(lock, pages_of(bytes), true);
}

result<arena::block> arena::find(guard& lock, std::uint32_t pages, bool beyond) {
  const auto order = static_cast<unsigned>(std::bit_width(pages - 1U)) + min_order;
  return idle_[order].empty() ? take_fresh(lock, order, pages, beyond) : reuse(lock, order, pages, beyond);
}

bool arena::release(std::uint64_t offset) {
  if (offset % page != 0 || offset >= memory_.size()) return false;
  guard lock{mutex_};
  const place p = at(offset);
  if (p.state != use::taken) return false;
  const std::uint64_t bytes = p.pages * page;
  in_use_ -= bytes;
  if (p.beyond) beyond_ -= bytes;
  // Memory beyond the limit goes back, unless it has room within it now.
  if (p.beyond && in_use_ + idle_bytes_ + making_ + bytes > bound() && discard(lock, offset)) return true;
  set(offset, p.pages, p.order, use::idle, false);
  idle_[p.order].push_back(offset);
  idle_bytes_ += bytes;
  return true;
}

std::uint64_t arena::block_bytes(std::uint64_t offset) const {
  if (offset % page != 0 || offset >= memory_.size()) return 0;
  const std::scoped_lock lock{mutex_};
  const place& p = at(offset);
  return p.state == use::taken ? p.pages * page : 0;
}

void arena::trim(std::uint64_t keep) {
  guard lock{mutex_};
  while (idle_bytes_ > keep && discard_coldest(lock)) {
  }
}

arena::statistics arena::stats() const {
  const std::scoped_lock lock{mutex_};
  return {limit_, in_use_, idle_bytes_};
}

// The hottest place of that order, with more memory if it has too little.
result<arena::block> arena::reuse(guard& lock, unsigned order, std::uint32_t pages, bool beyond) {
  const std::uint64_t offset = idle_[order].back();
  idle_[order].pop_back();
  const place p = at(offset);
  idle_bytes_ -= p.pages * page;
  if (p.pages >= pages) return hand_out(offset, order, p.pages, p.clean, beyond);
  if (auto backed = back(lock, p, offset, pages, beyond ? (pages - p.pages) * page : 0); !backed) {
    set(offset, p.pages, order, use::idle, p.clean);
    idle_[order].push_back(offset);
    idle_bytes_ += p.pages * page;
    return internal::pass(backed);
  }
  return hand_out(offset, order, pages, p.clean, beyond);
}

// A place that was vacant. Small ones are cut from a piece, the rest of which becomes idle.
result<arena::block> arena::take_fresh(guard& lock, unsigned order, std::uint32_t pages, bool beyond) {
  std::uint64_t offset = 0;
  const auto make = [&](unsigned of, std::uint32_t to, std::uint64_t beyond_bytes) {
    auto backed =
        back(lock, place{0, static_cast<std::uint8_t>(of), use::vacant, true, false}, offset, to, beyond_bytes);
    if (!backed) make_vacant(offset, of);
    return backed;
  };
  if (order < piece_order) {
    const auto whole = static_cast<std::uint32_t>(size_of(order) / page);
    const std::uint64_t beyond_bytes = beyond ? size_of(order) : 0;
    bool clean = true;
    if (split_idle(order, offset, clean)) return hand_out(offset, order, whole, clean, beyond);
    if (used() + size_of(piece_order) <= bound() + beyond_bytes && take_vacant(piece_order, offset)) {
      if (auto made = make(piece_order, size_of(piece_order) / page, beyond_bytes); !made) return internal::pass(made);
      split(offset, piece_order, order, true);
      return hand_out(offset, order, whole, true, beyond);
    }
  }
  while (!take_vacant(order, offset)) {
    // Address space is in fragments: those that idle places hold may be what is missing.
    if (!discard_coldest(lock)) {
      return fail(transport_errc::no_space, 0,
                  "no {} bytes in a row are free in the shared memory of the node: {} of {} bytes "
                  "are in use, in fragments; raise its memory limit",
                  size_of(order), in_use_, limit_);
    }
  }
  if (auto made = make(order, pages, beyond ? pages * page : 0); !made) return internal::pass(made);
  return hand_out(offset, order, pages, true, beyond);
}

// Cuts the smallest idle place below a piece that is larger than needed.
bool arena::split_idle(unsigned order, std::uint64_t& offset, bool& clean) {
  for (unsigned from = order + 1; from < piece_order; ++from) {
    if (idle_[from].empty()) continue;
    const place p = at(idle_[from].back());
    if (p.pages * page != size_of(from)) continue;
    offset = idle_[from].back();
    clean = p.clean;
    idle_[from].pop_back();
    idle_bytes_ -= size_of(from);
    split(offset, from, order, clean);
    return true;
  }
  return false;
}

// Makes all but the lowest place of order `to` idle.
void arena::split(std::uint64_t offset, unsigned from, unsigned to, bool clean) {
  for (unsigned order = from; order-- > to;) {
    const std::uint64_t upper = offset + size_of(order);
    set(upper, static_cast<std::uint32_t>(size_of(order) / page), order, use::idle, clean);
    idle_[order].push_back(upper);
    idle_bytes_ += size_of(order);
  }
}

// Asks the system for memory of a place that is in no list, so that it has `to` pages. All but
// `beyond` bytes are within the limit. It is still in no list afterwards.
result<void> arena::back(guard& lock, const place& from, std::uint64_t offset, std::uint32_t to, std::uint64_t beyond) {
  const std::uint64_t bytes = (to - from.pages) * page;
  set(offset, from.pages, from.order, use::making, from.clean);
  making_ += from.pages * page;
  if (!make_room(lock, bytes - beyond)) {
    making_ -= from.pages * page;
    return fail(transport_errc::no_space, 0,
                "{} more bytes of shared memory are over the node's limit: {} of {} bytes are in "
                "messages that nobody has read; raise its memory limit or send less at a time",
                bytes, in_use_, limit_);
  }
  at(offset).pages = to;
  making_ += bytes;
  beyond_ += beyond;
  result<void> backed;
  do {
    without(lock, bytes, [&] { backed = memory_.back(offset + from.pages * page, bytes); });
  } while (!backed && discard_coldest(lock));  // the system may do with what was idle
  making_ -= to * page;
  beyond_ -= beyond;
  return backed;
}

bool arena::make_room(guard& lock, std::uint64_t bytes) {
  while (bytes > bound() - std::min(bound(), used())) {
    if (giving_ != 0 && bytes <= bound() - std::min(bound(), used() - giving_)) {
      given_back_.wait(lock);
    } else if (!discard_coldest(lock)) {
      return false;
    }
  }
  return true;
}

// Lets others go on while the system works on many bytes. Two threads that do that at once would
// take from each other what the system has left for one of them.
template <class F>
void arena::without(guard& lock, std::uint64_t bytes, F work) {
  if (bytes <= much) {
    work();
    return;
  }
  lock.unlock();
  {
    const std::scoped_lock one{large_};
    work();
  }
  lock.lock();
}

// Gives the memory of a place back that is in no list. False: the system does not take it, and the
// place is idle, still in no list.
bool arena::discard(guard& lock, std::uint64_t offset) {
  const place p = at(offset);
  const std::uint64_t bytes = p.pages * page;
  giving_ += bytes;
  set(offset, p.pages, p.order, use::giving, p.clean);
  bool given = false;
  without(lock, bytes, [&] { given = memory_.discard(offset, bytes); });
  giving_ -= bytes;
  if (given) {
    make_vacant(offset, p.order);
  } else {
    set(offset, p.pages, p.order, use::idle, p.clean);
  }
  given_back_.notify_all();
  return given;
}

// Takes from the largest order that has any: few system calls give much. Where none has, but other
// threads are at it, waits for one of them. False if that is no use either.
bool arena::discard_coldest(guard& lock) {
  for (unsigned order = max_order; order >= min_order; --order) {
    auto& places = idle_[order];
    if (places.empty()) continue;
    const std::uint64_t offset = places.front();
    const std::uint64_t bytes = at(offset).pages * page;
    places.erase(places.begin());
    idle_bytes_ -= bytes;
    if (discard(lock, offset)) return true;
    places.insert(places.begin(), offset);
    idle_bytes_ += bytes;
    return false;
  }
  if (giving_ == 0) return false;
  given_back_.wait(lock);
  return true;
}

bool arena::take_vacant(unsigned order, std::uint64_t& offset) {
  unsigned found = order;
  while (found <= max_order && vacant_[found].empty()) ++found;
  if (found > max_order) return false;
  offset = vacant_[found].extract(vacant_[found].begin()).value();
  while (found > order) {
    --found;
    const std::uint64_t upper = offset + size_of(found);
    set(upper, 0, found, use::vacant, false);
    vacant_[found].insert(upper);
  }
  at(offset) = {};
  return true;
}

void arena::make_vacant(std::uint64_t offset, unsigned order) {
  while (order < max_order) {
    const std::uint64_t buddy = offset ^ size_of(order);
    if (buddy >= memory_.size()) break;
    place& other = at(buddy);
    if (other.state != use::vacant || other.order != order) break;
    vacant_[order].erase(buddy);
    other = {};
    at(offset) = {};
    offset = std::min(offset, buddy);
    ++order;
  }
  set(offset, 0, order, use::vacant, false);
  vacant_[order].insert(offset);
}

void arena::set(std::uint64_t offset, std::uint32_t pages, unsigned order, use state, bool clean) noexcept {
  at(offset) = place{pages, static_cast<std::uint8_t>(order), state, clean, false};
}

arena::block arena::hand_out(std::uint64_t offset, unsigned order, std::uint32_t pages, bool clean,
                             bool beyond) noexcept {
  set(offset, pages, order, use::taken, false);
  in_use_ += pages * page;
  at(offset).beyond = beyond;
  if (beyond) beyond_ += pages * page;
  return {offset, pages * page, clean};
}

bool arena::consistent() const {
  const std::scoped_lock lock{mutex_};
  std::uint64_t offset = reserved_;
  std::uint64_t in_use = 0;
  std::uint64_t idle = 0;
  std::uint64_t making = 0;
  std::uint64_t giving = 0;
  std::array<std::size_t, orders> idle_count{};
  std::array<std::size_t, orders> vacant_count{};
  while (offset < memory_.size()) {
    const place& p = at(offset);
    if (p.state == use::none) return false;  // I1: places cover everything, without a gap
    if (p.order < min_order || p.order > max_order || offset % size_of(p.order) != 0) return false;
    if (p.pages * page > size_of(p.order)) return false;
    if (p.state == use::taken) in_use += p.pages * page;
    if (p.state == use::making) making += p.pages * page;
    if (p.state == use::giving) giving += p.pages * page;
    if (p.state == use::idle) {
      idle += p.pages * page;
      ++idle_count[p.order];
    }
    if (p.state == use::vacant) {
      if (p.pages != 0 || !vacant_[p.order].contains(offset)) return false;
      ++vacant_count[p.order];
    }
    offset += size_of(p.order);
  }
  for (unsigned order = 0; order < orders; ++order) {
    if (idle_count[order] != idle_[order].size()) return false;
    if (vacant_count[order] != vacant_[order].size()) return false;
  }
  return in_use == in_use_ && idle == idle_bytes_ && making == making_ && giving == giving_ &&
         in_use + idle + making <= bound();  // I2
}

}  // namespace orrery::transport
