// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/cluster_status.hpp>

#include <orrery/transport/mpi/internal/status_socket.hpp>
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/unique_fd.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/serialize.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>

#include <fmt/format.h>
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
  if (!std::ranges::all_of(s.nodes, is_good) || s.teller >= s.nodes.size()) return damaged("cannot be");
  return s;
}

world_state state_of_world(node_state first) noexcept {
  switch (first) {
    case node_state::leaving:
    case node_state::left:
      return world_state::ending;
    case node_state::dead:
      return world_state::lost;
    default:
      return world_state::running;
  }
}

std::vector<std::uint64_t> told_worlds() {
  std::vector<std::uint64_t> all;
  std::ifstream sockets("/proc/net/unix");
  const std::string key = fmt::format("@{}", internal::status_name);
  for (std::string line; std::getline(sockets, line);) {
    const std::size_t at = line.find(key);
    if (at == std::string::npos) continue;
    std::uint64_t nonce = 0;
    const char* const begin = line.data() + at + key.size();
    const char* const end = line.data() + line.size();
    if (std::from_chars(begin, end, nonce, 16).ptr != end) continue;
    // so have the connections of tools
    if (std::ranges::find(all, nonce) == all.end()) all.push_back(nonce);
  }
  return all;
}

result<cluster_status> ask_for_status(std::uint64_t nonce, std::chrono::milliseconds patience, bool names) {
  const unique_fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto [address, length] = internal::status_address(nonce);
  if (!socket || !internal::set_patience(socket.get(), patience) ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return fail(transport_errc::gone, errno,
                "nobody tells of the machines of this world: its first rank here has ended");
  if (!internal::is_of_this_user(socket.get()))
    return fail(transport_errc::refused, 0, "another user answers in the name of this world");
  const std::byte wish{names ? std::uint8_t{1} : std::uint8_t{0}};
  std::uint64_t bytes = 0;
  if (!internal::send_all(socket.get(), std::span(&wish, 1)))
    return fail(transport_errc::gone, 0, "nobody hears who asks for the machines of this world");
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
