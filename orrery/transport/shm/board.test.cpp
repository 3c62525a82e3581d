// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/board.hpp>
#include <orrery/transport/shm/internal/table.hpp>
#include <orrery/transport/shm/internal/test_support.hpp>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace orrery::transport {
namespace board_tests {

using testing::expect_error;
using testing::take;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class board_test : public testing::shm_test {
 protected:
  /// As a tool sees it.
  [[nodiscard]] segment open() const {
    return take(
        segment::open_peer(take(peer::open(take(this_peer()))), shown.fd(), 0, access::read_write, "the board"));
  }
  board shown = take(board::create());
};

TEST_F(board_test, shows_nothing_before_something_is_shown) { EXPECT_TRUE(take(board::read(open(), "b")).empty()); }

TEST_F(board_test, shows_what_was_shown_last) {
  const segment memory = open();
  for (const std::string text : {"one", "", "a longer text than the one before it", "12345678", "end"}) {
    ASSERT_TRUE(shown.show(bytes_of(text)));
    EXPECT_EQ(text_of(take(board::read(memory, "b"))), text);
  }
}

TEST_F(board_test, is_read_through_the_node_that_made_it) {
  ASSERT_TRUE(shown.show(bytes_of("text")));
  const peer self = take(peer::open(take(this_peer())));
  EXPECT_EQ(text_of(take(board::read(self, shown.fd(), "b"))), "text");
}

TEST_F(board_test, has_room_for_its_capacity_and_not_for_more) {
  const std::string all(board::capacity, 'x');
  ASSERT_TRUE(shown.show(bytes_of(all)));
  expect_error(shown.show(bytes_of(all + "x")), transport_errc::bad_argument, {"has room for"});
  EXPECT_EQ(take(board::read(open(), "b")).size(), all.size());
}

TEST_F(board_test, a_reader_never_sees_half_of_a_text) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::size_t n = 0; !stop.load(); ++n) {
      const std::string text(1 + n % 5000, static_cast<char>('a' + n % 26));
      if (!shown.show(bytes_of(text))) std::abort();
    }
  });
  const segment memory = open();
  for (int i = 0; i < 2000; ++i) {
    const auto read = board::read(memory, "b");
    if (!read) {
      EXPECT_EQ(read.error().code, transport_errc::timed_out) << read.error().message;
      continue;
    }
    const std::string text = text_of(*read);
    EXPECT_EQ(text, std::string(text.size(), text.empty() ? 'x' : text[0]));
  }
  stop = true;
  writer.join();
}

TEST_F(board_test, what_is_damaged_is_an_error) {
  const segment memory = open();
  ASSERT_TRUE(shown.show(bytes_of("text")));
  auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(memory.data());
  // Any word of the first text: its length, its checksum, its bytes.
  const std::size_t first = (layout::page + board::capacity + layout::page) / sizeof(std::uint64_t);
  for (std::size_t at = first; at < first + 3; ++at) {
    for (const std::uint64_t flip : {~std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 63}) {
      words[at].fetch_xor(flip);
      // behind the end of "text" anything may be
      if (at < first + 2 || flip != std::uint64_t{1} << 63)
        expect_error(board::read(memory, "b"), transport_errc::damaged, {"checksum"});
      words[at].fetch_xor(flip);
    }
  }
  EXPECT_EQ(text_of(take(board::read(memory, "b"))), "text");
  words[0].fetch_xor(1);
  expect_error(board::read(memory, "b"), transport_errc::damaged, {"no board"});
}

TEST_F(board_test, other_memory_is_no_board) {
  const segment small = take(segment::create("small", layout::page));
  const peer self = take(peer::open(take(this_peer())));
  EXPECT_FALSE(board::read(self, small.fd(), "b"));
  expect_error(board::read(small, "b"), transport_errc::damaged, {"no board"});
}

}  // namespace board_tests
}  // namespace orrery::transport
