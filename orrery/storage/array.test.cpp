// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/array.hpp>

#include <orrery/orrery.hpp>
#include <orrery/storage/array_device.hpp>
#include <orrery/storage/detail/strided_copy.hpp>
#include <orrery/storage/internal/test_support.hpp>

#include <complex>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::storage {
namespace array_tests {

using testing::element_at;
using testing::elements;
using testing::program;
using testing::scratch;
using testing::text_of;

array make(const scratch& folder, const page_grid& grid, element_type type, const any_page_map& map,
           cache_options cache = {4, 2}) {
  std::vector<remote<array_page_device>> devices;
  for (std::uint32_t d = 0; d < map->devices(); ++d)
    devices.push_back(spawn<array_device>(pe(d % world_pes()), folder / std::to_string(d), map->pages_on(d),
                                          grid.page_shape, type, device_options{}, cache));
  return array(grid, type, map, devices);
}

// The elements of a domain of an array in memory, transposed.
template <class T>
std::vector<T> part_of(const std::vector<T>& all, const index3& shape, const domain& d, transposition t) {
  std::vector<T> part(static_cast<std::size_t>(d.size()));
  const index3 from = strides_of(shape);
  const index3 to = transposed(strides_of(transposed(d.shape(), t)), t);
  for_each_place(d, [&](const index3& i) {
    const index3 in = domain{i, i}.relative_to(d.first).first;
    part[static_cast<std::size_t>(in[0] * to[0] + in[1] * to[1] + in[2] * to[2])] =
        all[static_cast<std::size_t>(i[0] * from[0] + i[1] * from[1] + i[2] * from[2])];
  });
  return part;
}

template <class T>
std::vector<T> read(const array& a, const domain& d, transposition t) {
  std::vector<T> v(static_cast<std::size_t>(d.size()));
  if (t == transposition::t13) {
    a.read_transpose13(d, std::span(v));
  } else if (t == transposition::t23) {
    a.read_transpose23(d, std::span(v));
  } else {
    a.read(d, std::span(v));
  }
  return v;
}
template <class T>
void write(const array& a, const domain& d, const std::vector<T>& v, transposition t) {
  if (t == transposition::t13) {
    a.write_transpose13(d, std::span(v));
  } else if (t == transposition::t23) {
    a.write_transpose23(d, std::span(v));
  } else {
    a.write(d, std::span(v));
  }
}

template <class T>
class array_of : public ::testing::Test {};
using element_types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(array_of, element_types);

TYPED_TEST(array_of, any_shape_and_pages_gives_back_any_domain_transposed_or_not) {
  const std::vector<page_grid> grids{
      {{8, 8, 8}, {4, 4, 4}}, {{7, 9, 5}, {3, 4, 2}}, {{1, 1, 1}, {2, 2, 2}}, {{5, 1, 20}, {5, 3, 7}}};
  for (const page_grid& grid : grids) {
    const scratch folder;
    program([&] {
      const index3& s = grid.array_shape;
      const array a = make(folder, grid, element_type_of<TypeParam>, circulant_map(grid.pages(), 3));
      const auto all = elements<TypeParam>(product(s));
      a.write(a.whole(), std::span(all));
      EXPECT_EQ(read<TypeParam>(a, a.whole(), transposition::none), all);
      const std::vector<domain> domains{a.whole(),
                                        {{0, 0, 0}, {1, 1, 1}},
                                        {{s[0] / 2, 0, s[2] / 3}, s},
                                        {{s[0] - 1, s[1] / 2, 0}, s},
                                        {{0, 0, 0}, {0, s[1], s[2]}}};
      for (const domain& d : domains)
        for (const auto t : {transposition::none, transposition::t13, transposition::t23})
          EXPECT_EQ(read<TypeParam>(a, d, t), part_of(all, s, d, t)) << to_string(d);
    });
  }
}

// Random writes and reads, transposed or not, against an array in memory.
TEST(array, is_what_was_written_to_it) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto between = [&](std::int64_t a, std::int64_t b) {
    return std::uniform_int_distribution<std::int64_t>(a, b)(random);
  };
  for (int round = 0; round < 3; ++round) {
    const page_grid grid{{between(1, 14), between(1, 14), between(1, 14)},
                         {between(1, 6), between(1, 6), between(1, 6)}};
    const auto devices = static_cast<std::uint32_t>(between(1, 3));
    const any_page_map map =
        round == 0   ? any_page_map(circulant_map(grid.pages(), devices))
        : round == 1 ? any_page_map(blocked_map(grid.pages(), devices))
                     : any_page_map(table_map(grid.pages(), devices, tabulate(circulant_map(grid.pages(), devices))));
    const scratch folder;
    program([&] {
      const array a = make(folder, grid, element_type::float64, map);
      std::vector<double> model(static_cast<std::size_t>(product(grid.array_shape)));
      for (int i = 0; i < 60; ++i) {
        domain d;
        for (int k = 0; k < 3; ++k) {
          d.first[k] = between(0, grid.array_shape[k]);
          d.last[k] = between(d.first[k], grid.array_shape[k]);
        }
        const auto t = static_cast<transposition>(between(0, 2));
        if (between(0, 1) == 0) {
          EXPECT_EQ(read<double>(a, d, t), part_of(model, grid.array_shape, d, t));
          continue;
        }
        if (between(0, 3) == 0) a.read_into_cache(d);
        const auto v = elements<double>(d.size(), i * 10'000);
        write(a, d, v, t);
        const index3 s = transposed(strides_of(transposed(d.shape(), t)), t);
        const index3 m = strides_of(grid.array_shape);
        for_each_place(d, [&](const index3& p) {
          const index3 in = domain{p, p}.relative_to(d.first).first;
          model[static_cast<std::size_t>(p[0] * m[0] + p[1] * m[1] + p[2])] =
              v[static_cast<std::size_t>(in[0] * s[0] + in[1] * s[1] + in[2] * s[2])];
        });
      }
      EXPECT_EQ(read<double>(a, a.whole(), transposition::none), model);
    });
  }
}

void write_lines(const array& a, std::int64_t first, std::int64_t step, const remote<function>& to) {
  const index3& s = a.shape();
  for (std::int64_t n = first; n < s[0] * s[1]; n += step) {
    const index3 at{n / s[1], n % s[1], 0};
    a.write(domain{at, {at[0] + 1, at[1] + 1, s[2]}}, std::span<const float>(elements<float>(s[2], n * s[2])));
  }
  send(to, true);
}

TEST(array, is_written_by_many_clients_at_once_that_share_pages) {
  const scratch folder;
  program([&] {
    const page_grid grid{{6, 10, 30}, {4, 4, 16}};
    const array a = make(folder, grid, element_type::float32, circulant_map(grid.pages(), 2));
    constexpr std::int64_t clients = 6;
    for (std::int64_t c = 0; c < clients; ++c)
      (void)spawn(pe(static_cast<std::uint32_t>(c % 2)), &write_lines, a, c, clients, this_process<function>());
    for (std::int64_t c = 0; c < clients; ++c) EXPECT_TRUE(receive<bool>());
    EXPECT_EQ(read<float>(a, a.whole(), transposition::none), elements<float>(product(grid.array_shape)));
  });
}

TEST(array, gives_and_takes_whole_pages_as_they_are) {
  const scratch folder;
  program([&] {
    const page_grid grid{{4, 8, 10}, {4, 4, 4}};
    const array a = make(folder, grid, element_type::float64, circulant_map(grid.pages(), 2), {0, 0});
    a.write(a.whole(), std::span<const double>(elements<double>(320)));
    array_page p(a.start_read_whole({0, 1, 2}).get(), grid.page_shape, element_type::float64);
    EXPECT_FALSE(p.shared());
    EXPECT_EQ(p.elements<double>()[1], element_at<double>(4 * 10 + 9));
    EXPECT_EQ(p.elements<double>()[2], 0);  // beyond the array's edge
    p.writable_elements<double>()[1] = -1;
    a.start_write_whole(p, {0, 1, 2}).get();
    EXPECT_EQ(read<double>(a, {{0, 4, 9}, {1, 5, 10}}, transposition::none), std::vector<double>{-1});
    EXPECT_THROW((void)a.start_read_whole({0, 2, 0}), std::out_of_range);
    EXPECT_THROW((void)a.start_write_whole(p, {0, 0, -1}), std::out_of_range);
    EXPECT_THROW(a.start_write_whole(page(8), {0, 0, 0}).get(), std::invalid_argument);
  });
}
TEST(array, prefetches_what_it_will_read) {
  const scratch folder;
  program([&] {
    const page_grid grid{{8, 8, 8}, {4, 4, 4}};
    const array a = make(folder, grid, element_type::float64, circulant_map(grid.pages(), 2), {8, 0});
    a.write(a.whole(), std::span<const double>(elements<double>(512)));
    a.read_into_cache(a.whole());
    EXPECT_EQ(read<double>(a, a.whole(), transposition::none), elements<double>(512));
    std::uint64_t hits = 0;
    for (const auto& d : a.devices()) hits += d->statistics().cache_hits;
    EXPECT_EQ(hits, 8);
  });
}

TEST(array, says_what_is_wrong_with_a_request) {
  const scratch folder;
  program([&] {
    const page_grid grid{{8, 8, 8}, {4, 4, 4}};
    const array a = make(folder, grid, element_type::complex128, circulant_map(grid.pages(), 1));
    std::vector<std::complex<double>> v(8);
    std::vector<float> w(8);
    EXPECT_EQ(text_of<std::invalid_argument>([&] { a.read(domain{{0, 0, 0}, {2, 2, 2}}, std::span(w)); }),
              "the array holds complex128, and was used as one of float32");
    EXPECT_EQ(text_of<std::invalid_argument>([&] { a.read(domain{{0, 0, 0}, {2, 2, 3}}, std::span(v)); }),
              "the domain [0, 2) x [0, 2) x [0, 3) has 12 elements, and the buffer 8");
    EXPECT_EQ(text_of<std::out_of_range>([&] { a.read(domain{{7, 7, 7}, {9, 9, 9}}, std::span(v)); }),
              "the domain [7, 9) x [7, 9) x [7, 9) is not inside of the array, which is 8 x 8 x 8");
    EXPECT_THROW(array(grid, element_type::float32, circulant_map(grid.pages(), 2), a.devices()),
                 std::invalid_argument);
    EXPECT_THROW(array().read(domain{}, std::span<float>()), std::invalid_argument);
  });
}
TEST(array, passes_errors_of_its_devices_on) {
  const scratch folder;
  program([&] {
    const page_grid grid{{8, 8, 8}, {4, 4, 4}};
    const array a = make(folder, grid, element_type::float64, circulant_map(grid.pages(), 2));
    destroy(a.devices()[1]);
    std::vector<double> v(512);
    EXPECT_THROW(a.read(a.whole(), std::span(v)), process_gone);
    EXPECT_THROW(a.write(a.whole(), std::span<const double>(v)), process_gone);
    EXPECT_THROW(a.flush(), process_gone);
  });
}

}  // namespace array_tests
}  // namespace orrery::storage
