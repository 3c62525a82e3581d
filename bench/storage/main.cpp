// SPDX-License-Identifier: Apache-2.0
// The storage layer against the drive itself, in the same minutes and on the same file: a bare io_uring loop, a page_device, an array.
//   bench_storage [--json FILE] [--folder F] [--mib N] [--page-mib N] [--runs N] [--smoke]
// Rates are in bytes per second; the ratios are medians of those of single runs, one after the other.
#include <orrery/orrery.hpp>
#include <orrery/storage/array.hpp>
#include <orrery/storage/array_device.hpp>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace orrery;
using namespace orrery::storage;
using element_t = std::complex<double>;

constexpr unsigned depth = 8;

struct settings {
  std::string folder = "/var/tmp";
  std::string file;
  std::uint64_t pages = 256;
  std::uint64_t page_bytes = 4 << 20;
  int runs = 5;
  [[nodiscard]] std::uint64_t bytes() const { return pages * page_bytes; }
};

double seconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// --- the drive itself -----------------------------------------------------------------------------------------------

// `depth` transfers at once, one file, O_DIRECT, in the order of the pages: what the drive gives to who asks for nothing else.
void bare(const settings& s, bool writing) {
  const int fd = open(s.file.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("the bare loop needs a file system with O_DIRECT: choose another --folder");
  io_uring ring{};
  if (io_uring_queue_init(2 * depth, &ring, 0) != 0) throw std::runtime_error("the bare loop needs io_uring");
  std::vector<page> buffers;
  for (unsigned i = 0; i < depth; ++i) buffers.emplace_back(s.page_bytes);
  std::uint64_t next = 0;
  std::uint64_t done = 0;
  const auto submit = [&](unsigned slot) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring);
    void* memory = buffers[slot].writable().data();
    const auto n = static_cast<unsigned>(s.page_bytes);
    if (writing) {
      io_uring_prep_write(sqe, fd, memory, n, next * s.page_bytes);
    } else {
      io_uring_prep_read(sqe, fd, memory, n, next * s.page_bytes);
    }
    sqe->user_data = slot;
    ++next;
  };
  for (unsigned i = 0; i < depth && next < s.pages; ++i) submit(i);
  io_uring_submit(&ring);
  while (done < s.pages) {
    io_uring_cqe* cqe = nullptr;
    if (io_uring_wait_cqe(&ring, &cqe) != 0) continue;
    const auto slot = static_cast<unsigned>(cqe->user_data);
    if (cqe->res != static_cast<int>(s.page_bytes)) throw std::runtime_error("a transfer of the bare loop failed");
    io_uring_cqe_seen(&ring, cqe);
    ++done;
    if (next < s.pages) {
      submit(slot);
      io_uring_submit(&ring);
    }
  }
  io_uring_queue_exit(&ring);
  close(fd);
}

// --- the layer ------------------------------------------------------------------------------------------------------

void read_pages(const settings& s, const remote<page_device>& device) {
  std::deque<future<page>> under_way;
  for (std::uint64_t i = 0; i < s.pages; ++i) {
    under_way.push_back(start(device)->read(i));
    if (under_way.size() < 2 * depth) continue;
    (void)under_way.front().get();
    under_way.pop_front();
  }
  for (auto& f : under_way) (void)f.get();
}
void write_pages(const settings& s, const remote<page_device>& device, const page& p) {
  std::deque<future<void>> under_way;
  for (std::uint64_t i = 0; i < s.pages; ++i) {
    under_way.push_back(start(device)->write(p, i));
    if (under_way.size() < 2 * depth) continue;
    under_way.front().get();
    under_way.pop_front();
  }
  for (auto& f : under_way) f.get();
}

struct figures {
  std::map<std::string, std::vector<double>> rates;
  std::map<std::string, std::vector<double>> ratios;

  void add(const settings& s, const std::string& name, const std::string& against, const std::function<void()>& f) {
    rates[name].push_back(static_cast<double>(s.bytes()) / seconds_of(f));
    if (!against.empty()) ratios[name + "_ratio"].push_back(rates[name].back() / rates[against].back());
  }
};

double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}

// An array of cubic pages whose slabs of one layer of pages, and page lines across them, are read and written as the two passes of a transform do.
void measure(settings s, figures& out) {
  std::int64_t side = 1;
  while (static_cast<std::uint64_t>(8 * side * side * side) * sizeof(element_t) <= s.page_bytes) side *= 2;
  const index3 page_shape{side, side, static_cast<std::int64_t>(s.page_bytes / sizeof(element_t)) / (side * side)};
  const auto layers = static_cast<std::int64_t>(std::max<std::uint64_t>(s.pages / 64, 1));
  const index3 shape{layers * side, 8 * side, 8 * page_shape[2]};
  s.pages = static_cast<std::uint64_t>(layers) * 64;
  const page_grid grid{shape, page_shape};

  auto plain = spawn<array_device>(pe(1 % world_pes()), s.file, s.pages, page_shape, element_type::complex128,
                                   device_options{}, cache_options{0, 0});
  const storage::array a(grid, element_type::complex128, circulant_map(grid.pages(), 1), {plain});
  const page p(s.page_bytes);
  write_pages(s, plain, p);  // from here on the file's blocks have been written once
  std::vector<element_t> slab(static_cast<std::size_t>(side * shape[1] * shape[2]));
  std::vector<element_t> line(static_cast<std::size_t>(shape[0] * side * shape[2]));

  for (int run = 0; run < s.runs; ++run) {
    out.add(s, "bare_read", "", [&] { bare(s, false); });
    out.add(s, "device_read", "bare_read", [&] { read_pages(s, plain); });
    out.add(s, "array_read", "bare_read", [&] {
      for (std::int64_t i = 0; i < shape[0]; i += side)
        a.read(domain{{i, 0, 0}, {i + side, shape[1], shape[2]}}, std::span(slab));
    });
    out.add(s, "array_read_transpose13", "bare_read", [&] {
      for (std::int64_t j = 0; j < shape[1]; j += side)
        a.read_transpose13(domain{{0, j, 0}, {shape[0], j + side, shape[2]}}, std::span(line));
    });
    out.add(s, "bare_write", "", [&] { bare(s, true); });
    out.add(s, "device_write", "bare_write", [&] { write_pages(s, plain, p); });
    out.add(s, "array_write", "bare_write", [&] {
      for (std::int64_t i = 0; i < shape[0]; i += side)
        a.write(domain{{i, 0, 0}, {i + side, shape[1], shape[2]}}, std::span<const element_t>(slab));
    });
    out.add(s, "array_write_transpose13", "bare_write", [&] {
      for (std::int64_t j = 0; j < shape[1]; j += side)
        a.write_transpose13(domain{{0, j, 0}, {shape[0], j + side, shape[2]}}, std::span<const element_t>(line));
    });
  }
  destroy(plain);

  std::filesystem::remove(s.file);
  auto verified =
      spawn<page_device>(pe(1 % world_pes()), s.file, s.pages, s.page_bytes, device_options{.sums = s.file + ".sums"});
  write_pages(s, verified, p);
  for (int run = 0; run < s.runs; ++run) {
    out.add(s, "bare_read_2", "", [&] { bare(s, false); });
    out.add(s, "verified_read", "bare_read_2", [&] { read_pages(s, verified); });
    out.add(s, "bare_write_2", "", [&] { bare(s, true); });
    out.add(s, "verified_write", "bare_write_2", [&] { write_pages(s, verified, p); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Figures of Orrery's storage layer"};
  settings s;
  std::uint64_t mib = 1024;
  std::uint64_t page_mib = 4;
  bool smoke = false;
  std::string json;
  app.add_option("--folder", s.folder, "where the file is made: on the drive to be measured");
  app.add_option("--mib", mib, "size of the file")->check(CLI::Range(64, 1 << 20));
  app.add_option("--page-mib", page_mib, "size of a page")->check(CLI::Range(1, 64));
  app.add_option("--runs", s.runs, "the figure is the median of so many")->check(CLI::PositiveNumber);
  app.add_flag("--smoke", smoke, "do little: only see that it runs");
  app.add_option("--json", json, "write the figures there too");
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);
  s.page_bytes = (smoke ? 1 : page_mib) << 20;
  s.pages = (smoke ? 64 : mib) * (1 << 20) / s.page_bytes;
  if (smoke) s.runs = 1;

  std::string folder = s.folder + "/orrery-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(s.folder.c_str());
    return 1;
  }
  s.file = folder + "/pages";
  figures out;
  const int result = run(argc, argv, [&](const args&) {
    measure(s, out);
    return 0;
  });
  std::filesystem::remove_all(folder);

  nlohmann::ordered_json all;
  for (const auto& [name, v] : out.rates) all[name + "_bytes_per_s"] = median(v);
  for (const auto& [name, v] : out.ratios) all[name] = median(v);
  std::puts(all.dump(1).c_str());
  if (!json.empty()) std::ofstream(json) << all.dump(1) << '\n';
  return result;
}
