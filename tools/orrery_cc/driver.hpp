// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/c_compiler.hpp>
#include <tools/orrery_cc/command_line.hpp>
#include <tools/orrery_cc/program.hpp>
#include <tools/orrery_cc/scratch.hpp>
#include <tools/orrery_cc/source.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace orrery_cc {

/// Does what a command line asks: preprocesses and translates the sources that have tasks or messages, and lets the C compiler do all else.
class driver {
 public:
  using words = c_compiler::words;
  explicit driver(command_line asked) : asked_(std::move(asked)) {}
  /// The exit code. Throws failed, source_error.
  [[nodiscard]] int run();

 private:
  struct preprocessed {
    source from;
    std::string said;  ///< by the preprocessor, on stderr
  };
  void keep_stdin();
  [[nodiscard]] preprocessed preprocess(const std::string& file);
  // The source as C; nothing if it has no tasks or messages.
  std::optional<std::string> translate(const std::string& file);
  void translate_or_refuse(const std::string& file);
  void refuse(const std::string& file, int code);
  // The object that a source becomes when nothing else is said.
  [[nodiscard]] std::string output_of(const std::string& file) const;
  void add_dependencies(words& to, const std::string& file) const;
  [[nodiscard]] int emit();
  [[nodiscard]] int emit_cpp_header();
  [[nodiscard]] int write_output(const std::string& text) const;
  // Programs of objects need the library if one of these does.
  [[nodiscard]] bool needs_runtime() const;
  [[noreturn]] void become_compiler() const;
  [[nodiscard]] words options_for_translated() const;
  [[nodiscard]] int compile(bool links);
  void compile_rest();
  [[nodiscard]] int link(const std::map<std::string, std::string>& objects, bool links) const;

  command_line asked_;
  c_compiler compiler_;
  scratch work_;
  std::map<std::string, std::string> translated_;
  std::set<std::string> refused_;
  int code_ = 0;  // of the last source that was refused
  bool uses_runtime_ = false;  // a source, translated or not, includes its header
};

}  // namespace orrery_cc
