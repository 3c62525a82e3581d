// SPDX-License-Identifier: Apache-2.0
// fft3d: the Fourier transform of an array on disk that may be far larger than memory.
#include "report.hpp"
#include "verify.hpp"

#include <apps/run_command.hpp>
#include <tools/orrery/progress.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

namespace fft3d {
namespace {

using orrery::storage::detail::bytes_text;

// The folder of a job that is done. The folder goes with the last act of the program: killed
// before, the same command finds out that it is done.
std::string folder_of_job;

struct settings {
  request what;
  bool in_place = false;
  bool plan_only = false;
  bool verify = false;
  bool quiet = false;
  unsigned seed = 0;
  std::string json;
  std::string report;
};

void say(const settings& s, const std::string& line) {
  if (!s.quiet) fmt::print(stderr, "{}\n", line);
}

// How long the drives take at the rates that they have shown.
double drive_seconds(const plan& p, const drive_rates& rates) {
  return static_cast<double>(p.work.bytes_read) / rates.read + static_cast<double>(p.work.bytes_written) / rates.write;
}

std::string text_of(const plan& p) {
  std::string text = fmt::format("{} of {} in pages of {}: {} ", orrery::storage::to_string(p.work.grid.array_shape),
                                 to_string(p.work.input_type), orrery::storage::to_string(p.work.grid.page_shape),
                                 p.work.in_memory() ? "held in memory between" : "out of core, in");
  const auto many = [](auto n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "es"); };
  text += fmt::format("{}, {} on {} PEs, {} MiB of memory\n", many(p.work.sweeps.size(), "pass"),
                      many(p.work.processes, "process"), orrery::world_pes(), p.work.peak_bytes >> 20);
  for (std::size_t i = 0; i < p.work.sweeps.size(); ++i) {
    const orrery::storage::sweep& s = p.work.sweeps[i];
    text += fmt::format("  pass {}: {} units of {} pages, ", i + 1, p.work.units(i),
                        orrery::storage::to_string(p.work.unit_shape(i)));
    text += fmt::format("dimension {}", dimensions_text(p, i));
    text +=
        fmt::format(": {} read, {} written\n", bytes_text(p.work.bytes_at(s.from)), bytes_text(p.work.bytes_at(s.to)));
  }
  return text +
         fmt::format("  together {} read, {} written", bytes_text(p.work.bytes_read), bytes_text(p.work.bytes_written));
}

// The job measures its drives by what it does: nothing else is read or written, and it begins at
// once.
bool rates_are_known(const sweep_status& now) {
  constexpr std::uint64_t enough = std::uint64_t{128} << 20;
  return now.bytes_moved >= enough && now.rates.read > 0 && now.rates.write > 0;
}
std::string rates_text(const plan& p, const drive_rates& rates) {
  return fmt::format("  the drive reads {:.2f} and writes {:.2f} GB/s, so that it takes about {:.1f} s",
                     rates.read / 1e9, rates.write / 1e9, drive_seconds(p, rates));
}

void add_options(CLI::App& app, settings& s) {
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--memory", s.what.memory, "How much it may use, of all nodes together; default: 1G")
      ->transform(CLI::AsSizeValue(false))
      ->transform(orrery::tool::decimal_size);
  app.add_option("--passes", s.what.passes, "Over the data: 1 (in memory), 2 or 3; default: as few as fit")
      ->check(CLI::Range(1, 3));
  app.add_option("--folder", s.what.folders,
                 "For a device of the output, on a drive of its own; once for each. HOST:PATH: on that machine")
      ->type_name("PATH")
      ->allow_extra_args(false);  // it would take the paths behind it
  app.add_flag("--in-place", s.in_place, "The result takes the input's place");
  app.add_flag("--plan", s.plan_only, "Say what would be done, and do nothing");
  app.add_flag("--verify", s.verify, "Compare the output with the input afterwards");
  app.add_option("--seed", s.seed, "Of the coefficients that are verified; default: another one each time");
  app.add_option("--json", s.json, "Write all figures there; - is stdout")->type_name("FILE");
  app.add_option("--report", s.report, "Write a page with the time line there")->type_name("FILE");
  app.add_flag("-q,--quiet", s.quiet, "Say nothing but errors");
  const auto add = [&](const char* name, const char* about, operation what) {
    CLI::App* const c = app.add_subcommand(name, about);
    c->add_option("INPUT", s.what.input, "A data set (see orrery data)")->required()->type_name("");
    c->add_option("OUTPUT", s.what.output, "The data set to be made")->type_name("");
    c->callback([&s, what] { s.what.what = what; });
    return c;
  };
  add("forward", "The transform: sum of x exp(-2 pi i k x / n)", operation::forward);
  add("inverse", "Its inverse, divided by the number of elements", operation::inverse)
      ->add_flag("--real", s.what.real_output, "Keep the real part only");
  CLI::App* const filter = add(
      "filter", "Forward, times a function of frequency (cycles per element, 0 to 0.87), and back", operation::filter);
  CLI::Option_group* const form = filter->add_option_group("which");
  using form_t = transfer_function::form;
  transfer_function& f = s.what.filter;
  form->add_option_function<double>(
      "--low-pass", [&f](double x) { f = {form_t::low_pass, 0, x}; }, "What is below stays");
  form->add_option_function<std::pair<double, double>>(
      "--band-pass", [&f](const auto& x) { f = {form_t::band_pass, x.first, x.second}; }, "What is between stays");
  form->add_option_function<double>(
      "--gaussian", [&f](double x) { f = {form_t::gaussian, 0, x}; }, "Of that standard deviation");
  form->require_option(1);
}

// Said before hours of work rather than after them.
void check_writable(const std::string& file) {
  if (file.empty() || file == "-") return;
  const std::string folder = std::filesystem::path(orrery::storage::detail::tidy_path(file)).parent_path().string();
  if (std::filesystem::is_directory(file))
    throw std::system_error(EISDIR, std::system_category(), "cannot write " + file);
  if (access(folder.c_str(), W_OK) != 0) throw std::system_error(errno, std::system_category(), "cannot write " + file);
}

constexpr double highest_frequency = 0.8661;  // half a cycle along each of three dimensions

void check(const settings& s) {
  if (s.what.output.empty() != s.in_place)
    throw std::invalid_argument(s.in_place ? "--in-place and OUTPUT exclude each other"
                                           : "say where the result is to be: OUTPUT, or --in-place");
  const transfer_function& f = s.what.filter;
  if (s.what.what == operation::filter &&
      !(f.low >= 0 && f.high > f.low && f.high < std::numeric_limits<double>::infinity()))
    throw std::invalid_argument(
        fmt::format("a filter from {} to {} cannot be: frequencies are 0 to 0.87, the lower first", f.low, f.high));
  if (s.what.what == operation::filter && f.low > highest_frequency)
    throw std::invalid_argument(fmt::format("a filter from {} on leaves nothing: frequencies are 0 to 0.87", f.low));
  if (s.plan_only && !(s.json.empty() && s.report.empty()))
    throw std::invalid_argument("--plan does nothing that --json or --report could tell of: leave one of them out");
  check_writable(s.json);
  check_writable(s.report);
  if (s.verify && s.in_place) throw std::invalid_argument("--verify needs the input, and --in-place replaces it");
}

int work(settings& s) {
  check(s);
  if (!s.what.output.empty()) s.what.output = orrery::storage::detail::tidy_path(s.what.output);
  plan p;
  bool rates_said = false;
  std::optional<orrery::tool::progress> bar;
  if (s.plan_only) {
    s.what.machines = orrery::world_machines();
    p = make_plan(s.what, orrery::storage::data_set::read_info(s.what.input), orrery::world_pes(),
                  orrery::world_nodes());
    fmt::print("{}\n", text_of(p));
    return 0;
  }
  const observer watch{[&](const plan& made, bool resumed) {
                         p = made;
                         say(s, text_of(p));
                         if (resumed) say(s, "  going on where it was interrupted");
                       },
                       [&](const sweep_status& now) {
                         if (!rates_said && rates_are_known(now)) {
                           rates_said = true;
                           bar.reset();  // it has the line
                           say(s, rates_text(p, now.rates));
                         }
                         const std::uint64_t all = p.work.bytes_read + p.work.bytes_written;
                         const auto done =
                             static_cast<std::uint64_t>(static_cast<double>(all) * static_cast<double>(now.units_done) /
                                                        static_cast<double>(now.units));
                         const std::size_t passes = p.work.sweeps.size();
                         const auto what = fmt::format("pass {} of {}", std::min(now.sweep + 1, passes), passes);
                         if (!bar && !s.quiet) bar.emplace(what, all, done);
                         if (bar) bar->at(done, what);
                       }};
  std::string folder;
  const sweep_outcome o = perform(s.what, watch, &folder);
  bar.reset();
  std::int64_t units = 0;
  for (const auto& sweep : o.sweeps) units += sweep.units;
  say(s, units != 0 ? fmt::format("done in {:.2f} s", o.end - o.begin) : "it had been done already");
  if (o.counted > 0)
    say(s, fmt::format(
               "warning: {} numbers of the input are NaN, and so is every number of the result that depends on them",
               o.counted));
  std::vector<finding> found;
  std::string unverifiable;  // said last: what was done is to be reported all the same
  try {
    if (s.verify) found = verify(s.what, s.seed != 0 ? s.seed : std::random_device{}());
  } catch (const not_verifiable& e) {
    unverifiable = e.what();
  }
  for (const finding& f : found) {
    const std::string line = fmt::format("{}: relative error {:.2g}, at most {:.0g}: {}", f.what, f.error, f.limit,
                                         f.good() ? "good" : "WRONG");
    if (!s.quiet || !f.good()) fmt::print(stderr, "fft3d: {}\n", line);
  }
  const auto all = summary(s.what, p, o, found);
  if (s.json == "-") std::puts(json_text(all, 1).c_str());  // run_command looks for errors
  if (!s.json.empty() && s.json != "-") write_text(s.json, json_text(all, 1) + "\n");
  if (!s.report.empty()) write_report(s.report, all, o);
  folder_of_job = folder;
  if (!unverifiable.empty()) throw std::runtime_error(unverifiable);
  return std::ranges::all_of(found, &finding::good) ? 0 : 1;
}

int command(const orrery::args& words) {
  CLI::App app("The Fourier transform of a three-dimensional array on disk, which may be far larger than memory.",
               "fft3d");
  settings s;
  add_options(app, s);
  return run_command(app, words, [&] {
    try {
      return work(s);
    } catch (const orrery::node_lost&) {
      throw std::runtime_error("an OS process of this program was lost: run the same command again, and it goes on");
    }
  });
}

}  // namespace
}  // namespace fft3d

int main(int argc, char** argv) {
  const int result = orrery::run(argc, argv, fft3d::command);
  try {
    if (!fft3d::folder_of_job.empty()) orrery::storage::job_folder::remove(fft3d::folder_of_job);
  } catch (const std::exception& e) {
    fmt::print(stderr, "fft3d: {}\n", e.what());
    return 1;
  }
  return result;
}
