// SPDX-License-Identifier: Apache-2.0
// The program `orrery`: looks at named worlds that are running on this machine, and at arrays on disk.
#include "attach.hpp"
#include "command_line.hpp"
#include "commands.hpp"
#include "data.hpp"

#include <orrery/process/options.hpp>
#include <orrery/process/runtime.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace orrery::tool {
namespace {

std::string counters_help(bool markdown) {
  std::string text = markdown ? "| counter | meaning |\n| --- | --- |\n" : "Counters of each PE:\n\n";
  for (const auto& c : scheduler::counter_table()) {
    const std::string_view kind = c.kind == scheduler::counter_kind::high    ? "; since the start"
                                  : c.kind == scheduler::counter_kind::level ? "; now"
                                                                             : "";
    text += markdown ? fmt::format("| `{}` | {}{} |\n", c.name, c.meaning, kind)
                     : fmt::format("  {:<16}{}{}\n", c.name, c.meaning, kind);
  }
  return text;
}

using data_commands = std::vector<std::pair<CLI::App*, int (*)(const data_request&)>>;

void add_file(CLI::App* c, data_request& r) {
  c->add_option(
       "FILE", r.file,
       "Its format goes by its name: .npy (NumPy), .h5 or .hdf5, .nii or .nii.gz (NIfTI), else the bare elements")
      ->required()
      ->type_name("");
}

void add_folders(CLI::App* c, data_request& r) {
  c->add_option("--folder", r.folders, "For a device, on a drive of its own; once for each. HOST:PATH: on that machine")
      ->type_name("PATH")
      ->allow_extra_args(false);  // it would take the paths behind it
}

void add_layout(CLI::App* c, data_request& r) {
  c->add_option("--pages", r.page_shape, "Shape of pages; default: 64,64,64, or longer where the array is thinner")
      ->delimiter(',')
      ->expected(3);
  add_folders(c, r);
  c->add_option("--shape", r.shape, "Of the array")->delimiter(',')->expected(3);
  c->add_option("--type", r.type, "float32, float64, complex64 or complex128");
}

data_commands add_data_commands(CLI::App& app, data_request& r) {
  CLI::App* const data =
      app.add_subcommand("data", "Look at, make, import, export, copy, read, verify and remove data sets");
  data->require_subcommand(1);
  const auto add = [&](const char* name, const char* what) { return data->add_subcommand(name, what); };
  const auto path = [&](CLI::App* c) { c->add_option("PATH", r.path, "Of the data set")->required()->type_name(""); };
  const auto file = [&](CLI::App* c) { add_file(c, r); };
  const auto dataset = [&](CLI::App* c, const char* what) {
    c->add_option("--dataset", r.dataset, what)->type_name("/PATH");
  };
  CLI::App* const info = add("info", "What a data set is");
  CLI::App* const verify = add("verify", "Read all of it and name what cannot be trusted");
  CLI::App* const create = add("create", "Make one of zeros");
  CLI::App* const import = add("import", "Make one of a file");
  CLI::App* const out = add("export", "Write its array to a file");
  CLI::App* const read = add("read", "Print a part of its array, or write it to a file");
  CLI::App* const copy =
      add("copy", "Copy it, with other pages, drives or elements; goes on with a copy that was killed");
  CLI::App* const remove =
      add("remove", "Remove it: its header, all files of its devices, and interrupted jobs that make it");
  for (CLI::App* c : {info, verify}) {
    path(c);
    c->add_flag("--json", r.json, "Print JSON");
  }
  path(create);
  add_layout(create, r);
  create->get_option("--shape")->required();
  file(import);
  path(import);
  add_layout(import, r);
  dataset(import, "In an HDF5 file; not needed if there is only one");
  path(out);
  file(out);
  dataset(out, "In an HDF5 file; default: /data");
  path(read);
  read->add_option("--box", r.box,
                   "A slice of each side, as NumPy's but not clipped: 0:64,5,: (negative: from the end); default: all")
      ->type_name("SLICES");
  read->add_option("--out", r.file, "Write to this file, in one of the formats of export, instead of printing")
      ->type_name("FILE");
  dataset(read, "In an HDF5 file; default: /data");
  for (CLI::App* c : {out, read})
    c->add_flag("--unfinished", r.unfinished, "Also where the last writer is at work, or was interrupted");
  path(copy);
  copy->add_option("TARGET", r.target, "The data set to be made")->required()->type_name("");
  copy->add_option("--pages", r.copy_pages, "Shape of pages; default: as they are")->delimiter(',')->expected(3);
  copy->add_option("--type", r.type, "float32, float64, complex64 or complex128; default: as it is");
  copy->add_option("--map", r.map, "Which page lies on which device: circulant or blocked; default: as it is")
      ->check(CLI::IsMember({"circulant", "blocked"}))
      ->type_name("");
  add_folders(copy, r);
  copy->add_option("--memory", r.memory,
                   "How much it may use, of all nodes together; default: 256M, or more if that is too little")
      ->transform(CLI::AsSizeValue(false))
      ->transform(decimal_size);
  path(remove);
  return {{info, &data_info},  {verify, &data_verify}, {create, &data_create}, {import, &data_import},
          {out, &data_export}, {copy, &data_copy},     {read, &data_read},     {remove, &data_remove}};
}

CLI::App* add_list_command(CLI::App& app, list_request& r) {
  CLI::App* const c = app.add_subcommand(
      "list",
      "Use an ordered list: find KEY, insert KEY VALUE, erase KEY, range [FROM [TO]], load FILE (lines "
      "KEY,VALUE), size, statistics");
  c->add_option("WORLD", r.world, "In which it lives")->required()->type_name("");
  c->add_option("NAME", r.name, "Under which it is published")->required()->type_name("");
  c->add_option("ACTION", r.action, "What to do")
      ->required()
      ->check(CLI::IsMember({"find", "insert", "erase", "range", "load", "size", "statistics"}))
      ->type_name("");
  c->add_option("ARGUMENTS", r.arguments, "Keys and values: numbers or texts")->type_name("");
  c->add_option("--timeout", r.timeout,
                "Seconds in which the list must be found and have done what is asked; of load and range, which may "
                "take longer, only the first answer must come in time; default: 10")
      ->check(CLI::Range(0.001, 1e6))
      ->type_name("SECONDS");
  c->footer(
      "The exit code is 1 if there was nothing to find, insert or erase, 2 if the command is wrong, 3 if it failed.");
  return c;
}

void print_help(const CLI::App& app, const std::string& topic, bool markdown) {
  if (topic == "options") {
    fmt::print("{}", markdown ? options_markdown() : options_help("PROGRAM"));
  } else if (topic == "counters") {
    fmt::print("{}", counters_help(markdown));
  } else {
    fmt::print("{}", app.help());
  }
}

int run(int argc, char** argv) {
  CLI::App app("Looks at named worlds of Orrery programs that are running on this machine, and at arrays on disk.",
               "orrery");
  common c;
  app.add_option("--shm-dir", c.directory, "Where named worlds are found; default: $ORRERY_SHM_DIR, else /dev/shm")
      ->type_name("PATH");
  app.set_version_flag("--version", "orrery " ORRERY_VERSION, "Print the version and exit");
  app.require_subcommand(0, 1);
  app.fallthrough();

  std::string name;
  CLI::App* const ls = app.add_subcommand("ls", "List the worlds of this user, or the nodes, PEs and names of one");
  ls->add_option("NAME", name, "Of a world")->type_name("");
  ls->add_flag("--json", c.json, "Print JSON");
  std::string prefix;
  ls->add_option("--names", prefix, "Of the world's names, only those that begin with this")->type_name("PREFIX");

  top_settings settings;
  double interval = 1;
  CLI::App* const top_command = app.add_subcommand("top", "Show what the PEs of a world do, each second; q quits");
  top_command->add_option("NAME", name, "Of the world")->required()->type_name("");
  top_command->add_flag("--once", settings.once, "Print one sample, for scripts");
  top_command->add_flag("--json", c.json, "Print JSON, one line for each sample");
  top_command->add_option("--interval", interval, "Seconds between samples; default: 1")
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("SECONDS");

  CLI::App* const clean_command = app.add_subcommand("clean", "Remove what crashed worlds have left");
  clean_command->add_flag("--json", c.json, "Print JSON");

  list_request list_of;
  CLI::App* const list_command = add_list_command(app, list_of);

  data_request data;
  const data_commands data_subcommands = add_data_commands(app, data);

  std::string topic;
  bool markdown = false;
  CLI::App* const help =
      app.add_subcommand("help", "Print this help, or what options programs take, or what is counted");
  help->add_option("TOPIC", topic, "options or counters")->check(CLI::IsMember({"options", "counters"}))->type_name("");
  help->add_flag("--markdown", markdown, "As a table for the documentation");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return refuse(app, {argv + 1, argv + argc}, e);
  }
  settings.interval = std::chrono::milliseconds(static_cast<std::int64_t>(interval * 1000));
  if (ls->parsed()) return ls->count("NAME") == 0 ? list_all(c) : list_one(c, name, prefix);
  if (top_command->parsed()) return top(c, name, settings);
  if (clean_command->parsed()) return clean(c);
  if (list_command->parsed()) return list(c, list_of);
  for (const auto& [command, action] : data_subcommands)
    if (command->parsed()) return action(data);
  print_help(app, topic, markdown);
  return 0;
}

}  // namespace
}  // namespace orrery::tool

int main(int argc, char** argv) {
  (void)std::signal(SIGXFSZ, SIG_IGN);  // a file over its limit is an error of that file
  try {
    // Another node of the world in which a command of `orrery data` runs (ORRERY_NODES).
    if (std::getenv("ORRERY_INTERNAL_JOIN") != nullptr)
      return orrery::run(argc, argv, [](const orrery::args&) { return 0; });
    const int code = orrery::tool::run(argc, argv);
    if (code == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
      return orrery::tool::fail(fmt::format("the output cannot be written: {}", std::strerror(errno)));
    return code;
  } catch (const std::exception& e) {
    return orrery::tool::fail(e.what());
  }
}
