// SPDX-License-Identifier: Apache-2.0
// Whatever a rendezvous file holds, reading it gives an address that makes sense, or an error.
#include <orrery/transport/shm/rendezvous.hpp>

#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

using namespace orrery::transport;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string path = "./" + rendezvous_prefix() + 'w';
  const unique_fd file{::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (::write(file.get(), data, bytes) != static_cast<ssize_t>(bytes)) std::abort();
  const auto door = rendezvous::look("w", ".");
  if (!door) std::abort();
  const auto address = (*door)->read();
  if (address && *address) {
    const world_address& a = **address;
    if (a.creator.pid <= 0 || a.fd < 0 || a.nonce == 0) std::abort();
  } else if ((bytes == 0) != address.has_value()) {
    std::abort();
  }
  ::unlink(path.c_str());
  return 0;
}
