// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/kept.hpp>

#include <orrery/orrery.hpp>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/process/internal/test_world.hpp>

namespace orrery {
namespace kept_tests {

using testing::in_world;

struct alignas(16) wide {
  std::uint64_t low;
  std::uint64_t high;
};
static_assert(serializable<wide>);

class Reader {
 public:
  // Others run and send, before it looks.
  void take(std::span<const std::uint8_t> bytes, int id, std::span<const wide> pairs) {
    yield();
    std::uint64_t sum = 0;
    for (const std::uint8_t b : bytes) sum += b;
    if (!pairs.empty() && reinterpret_cast<std::uintptr_t>(pairs.data()) % alignof(wide) != 0) sum = ~std::uint64_t{};
    for (const wide& w : pairs) sum += w.low + w.high;
    seen_.emplace_back(id, sum);
  }
  void fail(std::span<const int> values) { throw std::invalid_argument(std::to_string(values.back())); }
  std::vector<std::pair<int, std::uint64_t>> seen() const { return seen_; }

 private:
  std::vector<std::pair<int, std::uint64_t>> seen_;
};
ORRERY_PROCESS(Reader, take, fail, seen);

ORRERY_AT_EACH_PLACE(kept);

// From nothing to more than fits behind the arguments of a message, while what was sent from is
// overwritten.
TEST_P(kept, spans_of_any_size_are_read_as_they_were_sent) {
  in_world([] {
    const auto reader = spawn<Reader>(where());
    const std::vector<std::size_t> sizes{0, 1, 7, 16, 100, 500, 900, 1000, 5000};
    std::vector<std::pair<int, std::uint64_t>> expected;
    for (const std::size_t bytes : sizes) {
      for (const std::size_t pairs : {std::size_t{0}, std::size_t{1}, std::size_t{20}, std::size_t{300}}) {
        const int id = static_cast<int>(expected.size());
        std::vector<std::uint8_t> b(bytes, static_cast<std::uint8_t>(id + 1));
        std::vector<wide> p(pairs, wide{static_cast<std::uint64_t>(id), 5});
        expected.emplace_back(id,
                              bytes * static_cast<std::uint64_t>(id + 1) + pairs * static_cast<std::uint64_t>(id + 5));
        post(reader)->take(b, id, p);
        b.assign(bytes, 255);
        p.assign(pairs, wide{1000, 1000});
      }
    }
    EXPECT_EQ(reader->seen(), expected);
  });
}

TEST_P(kept, a_method_that_throws_has_read_its_span) {
  in_world([] {
    const auto reader = spawn<Reader>(where());
    const std::vector<int> values{1, 2, 42};
    auto failed = start(reader)->fail(values);
    EXPECT_THROW(failed.get(), std::invalid_argument);
    EXPECT_TRUE(reader->seen().empty());
  });
}

// A message that is in a mailbox when its process ends is dropped once.
TEST_P(kept, spans_end_with_a_process_that_did_not_read_them) {
  in_world([] {
    const auto reader = spawn<Reader>(where());
    const std::vector<std::uint8_t> bytes(300, 1);
    std::vector<future<void>> unread;
    unread.push_back(start(reader)->take(bytes, 1, {}));
    auto gone = start_destroy(reader);
    for (int i = 0; i < 50; ++i) unread.push_back(start(reader)->take(bytes, 2, {}));
    gone.get();
    unread.front().get();
    for (std::size_t i = 1; i < unread.size(); ++i) EXPECT_THROW(unread[i].get(), process_gone);
  });
}

TEST(kept_span, takes_its_elements_along_when_it_leaves_the_message) {
  std::vector<int> message(10, 7);
  detail::kept_span<int> there(detail::behind_arguments<int>{message});
  const std::span<const int> in_place = there;
  EXPECT_EQ(in_place.data(), message.data());
  const detail::kept_span<int> moved(std::move(there));
  message.assign(10, 0);
  const std::span<const int> elsewhere = moved;
  EXPECT_EQ(std::vector<int>(elsewhere.begin(), elsewhere.end()), std::vector<int>(10, 7));
}

}  // namespace kept_tests
}  // namespace orrery
