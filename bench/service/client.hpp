// SPDX-License-Identifier: Apache-2.0
#pragma once

// Clients of lists behind sessions.

#include "workload.hpp"

#include <orrery/orrery.hpp>
#include <orrery/service/ordered_list.hpp>

#include <cstdint>
#include <vector>

namespace bench {

struct client_plan {
  settings s;
  std::uint32_t id = 0;
  bool mix = false;
  keys distribution = keys::uniform;
  orrery::consistency order = orrery::consistency::per_key;
  double warm_up_s = 0;  // before time is taken
};

struct client_result {
  std::uint64_t done = 0;
  double seconds = 0;
};

template <class Session>
void request(Session& session, const operation& o) {
  switch (o.what) {
    case operation::find:
      session.start_find(o.key);
      break;
    case operation::insert:
      session.start_insert(o.key, o.key);
      break;
    default:
      session.start_erase(o.key);
  }
}

[[nodiscard]] inline std::uint32_t window_of(const settings& s) {
  return s.window == 0 ? orrery::tuning::automatic : s.window;
}

template <class List>
client_result drive(const List& l, const client_plan& p) {
  const std::vector<operation> all = plan(p.s, p.id, p.mix, p.distribution);
  auto session = l.open({.window = window_of(p.s), .order = p.order});
  client_result result;
  const auto take = [&](const auto& r) { result.done += r.done ? 1 : 0; };
  auto begin = clock_type::now();
  while (p.warm_up_s != 0 && seconds_since(begin) < p.warm_up_s) {
    for (std::size_t i = 0; i < all.size() && (i % 1024 != 0 || seconds_since(begin) < p.warm_up_s); ++i) {
      request(session, all[i]);
      while (const auto r = session.try_receive()) take(*r);
    }
  }
  begin = clock_type::now();
  for (const operation& o : all) {
    request(session, o);
    while (const auto r = session.try_receive()) take(*r);
  }
  while (const auto r = session.receive()) take(*r);
  result.seconds = seconds_since(begin);
  return result;
}

/// Clients on these PEs; millions of operations a second of all.
template <class List>
double rate_of(const List& l, const std::vector<std::uint32_t>& pes, client_plan p) {
  std::vector<orrery::future<client_result>> clients;
  for (p.id = 0; p.id < pes.size(); ++p.id)
    clients.push_back(orrery::start_call<&drive<List>>(orrery::pe(pes[p.id]), l, p));
  double slowest = 0;
  for (auto& c : clients) slowest = std::max(slowest, c.get().seconds);
  return static_cast<double>(p.s.operations) * static_cast<double>(pes.size()) / slowest / 1e6;
}

using fast_list = orrery::ordered_list<std::uint32_t, std::uint64_t>;

/// A list of s.items keys on these PEs; `ascending`: those of keys::sequential.
inline fast_list filled(const settings& s, const std::vector<std::uint32_t>& pes, bool ascending = false,
                        std::uint32_t range_items = orrery::tuning::automatic) {
  fast_list l = fast_list::make({.pes = pes, .range_items = range_items});
  auto session = l.open({});
  for (std::uint32_t i = 0; i < s.items; ++i) {
    session.start_insert(ascending ? i * static_cast<std::uint32_t>(0x1'0000'0000U / s.items) : mixed(i), i);
    while (session.try_receive()) {
    }
  }
  while (session.receive()) {
  }
  return l;
}

}  // namespace bench
