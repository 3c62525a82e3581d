// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery_cc {

/// What a C compiler was asked to do, as far as it matters here.
///
///     weather.c -O2 -Iinclude -o weather -lm
struct command_line {
  enum class stop : unsigned char { preprocessed, assembly, object, syntax, linked };
  struct word {
    enum class kind : unsigned char {
      source,       ///< a C source
      input,        ///< an object, an archive, an option of the linker: its place among the others matters
      preprocess,   ///< an option of the preprocessor only
      other         ///< any other option
    };
    kind what;
    std::vector<std::string> text;  ///< with its argument, if that stands apart
    std::string language;  ///< of a file: what -x says of it; empty: what its name says

    /// A source of any language, or what the linker is given.
    [[nodiscard]] bool is_file() const { return what == kind::source || text[0] == "-" || !text[0].starts_with('-'); }
    /// A file that the compiler makes an object of, by its name or by -x.
    [[nodiscard]] bool is_compiled() const;
  };

  std::vector<std::string> all;  ///< as they were given, without those of orrery-cc
  std::vector<word> words;  ///< without what follows
  stop until = stop::linked;
  std::string output;  ///< -o
  bool only_shows = false;  ///< -###: what would be called
  bool emit_c = false;
  bool emit_cpp_header = false;
  std::string cpp_namespace;  ///< --cpp-namespace=: of what that header declares
  bool says_cpp_namespace = false;
  bool wants_dependencies = false;  ///< -MD or -MMD
  std::string dependency_flag;
  std::string dependency_file;  ///< -MF
  std::vector<std::string> dependency_targets;  ///< -MT x, -MQ x
  std::string old_standard;  ///< -std= or -ansi, if that is C of before 1999, which has not what is generated

  [[nodiscard]] std::vector<std::string> sources() const;
  /// How many files there are that become objects, with those that are no sources of C.
  [[nodiscard]] std::size_t compiled() const;
  [[nodiscard]] bool reads_stdin() const;
  [[nodiscard]] std::vector<std::string> inputs() const;
  /// The options with which one source is preprocessed, or a preprocessed one compiled.
  [[nodiscard]] std::vector<std::string> options(bool to_preprocess) const;
};

/// `@file` stands for the words in that file, as for a compiler.
[[nodiscard]] command_line parse_command_line(const std::vector<std::string>& arguments);

}  // namespace orrery_cc
