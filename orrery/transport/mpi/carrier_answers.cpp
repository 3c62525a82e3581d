// SPDX-License-Identifier: Apache-2.0
// Questions that nodes ask each other in rounds: the counters of their PEs, and for tools the names
// that they have published.
#include <orrery/transport/mpi/carrier.hpp>

#include <orrery/transport/shm/world.hpp>

#include <algorithm>
#include <utility>

namespace orrery::transport {

std::uint64_t mpi_carrier::ask_for_counters() noexcept {
  // SYNC: acquire, with ask_if_wanted: a round that has begun may have been answered in part.
  const std::uint64_t round = begun_.load(std::memory_order_acquire) + 1;
  std::uint64_t wanted = wanted_.load(std::memory_order_relaxed);
  while (wanted < round && !wanted_.compare_exchange_weak(wanted, round, std::memory_order_relaxed)) {
  }
  return round;
}

void mpi_carrier::ask_if_wanted() {
  if (!asked_.empty() || wanted_.load(std::memory_order_relaxed) <= round_) return;
  // SYNC: acquire, with ask_for_names: a round that is asked for after it has the flag
  const bool names = wants_names_.exchange(false, std::memory_order_acquire);
  begun_.store(++round_, std::memory_order_release);  // SYNC: with ask_for_counters
  for (peer& p : peers_) {
    if (p.closed || p.left || (!p.far && !names)) continue;
    asked_.insert(p.node);
    queue(p, {section_kind::ask, 0, 0, 0, names ? 1U : 0U, round_});
  }
  // SYNC: with counters_round
  if (asked_.empty()) answered_.store(round_, std::memory_order_release);
}

std::uint64_t mpi_carrier::ask_for_names() noexcept {
  wants_names_.store(true, std::memory_order_release);  // SYNC: with ask_if_wanted
  return ask_for_counters();
}

void mpi_carrier::show_names(names_source source) noexcept {
  const std::scoped_lock lock{mutex_};
  names_ = std::move(source);
}

std::vector<std::byte> mpi_carrier::names_of(std::uint32_t node) {
  const std::scoped_lock lock{mutex_};
  if (node != map_.own()) return peers_[node].names;
  return names_ ? names_(largest_names) : std::vector<std::byte>{};
}

// Always one part, so that names which are there no more are forgotten.
void mpi_carrier::queue_names(peer& to) {
  const std::vector<std::byte> all = names_ ? names_(largest_names) : std::vector<std::byte>{};
  std::size_t at = 0;
  do {
    const std::size_t n = std::min(largest_part, all.size() - at);
    queue(to, {section_kind::names, 0, map_.own(), 0, at, all.size()}, std::span(all).subspan(at, n));
    at += n;
  } while (at < all.size());
}

void mpi_carrier::forget_question(std::uint32_t node) {
  if (asked_.erase(node) != 0 && asked_.empty())
    answered_.store(round_, std::memory_order_release);  // SYNC: with counters_round
}

void mpi_carrier::say_counters() noexcept {
  const std::scoped_lock lock{mutex_};
  queue_counters(peers_[0], 0);
}

void mpi_carrier::queue_counters(peer& to, std::uint64_t round) {
  constexpr std::uint32_t pes_in_section = 128;
  const cluster_map::place& own = map_.at(map_.own());
  for (std::uint32_t i = 0; i < own.pe_count; i += pes_in_section) {
    const std::uint32_t n = std::min(pes_in_section, own.pe_count - i);
    std::vector<std::uint64_t> words(std::size_t{n} * counters_per_pe);
    for (std::uint32_t j = 0; j < n; ++j) {
      const auto from = local_.counters(map_.local_pe(own.first_pe + i + j, map_.own()));
      // The word `idle` of a PE is read before what it has sent: node::world_if_idle reads in this
      // order.
      constexpr std::size_t idle = counters_per_pe - 2;
      words[j * counters_per_pe + idle] =
          from[idle].load(std::memory_order_acquire);  // SYNC: quiescence_detector::rest
      for (std::size_t w = 0; w < counters_per_pe; ++w)
        if (w != idle) words[j * counters_per_pe + w] = from[w].load(std::memory_order_relaxed);
    }
    const bool is_last = i + n == own.pe_count;
    queue(to, {section_kind::counters, 0, own.first_pe + i, n, is_last ? 1U : 0U, round},
          std::as_bytes(std::span(words)));
  }
}

}  // namespace orrery::transport
