// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/copy_job.hpp>

#include <orrery/orrery.hpp>
#include <orrery/storage/internal/test_flushes.hpp>
#include <orrery/storage/internal/test_support.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace orrery::storage {
namespace copy_job_tests {

using testing::elements;
using testing::program;
using testing::scratch;

constexpr index3 shape{20, 18, 30};

remote<data_set> make(const std::string& path, const index3& pages, bool filled) {
  auto set = spawn<data_set>(here(), path,
                             data_set_description{.shape = shape, .page_shape = pages, .type = element_type::float64},
                             data_set_options{.cache = {0, 0}});
  if (filled) {
    const array a = set->contents();
    a.write(a.whole(), std::span<const double>(elements<double>(product(shape))));
    set->finish();
  }
  return set;
}
data_set_info info_of(const index3& s, const index3& pages, element_type type) {
  data_set_info info;
  info.shape = s;
  info.page_shape = pages;
  info.type = type;
  return info;
}
copy_task task_of(const std::string& from, const std::string& to) {
  return {.input = data_set::read_info(from), .output = to, .page_shape = {7, 5, 9}, .type = element_type::float64};
}

TEST(copy_job, units_are_each_page_of_the_output_once_whatever_the_memory) {
  copy_task t{.input = info_of({1000, 900, 800}, {64, 64, 64}, element_type::float32),
              .page_shape = {10, 200, 30},
              .type = element_type::complex128};
  const auto plan = plan_copy(t, 4, 1);
  t.memory *= 4;
  const auto more = plan_copy(t, 4, 1);
  ASSERT_TRUE(plan && more);
  EXPECT_EQ(plan->unit, more->unit);
  EXPECT_LT(plan->processes, more->processes);
  EXPECT_LE(plan->peak_bytes, 256U << 20);
  std::vector<int> seen(static_cast<std::size_t>(plan->to.page_count()));
  for (std::int64_t u = 0; u < plan->units(); ++u)
    for_each_place(plan->unit_pages(u),
                   [&](const index3& p) { ++seen[static_cast<std::size_t>(plan->to.number_of(p))]; });
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}
TEST(copy_job, says_how_much_memory_would_do) {
  copy_task t{.input = info_of({512, 512, 512}, {64, 64, 64}, element_type::complex128), .memory = 1 << 20};
  const auto plan = plan_copy(t, 4, 1);
  ASSERT_FALSE(plan);
  t.memory = plan.error();
  EXPECT_EQ(plan_copy(t, 4, 1).value().processes, 1U);
}
TEST(copy_job, a_page_that_reads_back_otherwise_is_copied_again) {
  const scratch folder;
  program([&] {
    auto x = make(folder / "x", {8, 8, 8}, true);
    const copy_task task = task_of(folder / "x", folder / "y");
    const copy_plan plan = plan_copy(task, 2, 1).value();
    auto y = make(folder / "y", {7, 5, 9}, false);
    auto units = spawn<ledger>(here(), "", std::vector{plan.units(), plan.units()});
    auto one = spawn<copier>(here(), plan, units);
    units->begin(0);
    one->copy(x->contents(), y->contents());
    EXPECT_EQ(units->counted(), 0U);
    y->flush();
    {
      std::fstream file(folder / "y/device-0.pages", std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(4096 + 17) << "damaged";
    }
    EXPECT_EQ(y->verify().size(), 1U);
    units->begin(1);
    one->verify(x->contents(), y->contents());
    EXPECT_TRUE(y->verify().empty());
    std::vector<double> v(static_cast<std::size_t>(product(shape)));
    y->contents().read(y->contents().whole(), std::span(v));
    EXPECT_EQ(v, elements<double>(product(shape)));
  });
}
// It lost power: the note that the unit is done had come to its drive, and the page had not.
TEST(copy_job, a_page_that_has_not_come_to_its_drive_is_copied_again) {
  const scratch folder;
  program([&] {
    auto x = make(folder / "x", {8, 8, 8}, true);
    const copy_task task = task_of(folder / "x", folder / "y");
    const copy_plan plan = plan_copy(task, 2, 1).value();
    auto y = make(folder / "y", {7, 5, 9}, false);
    auto units = spawn<ledger>(here(), "", std::vector{plan.units(), plan.units()});
    auto one = spawn<copier>(here(), plan, units);
    units->begin(0);
    one->copy(x->contents(), y->contents());
    y->flush();
    destroy(y);
    const auto clear = [&](const std::string& file, std::streamoff from, std::size_t bytes) {
      std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(from) << std::string(bytes, '\0');
    };
    clear(folder / "y/device-0.pages", 2 * 4096, 4096);
    clear(folder / "y/device-0.sums", 64 + 2 * 16, 16);
    y = spawn<data_set>(here(), folder / "y", data_set_options{.mode = open_mode::read_write, .cache = {0, 0}});
    EXPECT_TRUE(y->verify().empty());  // as if nobody had ever written it
    units->begin(1);
    one->verify(x->contents(), y->contents());
    std::vector<double> v(static_cast<std::size_t>(product(shape)));
    y->contents().read(y->contents().whole(), std::span(v));
    EXPECT_EQ(v, elements<double>(product(shape)));
  });
}
copy_outcome copy(const copy_task& task) {
  copy_job job(task, plan_copy(task, 2, 1).value());
  job.begin();
  return job.run([](const copy_status&) {});
}
void begin_to_copy(const copy_task& task) {
  copy_job job(task, plan_copy(task, 2, 1).value());
  job.begin();
}
TEST(copy_job, that_was_interrupted_neither_mixes_inputs_nor_replaces_other_outputs) {
  const scratch folder;
  const std::string x = folder / "x";
  const std::string y = folder / "y";
  program([&] {
    destroy(make(x, {8, 8, 8}, true));
    begin_to_copy(task_of(x, y));
    copy(task_of(x, y));
    EXPECT_FALSE(std::filesystem::exists(y + ".copy"));
    data_set::remove(y);

    begin_to_copy(task_of(x, y));
    auto again = spawn<data_set>(here(), x, data_set_options{.mode = open_mode::read_write});
    again->finish();
    destroy(again);
    EXPECT_THROW(copy(task_of(x, y)), std::invalid_argument);
    EXPECT_EQ(job_folder::forget(y), 1U);
    data_set::remove(y);

    begin_to_copy(task_of(x, y));
    data_set::remove(y);
    destroy(make(y, {7, 5, 9}, true));
    const std::uint64_t other = data_set::read_info(y).id;
    (void)testing::error_text(EEXIST, [&] { copy(task_of(x, y)); });
    EXPECT_EQ(data_set::read_info(y).id, other);
    data_set::remove(y);
    copy(task_of(x, y));
    EXPECT_NE(data_set::read_info(y).id, other);
  });
}
TEST(copy_job, that_goes_on_knows_what_had_become_infinite_before) {
  const scratch folder;
  program([&] {
    auto x = make(folder / "x", {8, 8, 8}, false);
    const array a = x->contents();
    auto v = elements<double>(product(shape));
    v[5] = v[3000] = 1e300;
    a.write(a.whole(), std::span<const double>(v));
    x->finish();
    destroy(x);
    copy_task task = task_of(folder / "x", folder / "y");
    task.type = element_type::float32;
    {
      copy_job job(task, plan_copy(task, 2, 1).value());
      job.begin();
      const auto stop = [](const copy_status&) { throw std::runtime_error("enough"); };
      EXPECT_THROW((void)job.run(stop), std::runtime_error);
    }
    const copy_outcome outcome = copy(task);
    EXPECT_TRUE(outcome.resumed);
    EXPECT_EQ(outcome.overflows, 2U);
  });
}
// It was killed when all was copied and nothing had been read back.
TEST(copy_job, brings_what_it_finds_copied_to_its_drive_before_it_reads_it) {
  const scratch folder;
  const std::string notes = folder / "y.copy/progress";
  std::vector<std::int64_t> done;  // units, whenever the copy's pages are brought to their drive
  const testing::flush_watch watch([&](const std::string& file) {
    if (!file.ends_with("y/device-0.pages")) return;
    std::ifstream in(notes);
    done.push_back(std::count(std::istreambuf_iterator<char>(in), {}, '\1'));
  });
  program([&] {
    destroy(make(folder / "x", {8, 8, 8}, true));
    const copy_task task = task_of(folder / "x", folder / "y");
    const copy_plan plan = plan_copy(task, 2, 1).value();
    {
      copy_job job(task, plan);
      job.begin();
      const auto stop = [](const copy_status&) { throw std::runtime_error("enough"); };
      EXPECT_THROW((void)job.run(stop), std::runtime_error);  // at the end, or before
    }
    const auto units = static_cast<std::size_t>(plan.units());
    std::fstream(notes, std::ios::in | std::ios::out | std::ios::binary)
        << std::string(units, '\1') << std::string(units, '\0');
    done.clear();
    EXPECT_TRUE(copy(task).resumed);
    ASSERT_FALSE(done.empty());
    EXPECT_EQ(done.front(), plan.units());
  });
}
TEST(copy_job, goes_on_where_paths_are_no_utf8) {
  const scratch folder;
  if (!testing::takes_any_name(folder)) GTEST_SKIP() << "names must be UTF-8 here";
  program([&] {
    const std::string x = folder / "x\xe4";
    destroy(make(x, {8, 8, 8}, true));
    begin_to_copy(task_of(x, folder / "y\xff"));
    EXPECT_TRUE(copy(task_of(x, folder / "y\xff")).resumed);
    copy_task task = task_of(x, folder / "z");
    task.folders = {folder / "d\xff"};
    EXPECT_THROW((void)copy(task), std::invalid_argument);
  });
}
TEST(copy_job, to_where_a_copy_was_made_from_leaves_that_copy_alone) {
  const scratch folder;
  const std::string x = folder / "x";
  program([&] {
    destroy(make(x, {8, 8, 8}, true));
    copy(task_of(x, x + ".copy"));
    (void)testing::error_text(EINVAL, [&] { copy(task_of(x + ".copy", x)); });
    data_set::remove(x);
    (void)testing::error_text(EINVAL, [&] { copy(task_of(x + ".copy", x)); });
    copy(task_of(x + ".copy", folder / "z"));
    (void)testing::error_text(EEXIST, [&] { copy(task_of(folder / "z", x)); });
    copy(task_of(x + ".copy", folder / "back"));
  });
}
TEST(copy_job, converts_and_counts_what_becomes_infinite) {
  const std::vector<double> x{1.5, 1e39, -std::numeric_limits<double>::infinity()};
  std::vector<float> y(3);
  EXPECT_EQ(convert_elements(std::as_bytes(std::span(x)), element_type::float64, std::as_writable_bytes(std::span(y)),
                             element_type::float32),
            1U);
  EXPECT_EQ(y[0], 1.5F);
  std::vector<std::complex<double>> z(3);
  EXPECT_EQ(convert_elements(std::as_bytes(std::span(y)), element_type::float32, std::as_writable_bytes(std::span(z)),
                             element_type::complex128),
            0U);
  EXPECT_EQ(z[0], std::complex<double>(1.5));
  EXPECT_THROW(convert_elements(std::as_bytes(std::span(z)), element_type::complex128,
                                std::as_writable_bytes(std::span(y)), element_type::float32),
               std::invalid_argument);
}

}  // namespace copy_job_tests
}  // namespace orrery::storage
