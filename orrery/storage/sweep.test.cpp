// SPDX-License-Identifier: Apache-2.0
// Sweeps over arrays on drives: plans, units in memory, the account of what is done, jobs that stop
// and go on.
#include <orrery/storage/detail/strided_copy.hpp>
#include <orrery/storage/internal/test_flushes.hpp>
#include <orrery/storage/internal/test_support.hpp>
#include <orrery/storage/memory_array.hpp>
#include <orrery/storage/sweep_job.hpp>

#include <orrery/process/function.hpp>
#include <orrery/process/spawn.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <complex>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sweep_tests {

using namespace orrery;
using namespace orrery::storage;
using orrery::storage::testing::error_text;
using orrery::storage::testing::program;
using orrery::storage::testing::scratch;
namespace fs = std::filesystem;

const index3 shape{10, 9, 7};
const index3 pages{4, 3, 5};

// Each element becomes the sum of those up to it, along the dimensions of each sweep; throws at a
// unit, if told so.
class summer : public sweeper {
 public:
  summer(const sweep_plan& p, std::int64_t fails_at, const remote<ledger>& units)
      : sweeper(p, units), plan_(p), left_(fails_at) {}

 protected:
  void compute(std::size_t sweep, page_block& unit) override {
    if (left_-- == 0) throw std::runtime_error("enough");
    const domain all = unit.elements();
    const index3 n = all.shape();
    const index3 strides{n[1] * n[2], n[2], 1};
    std::vector<double> x(static_cast<std::size_t>(all.size()));
    unit.copy_out(all, reinterpret_cast<std::byte*>(x.data()), strides);
    for (const int d : plan_.sweeps[sweep].dimensions)
      for_each_place(domain::of_shape(n), [&](const index3& i) {
        const auto at = i[0] * strides[0] + i[1] * strides[1] + i[2];
        if (i[d] > 0) x[static_cast<std::size_t>(at)] += x[static_cast<std::size_t>(at - strides[d])];
      });
    unit.copy_in(all, reinterpret_cast<const std::byte*>(x.data()), strides);
    count(1);
    give_way();
  }

 private:
  sweep_plan plan_;
  std::int64_t left_;
};
ORRERY_PROCESS(summer);

std::vector<double> numbers() {
  std::vector<double> x(static_cast<std::size_t>(product(shape)));
  std::iota(x.begin(), x.end(), 1.0);
  return x;
}
std::vector<double> summed(std::vector<double> x) {
  const index3 strides{shape[1] * shape[2], shape[2], 1};
  for (int d = 0; d < 3; ++d)
    for_each_place(domain::of_shape(shape), [&](const index3& i) {
      const auto at = i[0] * strides[0] + i[1] * strides[1] + i[2];
      if (i[d] > 0) x[static_cast<std::size_t>(at)] += x[static_cast<std::size_t>(at - strides[d])];
    });
  return x;
}
void make_set(const std::string& path, const std::vector<double>& x) {
  auto set = spawn<data_set>(here(), path,
                             data_set_description{.shape = shape, .page_shape = pages, .type = element_type::float64},
                             data_set_options{});
  set->contents().write(domain::of_shape(shape), std::span<const double>(x));
  set->finish();
  destroy(set);
}
std::vector<double> read_set(const std::string& path) {
  auto set = spawn<data_set>(here(), path, data_set_options{});
  std::vector<double> x(static_cast<std::size_t>(product(shape)));
  set->contents().read(domain::of_shape(shape), std::span(x));
  destroy(set);
  return x;
}
sweep_task task_for(const std::string& input, const std::string& output) {
  return {.input = data_set::read_info(input),
          .output = output,
          .work_type = element_type::float64,
          .output_type = element_type::float64};
}
sweep_plan plan_for(const sweep_task& t, int sweeps) {
  const auto order = each_dimension_once(sweeps, page_grid{t.input.shape, t.input.page_shape}.pages());
  return plan_sweeps(t, order, sweeps == 1, [](const auto&...) { return 0; }, world_pes(), world_nodes()).value();
}
sweep_outcome sum_up(const sweep_task& t, int sweeps, std::int64_t fails_at = -1, const std::string& what = "sums") {
  const sweep_plan p = plan_for(t, sweeps);
  sweep_job job(t, p, "job", what);
  job.begin();
  return job.run<summer>([](const sweep_status&) {}, p, fails_at);
}

struct folder_with_set : scratch {
  std::string x = *this / "x";
  std::string y = *this / "y";
  folder_with_set() {
    program([&] { make_set(x, numbers()); });
  }
};

TEST(sweep_order, has_each_dimension_once) {
  for (const int sweeps : {1, 2, 3}) {
    std::vector<int> seen;
    for (const auto& together : each_dimension_once(sweeps, {3, 9, 4}))
      seen.insert(seen.end(), together.begin(), together.end());
    std::ranges::sort(seen);
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 2})) << sweeps;
  }
}
TEST(sweep_order, of_two_leaves_the_dimension_with_most_pages_to_the_second) {
  EXPECT_EQ(each_dimension_once(2, {3, 9, 4}), (sweep_order{{2, 0}, {1}}));
}

TEST(sweep_plan, has_units_that_together_are_all_pages) {
  folder_with_set f;
  program([&] {
    for (const int sweeps : {1, 2, 3}) {
      const sweep_plan p = plan_for(task_for(f.x, f.y), sweeps);
      for (std::size_t i = 0; i < p.sweeps.size(); ++i) {
        std::vector<int> times(static_cast<std::size_t>(p.grid.page_count()));
        for (std::int64_t u = 0; u < p.units(i); ++u)
          for_each_place(p.unit_pages(i, u),
                         [&](const index3& at) { ++times[static_cast<std::size_t>(p.grid.number_of(at))]; });
        EXPECT_EQ(std::ranges::count(times, 1), p.grid.page_count());
      }
    }
  });
}
TEST(sweep_plan, never_writes_where_it_reads_but_in_memory) {
  folder_with_set f;
  program([&] {
    for (const int sweeps : {2, 3})
      for (const std::string& output : {f.y, std::string()})
        for (const sweep& s : plan_for(task_for(f.x, output), sweeps).sweeps) {
          EXPECT_NE(s.from, s.to);
          // In place the input is the output.
          EXPECT_FALSE(output.empty() && s.from == sweep_place::input && s.to == sweep_place::output);
        }
  });
}
TEST(sweep_plan, says_how_much_memory_would_do) {
  folder_with_set f;
  program([&] {
    sweep_task t = task_for(f.x, f.y);
    t.memory = 1 << 20;
    const auto extra = [](const auto&...) { return 12345; };
    const auto refused = plan_sweeps(t, {{0}, {1}, {2}}, false, extra, 2, 1);
    ASSERT_FALSE(refused);
    t.memory = refused.error();
    EXPECT_TRUE(plan_sweeps(t, {{0}, {1}, {2}}, false, extra, 2, 1));
    --t.memory;
    EXPECT_FALSE(plan_sweeps(t, {{0}, {1}, {2}}, false, extra, 2, 1));
  });
}

TEST(page_block, gives_and_takes_boxes_of_the_elements_of_its_pages) {
  folder_with_set f;
  program([&] {
    auto set = spawn<data_set>(here(), f.x, data_set_options{.mode = open_mode::read_write});
    const storage::array a = set->contents();
    page_block block(a.grid(), {{1, 0, 0}, {3, 3, 2}}, a.type());
    EXPECT_EQ(block.elements(), (domain{{4, 0, 0}, {10, 9, 7}}));
    block.read(a, 3);
    const domain box{{5, 2, 3}, {9, 7, 6}};
    std::vector<double> x(static_cast<std::size_t>(box.size()));
    const index3 strides{1, 4, 20};  // the first dimension runs fastest
    block.copy_out(box, reinterpret_cast<std::byte*>(x.data()), strides);
    for_each_place(box, [&](const index3& i) {
      double& there = x[static_cast<std::size_t>((i[0] - 5) + 4 * (i[1] - 2) + 20 * (i[2] - 3))];
      EXPECT_EQ(there, 1.0 + static_cast<double>((i[0] * 9 + i[1]) * 7 + i[2]));
      there = -there;
    });
    block.copy_in(box, reinterpret_cast<const std::byte*>(x.data()), strides);
    block.write(a, 3);
    std::vector<double> all(static_cast<std::size_t>(product(shape)));
    a.read(a.whole(), std::span(all));
    const auto before = numbers();
    for_each_place(a.whole(), [&](const index3& i) {
      const auto n = static_cast<std::size_t>((i[0] * 9 + i[1]) * 7 + i[2]);
      EXPECT_EQ(all[n], box.contains(i) ? -before[n] : before[n]);
    });
    set->finish();
    destroy(set);
  });
}
TEST(page_block, is_read_while_another_one_is_written) {
  folder_with_set f;
  program([&] {
    auto set = spawn<data_set>(here(), f.x, data_set_options{});
    const storage::array a = set->contents();
    for (const std::size_t window : {1, 2, 100}) {
      const storage::array b = make_memory_array(a.grid(), element_type::complex128);
      page_block first(a.grid(), {{0, 0, 0}, {2, 3, 2}}, element_type::complex128);
      page_block second(a.grid(), {{2, 0, 0}, {3, 3, 2}}, element_type::complex128);
      first.read(a, window);
      first.write_and_read(b, second, a, window);
      second.make_own();
      second.write(b, window);
      std::vector<std::complex<double>> found(static_cast<std::size_t>(product(shape)));
      b.read(b.whole(), std::span(found));
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], numbers()[i]) << window;
      for (const auto& d : b.devices()) destroy(d);
    }
  });
}
TEST(page_block, converts_between_real_and_complex_of_one_precision) {
  page p(2 * sizeof(float));
  reinterpret_cast<float*>(p.writable().data())[1] = 3;
  const page c = converted(p, element_type::float32, element_type::complex64);
  EXPECT_EQ(reinterpret_cast<const std::complex<float>*>(c.bytes().data())[1], (std::complex<float>{3, 0}));
  EXPECT_EQ(converted(c, element_type::complex64, element_type::float32), p);
  EXPECT_THROW((void)converted(p, element_type::float32, element_type::float64), std::invalid_argument);
}
TEST(page_block, converts_in_the_memory_of_the_page_where_it_has_room) {
  constexpr std::size_t n = 2500;  // more than are converted at once
  set_page_pool_limit(64 << 20, n * sizeof(std::complex<float>));
  for (const bool alone : {true, false}) {
    page p(n * sizeof(float));
    for (std::size_t i = 0; i < n; ++i) reinterpret_cast<float*>(p.writable().data())[i] = static_cast<float>(i);
    const std::byte* const before = p.bytes().data();
    page other = alone ? page() : p;
    page c = converted(std::move(p), element_type::float32, element_type::complex64);
    EXPECT_EQ(c.bytes().data() == before, alone);
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_EQ(reinterpret_cast<const std::complex<float>*>(c.bytes().data())[i], static_cast<float>(i));
    other = alone ? page() : c;
    const page back = converted(std::move(c), element_type::complex64, element_type::float32);
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_EQ(reinterpret_cast<const float*>(back.bytes().data())[i], static_cast<float>(i));
    if (alone) {
      EXPECT_EQ(back.bytes().data(), before);
    }
    const auto tail = back.memory(12288).subspan(back.size());
    EXPECT_EQ(std::ranges::count(tail, std::byte{0}), std::ssize(tail)) << "what goes to the drive behind the elements";
  }
  set_page_pool_limit(64 << 20);
}

TEST(memory_array, gives_a_page_away_when_it_is_read) {
  program([] {
    const storage::array a = make_memory_array({shape, pages}, element_type::float64);
    page p(static_cast<std::size_t>(product(pages)) * sizeof(double));
    p.writable()[5] = std::byte{7};
    a.start_write_whole(p, {1, 2, 1}).get();
    p = {};
    page q = a.start_read_whole({1, 2, 1}).get();
    EXPECT_EQ(q.bytes()[5], std::byte{7});
    EXPECT_FALSE(q.shared());
    EXPECT_EQ(a.start_read_whole({1, 2, 1}).get().bytes()[5], std::byte{0});
    a.flush();
    for (const auto& d : a.devices()) destroy(d);
  });
}

TEST(ledger, adds_up_what_was_counted_in_units_that_are_done) {
  const scratch folder;
  program([&] {
    for (const bool again : {false, true}) {
      auto units = spawn<ledger>(here(), folder / "progress", std::vector<std::int64_t>{2, 3});
      if (!again) {
        units->begin(1);
        units->count(0, 5);
        units->count(1, 7);
        units->count(2, 9);
        units->done(1);
        units->done(2);
      }
      EXPECT_EQ(units->counted(), 16U);
      destroy(units);
    }
    auto units = spawn<ledger>(here(), folder / "progress", std::vector<std::int64_t>{2, 3});
    EXPECT_EQ(units->done_units(1), (std::vector<std::int64_t>{1, 2}));
    units->redo(1, {1});
    units->flush();
    EXPECT_EQ(units->counted(), 9U);
    EXPECT_EQ(units->units_done(), 1);
    units->begin(1);
    EXPECT_EQ(units->next(), 0);
    EXPECT_EQ(units->next(), 1);
  });
}
TEST(ledger, gives_each_unit_once_and_those_again_that_were_not_done) {
  const scratch folder;
  program([&] {
    {
      auto units = spawn<ledger>(here(), folder / "progress", std::vector<std::int64_t>{2, 3});
      units->begin(1);
      EXPECT_EQ(units->next(), 0);
      EXPECT_EQ(units->next(), 1);
      units->done(1);
      units->stop();
      EXPECT_EQ(units->next(), -1);
      destroy(units);
    }
    auto again = spawn<ledger>(here(), folder / "progress", std::vector<std::int64_t>{2, 3});
    EXPECT_EQ(again->units_done(), 1);
    again->begin(1);
    EXPECT_EQ(again->next(), 0);
    EXPECT_EQ(again->next(), 2);
    EXPECT_EQ(again->next(), -1);
    again->done(0);
    again->done(0);  // counts once
    again->done(2);
    EXPECT_EQ(again->units_done(), 3);
    EXPECT_TRUE(again->finished(1));
    EXPECT_FALSE(again->finished(0));
  });
}

TEST(sweep_job, that_goes_on_in_place_reads_nothing_of_what_it_replaces) {
  const scratch folder;
  program([&] {
    const std::string x = folder / "x";
    const index3 large{512, 512, 256};  // of 256 MiB, which nobody ever writes
    auto set = spawn<data_set>(
        here(), x, data_set_description{.shape = large, .page_shape = {64, 64, 64}, .type = element_type::float32},
        data_set_options{});
    set->finish();
    destroy(set);
    sweep_task t{
        .input = data_set::read_info(x), .work_type = element_type::float32, .output_type = element_type::float32};
    const sweep_plan p = plan_for(t, 3);
    {
      sweep_job job(t, p, "job", "sums");
      job.begin();
    }
    std::fstream sums(x + "/device-0.sums", std::ios::in | std::ios::out | std::ios::binary);
    sums.seekp(64);
    sums << std::string(64, 'x');  // pages that were being written
    sums.close();
    t.input = data_set::read_info(x);
    sweep_job job(t, p, "job", "sums");
    EXPECT_TRUE(job.resumed());
    job.begin();
  });
}

TEST(sweep_job, computes_to_a_new_data_set_and_in_place) {
  folder_with_set f;
  program([&] {
    for (const int sweeps : {1, 2, 3}) {
      const auto outcome = sum_up(task_for(f.x, f.y), sweeps);
      EXPECT_EQ(read_set(f.y), summed(numbers())) << sweeps;
      std::int64_t units = 0;
      for (const sweep_record& r : outcome.sweeps) units += r.units;
      EXPECT_EQ(outcome.counted, static_cast<std::uint64_t>(units));
      data_set::remove(f.y);
    }
    (void)sum_up(task_for(f.x, ""), 3);
    EXPECT_EQ(read_set(f.x), summed(numbers()));
    EXPECT_EQ(std::distance(fs::directory_iterator(f.path), fs::directory_iterator()), 1);
  });
}
// Halves the numbers of a box once two PEs have a box of the same unit, and waits for that.
class box_halver : public sweeper {
 public:
  using sweeper::sweeper;

 protected:
  // two in each unit
  index3 box_shape(std::size_t) const override { return {pages[0], pages[1] - 1, shape[2]}; }
  void compute_box(std::size_t, page_block& unit, const domain& box) override {
    static std::atomic<int> met{0};
    const int before = met.fetch_add(1);
    // the other is on another PE
    while (met.load() / 2 == before / 2) sleep_for(std::chrono::milliseconds(1));
    std::vector<double> x(static_cast<std::size_t>(box.size()));
    unit.copy_out(box, reinterpret_cast<std::byte*>(x.data()), strides_of(box.shape()));
    for (double& v : x) v /= 2;
    unit.copy_in(box, reinterpret_cast<const std::byte*>(x.data()), strides_of(box.shape()));
    count(1);
  }
};
ORRERY_PROCESS(box_halver);
TEST(sweep_job, computes_with_one_unit_on_all_pes) {
  folder_with_set f;
  program([&] {
    const sweep_task t = task_for(f.x, f.y);
    sweep_plan p =
        plan_sweeps(t, {{2}}, false, [](const auto&...) { return 0; }, world_pes(), world_nodes(), true).value();
    p.at_once.assign(p.sweeps.size(), p.processes = 1);  // one unit at a time
    sweep_job job(t, p, "job", "halves");
    job.begin();
    const auto outcome = job.run<box_halver>([](const sweep_status&) {}, p);
    EXPECT_EQ(outcome.counted, static_cast<std::uint64_t>(2 * p.units(0)));
    const auto found = read_set(f.y);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], numbers()[i] / 2);
  });
}
// As if it was killed between its last act and its end.
TEST(sweep_job, that_is_done_is_not_done_again_while_its_folder_is_there) {
  folder_with_set f;
  program([&] {
    for (const std::string& y : {std::string(), f.y}) {
      const sweep_task t = task_for(f.x, y);
      const std::string target = y.empty() ? f.x : y;
      const auto expected = summed(read_set(f.x));
      std::uint64_t counted = 0;
      for (int run = 0; run < 3; ++run) {
        const sweep_plan p = plan_for(t, 3);
        sweep_job job(t, p, "job", "sums");
        EXPECT_EQ(job.resumed(), run != 0);
        job.begin();
        const auto outcome = job.run<summer>([](const sweep_status&) {}, p, std::int64_t{-1});
        if (run == 0) counted = outcome.counted;
        EXPECT_EQ(outcome.counted, counted);
        EXPECT_EQ(outcome.sweeps.size(), 3U);
        EXPECT_EQ(outcome.resumed, run != 0);
        EXPECT_EQ(read_set(target), expected) << run;
        if (run < 2) {
          EXPECT_EQ(job.leave_folder(), target + ".job");
        }
        // it was killed even before that was removed
        fs::create_directory(fs::path(target + ".job") / "x-scratch");
      }
      EXPECT_FALSE(fs::exists(target + ".job"));
      EXPECT_EQ(std::distance(fs::directory_iterator(f.path), fs::directory_iterator()), y.empty() ? 1 : 2);
    }
  });
}
TEST(sweep_job, that_replaces_its_input_is_refused_while_others_compute_with_it) {
  folder_with_set f;
  program([&] {
    const sweep_task reads = task_for(f.x, f.y);
    const sweep_task replaces = task_for(f.x, "");
    {
      const sweep_job job(reads, plan_for(reads, 3), "job", "sums");
      const std::string said = error_text(EBUSY, [&] { (void)sum_up(replaces, 3); });
      EXPECT_NE(said.find("is the input of another program"), std::string::npos) << said;
      const sweep_task also = task_for(f.x, f / "z");
      (void)sum_up(also, 3);
    }
    const sweep_job job(replaces, plan_for(replaces, 3), "job", "sums");
    const std::string said = error_text(EBUSY, [&] { (void)sum_up(reads, 3); });
    EXPECT_NE(said.find("is being replaced by another program"), std::string::npos) << said;
    EXPECT_FALSE(fs::exists(f.y + ".job"));
  });
}
// The input of a job that has failed half-way is replaced, or written by somebody else.
void replace_set(const std::string& path, const std::vector<double>& with) {
  data_set::remove(path);
  make_set(path, with);
}
void write_set(const std::string& path, const std::vector<double>& x) {
  auto set = spawn<data_set>(here(), path, data_set_options{.mode = open_mode::read_write});
  set->contents().write(domain::of_shape(shape), std::span<const double>(x));
  set->finish();
  destroy(set);
}
TEST(sweep_job, that_was_interrupted_goes_on_with_no_other_input) {
  std::vector<double> others = numbers();
  for (double& x : others) x *= 3;
  for (const bool in_place : {false, true}) {
    for (const auto change : {&replace_set, &write_set}) {
      folder_with_set f;
      program([&] {
        const std::string y = in_place ? "" : f.y;
        EXPECT_THROW((void)sum_up(task_for(f.x, y), 3, 2), std::runtime_error);
        change(f.x, others);
        try {
          (void)sum_up(task_for(f.x, y), 3);
          ADD_FAILURE() << "it went on with another input";
        } catch (const std::invalid_argument& e) {
          const std::string said = e.what();
          const bool replaced = in_place && change == &replace_set;
          EXPECT_NE(said.find(replaced ? " is another one than the one that an interrupted job was replacing"
                                       : " was written or replaced after the interrupted job"),
                    std::string::npos)
              << said;
          EXPECT_NE(said.find("orrery data remove " + (in_place ? f.x : f.y)), std::string::npos) << said;
        }
        EXPECT_EQ(read_set(f.x), others);
        EXPECT_EQ(job_folder::forget(in_place ? f.x : f.y), 1U);
        EXPECT_EQ(job_folder::forget(in_place ? f.x : f.y), 0U);
        if (!in_place) data_set::remove(f.y);
        EXPECT_FALSE(sum_up(task_for(f.x, y), 3).resumed);
        EXPECT_EQ(read_set(in_place ? f.x : f.y), summed(others));
      });
    }
  }
}
TEST(sweep_job, that_was_interrupted_leaves_what_has_taken_the_place_of_its_output) {
  folder_with_set f;
  program([&] {
    for (const std::int64_t fails_at : {0, 2}) {
      EXPECT_THROW((void)sum_up(task_for(f.x, f.y), 3, fails_at), std::runtime_error);
      replace_set(f.y, {std::vector<double>(numbers().size(), 5)});
      const std::string said = error_text(EEXIST, [&] { (void)sum_up(task_for(f.x, f.y), 3); });
      EXPECT_NE(said.find("there is something at " + f.y), std::string::npos) << said;
      EXPECT_EQ(read_set(f.y), std::vector<double>(numbers().size(), 5));
      data_set::remove(f.y);
      EXPECT_FALSE(sum_up(task_for(f.x, f.y), 3).resumed) << "its output is gone";
      EXPECT_EQ(read_set(f.y), summed(numbers()));
      data_set::remove(f.y);
    }
    fs::create_symlink(f / "nowhere", f.y);
    (void)error_text(EEXIST, [&] { (void)sum_up(task_for(f.x, f.y), 3); });
    EXPECT_TRUE(fs::is_symlink(f.y));
  });
}
// Before its output had a header.
TEST(sweep_job, that_was_interrupted_while_it_made_its_output_makes_it_again) {
  folder_with_set f;
  program([&] {
    const sweep_task t = task_for(f.x, f.y);
    const auto fails_at_once = [&] {
      try {
        (void)sum_up(t, 3, 0);
        ADD_FAILURE() << "it did not fail";
      } catch (const std::runtime_error& e) {
        EXPECT_NE(std::string(e.what()).find("enough"), std::string::npos) << e.what();
      }
      fs::remove(f.y + ".job/made");
    };
    fails_at_once();
    for (const auto& e : fs::directory_iterator(f.y)) fs::remove(e.path());
    std::ofstream(f.y + "/orrery.json.new-7") << "{";
    fs::create_directory(f.y + "/a");
    fails_at_once();
    data_set::remove(f.y);
    fails_at_once();
    EXPECT_TRUE(sum_up(t, 3).resumed);
    EXPECT_EQ(read_set(f.y), summed(numbers()));
  });
}
TEST(sweep_job, that_was_interrupted_before_its_output_had_a_header_is_forgotten) {
  folder_with_set f;
  program([&] {
    EXPECT_THROW((void)sum_up(task_for(f.x, f.y), 3, 0), std::runtime_error);
    for (const auto& e : fs::directory_iterator(f.y)) fs::remove(e.path());
    std::ofstream(f.y + "/orrery.json.new-7") << "{";
    EXPECT_EQ(job_folder::forget(f.y), 1U);
    EXPECT_FALSE(fs::exists(f.y));
  });
}
// Its result is there, and its folder.
TEST(sweep_job, that_is_done_leaves_what_has_taken_the_place_of_its_output) {
  folder_with_set f;
  program([&] {
    const sweep_task t = task_for(f.x, f.y);
    {
      const sweep_plan p = plan_for(t, 3);
      sweep_job job(t, p, "job", "sums");
      job.begin();
      (void)job.run<summer>([](const sweep_status&) {}, p, std::int64_t{-1});
      EXPECT_EQ(job.leave_folder(), f.y + ".job");
    }
    replace_set(f.y, numbers());
    (void)error_text(EEXIST, [&] { (void)sum_up(t, 3); });
    EXPECT_EQ(read_set(f.y), numbers());
    data_set::remove(f.y);
    EXPECT_FALSE(sum_up(t, 3).resumed);
    EXPECT_EQ(read_set(f.y), summed(numbers()));
  });
}
TEST(job_folder, is_forgotten_with_what_lies_elsewhere_unless_somebody_is_at_it) {
  folder_with_set f;
  program([&] {
    sweep_task t = task_for(f.x, f.y);
    t.folders = {f / "a", f / "b"};
    EXPECT_THROW((void)sum_up(t, 3, 2), std::runtime_error);
    EXPECT_TRUE(fs::exists(f / "a/y-scratch-0.pages"));
    {
      const sweep_job job(t, plan_for(t, 3), "job", "sums");
      (void)error_text(EBUSY, [&] { (void)job_folder::forget(f.y); });
    }
    EXPECT_EQ(job_folder::forget(f / "z"), 0U);
    EXPECT_EQ(job_folder::forget(f.y), 1U);
    data_set::remove(f.y);
    EXPECT_FALSE(fs::exists(f / "a"));
    EXPECT_FALSE(fs::exists(f / "b"));
    (void)sum_up(t, 3);
    EXPECT_EQ(read_set(f.y), summed(numbers()));
  });
}
TEST(sweep_job, is_refused_where_its_folder_is_its_input_or_is_to_hold_its_output) {
  folder_with_set f;
  program([&] {
    const std::string inside = f.y + ".job";
    fs::rename(f.x, inside);
    const std::string said = error_text(EINVAL, [&] { (void)sum_up(task_for(inside, f.y), 3); });
    EXPECT_NE(said.find(inside + " is where the progress of this job is kept"), std::string::npos) << said;
    EXPECT_EQ(read_set(inside), numbers());
    fs::rename(inside, f.x);
    sweep_task t = task_for(f.x, f.y);
    t.folders = {f / "a", inside + "/b"};
    (void)error_text(EINVAL, [&] { (void)sum_up(t, 3); });
    EXPECT_FALSE(fs::exists(inside));
  });
}
// A folder of that name which somebody else has made.
TEST(sweep_job, that_is_refused_removes_nothing_of_others) {
  folder_with_set f;
  program([&] {
    const std::string backup = f.y + ".job";
    make_set(backup, numbers());
    for (const bool there : {false, true}) {
      if (there) make_set(f.y, numbers());
      (void)error_text(EEXIST, [&] { (void)sum_up(task_for(f.x, f.y), 3); });
      EXPECT_EQ(read_set(backup), numbers());
    }
  });
}
// The notes of what is done have come to their drive, and the records of pages have not.
void lose(const std::string& set) {
  for (const auto& [file, kept] : {std::pair(set + "/device-0.sums", 64), std::pair(set + "/device-0.pages", 0)}) {
    const auto size = fs::file_size(file);
    fs::resize_file(file, static_cast<std::uintmax_t>(kept));
    fs::resize_file(file, size);
  }
}
TEST(sweep_job, does_units_again_whose_pages_were_lost_with_their_records) {
  folder_with_set f;
  program([&] {
    const sweep_task t = task_for(f.x, f.y);
    sweep_plan p = plan_for(t, 2);
    p.at_once.assign(p.sweeps.size(), p.processes = 1);
    for (const bool in_second : {false, true}) {
      {
        sweep_job job(t, p, "job", "sums");
        job.begin();
        EXPECT_THROW((void)job.run<summer>([](const sweep_status&) {}, p, in_second ? p.units(0) + 1 : 1),
                     std::runtime_error);
      }
      lose(in_second ? f.y : f.y + ".job/y-scratch");
      const auto outcome = sum_up(t, 2);
      EXPECT_TRUE(outcome.resumed);
      EXPECT_EQ(outcome.sweeps[0].units, in_second ? 0 : p.units(0));
      EXPECT_EQ(outcome.sweeps[1].units, p.units(1));
      EXPECT_EQ(outcome.counted, static_cast<std::uint64_t>(p.units(0) + p.units(1)));
      EXPECT_EQ(read_set(f.y), summed(numbers()));
      data_set::remove(f.y);
    }
  });
}
// It was killed after the last unit of its first sweep, before it could bring the sweep's pages to
// their drive.
TEST(sweep_job, brings_a_sweep_that_it_finds_finished_to_its_drive) {
  folder_with_set f;
  std::vector<std::int64_t> done;  // units, whenever the first sweep's pages are brought there
  std::int64_t units = 0;          // of all sweeps: as many bytes of the notes, then counts
  const storage::testing::flush_watch watch([&](const std::string& file) {
    if (!file.ends_with("y-scratch/device-0.pages")) return;
    std::ifstream file_of_notes(f.y + ".job/progress");
    const std::string notes(std::istreambuf_iterator<char>(file_of_notes), {});
    done.push_back(std::ranges::count(std::string_view(notes).substr(0, static_cast<std::size_t>(units)), '\1'));
  });
  program([&] {
    const sweep_task t = task_for(f.x, f.y);
    sweep_plan p = plan_for(t, 2);
    p.at_once.assign(p.sweeps.size(), p.processes = 1);
    units = p.units(0) + p.units(1);
    {
      sweep_job job(t, p, "job", "sums");
      job.begin();
      EXPECT_THROW((void)job.run<summer>([](const sweep_status&) {}, p, p.units(0)), std::runtime_error);
    }
    done.clear();
    EXPECT_EQ(sum_up(t, 2).sweeps[0].units, 0);
    ASSERT_FALSE(done.empty());
    EXPECT_EQ(done.front(), p.units(0));
    EXPECT_EQ(read_set(f.y), summed(numbers()));
  });
}
TEST(sweep_job, goes_on_where_paths_are_no_utf8) {
  folder_with_set f;
  if (!storage::testing::takes_any_name(f)) GTEST_SKIP() << "names must be UTF-8 here";
  program([&] {
    const std::string x = f / "in \xe4%";
    const std::string y = f / "out \xff";
    fs::rename(f.x, x);
    EXPECT_THROW((void)sum_up(task_for(x, y), 3, 2), std::runtime_error);
    EXPECT_TRUE(sum_up(task_for(x, y), 3).resumed);
    EXPECT_EQ(read_set(y), summed(numbers()));
    data_set::remove(y);
    EXPECT_THROW((void)sum_up(task_for(x, y), 3, 2), std::runtime_error);
    EXPECT_EQ(job_folder::forget(y), 1U);
    data_set::remove(y);
    sweep_task t = task_for(x, y);
    t.folders = {f / "d"};
    EXPECT_THROW((void)sum_up(t, 3), std::invalid_argument);
    EXPECT_EQ(std::distance(fs::directory_iterator(f.path), fs::directory_iterator()), 1);
  });
}
TEST(sweep_job, that_fails_goes_on_with_the_units_that_were_not_done) {
  folder_with_set f;
  program([&] {
    const sweep_task t = task_for(f.x, f.y);
    EXPECT_THROW((void)sum_up(t, 3, 2), std::runtime_error);
    EXPECT_TRUE(fs::exists(f.y + ".job"));
    EXPECT_THROW((void)sum_up(t, 3, -1, "something else"), std::invalid_argument);
    const auto outcome = sum_up(t, 3);
    EXPECT_TRUE(outcome.resumed);
    const sweep_plan p = plan_for(t, 3);
    const std::int64_t all = p.units(0) + p.units(1) + p.units(2);
    EXPECT_LT(outcome.sweeps[0].units + outcome.sweeps[1].units + outcome.sweeps[2].units, all);
    EXPECT_EQ(outcome.counted, static_cast<std::uint64_t>(all));  // also what the first one counted
    EXPECT_EQ(read_set(f.y), summed(numbers()));
    EXPECT_FALSE(fs::exists(f.y + ".job"));
  });
}

}  // namespace sweep_tests
