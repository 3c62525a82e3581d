// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/process_table.hpp>

#include <algorithm>
#include <new>

#include <sys/mman.h>

namespace orrery::scheduler {

namespace {
constexpr std::uint32_t fewest_slots = 1024;
// of the table: all that most programs use
constexpr std::size_t in_huge_pages_bytes = std::size_t{8} << 20;
}  // namespace

process_table::process_table(std::uint32_t pe, std::uint32_t most, bool in_huge_pages) : pe_(pe) {
  // Reserved, not backed: a slot never moves, so that a pointer to it stays good while its method
  // is parked.
  for (std::size_t n = most; n >= fewest_slots; n /= 4) {
    void* p =
        mmap(nullptr, n * sizeof(slot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    slots_ = static_cast<slot*>(p);
    capacity_ = static_cast<std::uint32_t>(n);
    break;
  }
  if (slots_ == nullptr) throw std::bad_alloc{};
  const std::size_t bytes = capacity_ * sizeof(slot);
  // The first slots, which are all that most programs have, share few entries of the TLB. More of
  // that would make the first touch dear on virtual machines: huge pages are those that their host
  // has taken back.
  if (in_huge_pages) {
    madvise(slots_, std::min(bytes, in_huge_pages_bytes), MADV_HUGEPAGE);
  } else {
    madvise(slots_, bytes, MADV_NOHUGEPAGE);
  }
}

process_table::~process_table() {
  for (slot& s : all()) (void)s.open_room();  // who maps this memory next may use it
  munmap(slots_, capacity_ * sizeof(slot));
}

slot& process_table::take_new() {
  if (used_ == capacity_) throw std::bad_alloc{};
  slot& s = slots_[used_++];
  s.generation = 1;
  s.state = process_state::running;
  return s;
}

void process_table::close(slot& s) noexcept {
  s.state = process_state::free;
  if (++s.generation == 0) s.generation = 1;
  s.close_room();
  s.has_object = s.apart = s.is_function = false;
  s.class_number = 0;
  s.dying = false;
  s.suspected = false;  // else the next process here would never be one
  s.depth = 0;
  s.active = nullptr;
}

}  // namespace orrery::scheduler
