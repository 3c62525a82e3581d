// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/machines.hpp>
#include <orrery/shared/detail/memory.hpp>
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/shm/peer.hpp>
#include <orrery/transport/shm/segment.hpp>
#include <orrery/wire/error.hpp>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace orrery::detail {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t large =
    64 << 10;  // from here on memory comes from the system, which gives it when it is touched

std::uint64_t whole(std::uint64_t element_bytes) {
  if (element_bytes > std::numeric_limits<std::int64_t>::max() - 2 * page) throw std::bad_alloc();
  return (element_bytes + memory_head::bytes + page - 1) / page * page;
}

class heap_memory final : public shared_memory {
 public:
  explicit heap_memory(std::uint64_t bytes) {
    name_.bytes = bytes;
    begin_ = static_cast<std::byte*>(std::aligned_alloc(64, (memory_head::bytes + bytes + 63) / 64 * 64));
    if (begin_ == nullptr) throw std::bad_alloc();
    std::memset(begin_, 0, memory_head::bytes + bytes);
  }
  ~heap_memory() override { std::free(begin_); }
};

class mapped_memory final : public shared_memory {
 public:
  explicit mapped_memory(std::uint64_t bytes) {
    name_.bytes = bytes;
    void* const at =
        ::mmap(nullptr, whole(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(at);
  }
  ~mapped_memory() override { ::munmap(begin_, whole(name_.bytes)); }
};

class segment_memory final : public shared_memory {
 public:
  segment_memory(transport::segment s, const memory_name& name) : segment_(std::move(s)) {
    name_ = name;
    begin_ = segment_.data();
  }

 private:
  transport::segment segment_;
};

[[noreturn]] void no_memory(std::string_view label, const std::string& why) {
  throw world_error(errc::world_no_space, verbatim, fmt::format("memory for the {}: {}", label, why));
}

}  // namespace

void shared_memory::require(std::uint64_t elements, std::uint64_t each, std::string_view label) {
  if (const std::uint64_t most = transport::arena::machine_memory(); elements > most / each)
    no_memory(label, fmt::format("its {} elements take {} bytes each, without what they point to, on this machine, "
                                 "which has {} in all; make it smaller, or distribute it over more machines",
                                 elements, each, most));
}

std::shared_ptr<shared_memory> shared_memory::make(std::uint64_t bytes, bool for_others, std::string_view label) {
  // The system gives memory when it is touched, and kills who touches more than there is.
  constexpr std::uint64_t much = 64 << 20;
  if (bytes >= much)
    if (const std::uint64_t most = for_others ? free_memory_here() : transport::arena::machine_memory(); bytes > most)
      no_memory(label, fmt::format("its elements take {} bytes on this machine, which has {} {}; make it smaller, or "
                                   "distribute it over more machines",
                                   bytes, most, for_others ? "left" : "in all"));
  if (!for_others) {
    if (bytes < large) return std::make_shared<heap_memory>(bytes);
    return std::make_shared<mapped_memory>(bytes);
  }
  const auto self = transport::this_peer();
  if (!self) no_memory(label, self.error().message);
  auto s = transport::segment::create("orrery shared data", whole(bytes));
  if (!s) no_memory(label, s.error().message);
  if (const auto backed = s->back(0, whole(bytes)); !backed) no_memory(label, backed.error().message);
  const memory_name name{self->pid, s->fd(), self->start_time, bytes};
  return std::make_shared<segment_memory>(std::move(*s), name);
}

std::shared_ptr<shared_memory> shared_memory::open(const memory_name& name, std::string_view label) {
  const auto owner = transport::peer::open({name.pid, name.started});
  if (!owner) throw node_lost(fmt::format("the {}: {}", label, owner.error().message));
  auto s = transport::segment::open_peer(*owner, name.fd, whole(name.bytes), transport::access::read_write, label);
  if (!s) throw node_lost(fmt::format("the {}: {}", label, s.error().message));
  return std::make_shared<segment_memory>(std::move(*s), name);
}

}  // namespace orrery::detail
