// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/page_device.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/storage/detail/page_sums.hpp>
#include <orrery/storage/internal/hosts.hpp>
#include <orrery/storage/internal/waiting.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace orrery::storage {

using detail::throw_errno;

namespace {
std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
}  // namespace

struct page_device::state {
  explicit state(std::uint32_t depth) : turns(depth) {}
  page_file file;
  page_sums sums;
  internal::gate turns;
  internal::page_locks locks;
  std::set<std::uint64_t> writes;  // under way, by the order of their arrival
  std::uint64_t next_write = 0;
  internal::wait_queue flushes;
  std::uint32_t transfers = 0;  // that the drive has now
  std::int64_t busy_since = 0;
  bool own_file = false;
  device_geometry geometry;  // if it has none
  bool closed = false;
  bool finished = false;  // takes no writes
};

// While it lives the drive has one transfer more.
struct page_device::transfer {
  page_device& d;
  explicit transfer(page_device& of) : d(of) {
    if (d.state_->transfers++ == 0) d.state_->busy_since = now_ns();
  }
  transfer(const transfer&) = delete;
  transfer& operator=(const transfer&) = delete;
  ~transfer() {
    if (--d.state_->transfers == 0) d.statistics_.busy_ns += now_ns() - d.state_->busy_since;
  }
};

struct page_device::page_lock::held {
  struct ticket {
    state& s;
    const std::uint64_t number;
    explicit ticket(state& of) : s(of), number(s.next_write++) { s.writes.insert(number); }
    ticket(const ticket&) = delete;
    ticket& operator=(const ticket&) = delete;
    ~ticket() {
      s.writes.erase(number);
      s.flushes.wake_all();
    }
  };
  std::optional<ticket> write;
  std::optional<internal::page_locks::hold> hold;
};

page_device::page_lock::page_lock(page_device& d, std::uint64_t index, bool exclusive)
    : held_(wire::make_unique<held>()) {
  if (exclusive) held_->write.emplace(*d.state_);
  held_->hold.emplace(d.state_->locks, index, exclusive);
}
page_device::page_lock::~page_lock() = default;

page_device::page_device(std::string file, std::uint64_t pages, std::uint64_t page_bytes, device_options options)
    : name_(internal::file_text(file)), pages_(pages), page_bytes_(page_bytes) {
  if (options.depth == 0 || options.depth > 256)
    throw std::invalid_argument(fmt::format("{}: a depth of {} transfers cannot be: 1 to 256", name_, options.depth));
  state_ = wire::make_unique<state>(options.depth);
  state_->own_file = true;
  const bool create = options.mode == open_mode::create;
  const auto open_sums = [&] {
    if (!options.sums.empty())
      state_->sums = page_sums(options.sums, pages, create, options.mode != open_mode::read_only, options.alone,
                               options.owner, options.number);
  };
  if (create) open_sums();  // it shows whose the pages are, if the program is killed now
  try {
    state_->file = page_file(std::move(file), pages, page_bytes, options.mode, options.transfers);
  } catch (...) {
    if (create && state_->sums) (void)::unlink(options.sums.c_str());
    throw;
  }
  if (!create) open_sums();
}

page_device::page_device(const remote<page_device>& existing) : source_(existing) {
  state_ = wire::make_unique<state>(256);  // the existing device says how many at once
  state_->geometry = existing->geometry();
  name_ = state_->geometry.file;
  pages_ = state_->geometry.pages;
  page_bytes_ = state_->geometry.page_bytes;
}

page_device::page_device(std::uint64_t pages, std::uint64_t page_bytes)
    : name_("memory"), pages_(pages), page_bytes_(page_bytes), state_(wire::make_unique<state>(256)) {
  state_->geometry = {name_, pages_, page_bytes_, true, false, false};
}

page_device::~page_device() = default;

void page_device::check(std::uint64_t index) const {
  check_open();
  if (index >= pages_) throw std::out_of_range(fmt::format("page {} of {}, which has {} pages", index, name_, pages_));
}
void page_device::check_open() const {
  if (state_->closed) throw_errno(EBADF, fmt::format("{} was closed by close(): open it anew", name_));
}
void page_device::check_writable() const {
  if (!geometry().writable) throw_errno(EROFS, fmt::format("{} was opened read-only: open it for writing", name_));
  if (state_->finished)
    throw_errno(EROFS, fmt::format("{} belongs to a data set that finish() has finished: call its reopen() before "
                                   "more is written",
                                   name_));
}
void page_device::take_writes(bool taken) { state_->finished = !taken; }

void page_device::write(const page& p, std::uint64_t index) {
  check(index);
  check_writable();
  if (p.size() != page_bytes_)
    throw std::invalid_argument(
        fmt::format("a page of {} bytes cannot be written to {}, whose pages have {}", p.size(), name_, page_bytes_));
  const page kept = p;  // the caller's memory, also if the caller goes on or ends
  const page_lock lock(*this, index, true);
  store(kept, index);
}

page page_device::read(std::uint64_t index) {
  check(index);
  const page_lock lock(*this, index, false);
  return fetch(index);
}

void page_device::read_into_cache(std::uint64_t) {}

page page_device::fetch(std::uint64_t index) {
  if (source_) {
    page p = source_->read(index);
    ++statistics_.pages_read;
    return p;
  }
  page p = page::uninitialized(page_bytes_);
  load(p, index);
  return p;
}

// The sum is computed before the page has its turn, and after a read: the drive does not wait for
// it.
void page_device::store(const page& p, std::uint64_t index) {
  const std::uint64_t sum = state_->sums ? page_sums::sum_of(p.bytes(), index) : 0;
  const internal::gate::pass turn(state_->turns);
  store_with(p, index, sum);
}
void page_device::store_now(const page& p, std::uint64_t index) {
  store_with(p, index, state_->sums ? page_sums::sum_of(p.bytes(), index) : 0);
}

void page_device::store_with(const page& p, std::uint64_t index, std::uint64_t sum) {
  if (source_) {
    source_->write(p, index);
  } else {
    page_sums& sums = state_->sums;
    if (sums) sums.begin_write(index);
    {
      const transfer one(*this);
      write_raw(p.memory(state_->file.slot_bytes()), index);
    }
    if (sums) sums.end_write(index, sum);
  }
  ++statistics_.pages_written;
}

// Reads and verifies. Another program may be writing while this one reads: then the record has
// changed meanwhile, and both are read again.
void page_device::load(page& p, std::uint64_t index) {
  const std::size_t slot = state_->file.slot_bytes();
  const page_sums& sums = state_->sums;
  for (int attempt = 1;; ++attempt) {
    const page_sums::record expected = sums ? sums.get(index) : page_sums::record{};
    if (sums && expected.state == page_state::never_written) {
      std::memset(p.writable_memory(slot).data(), 0, slot);
      return;
    }
    if (sums && expected.state == page_state::writing)
      throw_errno(EBADMSG,
                  fmt::format("page {} of {} is incomplete: a write of it was interrupted{}: write the page again",
                              index, name_, state_->file.writable() ? "" : ", or another program is writing it"));
    {
      const internal::gate::pass turn(state_->turns);
      const transfer one(*this);
      read_raw(p.writable_memory(slot), index);
    }
    ++statistics_.pages_read;
    // who has got the turn gives the drive its next page before this one's sum is computed
    if (sums) yield();
    if (!sums || page_sums::sum_of(p.bytes(), index) == expected.sum) return;
    if (state_->file.writable() || attempt == 4 || sums.get(index) == expected)
      throw_errno(EBADMSG,
                  fmt::format("page {} of {} is damaged: its checksum is not that of what was written: write the "
                              "page again, or restore it from a copy",
                              index, name_));
  }
}

void page_device::read_raw(std::span<std::byte> into, std::uint64_t index) { state_->file.read(into, index); }
void page_device::write_raw(std::span<const std::byte> from, std::uint64_t index) { state_->file.write(from, index); }

void page_device::await_writes() {
  const std::uint64_t mine = state_->next_write;
  while (!state_->writes.empty() && *state_->writes.begin() < mine) state_->flushes.wait();
}

void page_device::flush() {
  check_open();
  await_writes();
  if (source_) {
    source_->flush();
  } else if (state_->own_file && state_->file.writable()) {
    // The pages first: a record that is on the drive says that its page is.
    state_->file.sync();
    if (state_->sums) state_->sums.sync();
  }
}

void page_device::close() {
  if (state_->closed) return;
  flush();
  state_->closed = true;
  if (!state_->own_file) return;
  state_->file.close();
  if (state_->sums) state_->sums.close();
}

device_geometry page_device::geometry() const {
  if (!state_->own_file) return state_->geometry;
  const page_file& f = state_->file;
  return {f.path(), pages_, page_bytes_, f.writable(), f.direct(), static_cast<bool>(state_->sums)};
}

std::string page_device::damage_of(std::uint64_t index) {
  check(index);
  if (source_) return source_->damage_of(index);
  if (!state_->own_file) return {};
  const page_lock lock(*this, index, true);
  try {
    page p = page::uninitialized(page_bytes_);
    load(p, index);
    return {};
  } catch (const std::system_error& e) {
    if (e.code().value() != EBADMSG && e.code().value() != EIO && e.code().value() != EINVAL) throw;
    return e.what();
  }
}

std::string page_device::damage_of_written(std::uint64_t index) {
  check(index);
  if (source_) return source_->damage_of_written(index);
  std::string what = damage_of(index);
  if (what.empty() && state_->sums && state_->sums.get(index).state == page_state::never_written)
    what = fmt::format("page {} of {} has not come to its drive: write the page again", index, name_);
  return what;
}

std::vector<std::uint64_t> page_device::unwritten() const {
  check_open();
  if (source_) return source_->unwritten();
  return state_->sums ? state_->sums.unwritten() : std::vector<std::uint64_t>();
}

}  // namespace orrery::storage
