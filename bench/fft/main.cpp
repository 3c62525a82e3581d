// SPDX-License-Identifier: Apache-2.0
// What the transform is compared with, on this machine in these minutes. Prints one JSON object.
//   bench_fft create SET N          a finished data set of N^3 complex128, random
//   bench_fft volume SET SHAPE PAGES TYPE   one of any shape and type: 300,400,500 64,64,64 complex64
//   bench_fft raw FILE N            the same numbers as a bare file
//   bench_fft disk FOLDER BYTES     the drive: O_DIRECT, 8 transfers of BYTES at once, a file of 2 GiB
//   bench_fft lines N               FFTW's time for all lines of N^3, on all PEs
//   bench_fft fftw SHAPE TYPE       the same for any shape, in single or double precision
//   bench_fft touch - MIB           touches so much memory in huge pages, and ends
//   bench_fft memory - N            fft3d's passes over an array in memory, and FFTW's own three-dimensional plan
#include <apps/fft3d/tile.hpp>
#include <apps/fft3d/transform.hpp>
#include <orrery/storage/storage.hpp>

#include <algorithm>
#include <complex>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fftw3.h>
#include <liburing.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace {

using namespace orrery;
using namespace orrery::storage;
using number = std::complex<double>;

const index3 page_shape{16, 64, 128};  // 2 MiB

double seconds_of(const std::function<void()>& f) {
  const double begin = seconds_now();
  f();
  return seconds_now() - begin;
}
double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}

// Cheap, and of full length, so that nothing can be compressed.
std::vector<number> noise(std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<number> v(static_cast<std::size_t>(n));
  const auto one = [&] { return static_cast<double>(random() >> 11) * 0x1p-53 - 0.5; };
  for (number& x : v) x = {one(), one()};
  return v;
}

nlohmann::ordered_json create(const std::string& path, std::int64_t n) {
  auto set = spawn<data_set>(here(), path, data_set_description{.shape = {n, n, n}, .page_shape = page_shape},
                             data_set_options{});
  const storage::array a = set->contents();
  for (std::int64_t i = 0; i < n; i += 16) {
    const domain slab{{i, 0, 0}, {std::min(i + 16, n), n, n}};
    a.write(slab, std::span<const number>(noise(slab.size(), static_cast<std::uint64_t>(i))));
  }
  set->finish();
  destroy(set);
  return {};
}
index3 three(const std::string& text) {
  index3 sides{};
  std::istringstream in(text);
  char comma = 0;
  for (std::int64_t& n : sides) in >> n >> comma;
  return sides;
}
element_type type_of(const std::string& name) {
  const auto type = element_type_named(name);
  if (!type) throw std::invalid_argument("there is no type " + name);
  return *type;
}
nlohmann::ordered_json volume(const std::string& path, const index3& shape, const index3& pages, element_type type) {
  auto set = spawn<data_set>(here(), path, data_set_description{.shape = shape, .page_shape = pages, .type = type},
                             data_set_options{});
  const storage::array a = set->contents();
  const std::size_t bytes = array_page::bytes_of(pages, type);
  const std::size_t real = is_single(type) ? sizeof(float) : sizeof(double);
  std::mt19937_64 random(1);
  for_each_place(domain::of_shape(a.grid().pages()), [&](const index3& at) {
    page p = page::uninitialized(bytes);
    auto* const to = p.writable().data();
    for (std::size_t i = 0; i < bytes / real; ++i) {
      const double x = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
      const auto y = static_cast<float>(x);
      std::memcpy(to + i * real, real == sizeof x ? static_cast<const void*>(&x) : &y, real);
    }
    a.start_write_whole(p, at).get();
  });
  set->finish();
  destroy(set);
  return {};
}
nlohmann::ordered_json raw(const std::string& path, std::int64_t n) {
  const io::descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  for (std::int64_t i = 0; i < n; i += 16) {
    const auto v = noise(std::min<std::int64_t>(16, n - i) * n * n, static_cast<std::uint64_t>(i));
    io::write_all(file.get(), std::as_bytes(std::span(v)), static_cast<std::uint64_t>(i * n * n) * sizeof(number));
  }
  io::fdatasync(file.get());
  return {};
}

// One way through the file, eight transfers at once.
void through(int fd, std::uint64_t count, std::uint64_t bytes, bool writing, std::vector<page>& buffers) {
  io_uring ring{};
  if (io_uring_queue_init(16, &ring, 0) != 0) throw std::runtime_error("io_uring is not to be had");
  std::uint64_t next = 0;
  const auto submit = [&](std::uint64_t slot) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring);
    void* memory = buffers[slot].writable().data();
    writing ? io_uring_prep_write(sqe, fd, memory, static_cast<unsigned>(bytes), next * bytes)
            : io_uring_prep_read(sqe, fd, memory, static_cast<unsigned>(bytes), next * bytes);
    sqe->user_data = slot;
    ++next;
    io_uring_submit(&ring);
  };
  for (std::uint64_t i = 0; i < buffers.size(); ++i) submit(i);
  for (std::uint64_t done = 0; done < count; ++done) {
    io_uring_cqe* cqe = nullptr;
    if (io_uring_wait_cqe(&ring, &cqe) != 0 || cqe->res != static_cast<int>(bytes))
      throw std::runtime_error("a transfer failed");
    const std::uint64_t slot = cqe->user_data;
    io_uring_cqe_seen(&ring, cqe);
    if (next < count) submit(slot);
  }
  io_uring_queue_exit(&ring);
}

// The file is made and written as a data set's is: its blocks are reserved, and get their first contents. Then once more.
nlohmann::ordered_json disk(const std::string& folder, std::uint64_t bytes) {
  const std::string file = folder + "/bench-disk";
  const std::uint64_t count = (std::uint64_t{2} << 30) / bytes;
  (void)::unlink(file.c_str());
  const io::descriptor fd(file, O_RDWR | O_CREAT | O_DIRECT);
  io::fallocate(fd.get(), 0, count * bytes);
  std::vector<page> buffers;
  for (int i = 0; i < 8; ++i) {
    buffers.emplace_back(bytes);
    const auto v = noise(static_cast<std::int64_t>(bytes / sizeof(number)), static_cast<std::uint64_t>(i));
    std::ranges::copy(std::as_bytes(std::span(v)), buffers.back().writable().begin());
  }
  const auto rate = [&](bool writing) {
    return static_cast<double>(count * bytes) / seconds_of([&] { through(fd.get(), count, bytes, writing, buffers); }) /
           1e9;
  };
  const double first = rate(true);
  const double read = rate(false);
  const double again = rate(true);
  (void)::unlink(file.c_str());
  return {{"disk_write_gbps", first}, {"disk_read_gbps", read}, {"disk_rewrite_gbps", again}};
}

index3 lines_of(std::int64_t n) { return {1, (1 << 14) / n, n}; }
double transform_tiles(std::int64_t n, std::int64_t count) {
  fft3d::tile<double> t(lines_of(n));
  t.prepare(2, FFTW_FORWARD);
  std::fill_n(t.data(), t.strides()[0], number{});
  return seconds_of([&] {
    for (std::int64_t i = 0; i < count; ++i) t.transform(2, FFTW_FORWARD, [] {});
  });
}
nlohmann::ordered_json lines(std::int64_t n) {
  const std::int64_t tiles = 3 * n * n / lines_of(n)[1];
  fft3d::load_wisdom();
  std::vector<future<double>> all;
  for (std::uint32_t i = 0; i < world_pes(); ++i)
    all.push_back(start_call<&transform_tiles>(pe(i), n, tiles / world_pes()));
  double slowest = 0;
  for (auto& f : all) slowest = std::max(slowest, f.get());
  fft3d::save_wisdom();
  return {{"lines_s", slowest}};
}

// Lines that are contiguous, as many at a time as stay in the cache.
template <class Real>
double transform_lines(std::int64_t n, std::int64_t lines) {
  const std::int64_t some = std::max<std::int64_t>((1 << 14) / n, 1);
  fft3d::tile<Real> t(index3{1, some, n});
  t.prepare(2, FFTW_FORWARD);
  t.clear();
  return seconds_of([&] {
    for (std::int64_t i = 0; i < lines; i += some) t.transform(2, FFTW_FORWARD, [] {});
  });
}
nlohmann::ordered_json fftw(const index3& shape, element_type type) {
  fft3d::load_wisdom();
  double seconds = 0;
  for (const std::int64_t n : shape) {
    const std::int64_t lines = product(shape) / n / world_pes();
    std::vector<future<double>> all;
    for (std::uint32_t i = 0; i < world_pes(); ++i)
      all.push_back(is_single(type) ? start_call<&transform_lines<float>>(pe(i), n, lines)
                                    : start_call<&transform_lines<double>>(pe(i), n, lines));
    double slowest = 0;
    for (auto& f : all) slowest = std::max(slowest, f.get());
    seconds += slowest;
  }
  fft3d::save_wisdom();
  return {{"fftw_s", seconds}};
}

double own_passes(std::int64_t n) {
  const fft3d::request r{.input = "in", .output = "out", .memory = std::uint64_t{4} << 30, .passes = 1};
  data_set_info info;
  info.shape = {n, n, n};
  info.page_shape = {16, 64, 64};
  info.files = {"one"};
  const fft3d::plan p = fft3d::make_plan(r, info, world_pes(), world_nodes());
  const storage::array a = make_memory_array(p.work.grid, p.work.work_type);
  page one(array_page::bytes_of(info.page_shape, p.work.work_type));
  for_each_place(domain::of_shape(p.work.grid.pages()), [&](const index3& at) {
    page own = page::uninitialized(one.size());
    const auto v = noise(product(info.page_shape), static_cast<std::uint64_t>(p.work.grid.number_of(at)));
    std::ranges::copy(std::as_bytes(std::span(v)), own.writable().begin());
    a.start_write_whole(own, at).get();
  });
  auto units = spawn<ledger>(here(), "", std::vector<std::int64_t>{p.work.units(0), p.work.units(1)});
  auto transformers = spawn_group<fft3d::transformer>(everywhere(), p.work.processes, p, units);
  const double seconds = seconds_of([&] {
    for (std::size_t i = 0; i < 2; ++i) {
      units->begin(i);
      (void)transformers->run(i, a, a);
    }
  });
  destroy(transformers);
  destroy(units);
  for (const auto& d : a.devices()) destroy(d);
  return seconds;
}
nlohmann::ordered_json memory(std::int64_t n) {
  constexpr int runs = 5;
  std::vector<double> own;
  (void)own_passes(n);  // plans, and touches memory
  for (int i = 0; i < runs; ++i) own.push_back(own_passes(n));
  fft3d::save_wisdom();
  trim_page_pool();
  auto v = noise(n * n * n, 1);
  const auto x = v;
  auto* data = reinterpret_cast<fftw_complex*>(v.data());
  const int side = static_cast<int>(n);
  fftw_init_threads();
  fftw_plan_with_nthreads(static_cast<int>(world_pes()));
  const fftw_plan plan = fftw_plan_dft_3d(side, side, side, data, data, FFTW_FORWARD, FFTW_MEASURE);
  std::vector<double> theirs;
  for (int i = 0; i < runs; ++i) {
    v = x;
    theirs.push_back(seconds_of([&] { fftw_execute(plan); }));
  }
  fftw_destroy_plan(plan);
  return {{"fft256_memory_s", median(own)}, {"fftw256_s", median(theirs)}};
}

nlohmann::ordered_json touch(std::uint64_t mib) {
  std::vector<page> all;
  for (std::uint64_t i = 0; i < mib; i += 64) {
    all.emplace_back(std::uint64_t{64} << 20);
    std::memset(all.back().writable().data(), 1, all.back().size());
  }
  return {{"touched_mib", 64 * all.size()}};
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](const args& a) {
    const std::string what = a.size() > 2 ? a[1] : "";
    const auto n = [&] { return std::stoll(a.back()); };
    nlohmann::ordered_json found;
    if (what == "create")
      found = create(a[2], n());
    else if (what == "raw")
      found = raw(a[2], n());
    else if (what == "disk")
      found = disk(a[2], static_cast<std::uint64_t>(n()));
    else if (what == "volume" && a.size() > 5)
      found = volume(a[2], three(a[3]), three(a[4]), type_of(a[5]));
    else if (what == "fftw" && a.size() > 3)
      found = fftw(three(a[2]), type_of(a[3]));
    else if (what == "lines")
      found = lines(n());
    else if (what == "touch")
      found = touch(static_cast<std::uint64_t>(n()));
    else if (what == "memory")
      found = memory(n());
    else {
      std::fprintf(stderr,
                   "bench_fft create|volume|raw|disk|lines|fftw|touch|memory ...: see the beginning of its source\n");
      return 2;
    }
    std::puts(found.dump().c_str());
    return 0;
  });
}
