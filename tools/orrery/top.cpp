// SPDX-License-Identifier: Apache-2.0
#include "attach.hpp"
#include "commands.hpp"
#include "sample.hpp"
#include "screen.hpp"
#include "text.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

const pe_counters* counters_of(const world_sample& w, const node_sample& n, std::uint32_t pe) {
  for (const node_sample& old : w.nodes) {
    if (old.info.node != n.info.node) continue;
    for (const pe_sample& p : old.pes)
      if (p.pe == pe) return &p.counters;
  }
  return nullptr;
}

bool has_services(const world_sample& w) {
  for (const node_sample& n : w.nodes)
    for (const pe_sample& p : n.pes)
      if (p.counters.service_window + p.counters.service_granularity != 0) return true;
  return false;
}

std::vector<std::string> cells(const pe_rates& r) {
  return {short_number(r.messages),   short_number(r.sent),           short_number(r.parks),
          short_number(r.sent_bytes), short_number(r.received_bytes), percent(r.idle)};
}

std::string_view state_of(const node_sample& n, const pe_sample& p) {
  if (n.info.state == transport::node_state::leaving) return "leaving";
  return p.counters.asleep ? "asleep" : "awake";
}

/// What several PEs do together: a line of the table.
class sum_of_pes {
 public:
  void add(const pe_sample& p, const pe_rates& r) {
    rates_.messages += r.messages;
    rates_.sent += r.sent;
    rates_.parks += r.parks;
    rates_.sent_bytes += r.sent_bytes;
    rates_.received_bytes += r.received_bytes;
    rates_.idle += r.idle;
    processes_ += p.counters.processes;
    ++pes_;
  }
  [[nodiscard]] std::vector<std::string> row() const {
    pe_rates r = rates_;
    if (pes_ != 0) r.idle /= static_cast<double>(pes_);
    std::vector<std::string> row{"all", "", "", std::to_string(processes_)};
    for (std::string& cell : cells(r)) row.push_back(std::move(cell));
    return row;
  }

 private:
  pe_rates rates_;
  std::uint64_t processes_ = 0;
  std::size_t pes_ = 0;
};

/// The lines of `orrery top`: the names of the columns, one for each PE, and one for all of them. With several machines each
/// line names its machine, and the PEs of each are followed by a line for all of them.
class rate_table {
 public:
  rate_table(const world_sample& before, const world_sample& now)
      : before_(before), now_(now), services_(has_services(now)), columns_(names_of_columns()), table_(columns_) {
    for (std::size_t i = 0; i < now.nodes.size(); ++i) {
      const node_sample& n = now.nodes[i];
      for (const pe_sample& p : n.pes) add(n, p);
      const bool is_last = i + 1 == now.nodes.size() || now.nodes[i + 1].machine != n.machine;
      if (!is_last || now.machines.size() < 2) continue;
      add_row(n.machine, of_machine_.row());
      of_machine_ = {};
    }
    add_row(std::nullopt, all_.row());
  }
  [[nodiscard]] std::vector<std::string> lines() const { return table_.lines(); }

 private:
  [[nodiscard]] std::vector<std::string> names_of_columns() const {
    std::vector<std::string> names{">PE",      ">NODE",    "STATE",   ">PROCESSES", ">MSG/s", ">SENT/s",
                                   ">PARKS/s", ">OUT B/s", ">IN B/s", ">IDLE",      ">QUEUE", ">MAILBOX"};
    if (!now_.machines.empty()) names.insert(names.begin(), "MACHINE");
    if (services_) names.insert(names.end(), {">W", ">G", ">K"});
    return names;
  }
  void add(const node_sample& n, const pe_sample& p) {
    const pe_counters* const old = counters_of(before_, n, p.pe);
    const pe_rates r = old != nullptr ? rates_between(*old, p.counters) : pe_rates{};
    std::vector<std::string> row{std::to_string(p.pe), std::to_string(n.info.node), std::string(state_of(n, p)),
                                 std::to_string(p.counters.processes)};
    for (std::string& cell : cells(r)) row.push_back(std::move(cell));
    row.push_back(short_number(static_cast<double>(p.counters.queue_high)));
    row.push_back(short_number(static_cast<double>(p.counters.mailbox_high)));
    for (const std::uint64_t value :
         {p.counters.service_window, p.counters.service_granularity, p.counters.service_forwards})
      if (services_) row.push_back(value == 0 ? "" : std::to_string(value));
    add_row(n.machine, std::move(row));
    of_machine_.add(p, r);
    all_.add(p, r);
  }
  void add_row(std::optional<std::uint32_t> machine, std::vector<std::string> row) {
    if (!now_.machines.empty())
      row.insert(row.begin(), machine ? printable(now_.machines[*machine], longest_host) : "all");
    row.resize(columns_.size());
    table_.add(std::move(row));
  }

  const world_sample& before_;
  const world_sample& now_;
  bool services_;
  std::vector<std::string> columns_;
  text_table table_;
  sum_of_pes of_machine_;
  sum_of_pes all_;
};

std::vector<std::string> rate_lines(const world_sample& before, const world_sample& now) {
  return rate_table(before, now).lines();
}

// What could not be read, below the line for the world.
std::vector<std::string> head_lines(const world_sample& now) {
  std::vector<std::string> lines{headline(now)};
  for (const std::string& p : now.problems) lines.push_back("orrery: " + p);
  return lines;
}

int print_rates(const watched_world& world, const common& c, const top_settings& s) {
  world_sample before = take_sample(world);
  do {
    std::this_thread::sleep_for(s.interval);
    const world_sample now = take_sample(world);
    if (!now.problems.empty() && is_over(world)) break;
    if (c.json) {
      print_json(to_json(now, &before));
    } else {
      print_lines(head_lines(now));
      print_lines(rate_lines(before, now));
      if (!s.once) print_lines({""});
    }
    before = now;
  } while (!s.once && !is_over(world) && std::ferror(stdout) == 0);
  return 0;
}

// What of `lines` is shown: the first two and the last always, of the others as many as fit.
std::vector<std::string> scrolled(const std::vector<std::string>& table, std::size_t room, std::size_t& first) {
  const std::size_t pes = table.size() - 2;
  const std::size_t shown = std::min(pes, room > 2 ? room - 2 : 1);
  first = std::min(first, pes - shown);
  std::vector<std::string> lines{table.front()};
  const auto begin = table.begin() + 1 + static_cast<std::ptrdiff_t>(first);
  lines.insert(lines.end(), begin, begin + static_cast<std::ptrdiff_t>(shown));
  lines.push_back(table.back());
  return lines;
}

int show_rates(const watched_world& world, screen& terminal, milliseconds interval) {
  world_sample before = take_sample(world);
  world_sample now = before;
  std::size_t first = 0;
  key pressed = key::none;
  auto due = clock::now() + interval;
  for (;;) {
    std::vector<std::string> lines{headline(now)};
    lines.push_back(now.problems.empty() ? "q quits, arrows scroll; totals since the start: orrery ls " + now.name
                                         : "orrery: " + now.problems.front());
    for (std::string& line : scrolled(rate_lines(before, now), terminal.rows() - 2, first))
      lines.push_back(std::move(line));
    terminal.draw(lines, 2, pressed != key::none);
    const auto left = std::chrono::ceil<milliseconds>(due - clock::now());
    pressed = terminal.wait_key(std::max(left, milliseconds{0}));
    const std::size_t page = std::max<std::size_t>(1, terminal.rows() - std::min<std::size_t>(4, terminal.rows()));
    switch (pressed) {
      case key::quit:
        return 0;
      case key::up:
        first -= std::min<std::size_t>(first, 1);
        break;
      case key::down:
        ++first;
        break;
      case key::page_up:
        first -= std::min(first, page);
        break;
      case key::page_down:
        first += page;
        break;
      default:
        break;
    }
    if (clock::now() < due) continue;
    if (is_over(world)) return 0;
    before = std::exchange(now, take_sample(world));
    due += interval;
  }
}

}  // namespace

int top(const common& c, const std::string& name, const top_settings& s) {
  const auto world = attach(name, c.directory);
  if (!world) return fail(world.error());
  const bool terminal = !c.json && !s.once && ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  int result = 0;
  if (const auto drawn = terminal ? screen::open() : nullptr) {
    result = show_rates(*world, *drawn, s.interval);
  } else {
    result = print_rates(*world, c, s);
  }
  if (!s.once && !c.json && is_over(*world)) fmt::print(stderr, "World {} has ended.\n", name);
  return result;
}

}  // namespace orrery::tool
