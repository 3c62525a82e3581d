// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <cstdio>
#include "job.hpp"
int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args a) {
    fft3d::request r{.input = a.at(1),
                     .output = a.at(2),
                     .what = a.at(3) == "inverse" ? fft3d::operation::inverse : fft3d::operation::forward};
    if (a.size() > 4) r.passes = std::stoi(a[4]);
    if (a.size() > 5) r.memory = std::stoull(a[5]) << 20;
    auto o = fft3d::perform(r, {[](const fft3d::plan& p, const fft3d::drive_rates& d, bool) {
                                  fmt::print("{} passes {} processes, read {} write {} peak {} rates {:.2f} {:.2f}\n",
                                             p.passes.size(), p.processes, p.bytes_read, p.bytes_written,
                                             p.peak_bytes >> 20, d.read / 1e9, d.write / 1e9);
                                },
                                [](const fft3d::status&) {}});
    fmt::print("{:.2f} s\n", o.end - o.begin);
    for (auto& p : o.passes) {
      double b = 0, rd = 0, wr = 0, tr = 0;
      for (auto& l : p.logs)
        for (auto& s : l.spans) {
          b += s.busy;
          double t = s.end - s.begin;
          if (s.what == fft3d::span::kind::read)
            rd += t;
          else if (s.what == fft3d::span::kind::write)
            wr += t;
          else
            tr += t;
        }
      fmt::print("pass {:.2f} s: busy {:.2f} read {:.2f} tr {:.2f} write {:.2f}\n", p.end - p.begin, b, rd, tr, wr);
    }
    return 0;
  });
}
