// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/function.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/task/internal/buffer.hpp>
#include <orrery/task/internal/convert.hpp>
#include <orrery/task/internal/state.hpp>
#include <orrery/task/internal/task_frame.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include <fmt/format.h>
#include <sys/mman.h>

namespace orrery::task_detail {

using scheduler::pe;

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t smallest_block = 2048;  // what is smaller is sooner copied than mapped
constexpr std::size_t most_retired = 1000;

std::size_t whole_pages(std::size_t size) noexcept { return (size / page + 1) * page; }

// The block that PE `source` has sent to PE `reader` is not in use any more; only the reader can
// say so.
void give_back(std::uint32_t reader, std::uint32_t source, std::uint64_t block) noexcept {
  pe* const self = scheduler::current_pe;
  if (self == nullptr) return;  // the PE has ended, and told all
  if (self->id() == reader) return self->links().release_block(source, block);
  struct errand {
    pe* at;
    std::uint32_t source;
    std::uint64_t block;
  };
  pe& at = self->owner().local(reader);
  auto* const e = new (std::nothrow) errand{&at, source, block};
  if (e == nullptr) return;  // the block stays in use until this node ends
  try {
    at.links().run_errand(
        [](void* argument) {
          const wire::unique_ptr<errand> told(static_cast<errand*>(argument));
          told->at->links().release_block(told->source, told->block);
        },
        e);
  } catch (const std::exception&) {  // that PE is ending, or there is no memory for the errand
    delete e;
  }
}

}  // namespace

buffer_memory::~buffer_memory() {
  switch (kind_) {
    case kind::none:
      break;
    case kind::heap:
      std::free(data_);
      break;
    case kind::pages:
      ::munmap(data_, whole_pages(size_));
      break;
    case kind::block:
      if (pe* const self = scheduler::current_pe; self != nullptr) self->owner().world()->release(offset_);
      break;
    case kind::guest:
      give_back(reader_, source_, offset_);
      break;
  }
}

void buffer_memory::swap(buffer_memory& o) noexcept {
  std::swap(kind_, o.kind_);
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  std::swap(offset_, o.offset_);
  std::swap(source_, o.source_);
  std::swap(reader_, o.reader_);
}

bool buffer_memory::is_checked() noexcept {
#ifdef NDEBUG
  return scheduler::through_wire;
#else
  return true;
#endif
}

buffer_memory buffer_memory::make(pe& self, std::size_t size) {
  if (size > PTRDIFF_MAX - 2 * headroom) throw std::bad_alloc();
  transport::world* const world = self.owner().world();
  if (world != nullptr && size >= smallest_block && !is_checked()) {
    // Beyond the limit of what is on its way: else buffers that tasks keep would leave no memory
    // for messages, which then wait for ever.
    if (const auto memory = world->allocate_beyond(headroom + size)) {
      buffer_memory b;
      b.kind_ = kind::block;
      b.data_ = memory->data + headroom;
      b.size_ = size;
      b.offset_ = memory->offset;
      return b;
    }
  }
  return on_heap(size);
}

buffer_memory buffer_memory::on_heap(std::size_t size) {
  buffer_memory b;
  if (is_checked()) {
    void* const at =
        ::mmap(nullptr, whole_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    b.data_ = static_cast<std::byte*>(at);
    b.kind_ = kind::pages;
  } else {
    b.data_ = static_cast<std::byte*>(std::aligned_alloc(64, size / 64 * 64 + 64));
    if (b.data_ == nullptr) throw std::bad_alloc();
    b.kind_ = kind::heap;
  }
  b.size_ = size;
  return b;
}

buffer_memory buffer_memory::guest(pe& self, std::uint32_t source, std::uint64_t block, std::byte* data,
                                   std::size_t size) noexcept {
  buffer_memory b;
  b.kind_ = kind::guest;
  b.data_ = data;
  b.size_ = size;
  b.offset_ = block;
  b.source_ = source;
  b.reader_ = self.id();
  return b;
}

buffer_memory buffer_memory::in_other_pages() const {
  buffer_memory copy = on_heap(size_);
  if (size_ != 0) std::memcpy(copy.data_, data_, size_);
  return copy;
}

std::uint64_t buffer_memory::lend(pe& self, std::uint32_t to) {
  // With no bytes to allocate: the block at that offset is for PE `to` from now on.
  (void)self.owner().allocate_block(self.id(), to, 0, offset_);
  kind_ = kind::none;
  return offset_;
}

std::pair<void*, std::size_t> buffer_memory::retire() noexcept {
  if (kind_ != kind::pages) return {nullptr, 0};
  const std::size_t bytes = whole_pages(size_);
  if (::mmap(data_, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return {nullptr, 0};
  kind_ = kind::none;
  return {data_, bytes};
}

buffer_table::~buffer_table() {
  for (const auto& [at, bytes] : retired_) ::munmap(at, bytes);
}

orrery_buffer buffer_table::add(pe& self, buffer_memory memory, bool in_message) {
  constexpr unsigned pe_bits = 24;
  const std::uint64_t id = ++last_ << pe_bits | (self.id() & ((1U << pe_bits) - 1));
  const orrery_buffer b{memory.data(), memory.size(), id};
  entries_.emplace(id, entry{std::move(memory), self.self(), in_message});
  if (task_frame* const frame = task_frame::of(self); frame != nullptr) {
    frame->has_buffers = true;
  } else if (const scheduler::activation* const of = self.active(); of != nullptr) {
    // a process of C++: what it leaves is given back when it has ended
    of->process->watched = true;
  }
  return b;
}

buffer_table::entry& buffer_table::at(pe& self, const orrery_buffer& b, const char* call) {
  const auto found = entries_.find(b.id_);
  if (found == entries_.end() || found->second.owner != self.self())
    throw usage_error(errc::bad_argument,
                      fmt::format("{}: the buffer at {} was sent, given back, or released with its message before; "
                                  "or another task has made it",
                                  call, b.data));
  return found->second;
}

buffer_memory buffer_table::take_out(const orrery_buffer& b) noexcept {
  const auto found = entries_.find(b.id_);
  if (found == entries_.end()) return {};
  buffer_memory memory = std::move(found->second.memory);
  entries_.erase(found);
  return memory;
}

void buffer_table::retire(const orrery_buffer& b) noexcept {
  buffer_memory memory = take_out(b);
  const auto range = memory.retire();
  if (range.first == nullptr) return;
  try {
    retired_.push_back(range);
  } catch (const std::bad_alloc&) {
    ::munmap(range.first, range.second);
  }
  if (retired_.size() <= most_retired) return;
  ::munmap(retired_.front().first, retired_.front().second);
  retired_.pop_front();
}

void buffer_table::drop_received(std::uint64_t id) noexcept {
  if (const auto found = entries_.find(id); found != entries_.end() && found->second.in_message) entries_.erase(found);
}

void buffer_table::ended(const address& task) noexcept {
  std::erase_if(entries_, [&](const auto& e) { return e.second.owner == task; });
}

}  // namespace orrery::task_detail

using namespace orrery::task_detail;  // NOLINT: the C functions are its face

extern "C" {

orrery_status orrery_buffer_make(size_t size, orrery_buffer* buffer) {
  return guarded("orrery_buffer_make", [&] {
    require(buffer, "orrery_buffer_make", "the buffer");
    *buffer = {};
    pe& self = orrery::detail::here_pe();
    self.require_process();
    *buffer = task_state::of(self).buffers.add(self, buffer_memory::make(self, size), false);
    return ORRERY_OK;
  });
}

orrery_status orrery_buffer_take(orrery_buffer* received, orrery_buffer* mine) {
  orrery_buffer taken = {};
  const orrery_status said = guarded("orrery_buffer_take", [&] {
    require(received, "orrery_buffer_take", "the buffer that came in a message");
    require(mine, "orrery_buffer_take", "the buffer that it is to fill in");
    if (received->data == nullptr) return ORRERY_OK;
    pe& self = orrery::detail::here_pe();
    task_state::of(self).buffers.at(self, *received, "orrery_buffer_take").in_message = false;
    taken = *received;
    *received = {};
    return ORRERY_OK;
  });
  if (mine != nullptr) *mine = taken;
  return said;
}

orrery_status orrery_buffer_free(orrery_buffer* buffer) {
  return guarded("orrery_buffer_free", [&] {
    require(buffer, "orrery_buffer_free", "the buffer");
    const orrery_buffer b = *buffer;
    *buffer = {};
    if (b.data == nullptr) return ORRERY_OK;
    pe& self = orrery::detail::here_pe();
    (void)task_state::of(self).buffers.at(self, b, "orrery_buffer_free");
    task_state::of(self).buffers.drop(b.id_);
    return ORRERY_OK;
  });
}

}  // extern "C"
