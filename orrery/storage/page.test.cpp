// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/page.hpp>

#include <orrery/storage/detail/strided_copy.hpp>
#include <orrery/wire/serialize.hpp>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace orrery::storage {
namespace page_tests {

TEST(page, is_aligned_and_begins_with_zeros) {
  const page p(5000);
  EXPECT_EQ(p.size(), 5000);
  EXPECT_EQ(p.capacity(), 8192);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p.bytes().data()) % page_alignment, 0);
  EXPECT_TRUE(std::ranges::all_of(p.bytes(), [](std::byte b) { return b == std::byte{0}; }));
}
TEST(page, shares_its_bytes_with_copies_until_one_is_changed) {
  page p(4096);
  const page q = p;
  EXPECT_EQ(p.bytes().data(), q.bytes().data());
  EXPECT_TRUE(p.shared());
  p.writable()[7] = std::byte{1};
  EXPECT_FALSE(p.shared());
  EXPECT_EQ(p.bytes()[7], std::byte{1});
  EXPECT_EQ(q.bytes()[7], std::byte{0});
}
TEST(page, that_has_its_bytes_alone_changes_them_in_place) {
  page p(4096);
  const std::byte* const before = p.bytes().data();
  page q = std::move(p);
  EXPECT_EQ(q.writable().data(), before);
  EXPECT_TRUE(p.empty());  // NOLINT(bugprone-use-after-move)
}
TEST(page, gives_its_memory_to_the_next_of_its_size) {
  trim_page_pool();
  const std::byte* first = nullptr;
  {
    const page p(1 << 20);
    first = p.bytes().data();
  }
  EXPECT_EQ(page_pool_bytes(), std::size_t{1} << 20);
  const page q(1 << 20);
  EXPECT_EQ(q.bytes().data(), first);
  EXPECT_EQ(page_pool_bytes(), 0);
}
TEST(page, memory_beyond_the_limit_goes_back_to_the_system) {
  set_page_pool_limit(8192);
  {
    const page a(4096), b(4096), c(4096);
  }
  EXPECT_EQ(page_pool_bytes(), 8192);
  trim_page_pool();
  EXPECT_EQ(page_pool_bytes(), 0);
  set_page_pool_limit(64 << 20);
}
TEST(page, of_half_a_piece_has_the_memory_of_a_whole_one) {
  set_page_pool_limit(64 << 20, 20000);
  const std::byte* first = nullptr;
  {
    page p(10240);
    EXPECT_EQ(p.capacity(), 20480);
    p.writable()[8191] = std::byte{7};
    first = p.bytes().data();
    page q = p;
    EXPECT_FALSE(p.resize_in_place(20000)) << "another page has its bytes";
    q = {};
    EXPECT_FALSE(p.resize_in_place(20481));
    EXPECT_TRUE(p.resize_in_place(20000));
    EXPECT_EQ(p.size(), 20000);
    EXPECT_EQ(p.bytes()[8191], std::byte{7});
    EXPECT_TRUE(p.resize_in_place(8192));
    EXPECT_EQ(p.bytes()[8191], std::byte{7});
  }
  const page r(20000);
  EXPECT_EQ(r.bytes().data(), first);
  EXPECT_EQ(page(8192).capacity(), 8192);
  set_page_pool_limit(64 << 20);
}
TEST(page, can_be_shared_by_threads) {
  page p(64 << 10);
  std::vector<std::jthread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([p, t]() mutable {
      for (int i = 0; i < 200; ++i) {
        page q = p;
        q.writable()[0] = static_cast<std::byte>(t);
        EXPECT_EQ(p.bytes()[0], std::byte{0});
      }
    });
  all.clear();
  EXPECT_EQ(p.bytes()[0], std::byte{0});
}

template <class T>
T sent(const T& x) {
  page memory(wire_size(x));
  writer w(memory.writable());
  write(w, x);
  reader r(memory.bytes());
  T received = read<T>(r);
  r.finish();
  return received;
}
TEST(page, travels_with_its_bytes) {
  page p(10000);
  std::ranges::generate(p.writable(), [n = 0]() mutable { return static_cast<std::byte>(n++); });
  EXPECT_EQ(sent(p), p);
  EXPECT_EQ(sent(page()), page());
}
TEST(array_page, travels_with_its_shape_and_type) {
  array_page p({2, 3, 4}, element_type::complex64);
  p.writable_elements<std::complex<float>>()[5] = {1, 2};
  const array_page q = sent(p);
  EXPECT_EQ(q, p);
  EXPECT_EQ(q.type(), element_type::complex64);
}
TEST(array_page, refuses_a_message_with_fewer_bytes_than_elements) {
  struct forged {
    index3 shape{1000, 1000, 1000};
    element_type type = element_type::float32;
    std::uint64_t bytes = 8;
    std::uint64_t all = 0;
  };
  page memory(64);
  writer w(memory.writable());
  write(w, index3{1000, 1000, 1000}, element_type::float32, std::uint64_t{8}, std::uint64_t{0});
  reader r(memory.bytes());
  EXPECT_THROW((void)read<array_page>(r), std::exception);
}
TEST(array_page, refuses_another_type_and_too_few_bytes) {
  array_page p({2, 2, 2}, element_type::float64);
  EXPECT_THROW((void)p.elements<float>(), std::invalid_argument);
  EXPECT_THROW(array_page(page(10), {2, 2, 2}, element_type::float32), std::invalid_argument);
  EXPECT_THROW(array_page({-1, 2, 2}, element_type::float32), std::invalid_argument);
}

template <class T>
class transposing : public ::testing::Test {};
using element_types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(transposing, element_types);

template <class T>
array_page numbered(const index3& shape) {
  array_page p(shape, element_type_of<T>);
  std::int64_t n = 0;
  for (T& x : p.writable_elements<T>()) x = static_cast<T>(static_cast<float>(n++));
  return p;
}

TYPED_TEST(transposing, puts_each_element_where_it_belongs) {
  for (const index3 shape :
       {index3{1, 1, 1}, index3{4, 4, 4}, index3{3, 5, 7}, index3{17, 2, 33}, index3{40, 1, 16}, index3{70, 33, 65}}) {
    const array_page p = numbered<TypeParam>(shape);
    array_page a = p;
    a.transpose13();
    array_page b = p;
    b.transpose23();
    ASSERT_EQ(a.shape(), (index3{shape[2], shape[1], shape[0]}));
    ASSERT_EQ(b.shape(), (index3{shape[0], shape[2], shape[1]}));
    const auto at = [](const array_page& page_, std::int64_t i, std::int64_t j, std::int64_t k) {
      const index3 s = strides_of(page_.shape());
      return page_.elements<TypeParam>()[static_cast<std::size_t>(i * s[0] + j * s[1] + k)];
    };
    for_each_place(domain::of_shape(shape), [&](const index3& i) {
      ASSERT_EQ(at(a, i[2], i[1], i[0]), at(p, i[0], i[1], i[2]));
      ASSERT_EQ(at(b, i[0], i[2], i[1]), at(p, i[0], i[1], i[2]));
    });
    a.transpose13();
    b.transpose23();
    EXPECT_EQ(a, p);
    EXPECT_EQ(b, p);
  }
}

// Large ones are written past the caches, which asks for aligned memory.
TEST(copy_box, transposes_large_boxes_to_memory_that_begins_anywhere) {
  const index3 shape{50, 3, 130};
  const index3 turned = transposed(shape, transposition::t13);
  for (const std::size_t bytes : {4, 8, 16})
    for (const std::size_t offset : {0, 1, 8, 15}) {
      const auto n = static_cast<std::size_t>(product(shape)) * bytes;
      std::vector<std::byte> from(n * 16);  // more than 256 KiB with the smallest elements
      const index3 wide{shape[0], shape[1] * 16, shape[2]};
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
      std::vector<std::byte> to(from.size() + 32, std::byte{0xee});
      const index3 to_shape{turned[0], wide[1], turned[2]};
      copy_box(to.data() + offset, transposed(strides_of(to_shape), transposition::t13), from.data(), strides_of(wide),
               wide, bytes);
      bool same = true;
      for_each_place(domain::of_shape(wide), [&](const index3& i) {
        const index3 a = strides_of(wide);
        const index3 b = strides_of(to_shape);
        same =
            same && std::memcmp(from.data() + static_cast<std::size_t>(i[0] * a[0] + i[1] * a[1] + i[2]) * bytes,
                                to.data() + offset + static_cast<std::size_t>(i[2] * b[0] + i[1] * b[1] + i[0]) * bytes,
                                bytes) == 0;
      });
      EXPECT_TRUE(same) << bytes << " bytes at " << offset;
      EXPECT_TRUE(std::ranges::all_of(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(offset),
                                      [](std::byte b) { return b == std::byte{0xee}; }));
      EXPECT_TRUE(std::ranges::all_of(to.begin() + static_cast<std::ptrdiff_t>(offset + from.size()), to.end(),
                                      [](std::byte b) { return b == std::byte{0xee}; }));
    }
}

RC_GTEST_PROP(copy_box, copies_exactly_the_elements_of_the_box, ()) {
  const auto side = rc::gen::inRange<std::int64_t>(1, 21);
  const index3 shape{*side, *side, *side};
  const auto t = *rc::gen::element(transposition::none, transposition::t13, transposition::t23);
  const domain box = [&] {
    domain d;
    for (int k = 0; k < 3; ++k) {
      d.first[k] = *rc::gen::inRange<std::int64_t>(0, shape[k]);
      d.last[k] = *rc::gen::inRange<std::int64_t>(d.first[k], shape[k] + 1);
    }
    return d;
  }();
  const std::size_t element_bytes = *rc::gen::element<std::size_t>(4, 8, 16);
  const auto n = static_cast<std::size_t>(product(shape));
  std::vector<std::byte> from(n * element_bytes);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(1 + i % 255);
  std::vector<std::byte> to(n * element_bytes);

  const index3 from_strides = strides_of(shape);
  const index3 to_strides = transposed(strides_of(transposed(shape, t)), t);
  const auto place = [&](const index3& i, const index3& s) {
    return static_cast<std::size_t>(i[0] * s[0] + i[1] * s[1] + i[2] * s[2]) * element_bytes;
  };
  copy_box(to.data() + place(box.first, to_strides), to_strides, from.data() + place(box.first, from_strides),
           from_strides, box.shape(), element_bytes);
  for_each_place(domain::of_shape(shape), [&](const index3& i) {
    for (std::size_t b = 0; b < element_bytes; ++b) {
      const std::byte expected = box.contains(i) ? from[place(i, from_strides) + b] : std::byte{0};
      RC_ASSERT(to[place(i, to_strides) + b] == expected);
    }
  });
}

}  // namespace page_tests
}  // namespace orrery::storage
