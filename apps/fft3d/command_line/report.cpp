// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "report_parts.hpp"  // made by CMake: report.html and Chart.js

namespace fft3d {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view names[] = {"read", "transform", "write"};

// In how much of the time at least one of the stretches ran.
double covered(std::vector<std::pair<double, double>> stretches) {
  std::ranges::sort(stretches);
  double sum = 0;
  double until = 0;
  for (const auto& [begin, end] : stretches) {
    sum += std::max(0.0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return sum;
}

ordered_json pass_summary(const plan& p, std::size_t i, const pass_record& r, std::uint32_t pes) {
  const double seconds = r.end - r.begin;
  const double share = static_cast<double>(r.units) / static_cast<double>(p.units(i));
  std::vector<std::pair<double, double>> drives;
  double busy = 0;
  std::array<double, 3> sum{};
  for (const work_log& l : r.logs)
    for (const span& s : l.spans) {
      if (s.what != span::kind::transform) drives.emplace_back(s.begin, s.end);
      busy += s.busy;
      sum[static_cast<std::size_t>(s.what)] += s.end - s.begin;
    }
  const auto read = static_cast<double>(p.bytes_at(p.passes[i].from)) * share;
  const auto written = static_cast<double>(p.bytes_at(p.passes[i].to)) * share;
  std::string dimensions;
  for (const phase& q : p.passes[i].phases) {
    dimensions += fmt::format("{}{}{}{}", q.dimension + 1, q.forward ? " forward" : "", q.filter ? " filter" : "",
                              q.inverse ? " inverse" : "");
    if (&q != &p.passes[i].phases.back()) dimensions += ", ";
  }
  return {{"dimensions", dimensions},
          {"units", r.units},
          {"seconds", seconds},
          {"bytes_read", read},
          {"bytes_written", written},
          {"bytes_per_s", seconds > 0 ? (read + written) / seconds : 0},
          {"read_s", sum[0]},
          {"transform_s", sum[1]},
          {"write_s", sum[2]},
          {"busy_s", busy},
          {"drives_in_use", seconds > 0 ? covered(drives) / seconds : 0},
          {"processors_in_use", seconds > 0 ? busy / seconds / pes : 0}};
}

std::uint64_t peak_memory(const outcome& o) {
  std::map<std::uint32_t, std::uint64_t> nodes;
  for (const pass_record& r : o.passes)
    for (const work_log& l : r.logs) nodes[l.node] = std::max(nodes[l.node], l.node_peak);
  std::uint64_t sum = 0;
  for (const auto& [node, bytes] : nodes) sum += bytes;
  return sum;
}

}  // namespace

ordered_json summary(const request& r, const plan& p, const drive_rates& rates, const outcome& o,
                     const std::vector<finding>& verified) {
  constexpr std::string_view operations[] = {"forward", "inverse", "filter"};
  ordered_json passes = ordered_json::array();
  for (std::size_t i = 0; i < o.passes.size(); ++i)
    passes.push_back(pass_summary(p, i, o.passes[i], orrery::world_pes()));
  ordered_json checks = ordered_json::array();
  for (const finding& f : verified)
    checks.push_back({{"what", f.what}, {"error", f.error}, {"limit", f.limit}, {"good", f.good()}});
  return {{"operation", operations[static_cast<std::size_t>(r.what)]},
          {"input", r.input},
          {"output", r.output.empty() ? r.input : r.output},
          {"shape", p.grid.array_shape},
          {"page_shape", p.grid.page_shape},
          {"type", to_string(p.input_type)},
          {"seconds", o.end - o.begin},
          {"resumed", o.resumed},
          {"not_a_number", o.not_a_number},
          {"pes", orrery::world_pes()},
          {"nodes", orrery::world_nodes()},
          {"processes", p.processes},
          {"memory_budget", r.memory},
          {"memory_planned", p.peak_bytes},
          {"memory_peak", peak_memory(o)},
          {"bytes_read", p.bytes_read},
          {"bytes_written", p.bytes_written},
          {"bytes_over_array", static_cast<double>(p.bytes_read + p.bytes_written) /
                                   static_cast<double>(product(p.grid.array_shape) * size_of(p.input_type))},
          {"drive_read_bytes_per_s", rates.read},
          {"drive_write_bytes_per_s", rates.write},
          {"passes", passes},
          {"verified", checks}};
}

void write_report(const std::string& file, const ordered_json& summary, const outcome& o) {
  ordered_json spans = ordered_json::array();
  for (std::size_t i = 0; i < o.passes.size(); ++i)
    for (std::size_t w = 0; w < o.passes[i].logs.size(); ++w) {
      const work_log& l = o.passes[i].logs[w];
      for (const span& s : l.spans)
        spans.push_back({{"process", fmt::format("{} (PE {}, node {})", w, l.pe, l.node)},
                         {"what", names[static_cast<std::size_t>(s.what)]},
                         {"pass", i + 1},
                         {"unit", s.unit},
                         {"begin", s.begin - o.begin},
                         {"end", s.end - o.begin}});
    }
  std::string text(report_html);
  const auto put = [&](std::string_view mark, const std::string& what) {
    text.replace(text.find(mark), mark.size(), what);
  };
  put("/*chart*/", std::string(chart_js));
  std::string data = ordered_json{{"summary", summary}, {"spans", spans}}.dump();
  for (std::size_t at = 0; (at = data.find("</", at)) != std::string::npos;) data.replace(at, 2, "<\\/");
  put("/*data*/", data);
  std::ofstream f(file);
  f << text;
  if (!f.flush())
    throw std::system_error(errno, std::system_category(), fmt::format("cannot write the report {}", file));
}

}  // namespace fft3d
