// SPDX-License-Identifier: Apache-2.0
#include "tables.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace fft_servers {
namespace {

constexpr double mib = 1 << 20;

std::string text_of(const domain& d) {
  std::string text;
  for (int k = 0; k < 3; ++k) text += fmt::format("{}{}-{}", k == 0 ? "" : " x ", d.first[k], d.last[k] - 1);
  return text;
}
double mebibytes(const domain& d) { return static_cast<double>(d.size()) * 16 / mib; }
double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

}  // namespace

void print_tables(const std::vector<std::vector<step>>& clients, const std::vector<server_log>& servers,
                  std::uint64_t page_bytes) {
  const auto rows = [&](step::kind what, const char* name, bool moves) {
    fmt::print("\n{}\n", name);
    for (std::size_t rank = 0; rank < clients.size(); ++rank) {
      for (const step& s : clients[rank]) {
        if (s.what != what) continue;
        fmt::print("{:5}  {:36}", rank, text_of(s.elements));
        if (moves) fmt::print("{:10.4g} MB", mebibytes(s.elements));
        fmt::print("{:12.6f} s", s.seconds);
        if (moves) fmt::print("{:10.1f} MB/s", rate(mebibytes(s.elements), s.seconds));
        fmt::print("\n");
      }
    }
  };
  rows(step::kind::read, "client: Array::read, from the servers' caches", true);
  rows(step::kind::ask, "client: Array::read_into_cache, commands for the next line of pages", false);
  rows(step::kind::transform, "client: FFTW", false);
  const double page = static_cast<double>(page_bytes) / mib;
  const auto server_rows = [&](const char* name, auto pages, auto time) {
    fmt::print("\n{}\n", name);
    for (std::size_t i = 0; i < servers.size(); ++i) {
      const auto n = static_cast<double>(servers[i].*pages);
      fmt::print("{:5}  {:4} pages{:10.4g} MB{:12.6f} s{:10.1f} MB/s\n", i, servers[i].*pages, n * page,
                 servers[i].*time, rate(n * page, servers[i].*time));
    }
  };
  server_rows("server: ArrayDevice::read_into_cache", &server_log::pages_read, &server_log::read_seconds);
  rows(step::kind::write, "client: Array::write", true);
  server_rows("server: ArrayDevice::write", &server_log::pages_written, &server_log::write_seconds);
}

void print_summary(int dimension, const std::vector<std::vector<step>>& clients) {
  double least = 1e300;
  double most = 0;
  double sum = 0;
  std::int64_t iterations = 0;
  double amount = 0;
  for (const auto& steps : clients)
    for (const step& s : steps)
      if (s.what == step::kind::read) amount += mebibytes(s.elements) / 1024;
  for (const step& s : clients.front()) {
    if (s.what != step::kind::iteration) continue;
    least = std::min(least, s.seconds);
    most = std::max(most, s.seconds);
    sum += s.seconds;
    ++iterations;
  }
  if (iterations == 0) return;
  fmt::print("dimension {}: {} iterations of {:.4f} s ({:.4f} to {:.4f}), {:.3f} GB/s\n", dimension + 1, iterations,
             sum / static_cast<double>(iterations), least, most, rate(amount, sum));
}

}  // namespace fft_servers
