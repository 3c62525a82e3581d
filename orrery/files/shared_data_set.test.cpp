// SPDX-License-Identifier: Apache-2.0
#include <orrery/files/shared_data_set.hpp>

#include <orrery/files/box_plan.hpp>
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_each_world.hpp>
#include <orrery/shared/shared.hpp>
#include <orrery/storage/internal/test_support.hpp>
#include <orrery/storage/memory_array.hpp>
#include <orrery/storage/storage.hpp>

#include <cerrno>
#include <complex>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace shared_data_set_tests {

using storage::index3;
using storage::testing::elements;
using storage::testing::error_text;
using storage::testing::program;
using storage::testing::scratch;
using storage::testing::text_of;

using complex = std::complex<float>;

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

const std::vector<distribution>& ways() {
  static const std::vector<distribution> all{
      distribution::block(),   distribution::cyclic(),    distribution::block_cyclic(3),     distribution::on(pe(1)),
      distribution::columns(), distribution::tiles(2, 2), distribution::block().over({3, 1})};
  return all;
}

shared_matrix<complex> matrix_of(std::uint64_t rows, std::uint64_t columns, const distribution& how) {
  const shared_matrix<complex> m(rows, columns, how);
  const auto all = elements<complex>(static_cast<std::int64_t>(m.size()));
  copy(std::span<const complex>(all), m.rows(0, rows));
  return m;
}
std::vector<complex> all_of(const shared_matrix<complex>& m) {
  std::vector<complex> v(m.size());
  copy(m.rows(0, m.row_count()), std::span(v));
  return v;
}

TEST(box_plan, has_each_element_once_in_boxes_of_bounded_size) {
  std::mt19937_64 random(5);
  const auto up_to = [&](std::uint64_t n) { return random() % (n + 1); };
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t rows = up_to(20);
    const std::uint64_t columns = up_to(20);
    const std::uint64_t unit_rows = 1 + up_to(5);
    const std::uint64_t unit_columns = 1 + up_to(5);
    const std::uint64_t most = unit_rows * unit_columns + up_to(100);
    const detail::box_plan p = detail::plan_boxes(rows, columns, unit_rows, unit_columns, most, 1 + up_to(4));
    std::vector<int> seen(rows * columns, 0);
    for (std::uint64_t n = 0; n < p.size(); ++n) {
      const detail::region b = p[n];
      ASSERT_LE(b.rows * b.columns, most);
      ASSERT_LE(b.rows * b.columns, p.box_rows * p.box_columns);
      ASSERT_TRUE(b.row % std::min(unit_rows, rows) == 0 && b.column % std::min(unit_columns, columns) == 0);
      for (std::uint64_t r = b.row; r < b.row + b.rows; ++r)
        for (std::uint64_t c = b.column; c < b.column + b.columns; ++c) ++seen.at(r * columns + c);
    }
    for (const int times : seen) ASSERT_EQ(times, 1);
  }
}
TEST(box_plan, finds_rows_and_columns_among_sides_of_one) {
  const auto axes = [](std::vector<std::uint64_t> sides, std::uint64_t rows, std::uint64_t columns) {
    const auto found = detail::axes_for(sides, rows, columns);
    return found ? std::pair(found->rows, found->columns) : std::pair(-2, -2);
  };
  EXPECT_EQ(axes({1, 4, 5}, 4, 5), std::pair(1, 2));
  EXPECT_EQ(axes({4, 1, 5}, 4, 5), std::pair(0, 2));
  EXPECT_EQ(axes({4, 5, 1}, 4, 5), std::pair(0, 1));
  EXPECT_EQ(axes({1, 1, 7}, 7, 1), std::pair(2, -1));
  EXPECT_EQ(axes({7}, 1, 7), std::pair(-1, 0));
  EXPECT_EQ(axes({}, 1, 1), std::pair(-1, -1));
  EXPECT_EQ(axes({0}, 0, 1), std::pair(0, -1));
  EXPECT_EQ(axes({5, 4}, 4, 5), std::pair(-2, -2));
  EXPECT_EQ(axes({2, 4, 5}, 4, 5), std::pair(-2, -2));
}

// Pages in the memory of processes: where the shared elements of other PEs are memory, and where
// they are messages.
class shared_in_pages : public testing::on_threads_and_machines<4> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(shared_in_pages);

TEST_P(shared_in_pages, goes_and_comes_back_in_all_distributions) {
  in_each([] {
    for (const distribution& from : ways())
      for (const distribution& to : ways()) {
        const storage::array pages =
            storage::make_memory_array({{1, 23, 11}, {1, 4, 3}}, storage::element_type::complex64);
        const shared_matrix<complex> m = matrix_of(23, 11, from);
        const shared_matrix<complex> n(23, 11, to);
        EXPECT_EQ(store(m, pages, {.memory = 2400}).bytes, 23U * 11U * 8U);
        EXPECT_EQ(load(pages, n, {.memory = 1500}).bytes, 23U * 11U * 8U);
        EXPECT_EQ(all_of(n), all_of(m));
        for (const auto& d : pages.devices()) destroy(d);
        destroy(m);
        destroy(n);
      }
  });
}

storage::data_set_description described(const index3& shape, const index3& page, storage::element_type type) {
  return {.shape = shape, .page_shape = page, .type = type};
}

TEST(shared_data_set, stores_and_loads_vectors_and_matrices) {
  const scratch folder;
  program(
      [&] {
        const shared_vector<double> v(1000, distribution::block_cyclic(7));
        const auto numbers = elements<double>(1000);
        copy(std::span<const double>(numbers), v);
        const shared_matrix<complex> m = matrix_of(60, 50, distribution::tiles(1, 2));
        {
          auto set = spawn<storage::data_set>(here(), folder / "v",
                                              described({1, 1, 1000}, {1, 1, 64}, storage::element_type::float64),
                                              storage::data_set_options{.on_each_node = true});
          store(v, set->contents(), {.memory = 64 * 8 * 7});
          set->finish();
          destroy(set);
          auto other = spawn<storage::data_set>(here(), folder / "m",
                                                described({60, 1, 50}, {8, 1, 16}, storage::element_type::complex64),
                                                storage::data_set_options{});
          store(m, other->contents());
          other->finish();
          destroy(other);
        }
        auto set = spawn<storage::data_set>(here(), folder / "v", storage::data_set_options{});
        const shared_vector<double> w(1000, distribution::cyclic());
        load(set->contents(), w);
        std::vector<double> back(1000);
        copy(w, std::span(back));
        EXPECT_EQ(back, numbers);
        auto other = spawn<storage::data_set>(here(), folder / "m", storage::data_set_options{});
        const shared_matrix<complex> n(60, 50);
        load(other->contents(), n);
        EXPECT_EQ(all_of(n), all_of(m));
      },
      "--orrery-pes=4");
}

TEST(shared_data_set, takes_no_more_memory_than_it_may) {
  const scratch folder;
  program([&] {
    const shared_vector<float> v(500'000);
    const index3 page{1, 1, 1000};
    auto set =
        spawn<storage::data_set>(here(), folder / "x", described({1, 1, 500'000}, page, storage::element_type::float32),
                                 storage::data_set_options{});
    for (const std::uint64_t memory : {12'000, 24'000, 100'000, 1'000'000}) {
      const file_traffic stored = store(v, set->contents(), {.memory = memory});
      const file_traffic loaded = load(set->contents(), v, {.memory = memory});
      EXPECT_LE(stored.memory, memory);
      EXPECT_LE(loaded.memory, memory);
      EXPECT_GT(loaded.memory, 0U);
      EXPECT_EQ(loaded.bytes, 2'000'000U);
    }
    expect_in("11999 bytes of memory are too little for pages of 4000 bytes; give at least 12000",
              text_of<std::invalid_argument>([&] { load(set->contents(), v, {.memory = 11'999}); }));
  });
}

TEST(shared_data_set, refuses_another_shape_and_type_of_elements) {
  const scratch folder;
  program([&] {
    auto set = spawn<storage::data_set>(here(), folder / "x",
                                        described({1, 20, 30}, {1, 8, 8}, storage::element_type::float64),
                                        storage::data_set_options{});
    const storage::array a = set->contents();
    const shared_matrix<float> other_type(20, 30);
    expect_in("its elements are float32, and those of the data set float64; give both the same",
              text_of<std::invalid_argument>([&] { load(a, other_type); }));
    const shared_matrix<double> turned(30, 20);
    expect_in("it has 30 x 20 elements, and the data set 1 x 20 x 30; both need the same shape",
              text_of<std::invalid_argument>([&] { store(turned, a); }));
    const shared_vector<double> line(600);
    expect_in("shared vector made at", text_of<std::invalid_argument>([&] { load(a, line); }));
    const shared_matrix<double> good(20, 30);
    with(read_view(good), [&](auto&) { EXPECT_THROW(load(a, good), usage_error); });
    destroy(good);
    EXPECT_THROW(load(a, good), usage_error);
  });
}

TEST(shared_data_set, names_a_page_that_is_damaged) {
  const scratch folder;
  program([&] {
    const shared_vector<double> v(4000, distribution::block(), 2.5);
    auto set = spawn<storage::data_set>(here(), folder / "x",
                                        described({1, 1, 4000}, {1, 1, 512}, storage::element_type::float64),
                                        storage::data_set_options{});
    store(v, set->contents());
    set->finish();
    destroy(set);
    {
      std::fstream f(folder / "x/device-0.pages", std::ios::in | std::ios::out | std::ios::binary);
      f.seekp(3 * 4096 + 5);
      f.put('!');
    }
    auto again = spawn<storage::data_set>(here(), folder / "x", storage::data_set_options{});
    const shared_vector<double> w(4000);
    expect_in("page", error_text(EBADMSG, [&] { load(again->contents(), w); }));
    w[0] = 1;  // it goes on
    EXPECT_EQ(w[0], 1);
  });
}

}  // namespace shared_data_set_tests
}  // namespace orrery
