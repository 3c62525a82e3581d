// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/page_map.hpp>

#include <orrery/wire/serialize.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace orrery::storage {
namespace page_map_tests {

index3 any_pages() {
  const auto side = rc::gen::inRange<std::int64_t>(1, 10);
  return {*side, *side, *side};
}
std::uint32_t any_devices() { return *rc::gen::inRange<std::uint32_t>(1, 14); }

// The rules for every map: addresses are different, and inside of the devices.
void holds_its_invariants(const page_map& m, bool dense) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
  for_each_place(domain::of_shape(m.pages()), [&](const index3& p) {
    const page_address a = m.locate(p);
    RC_ASSERT(a.device < m.devices());
    RC_ASSERT(a.index < m.pages_on(a.device));
    RC_ASSERT(seen.insert({a.device, a.index}).second);
  });
  std::uint64_t places = 0;
  for (std::uint32_t d = 0; d < m.devices(); ++d) places += m.pages_on(d);
  if (dense) RC_ASSERT(places == seen.size());
}

any_page_map sent(const any_page_map& m) {
  std::vector<std::byte> memory(wire_size(m) + wire_alignment);
  void* at = memory.data();
  std::size_t room = memory.size();
  auto* begin = static_cast<std::byte*>(std::align(wire_alignment, wire_size(m), at, room));
  const std::span<std::byte> buffer(begin, wire_size(m));
  writer w(buffer);
  write(w, m);
  reader r(buffer);
  auto received = read<any_page_map>(r);
  r.finish();
  return received;
}
bool same_addresses(const page_map& a, const page_map& b) {
  return a.pages() == b.pages() && a.devices() == b.devices() && tabulate(a) == tabulate(b);
}

RC_GTEST_PROP(circulant_map, gives_each_page_a_place_of_its_own_without_gaps, ()) {
  holds_its_invariants(circulant_map(any_pages(), any_devices()), true);
}
RC_GTEST_PROP(circulant_map, is_what_the_paper_says, ()) {
  const index3 pages = any_pages();
  const std::uint32_t n = any_devices();
  const circulant_map m(pages, n);
  std::vector<std::uint64_t> next(n);  // "the first available PageIndex"
  for_each_place(domain::of_shape(pages), [&](const index3& p) {
    const auto device = static_cast<std::uint32_t>((p[0] + p[1] + p[2]) % n);
    RC_ASSERT(m.locate(p) == (page_address{device, next[device]++}));
  });
  for (std::uint32_t d = 0; d < n; ++d) RC_ASSERT(m.pages_on(d) == next[d]);
}
RC_GTEST_PROP(circulant_map, spreads_each_line_of_pages_evenly, ()) {
  const index3 pages = any_pages();
  const circulant_map m(pages, any_devices());
  std::vector<int> on(m.devices());
  for (std::int64_t i = 0; i < pages[2]; ++i) ++on[m.locate({0, pages[1] - 1, i}).device];
  const auto [least, most] = std::ranges::minmax(on);
  RC_ASSERT(most - least <= 1);
}
RC_GTEST_PROP(blocked_map, gives_each_page_a_place_of_its_own_without_gaps, ()) {
  const blocked_map m(any_pages(), any_devices());
  holds_its_invariants(m, true);
  for (std::uint32_t d = 1; d < m.devices(); ++d) RC_ASSERT(m.pages_on(d - 1) - m.pages_on(d) <= 1);
}
RC_GTEST_PROP(table_map, gives_the_addresses_of_its_table, ()) {
  const circulant_map other(any_pages(), any_devices());
  const table_map m(other.pages(), other.devices(), tabulate(other));
  holds_its_invariants(m, true);
  RC_ASSERT(same_addresses(m, other));
}
RC_GTEST_PROP(page_maps, travel_as_what_they_are, ()) {
  const index3 pages = any_pages();
  const std::uint32_t n = any_devices();
  const any_page_map circulant = circulant_map(pages, n);
  const any_page_map blocked = blocked_map(pages, n);
  const any_page_map table = table_map(pages, n, tabulate(*blocked));
  for (const any_page_map& m : {circulant, blocked, table}) {
    const any_page_map received = sent(m);
    RC_ASSERT(received->kind() == m->kind());
    RC_ASSERT(same_addresses(*received, *m));
  }
}

// A map of a user's own: pages in reverse.
class reversed_map final : public page_map {
 public:
  explicit reversed_map(const index3& pages) : page_map(pages) {}
  [[nodiscard]] page_address locate(const index3& p) const override {
    return {0, static_cast<std::uint64_t>(product(pages()) - 1 - ((p[0] * pages()[1] + p[1]) * pages()[2] + p[2]))};
  }
  [[nodiscard]] std::uint32_t devices() const override { return 1; }
  [[nodiscard]] std::uint64_t pages_on(std::uint32_t) const override {
    return static_cast<std::uint64_t>(product(pages()));
  }
  [[nodiscard]] std::string_view kind() const override { return "reversed"; }
};

RC_GTEST_PROP(page_maps, of_a_users_class_travel_as_their_tables, ()) {
  const any_page_map mine = reversed_map(any_pages());
  holds_its_invariants(*mine, true);
  const any_page_map received = sent(mine);
  RC_ASSERT(received->kind() == "table");
  RC_ASSERT(same_addresses(*received, *mine));
}
TEST(page_maps, may_be_none_and_travel_so) { EXPECT_FALSE(sent(any_page_map())); }

std::string why_not(std::uint32_t devices, std::vector<page_address> table) {
  try {
    const table_map m({1, 1, 2}, devices, std::move(table));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}
TEST(table_map, refuses_a_table_that_is_no_map) {
  EXPECT_EQ(why_not(1, {{0, 0}, {0, 0}}), "pages (0 x 0 x 0) and (0 x 0 x 1) are both mapped to place 0 of device 0");
  EXPECT_EQ(why_not(1, {{0, 0}, {1, 0}}), "page (0 x 0 x 1) is mapped to place 0 of device 1; there are 1 devices");
  EXPECT_EQ(why_not(1, {{0, 0}}), "the table of a page map has 1 addresses for 1 x 1 x 2 pages");
  EXPECT_EQ(why_not(1, {{0, 5}, {0, 0}}), "");  // gaps are allowed
}
TEST(page_maps, need_pages_and_devices) {
  EXPECT_THROW(circulant_map({1, 1, 1}, 0), std::invalid_argument);
  EXPECT_THROW(blocked_map({1, 0, 1}, 1), std::invalid_argument);
  EXPECT_THROW((void)make_page_map("diagonal", {1, 1, 1}, 1), std::invalid_argument);
}

}  // namespace page_map_tests
}  // namespace orrery::storage
