// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/data.hpp>

#include <algorithm>
#include <complex>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

namespace orrery {
namespace data_tests {

using testing::in_world;
using testing::what_is_thrown;

ORRERY_AT_EACH_PLACE(remote_data);

std::vector<double> numbers(std::size_t n) {
  std::vector<double> v(n);
  std::iota(v.begin(), v.end(), 1.0);
  return v;
}

TEST_P(remote_data, an_element_that_was_assigned_is_read_back) {
  in_world([] {
    auto data = spawn<double[]>(where(), 1024);
    data[7] = 3.1415;
    const double x = data[7];
    EXPECT_EQ(x, 3.1415);
  });
}

TEST_P(remote_data, elements_begin_as_zero) {
  in_world([] {
    auto data = spawn<int[]>(where(), 100);
    EXPECT_EQ(data.read(0, 100), std::vector<int>(100));
  });
}

TEST_P(remote_data, elements_begin_as_the_value_that_was_given) {
  in_world([] {
    auto data = spawn<int[]>(where(), 3, 17);
    EXPECT_EQ(data.read(0, 3), (std::vector{17, 17, 17}));
  });
}

TEST_P(remote_data, fill_sets_all_elements) {
  in_world([] {
    auto data = spawn<int[]>(where(), 3);
    data.fill(4);
    EXPECT_EQ(data.read(0, 3), (std::vector{4, 4, 4}));
  });
}

TEST_P(remote_data, it_knows_its_size) {
  in_world([] { EXPECT_EQ(spawn<double[]>(where(), 1024).size(), 1024u); });
}

TEST_P(remote_data, an_element_can_be_assigned_another_element) {
  in_world([] {
    auto data = spawn<double[]>(where(), 4);
    data[1] = 5;
    data[2] = data[1];
    auto third = data[3];
    third = data[2];
    EXPECT_EQ(data.read(0, 4), (std::vector<double>{0, 5, 5, 5}));
  });
}

TEST_P(remote_data, compound_assignment_changes_an_element_where_it_is) {
  in_world([] {
    auto data = spawn<long[]>(where(), 1);
    data[0] += 10;
    data[0] *= 6;
    data[0] -= 4;
    data[0] /= 8;
    EXPECT_EQ(data[0], 7);
  });
}

struct Adder {
  void add(remote<long[]> data, int times) {
    for (int i = 0; i < times; ++i) data[0] += 1;
  }
};
ORRERY_PROCESS(Adder, add);

TEST_P(remote_data, additions_of_several_processes_are_all_counted) {
  in_world([] {
    auto data = spawn<long[]>(where(), 1);
    std::vector<future<void>> running;
    for (std::uint32_t p = 0; p < 2; ++p) running.push_back(start(spawn<Adder>(pe(p)))->add(data, 500));
    when_all(std::move(running)).get();
    EXPECT_EQ(data[0], 1000);
  });
}

TEST_P(remote_data, what_was_written_in_bulk_is_read_in_bulk) {
  in_world([] {
    const auto values = numbers(100'000);
    auto data = spawn<double[]>(where(), values.size());
    data.write(0, values);
    std::vector<double> back(values.size());
    data.read(0, back);
    EXPECT_EQ(back, values);
  });
}

TEST_P(remote_data, any_range_reads_what_the_same_range_of_a_vector_holds) {
  in_world([] {
    constexpr std::size_t size = 300;
    std::mt19937 random(1);
    std::vector<double> expected(size);
    auto data = spawn<double[]>(where(), size);
    for (int i = 0; i < 500; ++i) {
      const std::size_t first = random() % (size + 1);
      const std::size_t count = random() % (size - first + 1);
      if (i % 2 == 0) {
        std::vector<double> values(count, i);
        data.write(first, values);
        std::ranges::copy(values, expected.begin() + static_cast<std::ptrdiff_t>(first));
      } else {
        std::vector<double> out(count);
        data.read(first, out);
        const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(first);
        ASSERT_TRUE(std::ranges::equal(out, std::span(begin, count)));
      }
    }
  });
}

TEST_P(remote_data, an_index_outside_is_out_of_range_and_names_index_and_size) {
  in_world([] {
    auto data = spawn<double[]>(where(), 5);
    const std::string read = what_is_thrown<std::out_of_range>([&] { (void)double(data[7]); });
    EXPECT_EQ(read, "remote data: index 7 is outside of its 5 elements");
    const std::string written = what_is_thrown<std::out_of_range>([&] { data[5] = 1; });
    EXPECT_EQ(written, "remote data: index 5 is outside of its 5 elements");
  });
}

TEST_P(remote_data, a_range_outside_is_out_of_range_and_changes_nothing) {
  in_world([] {
    auto data = spawn<int[]>(where(), 5);
    const std::vector<int> values{1, 2, 3};
    const std::string what = what_is_thrown<std::out_of_range>([&] { data.write(3, values); });
    EXPECT_EQ(what, "remote data: 3 elements from index 3 on reach outside of its 5 elements");
    EXPECT_EQ(data.read(0, 5), std::vector<int>(5));
    std::vector<int> out(2, 9);
    (void)what_is_thrown<std::out_of_range>([&] { data.read(4, out); });
    EXPECT_EQ(out, std::vector<int>(2, 9));
  });
}

TEST_P(remote_data, a_range_that_would_wrap_around_is_out_of_range) {
  in_world([] {
    auto data = spawn<int[]>(where(), 5);
    EXPECT_THROW((void)data.read(2, static_cast<std::size_t>(-1)), std::out_of_range);
    EXPECT_THROW((void)data.read(static_cast<std::size_t>(-1), 2), std::out_of_range);
  });
}

TEST_P(remote_data, an_empty_range_at_the_end_is_inside) {
  in_world([] {
    auto data = spawn<int[]>(where(), 5);
    data.write(5, std::span<const int>{});
    data.read(5, std::span<int>{});
    EXPECT_THROW(data.write(6, std::span<const int>{}), std::out_of_range);
  });
}

TEST_P(remote_data, too_many_elements_are_a_bad_alloc) {
  in_world([] { EXPECT_THROW(spawn<double[]>(where(), static_cast<std::size_t>(-1)), std::bad_alloc); });
}

TEST_P(remote_data, start_reads_and_writes_asynchronously) {
  in_world([] {
    auto data = spawn<double[]>(where(), 10);
    const auto values = numbers(10);
    auto written = start(data)->write(0, values);
    auto read = start(data)->read(2, 3);
    auto one = start(data)->get(9);
    written.get();
    EXPECT_EQ(read.get(), (std::vector<double>{3, 4, 5}));
    EXPECT_EQ(one.get(), 10);
  });
}

TEST_P(remote_data, a_posted_write_owns_its_values) {
  in_world([] {
    auto data = spawn<int[]>(where(), 3);
    {
      const std::vector<int> values{1, 2, 3};
      post(data)->write(0, values);
    }
    EXPECT_EQ(data.read(0, 3), (std::vector{1, 2, 3}));
  });
}

TEST_P(remote_data, start_spawn_gives_the_data_later) {
  in_world([] {
    auto coming = start_spawn<int[]>(where(), 3);
    auto data = coming.get();
    data[2] = 1;
    EXPECT_EQ(data[2], 1);
  });
}

TEST_P(remote_data, calls_to_destroyed_data_fail) {
  in_world([] {
    auto data = spawn<int[]>(where(), 3);
    destroy(data);
    EXPECT_THROW(data[0] = 1, process_gone);
    std::vector<int> out(3);
    EXPECT_THROW(data.read(0, out), process_gone);
    EXPECT_THROW(destroy(data), process_gone);
  });
}

TEST_P(remote_data, elements_may_be_classes_of_numbers) {
  struct point {
    double x, y;
  };
  in_world([] {
    auto points = spawn<point[]>(where(), 2);
    points[1] = point{1, 2};
    EXPECT_EQ(static_cast<point>(points[1]).y, 2);
    auto waves = spawn<std::complex<double>[]>(where(), 2);
    waves[0] = std::complex<double>(0, 1);
    EXPECT_EQ(static_cast<std::complex<double>>(waves[0]).imag(), 1);
  });
}

TEST_P(remote_data, it_is_placed_near_by_its_pointer) {
  in_world([] {
    auto data = spawn<int[]>(where(), 3);
    EXPECT_EQ(spawn<Adder>(near(data)).address().pe, data.address().pe);
  });
}

TEST(remote_data_pointer, is_a_small_value) {
  static_assert(std::is_trivially_copyable_v<remote<double[]>>);
  static_assert(serializable<remote<double[]>>);
  static_assert(std::is_convertible_v<remote<double[]>, remote<block<double>>>);
  EXPECT_FALSE(remote<double[]>());
  EXPECT_EQ(remote<double[]>(), remote<double[]>());
}

}  // namespace data_tests
}  // namespace orrery
