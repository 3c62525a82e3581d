// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/cluster_status.hpp>

#include <orrery/transport/mpi/internal/status_socket.hpp>
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/unique_fd.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/serialize.hpp>

#include <algorithm>

#include <sys/socket.h>

namespace orrery::transport {

using internal::fail;

std::vector<std::byte> cluster_status::encode() const {
  std::vector<std::byte> bytes(wire_size(*this));
  writer w(bytes);
  write(w, *this);
  return bytes;
}

result<cluster_status> cluster_status::decode(std::span<const std::byte> bytes) {
  const auto damaged = [](const char* what) {
    return fail(transport_errc::damaged, 0, "what the world tells of its machines {}", what);
  };
  cluster_status s;
  try {
    reader r(bytes);
    s = read<cluster_status>(r);
    r.finish();
  } catch (const error&) {
    return damaged("is damaged");
  }
  const auto is_good = [&](const node& n) {
    return n.machine < s.hosts.size() && n.state <= static_cast<std::uint32_t>(node_state::dead) &&
           n.counters.size() % counters_per_pe == 0 && n.counters.size() / counters_per_pe <= no_pe - n.first_pe;
  };
  if (!std::ranges::all_of(s.nodes, is_good)) return damaged("cannot be");
  return s;
}

result<cluster_status> ask_for_status(std::uint64_t nonce, std::chrono::milliseconds patience) {
  const unique_fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto [address, length] = internal::status_address(nonce);
  if (!socket || !internal::set_patience(socket.get(), patience) ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return fail(transport_errc::gone, errno,
                "nobody tells of the machines of this world: its first rank here has ended");
  if (!internal::is_of_this_user(socket.get()))
    return fail(transport_errc::refused, 0, "another user answers in the name of this world");
  std::uint64_t bytes = 0;
  if (!internal::receive_all(socket.get(), std::as_writable_bytes(std::span(&bytes, 1))))
    return fail(transport_errc::timed_out, 0, "the world does not tell of its machines for {} ms", patience.count());
  if (bytes > internal::largest_status)
    return fail(transport_errc::damaged, 0, "a status of {} bytes cannot be", bytes);
  std::vector<std::byte> text(bytes);
  if (!internal::receive_all(socket.get(), text))
    return fail(transport_errc::timed_out, 0, "the world has not told all of its machines in {} ms", patience.count());
  return cluster_status::decode(text);
}

}  // namespace orrery::transport
