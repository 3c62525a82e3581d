// SPDX-License-Identifier: Apache-2.0
// mri: what the main job needs besides `orrery data` and `fft3d`.
#include "pad.hpp"
#include "slice.hpp"

#include <apps/run_command.hpp>

#include <cstdint>
#include <string>

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
  return run_command(app, words, [&] {
    if (pad->parsed()) {
      mri::pad_spectrum(from, to, factor);
    } else {
      mri::write_slice(from, dimension, to);
    }
    return 0;
  });
}

}  // namespace

int main(int argc, char** argv) { return orrery::run(argc, argv, command); }
