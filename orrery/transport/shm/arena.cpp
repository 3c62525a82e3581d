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
  const std::scoped_lock lock{mutex_};
  return find(pages_of(bytes));
}

result<arena::block> arena::allocate_beyond(std::uint64_t bytes) {
  if (bytes > size_of(max_order)) return too_large(bytes, limit_);
  const std::uint32_t pages = pages_of(bytes);
  const std::scoped_lock lock{mutex_};
  beyond_ += pages * page;
  auto found = find(pages);
  if (!found) {
    beyond_ -= pages * page;
    return found;
  }
  beyond_ += found->bytes - pages * page;
  at(found->offset).beyond = true;
  return found;
}

result<arena::block> arena::find(std::uint32_t pages) {
  const auto order = static_cast<unsigned>(std::bit_width(pages - 1U)) + min_order;
  return idle_[order].empty() ? take_fresh(order, pages) : reuse(order, pages);
}

bool arena::release(std::uint64_t offset) {
  if (offset % page != 0 || offset >= memory_.size()) return false;
  const std::scoped_lock lock{mutex_};
  place& p = at(offset);
  if (p.state != use::taken) return false;
  p.state = use::idle;
  p.clean = false;
  idle_[p.order].push_back(offset);
  in_use_ -= p.pages * page;
  idle_bytes_ += p.pages * page;
  if (p.beyond) {
    p.beyond = false;
    beyond_ -= p.pages * page;
    while (in_use_ + idle_bytes_ > bound() && discard_coldest()) {
    }
  }
  return true;
}

std::uint64_t arena::block_bytes(std::uint64_t offset) const {
  if (offset % page != 0 || offset >= memory_.size()) return 0;
  const std::scoped_lock lock{mutex_};
  const place& p = at(offset);
  return p.state == use::taken ? p.pages * page : 0;
}

void arena::trim(std::uint64_t keep) {
  const std::scoped_lock lock{mutex_};
  while (idle_bytes_ > keep && discard_coldest()) {
  }
}

arena::statistics arena::stats() const {
  const std::scoped_lock lock{mutex_};
  return {limit_, in_use_, idle_bytes_};
}

// The hottest place of that order, with more memory if it has too little.
result<arena::block> arena::reuse(unsigned order, std::uint32_t pages) {
  const std::uint64_t offset = idle_[order].back();
  idle_[order].pop_back();
  place& p = at(offset);
  idle_bytes_ -= p.pages * page;
  if (p.pages < pages) [[unlikely]] {
    in_use_ += p.pages * page;  // so that make_room lets it alone
    auto backed = back(offset, p.pages, pages);
    in_use_ -= p.pages * page;
    if (!backed) {
      idle_[order].push_back(offset);
      idle_bytes_ += p.pages * page;
      return internal::pass(backed);
    }
    p.pages = pages;
  }
  return hand_out(offset, order, p.pages, p.clean);
}

// A place that was vacant. Small ones are cut from a piece, the rest of which becomes idle.
result<arena::block> arena::take_fresh(unsigned order, std::uint32_t pages) {
  std::uint64_t offset = 0;
  if (order < piece_order) {
    const auto whole = static_cast<std::uint32_t>(size_of(order) / page);
    bool clean = true;
    if (split_idle(order, offset, clean)) return hand_out(offset, order, whole, clean);
    if (in_use_ + idle_bytes_ + size_of(piece_order) <= bound() && take_vacant(piece_order, offset)) {
      if (auto backed = back(offset, 0, size_of(piece_order) / page); !backed) {
        make_vacant(offset, piece_order);
        return internal::pass(backed);
      }
      split(offset, piece_order, order, true);
      return hand_out(offset, order, whole, true);
    }
  }
  while (!take_vacant(order, offset)) {
    // Address space is in fragments: those that idle places hold may be what is missing.
    if (!discard_coldest()) {
      return fail(transport_errc::no_space, 0,
                  "no {} bytes in a row are free in the shared memory of the node: {} of {} bytes "
                  "are in use, in fragments; raise its memory limit",
                  size_of(order), in_use_, limit_);
    }
  }
  if (auto backed = back(offset, 0, pages); !backed) {
    make_vacant(offset, order);
    return internal::pass(backed);
  }
  return hand_out(offset, order, pages, true);
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

// Asks the system for pages [from, to) of a place, within the limit.
result<void> arena::back(std::uint64_t offset, std::uint32_t from, std::uint32_t to) {
  const std::uint64_t bytes = (to - from) * page;
  if (!make_room(bytes)) {
    return fail(transport_errc::no_space, 0,
                "{} more bytes of shared memory are over the node's limit: {} of {} bytes are in "
                "messages that nobody has read; raise its memory limit or send less at a time",
                bytes, in_use_, limit_);
  }
  for (;;) {
    auto backed = memory_.back(offset + from * page, bytes);
    if (backed || !discard_coldest()) return backed;  // the system may do with what was idle
  }
}

bool arena::make_room(std::uint64_t bytes) {
  while (bytes > bound() - std::min(bound(), in_use_ + idle_bytes_)) {
    if (!discard_coldest()) return false;
  }
  return true;
}

// Takes from the largest order that has any: few system calls give much.
bool arena::discard_coldest() {
  for (unsigned order = max_order; order >= min_order; --order) {
    auto& places = idle_[order];
    if (places.empty()) continue;
    const std::uint64_t offset = places.front();
    const std::uint64_t bytes = at(offset).pages * page;
    if (!memory_.discard(offset, bytes)) return false;
    places.erase(places.begin());
    idle_bytes_ -= bytes;
    make_vacant(offset, order);
    return true;
  }
  return false;
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

arena::block arena::hand_out(std::uint64_t offset, unsigned order, std::uint32_t pages, bool clean) noexcept {
  set(offset, pages, order, use::taken, false);
  in_use_ += pages * page;
  return {offset, pages * page, clean};
}

bool arena::consistent() const {
  const std::scoped_lock lock{mutex_};
  std::uint64_t offset = reserved_;
  std::uint64_t in_use = 0;
  std::uint64_t idle = 0;
  std::array<std::size_t, orders> idle_count{};
  std::array<std::size_t, orders> vacant_count{};
  while (offset < memory_.size()) {
    const place& p = at(offset);
    if (p.state == use::none) return false;  // I1: places cover everything, without a gap
    if (p.order < min_order || p.order > max_order || offset % size_of(p.order) != 0) return false;
    if (p.pages * page > size_of(p.order)) return false;
    if (p.state == use::taken) in_use += p.pages * page;
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
  return in_use == in_use_ && idle == idle_bytes_ && in_use + idle <= bound();  // I2
}

}  // namespace orrery::transport
