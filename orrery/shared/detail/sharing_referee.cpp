// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/sharing_referee.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

std::string element_text(const judged_object& o, std::uint64_t i) {
  return o.is_vector ? fmt::format("{}", i) : fmt::format("[{}, {}]", i / o.columns, i % o.columns);
}

std::string elements_text(const judged_object& o, const element_ranges::range& r) {
  if (r.last - r.first == 1) return fmt::format("element {}", element_text(o, r.first));
  return fmt::format("elements {} to {}", element_text(o, r.first), element_text(o, r.last - 1));
}

const char* verb(access_kind k) {
  switch (k) {
    case access_kind::write:
      return "written";
    case access_kind::update:
      return "changed";
    default:
      return "read";
  }
}

std::string text_of(const judged_object& o, const access_record& a, const access_record& b,
                    const element_ranges::range& common) {
  const std::string what = fmt::format("{}: {}", o.label, elements_text(o, common));
  if (a.view || b.view) {
    const access_record& view = a.view ? a : b;
    const access_record& other = a.view ? b : a;
    return fmt::format(
        "{} viewed at {} on PE {} and meanwhile {} at {} on PE {}: end the view first, or use read_cache", what,
        view.where, view.pe, verb(other.kind), other.where, other.pe);
  }
  const std::string both =
      a.kind == b.kind ? fmt::format("{} at {} on PE {} and at {} on PE {}", verb(a.kind), a.where, a.pe, b.where, b.pe)
                       : fmt::format("{} at {} on PE {} and {} at {} on PE {}", verb(a.kind), a.where, a.pe,
                                     verb(b.kind), b.where, b.pe);
  return fmt::format("{} {}, and nothing orders the two: put a barrier or a message between them", what, both);
}

}  // namespace

void sharing_referee::judge(const judged_object& o, std::vector<access_record> records) {
  history& h = histories_[o.id];
  h.turn = ++turn_;
  for (access_record& r : records) {
    for (const access_record& other : h.records) compare(o, other, r);
    h.records.push_back(std::move(r));
    if (h.records.size() > remembered) h.records.pop_front();
  }
  if (histories_.size() > objects) forget_one();
}

void sharing_referee::forget_one() {
  histories_.erase(std::ranges::min_element(histories_, {},
                                            [](const auto& h) { return std::pair(!h.second.ended, h.second.turn); }));
}

void sharing_referee::end(const shared_id& id) {
  if (const auto at = histories_.find(id); at != histories_.end()) at->second.ended = true;
}

void sharing_referee::compare(const judged_object& o, const access_record& a, const access_record& b) {
  if (!need_order(a.kind, b.kind)) return;
  if (a.strand == b.strand && !a.view && !b.view) return;
  if (a.is_before(b) || b.is_before(a)) return;
  const auto common = a.elements.first_common(b.elements);
  if (!common) return;
  // The one with the writer first, so that each pair of places is told of once.
  const bool swap = std::pair(b.kind, b.where) > std::pair(a.kind, a.where);
  const access_record& first = swap ? b : a;
  const access_record& second = swap ? a : b;
  if (!told_
           .insert(fmt::format("{}|{}|{}|{}|{}", o.label, first.where, static_cast<int>(first.kind), second.where,
                               static_cast<int>(second.kind)))
           .second)
    return;
  mistakes_.push_back(text_of(o, first, second, *common));
  std::fputs(fmt::format("orrery: {}\n", mistakes_.back()).c_str(), stderr);
}

}  // namespace orrery::detail
