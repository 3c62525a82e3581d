// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/archive.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/wire/error.hpp>
#include <orrery/wire/internal/test_message.hpp>

namespace orrery {
namespace archive_tests {

using wire::message;

// The code of the error that f throws.
template <class Error, class F>
errc code_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(writer, refuses_to_write_past_the_end_of_its_buffer) {
  const message m(7);
  writer w(m.bytes());
  EXPECT_EQ(code_of<usage_error>([&] { w& std::uint64_t{1}; }), errc::value_changed);
}

TEST(writer, finds_that_less_was_written_than_was_sized) {
  const message m(9);
  writer w(m.bytes());
  w& std::uint64_t{1};
  EXPECT_EQ(code_of<usage_error>([&] { w.finish(); }), errc::value_changed);
}

TEST(writer, pads_with_zeros_so_that_equal_values_make_equal_messages) {
  const message m = wire::encode('x', std::vector<double>{1.0});
  ASSERT_EQ(m.size(), 16u);  // 1 + 4 bytes of length, 3 of padding, 8
  for (std::size_t i = 5; i != 8; ++i) EXPECT_EQ(m.bytes()[i], std::byte{0});
}

TEST(reader, refuses_to_read_past_the_end_of_its_buffer) {
  const message m(7);
  reader r(m.bytes());
  std::uint64_t x = 0;
  EXPECT_EQ(code_of<bad_message>([&] { r & x; }), errc::message_truncated);
}

TEST(reader, finds_bytes_that_are_left_over) {
  const message m = wire::encode(1, 2);
  reader r(m.bytes());
  (void)read<int>(r);
  EXPECT_EQ(code_of<bad_message>([&] { r.finish(); }), errc::message_corrupt);
}

TEST(reader, an_empty_buffer_holds_nothing) {
  reader r({});
  r.finish();
  EXPECT_EQ(r.left(), 0u);
  EXPECT_THROW((void)read<char>(r), bad_message);
}

TEST(reader, require_accepts_what_fits_exactly_and_no_more) {
  const message m(64);
  const reader r(m.bytes());
  r.require(8, 8);
  r.require(SIZE_MAX, 0);
  EXPECT_THROW(r.require(9, 8), bad_message);
  EXPECT_THROW(r.require(SIZE_MAX / 8 + 2, 8), bad_message);  // the product would wrap to 8
}

TEST(length, takes_4_bytes_until_it_does_not_fit) {
  sizer s;
  s.put_length(0xfffffffe);
  EXPECT_EQ(s.size(), 4u);
  s.put_length(0xffffffff);
  EXPECT_EQ(s.size(), 4u + 12u);
}

TEST(length, of_any_size_comes_back) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{0xfffffffe}, std::size_t{0xffffffff},
                              std::size_t{0x100000000}, SIZE_MAX}) {
    sizer s;
    s.put_length(n);
    const message m(s.size());
    writer w(m.bytes());
    w.put_length(n);
    w.finish();
    reader r(m.bytes());
    EXPECT_EQ(r.take_length(), n);
    r.finish();
  }
}

TEST(length, in_its_long_form_is_refused_if_the_short_one_would_do) {
  const message m = wire::encode(std::uint32_t{0xffffffff}, std::uint64_t{5});
  reader r(m.bytes());
  EXPECT_EQ(code_of<bad_message>([&] { (void)r.take_length(); }), errc::message_corrupt);
}

TEST(length, that_no_message_could_hold_is_refused_before_anything_is_allocated) {
  const message m = wire::encode(std::uint32_t{0xffffffff}, SIZE_MAX);
  EXPECT_THROW((void)wire::decode<std::string>(m), bad_message);
  EXPECT_THROW((void)wire::decode<std::vector<double>>(m), bad_message);
  EXPECT_THROW((void)wire::decode<std::vector<std::string>>(m), bad_message);
  EXPECT_THROW((void)wire::decode<std::vector<bool>>(m), bad_message);
}

struct node {
  std::unique_ptr<node> next;
};

node chain(unsigned length) {
  node first;
  for (unsigned i = 0; i != length; ++i) first.next = std::make_unique<node>(std::move(first));
  return first;
}

TEST(depth, up_to_the_limit_can_be_sent) {
  const node received = wire::round_trip(chain(max_depth));
  unsigned depth = 0;
  for (const node* n = &received; n->next; n = n->next.get()) ++depth;
  EXPECT_EQ(depth, max_depth);
}

TEST(depth, above_the_limit_is_refused_by_the_sender) {
  EXPECT_EQ(code_of<usage_error>([] { (void)wire_size(chain(max_depth + 1)); }), errc::value_too_deep);
}

TEST(depth, above_the_limit_is_refused_by_the_receiver) {
  message m(max_depth + 2);
  for (std::byte& b : m.bytes()) b = std::byte{1};
  m.bytes().back() = std::byte{0};
  EXPECT_EQ(code_of<bad_message>([&] { (void)wire::decode<node>(m); }), errc::message_too_deep);
}

struct ring {
  std::shared_ptr<ring> next;
};

TEST(depth, a_value_that_contains_itself_is_refused_by_the_sender) {
  auto r = std::make_shared<ring>();
  r->next = r;
  EXPECT_EQ(code_of<usage_error>([&] { (void)wire_size(r); }), errc::value_too_deep);
  r->next.reset();
}

TEST(depth, counts_what_is_nested_and_not_what_is_side_by_side) {
  std::vector<node> many(10 * max_depth);
  for (node& n : many) n = chain(2);
  EXPECT_EQ(wire::decode<std::vector<node>>(wire::encode(many)).size(), 10 * max_depth);
  EXPECT_EQ(wire::encode(many).size(), 4 + 3 * many.size());
}

// A page of numbers that owns its memory, as a class for storage would.
class page {
 public:
  page() = default;
  explicit page(std::size_t n) : size_(n), data_(std::make_unique<double[]>(n)) {}

  template <class A>
  void serialize(A& a) {
    a & size_;
    a.require(size_, sizeof(double));
    if constexpr (A::is_loading::value) data_ = std::make_unique<double[]>(size_);
    a.block(data_.get(), size_);
  }

  std::size_t size_ = 0;
  std::unique_ptr<double[]> data_;
};

TEST(block, carries_memory_that_a_class_manages_by_itself) {
  page sent(100);
  for (std::size_t i = 0; i != 100; ++i) sent.data_[i] = static_cast<double>(i);
  const message m = wire::encode(sent);
  EXPECT_EQ(m.size(), 8 + 800u);
  const page received = wire::decode<page>(m);
  EXPECT_EQ(received.data_[99], 99.0);
}

TEST(block, is_aligned_in_the_message) {
  page sent(2);
  EXPECT_EQ(wire_size('c', sent), 32u);  // 1 + 8, padded to 16, + 16
  const message m = wire::encode('c', sent);
  reader r(m.bytes());
  (void)read<char>(r);
  EXPECT_EQ(read<page>(r).size_, 2u);
  r.finish();
}

TEST(block, a_forged_size_is_refused_before_anything_is_allocated) {
  const message m = wire::encode(std::size_t{1} << 60);
  EXPECT_THROW((void)wire::decode<page>(m), bad_message);
}

TEST(block, of_nothing_takes_nothing) {
  EXPECT_EQ(wire_size(page()), 8u);
  EXPECT_EQ(wire::round_trip(page()).size_, 0u);
}

}  // namespace archive_tests
}  // namespace orrery
