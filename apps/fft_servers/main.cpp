// SPDX-License-Identifier: Apache-2.0
// The program of Givelberg 2014, sections 4 and 5: servers with drives and caches on some machines,
// clients that transform on others.
#include "array_device.hpp"
#include "fft3.hpp"
#include "tables.hpp"

#include <apps/run_command.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <stdexcept>

#include <fftw3.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace fft_servers {
namespace {

namespace storage = orrery::storage;

struct settings {
  std::vector<std::int64_t> shape{64, 64, 64};
  std::vector<std::int64_t> pages{16, 16, 16};
  std::uint32_t servers = 4;
  std::uint32_t clients = 4;
  std::uint32_t storage_machines = 0;
  std::uint32_t cache = 0;
  std::int64_t iterations = 0;
  std::string folder = "fft-servers";
  bool phantom = false;
  double fftw_seconds = 0;
};

storage::page_grid grid_of(const settings& s) {
  return storage::page_grid::checked({s.shape[0], s.shape[1], s.shape[2]}, {s.pages[0], s.pages[1], s.pages[2]});
}

// `n` processes on machines from `first` on, each machine's one after the other.
orrery::placement place(std::uint32_t i, std::uint32_t n, std::uint32_t first, std::uint32_t machines) {
  return orrery::machine(first + static_cast<std::uint32_t>(std::uint64_t{i} * machines / n));
}

/// The servers, and the group of clients: with data or without.
template <class Device, class Client>
struct application {
  std::vector<orrery::remote<Device>> servers;
  orrery::group<Client> clients;
};

template <class F>
void each_server(const settings& s, F&& f) {
  for (std::uint32_t i = 0; i < s.servers; ++i) f(i, place(i, s.servers, 0, s.storage_machines));
}
std::vector<orrery::placement> places_of_clients(const settings& s) {
  const std::uint32_t all = orrery::world_machines();
  const std::uint32_t first = all == 1 ? 0 : s.storage_machines;
  std::vector<orrery::placement> places;
  for (std::uint32_t i = 0; i < s.clients; ++i) places.push_back(place(i, s.clients, first, all - first));
  return places;
}

// All iterations along each dimension; one of the last dimension, when all are under way, is shown.
template <class App>
void run(const settings& s, const App& app) {
  const storage::page_grid grid = grid_of(s);
  const auto page_bytes = static_cast<std::uint64_t>(storage::product(grid.page_shape)) * 16;
  const auto logs = [&] {
    std::vector<server_log> all;
    for (const auto& server : app.servers) all.push_back(server->take_log());
    return all;
  };
  for (const int dimension : {0, 1, 2}) {
    std::int64_t end = iterations_of(grid, dimension, s.clients);
    if (s.iterations != 0) end = std::min(end, s.iterations);
    const std::int64_t shown = dimension == 2 ? std::min<std::int64_t>(1, end - 1) : end;
    auto all = app.clients->compute(dimension, 0, shown, end);
    const auto go_on = [&](std::int64_t from, std::int64_t to) {
      const auto more = app.clients->compute(dimension, from, to, end);
      for (std::size_t rank = 0; rank < all.size(); ++rank)
        all[rank].insert(all[rank].end(), more[rank].begin(), more[rank].end());
      return more;
    };
    if (shown < end) {
      (void)logs();
      const auto clients = go_on(shown, shown + 1);
      print_tables(clients, logs(), page_bytes);
      fmt::print("\n");
      (void)go_on(shown + 1, end);
    }
    print_summary(dimension, all);
  }
}

// 0 if the array is what FFTW makes of the input in memory.
int check(const storage::array& a) {
  constexpr std::int64_t most = 1 << 24;
  if (a.whole().size() > most) {
    fmt::print("not compared with FFTW: more than {} numbers\n", most);
    return 0;
  }
  std::vector<number> expected;
  for_each_place(a.whole(), [&](const index3& place) { expected.push_back(input_at(place)); });
  auto* data = reinterpret_cast<fftw_complex*>(expected.data());
  const index3 n = a.shape();
  const fftw_plan plan = fftw_plan_dft_3d(static_cast<int>(n[0]), static_cast<int>(n[1]), static_cast<int>(n[2]), data,
                                          data, FFTW_FORWARD, FFTW_ESTIMATE);
  fftw_execute(plan);
  fftw_destroy_plan(plan);
  std::vector<number> found(expected.size());
  a.read(a.whole(), std::span(found));
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    if (const double d = std::abs(found[i] - expected[i]); !(d <= worst)) worst = d;
  }
  const bool good = worst <= 1e-12 * largest;
  fmt::print("compared with FFTW: relative error {:.2g}: {}\n", worst / largest, good ? "good" : "WRONG");
  return good ? 0 : 1;
}

int with_data(const settings& s) {
  const storage::page_grid grid = grid_of(s);
  const storage::circulant_map map(grid.pages(), s.servers);
  application<ArrayDevice, FFT3> app;
  std::vector<orrery::remote<storage::array_page_device>> devices;
  int result = 0;
  const auto remove_all = [&] {
    for (const auto& server : app.servers) server->remove();
  };
  try {
    each_server(s, [&](std::uint32_t i, orrery::placement where) {
      app.servers.push_back(orrery::spawn<ArrayDevice>(where, fmt::format("{}/server-{}.pages", s.folder, i),
                                                       map.pages_on(i), grid.page_shape, s.cache));
      devices.emplace_back(app.servers.back());
    });
    const storage::array array(grid, storage::element_type::complex128, map, devices);
    app.clients = orrery::spawn_group<FFT3>(places_of_clients(s), s.clients, array);
    app.clients->fill();
    run(s, app);
    if (s.iterations == 0) result = check(array);
  } catch (...) {
    remove_all();
    throw;
  }
  remove_all();
  return result;
}

int without_data(const settings& s) {
  const storage::page_grid grid = grid_of(s);
  const auto page_bytes = static_cast<std::uint64_t>(storage::product(grid.page_shape)) * 16;
  application<PhantomDevice, PhantomFFT3> app;
  each_server(s, [&](std::uint32_t, orrery::placement where) {
    app.servers.push_back(orrery::spawn<PhantomDevice>(where, page_bytes, s.cache));
  });
  const phantom_array array(grid, storage::circulant_map(grid.pages(), s.servers), app.servers);
  app.clients = orrery::spawn_group<PhantomFFT3>(places_of_clients(s), s.clients, array, s.fftw_seconds);
  run(s, app);
  return 0;
}

int work(settings s) {
  const std::uint32_t machines = orrery::world_machines();
  if (s.storage_machines == 0) s.storage_machines = std::max(1U, machines / 2);
  if (machines > 1 && s.storage_machines >= machines)
    throw std::invalid_argument(
        fmt::format("--storage-machines {} of {} leaves none for the clients", s.storage_machines, machines));
  if (s.servers == 0 || s.clients == 0) throw std::invalid_argument("there is one server and one client at least");
  s.folder = std::filesystem::absolute(s.folder).string();
  const storage::page_grid grid = grid_of(s);
  if (s.cache == 0) {  // a line of pages for each client
    const index3 pages = grid.pages();
    s.cache = static_cast<std::uint32_t>(std::max({pages[0], pages[1], pages[2]}) * s.clients / s.servers + 2);
  }
  fmt::print("{} numbers in pages of {}: {} servers on {} of {} machines, {} clients{}\n",
             storage::to_string(grid.array_shape), storage::to_string(grid.page_shape), s.servers,
             std::min(s.storage_machines, s.servers), machines, s.clients, s.phantom ? ", without data" : "");
  return s.phantom ? without_data(s) : with_data(s);
}

int command(const orrery::args& words) {
  CLI::App app("The Fourier transform of Givelberg 2014: servers with drives and caches, and clients that transform.",
               "fft_servers");
  settings s;
  app.add_option("--shape", s.shape, "Of the array; default: 64,64,64")->delimiter(',')->expected(3);
  app.add_option("--pages", s.pages, "Shape of pages; default: 16,16,16")->delimiter(',')->expected(3);
  app.add_option("--servers", s.servers, "ArrayDevice processes, one for each drive; default: 4");
  app.add_option("--clients", s.clients, "FFT3 processes; default: 4");
  app.add_option("--storage-machines", s.storage_machines,
                 "The first so many machines have the servers, the others the clients; default: half of them");
  app.add_option("--cache", s.cache, "Pages of a server's cache; default: its part of a line for each client");
  app.add_option("--iterations", s.iterations, "Along each dimension; default: all. Fewer transform a part only");
  app.add_option("--folder", s.folder, "Of the servers' files, on each of their machines; default: fft-servers")
      ->type_name("PATH");
  app.add_flag("--phantom", s.phantom, "No data are stored or sent: for simulations, with drive=RATE:SEEK");
  app.add_option("--fftw-seconds", s.fftw_seconds, "With --phantom: what the transform of a line of pages takes");
  return run_command(app, words, [&] { return work(s); });
}

}  // namespace
}  // namespace fft_servers

int main(int argc, char** argv) { return orrery::run(argc, argv, fft_servers::command); }
