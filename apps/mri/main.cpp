// SPDX-License-Identifier: Apache-2.0
// mri: what the main job needs besides `orrery data` and `fft3d`.
#include "pad.hpp"
#include "slice.hpp"

#include <orrery/orrery.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace {

int command(const orrery::args& words) {
  CLI::App app("Steps of the main job on a volume of an MRI scanner; see ./run demo.", "mri");
  app.require_subcommand(1);
  std::string from;
  std::string to;
  std::int64_t factor = 2;
  int dimension = 1;
  CLI::App* const pad =
      app.add_subcommand("pad", "Lengthen a spectrum by zeros, so that its inverse is on a finer grid");
  pad->add_option("SPECTRUM", from, "A data set, complex")->required();
  pad->add_option("OUTPUT", to, "The data set to be made")->required();
  pad->add_option("--factor", factor, "Along each dimension")->capture_default_str()->check(CLI::PositiveNumber);
  CLI::App* const slice = app.add_subcommand("slice", "A picture of the middle plane across a dimension");
  slice->add_option("SET", from, "A data set")->required();
  slice->add_option("FILE", to, "The PNG to be written")->required();
  slice->add_option("--dimension", dimension, "1, 2 or 3")->capture_default_str()->check(CLI::Range(1, 3));
  std::vector<std::string> reversed(words.rbegin(), std::prev(words.rend()));
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  }
  try {
    if (pad->parsed()) {
      mri::pad_spectrum(from, to, factor);
    } else {
      mri::write_slice(from, dimension, to);
    }
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "mri: {}\n", e.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) { return orrery::run(argc, argv, command); }
