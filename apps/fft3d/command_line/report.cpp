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
using orrery::storage::sweep_record;
using orrery::storage::work_log;
using orrery::storage::work_span;

constexpr std::string_view names[] = {"read", "transform", "write"};

ordered_json pass_summary(const plan& p, std::size_t i, const sweep_record& r, std::uint32_t pes) {
  const double seconds = r.end - r.begin;
  const double share = static_cast<double>(r.units) / static_cast<double>(p.work.units(i));
  double busy = 0;
  std::array<double, 3> sum{};
  for (const work_log& l : r.logs)
    for (const work_span& s : l.spans) {
      busy += s.busy;
      sum[static_cast<std::size_t>(s.what)] += s.end - s.begin;
    }
  const auto read = static_cast<double>(p.work.bytes_at(p.work.sweeps[i].from)) * share;
  const auto written = static_cast<double>(p.work.bytes_at(p.work.sweeps[i].to)) * share;
  return {{"dimensions", dimensions_text(p, i)},
          {"units", r.units},
          {"seconds", seconds},
          {"bytes_read", read},
          {"bytes_written", written},
          {"bytes_per_s", seconds > 0 ? (read + written) / seconds : 0},
          {"read_s", sum[0]},
          {"transform_s", sum[1]},
          {"write_s", sum[2]},
          {"busy_s", busy},
          {"read_drives_in_use", r.read_busy},
          {"write_drives_in_use", r.write_busy},
          {"processors_in_use", seconds > 0 ? busy / seconds / pes : 0}};
}

std::uint64_t peak_memory(const sweep_outcome& o) {
  std::map<std::uint32_t, std::uint64_t> nodes;
  for (const sweep_record& r : o.sweeps)
    for (const work_log& l : r.logs) nodes[l.node] = std::max(nodes[l.node], l.node_peak);
  std::uint64_t sum = 0;
  for (const auto& [node, bytes] : nodes) sum += bytes;
  return sum;
}

}  // namespace

std::string dimensions_text(const plan& p, std::size_t pass) {
  std::string text;
  const phase& q = p.phases[pass];
  for (const int d : p.work.sweeps[pass].dimensions) {
    text += fmt::format("{}{}{}{}{}", text.empty() ? "" : ", ", d + 1, q.forward ? " forward" : "",
                        q.filter ? " filter" : "", q.inverse ? " inverse" : "");
  }
  return text;
}

ordered_json summary(const request& r, const plan& p, const sweep_outcome& o, const std::vector<finding>& verified) {
  constexpr std::string_view operations[] = {"forward", "inverse", "filter"};
  ordered_json passes = ordered_json::array();
  for (std::size_t i = 0; i < o.sweeps.size(); ++i)
    passes.push_back(pass_summary(p, i, o.sweeps[i], orrery::world_pes()));
  ordered_json checks = ordered_json::array();
  for (const finding& f : verified)
    checks.push_back({{"what", f.what}, {"error", f.error}, {"limit", f.limit}, {"good", f.good()}});
  return {{"operation", operations[static_cast<std::size_t>(r.what)]},
          {"input", r.input},
          {"output", r.output.empty() ? r.input : r.output},
          {"shape", p.work.grid.array_shape},
          {"page_shape", p.work.grid.page_shape},
          {"type", to_string(p.work.input_type)},
          {"seconds", o.end - o.begin},
          {"resumed", o.resumed},
          {"not_a_number", o.counted},
          {"pes", orrery::world_pes()},
          {"nodes", orrery::world_nodes()},
          {"processes", p.work.processes},
          {"memory_budget", r.memory},
          {"memory_planned", p.work.peak_bytes},
          {"memory_peak", peak_memory(o)},
          {"bytes_read", p.work.bytes_read},
          {"bytes_written", p.work.bytes_written},
          {"bytes_over_array", static_cast<double>(p.work.bytes_read + p.work.bytes_written) /
                                   static_cast<double>(product(p.work.grid.array_shape) * size_of(p.work.input_type))},
          {"drive_read_bytes_per_s", o.rates.read},
          {"drive_write_bytes_per_s", o.rates.write},
          {"passes", passes},
          {"verified", checks}};
}

std::string json_text(const ordered_json& j, int indent) {
  return j.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

void write_text(const std::string& file, const std::string& text) {
  std::ofstream f(file);
  f << text;
  if (!f.flush()) throw std::system_error(errno, std::system_category(), fmt::format("cannot write {}", file));
}

void write_report(const std::string& file, const ordered_json& summary, const sweep_outcome& o) {
  ordered_json spans = ordered_json::array();
  for (std::size_t i = 0; i < o.sweeps.size(); ++i)
    for (std::size_t w = 0; w < o.sweeps[i].logs.size(); ++w) {
      const work_log& l = o.sweeps[i].logs[w];
      for (const work_span& s : l.spans)
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
  std::string data = json_text({{"summary", summary}, {"spans", spans}});
  for (std::size_t at = 0; (at = data.find("</", at)) != std::string::npos;) data.replace(at, 2, "<\\/");
  put("/*data*/", data);
  write_text(file, text);
}

}  // namespace fft3d
