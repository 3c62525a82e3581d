// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/fixed_text.hpp>

#include <gtest/gtest.h>

namespace orrery::transport {
namespace fixed_text_tests {

TEST(fixed_text, is_what_was_set_or_its_begin) {
  fixed_text<8> t;
  EXPECT_EQ(t.view(), "");
  t.set("longer than it is");
  EXPECT_EQ(t.view(), "longer ");
  t.set("host");
  EXPECT_EQ(t.str(), "host");
}
TEST(fixed_text, that_another_rank_has_filled_ends_with_its_bytes) {
  struct {
    fixed_text<8> text;
    char behind[8] = {'x', 'x', 'x', 'x', 'x', 'x', 'x', 0};
  } m;
  std::memset(m.text.bytes, 'a', sizeof m.text.bytes);
  EXPECT_EQ(m.text.view(), "aaaaaaaa");
  EXPECT_EQ(m.behind[0], 'x');
}

}  // namespace fixed_text_tests
}  // namespace orrery::transport
