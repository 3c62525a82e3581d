// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/nearest.hpp>
#include <orrery/process/detail/simulation.hpp>
#include <orrery/process/internal/units.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/wire/error.hpp>

#include <charconv>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery {

namespace {

using transport::link_cost;
using transport::sim_settings;

constexpr std::uint64_t most_pes = std::uint64_t{1} << 24;
// Sums and products of such times are none that wrap.
constexpr std::uint64_t longest_s = 1'000'000;
constexpr double slowest = 1e6;

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t n = text.find(at);
    parts.emplace_back(text.substr(0, n));
    if (n == std::string_view::npos) return parts;
    text.remove_prefix(n + 1);
  }
}

template <class T>
std::optional<T> number(std::string_view text) {
  T n{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

bool set_count(std::uint32_t& to, const std::string& text) {
  const auto n = number<std::uint32_t>(text);
  if (!n || *n == 0 || *n > most_pes) return false;
  to = *n;
  return true;
}

bool set_time(std::int64_t& to, const std::string& text) {
  const auto t = detail::to_time(text);
  if (!t || *t > longest_s * 1'000'000'000) return false;
  to = static_cast<std::int64_t>(*t);
  return true;
}

bool set_link(link_cost& to, const std::string& text) {
  if (text == "shm") return to = transport::links::shared_memory, true;
  if (text == "10g") return to = transport::links::ethernet_10g, true;
  if (text == "200g") return to = transport::links::network_200g, true;
  const auto parts = split(text, ':');
  std::int64_t times[3] = {};
  if (parts.size() != 4) return false;
  for (std::size_t i = 0; i < 3; ++i)
    if (!set_time(times[i], parts[i])) return false;
  const auto rate = detail::to_size(parts[3]);
  if (!rate || *rate == 0) return false;
  to = {static_cast<double>(times[0]), static_cast<double>(times[1]), static_cast<double>(times[2]),
        1e9 / static_cast<double>(*rate)};
  return true;
}

bool set_drive(sim_settings& s, const std::string& text) {
  const auto parts = split(text, ':');
  if (parts.size() != 2 || !set_time(s.drive_seek_ns, parts[1])) return false;
  const auto rate = detail::to_size(parts[0]);
  if (!rate || *rate == 0) return false;
  s.drive_byte = 1e9 / static_cast<double>(*rate);
  return true;
}

bool add_loss(sim_settings& s, const std::string& text) {
  const auto parts = split(text, '@');
  sim_settings::loss l{};
  if (parts.size() != 2 || !set_time(l.at_ns, parts[1])) return false;
  const auto node = number<std::uint32_t>(parts[0]);
  if (!node) return false;
  l.node = *node;
  s.losses.push_back(l);
  return true;
}

bool add_cut(sim_settings& s, const std::string& text) {
  const auto parts = split(text, '@');
  if (parts.size() != 2) return false;
  const auto nodes = split(parts[0], ':');
  const auto times = split(parts[1], '+');
  sim_settings::cut c{};
  if (nodes.size() != 2 || times.size() > 2 || !set_time(c.at_ns, times[0])) return false;
  const auto from = number<std::uint32_t>(nodes[0]);
  const auto to = number<std::uint32_t>(nodes[1]);
  if (!from || !to || *from == *to) return false;
  c.from = *from;
  c.to = *to;
  if (std::int64_t lasts = 0; times.size() == 2) {
    if (!set_time(lasts, times[1])) return false;
    c.until_ns = c.at_ns + lasts;
  }
  s.cuts.push_back(c);
  return true;
}

bool set_silence(sim_settings& s, const std::string& text) {
  constexpr std::int64_t least = 10'000;  // there are looks at who is silent, ten in that time
  return set_time(s.silence_ns, text) && s.silence_ns >= least;
}

bool add_slow(sim_settings& s, const std::string& text) {
  const auto parts = split(text, '*');
  if (parts.size() != 2) return false;
  const auto node = number<std::uint32_t>(parts[0]);
  const auto factor = number<double>(parts[1]);
  if (!node || !factor || !(*factor >= 1 / slowest && *factor <= slowest)) return false;
  s.slow.push_back({*node, *factor});
  return true;
}

struct key {
  std::string_view name;
  std::string_view allowed;
  bool (*set)(sim_settings&, const std::string&);
  bool repeats = false;
};
constexpr std::string_view a_count = "a number from 1 to 16777216";
constexpr std::string_view a_time = "a time like 50us, 1ms or 0, up to 1000000s";
constexpr key keys[] = {
    {"machines", a_count, [](sim_settings& s, const std::string& v) { return set_count(s.machines, v); }},
    {"nodes", a_count, [](sim_settings& s, const std::string& v) { return set_count(s.nodes, v); }},
    {"pes", a_count, [](sim_settings& s, const std::string& v) { return set_count(s.pes, v); }},
    {"net", allowed_networks, [](sim_settings& s, const std::string& v) { return set_link(s.net, v); }},
    {"local", allowed_networks, [](sim_settings& s, const std::string& v) { return set_link(s.local, v); }},
    {"message", a_time, [](sim_settings& s, const std::string& v) { return set_time(s.message_ns, v); }},
    {"jitter", a_time, [](sim_settings& s, const std::string& v) { return set_time(s.jitter_ns, v); }},
    {"seed", "a number",
     [](sim_settings& s, const std::string& v) {
       const auto n = number<std::uint64_t>(v);
       s.seed = n.value_or(0);
       return n.has_value();
     }},
    {"compute", "given or measured",
     [](sim_settings& s, const std::string& v) {
       s.measured = v == "measured";
       return s.measured || v == "given";
     }},
    {"carriers", "on or off",
     [](sim_settings& s, const std::string& v) {
       s.carriers = v == "on";
       return s.carriers || v == "off";
     }},
    {"drive", "RATE:SEEK like 100M:13ms: bytes a second, and time for each transfer",
     [](sim_settings& s, const std::string& v) { return set_drive(s, v); }},
    {"lose", "NODE@TIME like 3@2ms", add_loss, true},
    {"detect", a_time, [](sim_settings& s, const std::string& v) { return set_time(s.detect_ns, v); }},
    {"cut", "NODE:NODE@TIME or NODE:NODE@TIME+TIME like 1:3@2ms+1s: what the first sends to the second is held up",
     add_cut, true},
    {"silence", "a time from 10us to 1000000s", set_silence},
    {"slow", "NODE*FACTOR like 2*1.5, a factor from 1e-6 to 1e6", add_slow, true},
};

[[noreturn]] void fail(const std::string& text) { throw world_error(errc::world_bad_setting, verbatim, text); }

void check(const sim_settings& s) {
  // each is not above most_pes; the three together may be above 64 bits
  if (const std::uint64_t nodes = std::uint64_t{s.machines} * s.nodes; nodes > most_pes || nodes * s.pes > most_pes)
    fail(fmt::format("--orrery-sim: {} machines of {} nodes of {} PEs are more than {} PEs", s.machines, s.nodes, s.pes,
                     most_pes));
  const auto is_there = [&](std::uint32_t node, const char* what) {
    if (node >= s.all_nodes())
      fail(fmt::format("--orrery-sim: {}={} names a node that there is not: the world has {} nodes, from 0 on", what,
                       node, s.all_nodes()));
  };
  for (const auto& l : s.losses) is_there(l.node, "lose");
  for (const auto& l : s.slow) is_there(l.node, "slow");
  for (const auto& c : s.cuts) {
    is_there(c.from, "cut");
    is_there(c.to, "cut");
    if (!s.carriers) fail("--orrery-sim: cut holds up what carriers send; give carriers=on too");
    if (c.from / s.nodes == c.to / s.nodes)
      fail(fmt::format("--orrery-sim: cut={}:{} names nodes of one machine; a cut is between two", c.from, c.to));
  }
}

}  // namespace

transport::sim_settings parse_simulation(std::string_view text) {
  sim_settings s;
  std::set<std::string> given;
  for (const std::string& part : split(text, ',')) {
    const std::size_t at = part.find('=');
    const std::string name = part.substr(0, at);
    const key* found = nullptr;
    for (const key& k : keys)
      if (k.name == name) found = &k;
    if (part.empty() && text.ends_with(','))
      fail(fmt::format("--orrery-sim={}: the list ends with a comma, or has two together; leave it out", text));
    if (found == nullptr) {
      detail::suggestions meant(name);
      std::string all;
      for (const key& k : keys) {
        meant.consider(k.name);
        all += fmt::format("{}{}", all.empty() ? "" : ", ", k.name);
      }
      const auto best = meant.best();
      fail(fmt::format("--orrery-sim: there is no \"{}\"; there are {}{}", name, all,
                       best.empty() ? "" : fmt::format("; did you mean {}?", best.front().name)));
    }
    const std::string value = at == std::string::npos ? "" : part.substr(at + 1);
    if (!found->repeats && !given.insert(name).second)
      fail(fmt::format("--orrery-sim: {} is given twice, the second time as {}; leave one out", name, value));
    if (!found->set(s, value))
      fail(fmt::format("--orrery-sim: {}={}: this value cannot be; allowed is {}", name, value, found->allowed));
  }
  check(s);
  return s;
}

transport::link_cost parse_network(std::string_view text, std::string_view option) {
  link_cost c;
  if (!set_link(c, std::string(text)))
    fail(fmt::format("{}={}: this value cannot be; allowed is {}", option, text, allowed_networks));
  return c;
}

std::string describe(const transport::sim_settings& s, const scheduler::sim_report& r) {
  const auto count = [](std::uint64_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  return fmt::format(
      "orrery: simulated {}, {} with {} each, seed {}: {:.3f} us of virtual time, {} between PEs ({} bytes), {} of them "
      "between machines ({} bytes), {} to elements with {}, {}",
      count(s.machines, "machine"), count(s.all_nodes(), "node"), count(s.pes, "PE"), s.seed,
      static_cast<double>(r.time_ns) / 1e3, count(r.messages, "message"), r.bytes, r.net_messages, r.net_bytes,
      r.routed, count(r.hops, "hop"), count(r.events, "event"));
}

}  // namespace orrery
