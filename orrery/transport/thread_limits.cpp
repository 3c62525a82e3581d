// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/thread_limits.hpp>

#include <cstddef>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace orrery::transport {

namespace {

std::size_t thread_stack_bytes() noexcept {
  std::size_t bytes = std::size_t{8} << 20;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return bytes;
  (void)pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

bool is_to_be_had(std::size_t bytes) noexcept {
  void* const at = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  ::munmap(at, bytes);
  return true;
}

}  // namespace

std::optional<std::uint64_t> address_space_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string more_threads_advice() {
  const std::size_t stack = thread_stack_bytes();
  if (const auto limit = address_space_limit(); limit && !is_to_be_had(stack))
    return fmt::format(
        "raise the limit of address space (ulimit -v), which is {} KiB and is used up: the stack of a thread takes {} "
        "KiB (ulimit -s), and the memory of a node what --orrery-memory says",
        *limit / 1024, stack / 1024);
  return "raise the limit of threads (ulimit -u, or that of the container)";
}

}  // namespace orrery::transport
