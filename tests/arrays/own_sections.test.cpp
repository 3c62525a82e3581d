// SPDX-License-Identifier: Apache-2.0
// Sections that members of an array make, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/array/array.hpp>
#include <orrery/array/section.hpp>

namespace orrery {
namespace own_sections_tests {

using testing::check;
using testing::check_contains;
using testing::thrown;

struct Pixel;
ORRERY_PROCESS(Pixel, begin, join, light, add_up, sections);
struct Pixel : element<Pixel, int> {
  using row = section<Pixel, int>;
  void begin(const std::vector<int>& members, const result_target& t) {  // a member makes its own section
    (void)start_create_section(this_array(), members).then([a = this_array(), t](const row& r) {
      post(r)->add_up(r, t);
    });
  }
  void join() {
    (void)start_create_section(this_array(), range<int>{4}).then([](const row& r) { post(r)->light(1); });
  }
  void light(int n) { value += n; }
  void add_up(row of, const result_target& t) { contribute(of, value, orrery::sum, t); }
  int sections() const { return value; }
  int value = 10;
};

void own_sections() {
  const auto image = create_array<Pixel>(range<int>{8});
  for (int i = 0; i < 8; ++i) {
    auto [target, sum] = expect_result<int>();
    post(image[i])->begin({i, (i + 1) % 8, (i + 5) % 8}, target);
    check(sum.get() == 30, "a member of its own section");
  }
  post(image)->join();
  quiescence();
  check(image[3]->sections() == 18 && image[4]->sections() == 10, "all made one");
  check_contains(
      thrown<usage_error>("no such member", [&] { (void)start_create_section(image, std::vector{100}).get(); }), "100");
}

using own_sections_of_members = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(own_sections_of_members);
TEST_P(own_sections_of_members, add_up) { EXPECT_EQ(wrong_in("own_sections"), ""); }

const orrery::testing::scenarios_of_file of_this({{"own_sections", own_sections}});

}  // namespace own_sections_tests
}  // namespace orrery
