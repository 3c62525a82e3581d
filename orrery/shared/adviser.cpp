// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/future.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/shared/adviser.hpp>
#include <orrery/shared/detail/access_census.hpp>
#include <orrery/shared/detail/behaviour_costs.hpp>
#include <orrery/shared/detail/shared_directory.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery {

namespace {

using detail::object_use;
using detail::use_of_object;

std::vector<detail::used_object> counted_here() {
  const auto& census = detail::shared_directory::of_this_pe().census;
  return census == nullptr ? std::vector<detail::used_object>{} : census->take();
}

/// PEs need not have used the same places: uses with a common place belong together.
void add_use(std::vector<use_of_object>& all, std::uint32_t pe, object_use u) {
  use_of_object joined;
  joined.places = u.places;
  joined.by_pe[pe].push_back(std::move(u));
  for (bool more = true; more;) {
    more = false;
    for (auto i = all.begin(); i != all.end(); ++i) {
      const bool common = std::ranges::any_of(
          i->places, [&](const std::string& p) { return std::ranges::find(joined.places, p) != joined.places.end(); });
      if (!common) continue;
      for (auto& [from, uses] : i->by_pe) std::ranges::move(uses, std::back_inserter(joined.by_pe[from]));
      for (const std::string& p : i->places)
        if (std::ranges::find(joined.places, p) == joined.places.end()) joined.places.push_back(p);
      all.erase(i);
      more = true;
      break;
    }
  }
  std::ranges::sort(joined.places);
  all.push_back(std::move(joined));
}

struct object_and_uses {
  detail::shared_description_for_advice about;
  std::vector<use_of_object> uses;
};

/// Without columns: "mm2.cpp:41, mm2.cpp:44".
std::string places_text(const std::vector<std::string>& places) {
  std::vector<std::string_view> lines;
  for (const std::string_view p : places)
    if (const auto line = p.substr(0, p.rfind(':')); std::ranges::find(lines, line) == lines.end())
      lines.push_back(line);
  return fmt::format("{}", fmt::join(lines, ", "));
}

sharing_advice advise(const detail::shared_description_for_advice& o, const use_of_object& u,
                      const transport::link_cost& net) {
  sharing_advice a;
  a.object = o.label;
  a.places = places_text(u.places);
  for (const auto& [pe, uses] : u.by_pe)
    for (const object_use& use : uses)
      for (const auto& [part, n] : use.parts) {
        const bool far = o.how.pes[part] != pe;
        (far ? a.remote_reads : a.local_reads) += n.reads;
        (far ? a.remote_writes : a.local_writes) += n.writes + n.changes;
        if (far) a.distinct_remote_reads += n.distinct_reads;
        a.runs += n.read_runs + n.write_runs;
      }
  const detail::behaviour_costs costs(o, u, net);
  a.seconds_by_default = costs.by_default() / 1e9;
  a.seconds = a.seconds_by_default;
  for (const auto& [behaviour, ns] : costs.of_behaviours()) {
    a.considered.emplace_back(behaviour, ns / 1e9);
    const bool no_message = a.seconds_by_default == 0 && a.behaviour.empty();
    if (no_message || ns / 1e9 < a.seconds * 0.97) {
      a.behaviour = behaviour;
      a.seconds = ns / 1e9;
    }
  }
  return a;
}

std::string count_text(std::uint64_t n, const char* what, const char* many = "s") {
  const auto x = static_cast<double>(n);
  if (n < 10'000) return fmt::format("{} {}{}", n, what, n == 1 ? "" : many);
  if (n < 1'000'000) return fmt::format("{:.0f} k {}{}", x / 1e3, what, many);
  if (n < 1'000'000'000) return fmt::format("{:.1f} M {}{}", x / 1e6, what, many);
  return fmt::format("{:.1f} G {}{}", x / 1e9, what, many);
}

std::string time_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.1f} s", seconds);
}

/// "512 local reads, 64 local writes, in runs of 8 elements": the runs say whether the loop goes
/// along memory.
std::string rest_text(const sharing_advice& a) {
  std::string text;
  if (a.local_reads != 0) text = count_text(a.local_reads, "local read") + ", ";
  if (a.local_writes != 0) text += count_text(a.local_writes, "local write") + ", ";
  const double run = a.elements_in_a_run();
  return text + fmt::format("in runs of {:.{}f} element{}", run, run == std::floor(run) || run >= 100 ? 0 : 1,
                            run == 1 ? "" : "s");
}

}  // namespace

int detail::tell_advice(int result) {
  if (!counts_accesses()) return result;
  for (const sharing_advice& a : advise_sharing())
    std::fputs(fmt::format("orrery: advice: {}\n", to_text(a)).c_str(), stderr);
  return result;
}

std::vector<sharing_advice> advise_sharing() {
  const auto& net = detail::here_pe().settings().advise_for;
  if (!net) return {};
  std::map<detail::shared_id, object_and_uses> objects;
  for (const std::uint32_t p : program_pes())
    for (detail::used_object& o : call<&counted_here>(pe(p))) {
      object_and_uses& all = objects[o.id];
      all.about = {o.label, o.how};
      for (object_use& u : o.uses) add_use(all.uses, p, std::move(u));
    }
  // seconds; those that gain as much stay in order
  std::multimap<double, sharing_advice, std::greater<>> by_gain;
  for (const auto& [id, o] : objects)
    for (const use_of_object& u : o.uses) {
      sharing_advice one = advise(o.about, u, *net);
      const double gain = one.seconds_by_default - one.seconds;
      by_gain.emplace(gain, std::move(one));
    }
  std::vector<sharing_advice> advice;
  for (auto& [gain, one] : by_gain) advice.push_back(std::move(one));
  return advice;
}

std::string to_text(const sharing_advice& a) {
  std::string text = fmt::format("{}, used at {}: ", a.object, a.places);
  const std::uint64_t all = a.local_reads + a.local_writes + a.remote_reads + a.remote_writes;
  if (a.remote_reads + a.remote_writes == 0)
    return text + fmt::format("{}, all by their owners: {} makes loops over memory of them ({})",
                              count_text(all, "access", "es"), a.behaviour, rest_text(a));
  if (a.remote_reads != 0) text += count_text(a.remote_reads, "remote read");
  if (a.distinct_remote_reads != 0 && a.remote_reads >= 2 * a.distinct_remote_reads)
    text += fmt::format(", each element {} times", a.remote_reads / a.distinct_remote_reads);
  if (a.remote_writes != 0)
    text += fmt::format("{}{}", a.remote_reads != 0 ? ", " : "", count_text(a.remote_writes, "remote write"));
  if (a.behaviour.empty())
    return text + fmt::format(": default access takes {}, and no behaviour less ({})", time_text(a.seconds_by_default),
                              rest_text(a));
  return text + fmt::format(": {} takes {} instead of {} ({})", a.behaviour, time_text(a.seconds),
                            time_text(a.seconds_by_default), rest_text(a));
}

}  // namespace orrery
