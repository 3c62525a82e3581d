// SPDX-License-Identifier: Apache-2.0
// The program `orrery`: looks at named worlds that are running on this machine.
#include "attach.hpp"
#include "commands.hpp"

#include <orrery/process/options.hpp>

#include <cstdio>
#include <exception>

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

int run(int argc, char** argv) {
  CLI::App app("Looks at named worlds of Orrery programs that are running on this machine.", "orrery");
  common c;
  app.add_option("--shm-dir", c.directory, "Where named worlds are found; default: $ORRERY_SHM_DIR, else /dev/shm")
      ->type_name("PATH");
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

  std::string topic;
  bool markdown = false;
  CLI::App* const help =
      app.add_subcommand("help", "Print this help, or what options programs take, or what is counted");
  help->add_option("TOPIC", topic, "options or counters")->check(CLI::IsMember({"options", "counters"}))->type_name("");
  help->add_flag("--markdown", markdown, "As a table for the documentation");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  settings.interval = std::chrono::milliseconds(static_cast<std::int64_t>(interval * 1000));
  if (ls->parsed()) return name.empty() ? list_all(c) : list_one(c, name, prefix);
  if (top_command->parsed()) return top(c, name, settings);
  if (clean_command->parsed()) return clean(c);
  if (topic == "options") {
    fmt::print("{}", markdown ? options_markdown() : options_help("PROGRAM"));
  } else if (topic == "counters") {
    fmt::print("{}", counters_help(markdown));
  } else {
    fmt::print("{}", app.help());
  }
  return 0;
}

}  // namespace
}  // namespace orrery::tool

int main(int argc, char** argv) {
  try {
    return orrery::tool::run(argc, argv);
  } catch (const std::exception& e) {
    return orrery::tool::fail(e.what());
  }
}
