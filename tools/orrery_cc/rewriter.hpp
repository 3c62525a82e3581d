// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/source.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace orrery_cc {

/// Collects changes of a text and makes them all at once. Changes must not overlap; of several at one place the first comes first.
class rewriter {
 public:
  explicit rewriter(const source& from) : from_(from) {}

  void replace(std::size_t begin, std::size_t end, std::string with) {
    edits_.push_back({begin, edits_.size(), end, std::move(with)});
  }
  void insert(std::size_t at, std::string what) { replace(at, at, std::move(what)); }
  /// Leaves nothing but the ends of lines, so that those behind keep their numbers.
  void blank(std::size_t begin, std::size_t end) {
    replace(begin, end,
            std::string(static_cast<std::size_t>(std::ranges::count(from_.text_of(begin, end), '\n')), '\n'));
  }
  /// Inserts lines of generated code: for compilers they belong to a system header, and stand where `at` does.
  void insert_generated(std::size_t at, const std::string& what) {
    location here = from_.where(at);
    insert(at, "\n" + marker(here, " 3") + what + "\n" + marker(here, here.flags));
  }
  [[nodiscard]] static std::string marker(const location& at, const std::string& flags) {
    std::string quoted;
    for (const char c : at.file) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    return "# " + std::to_string(at.line) + " \"" + quoted + "\"" + flags + "\n";
  }

  [[nodiscard]] std::string result() {
    std::ranges::sort(edits_, {}, [](const edit& e) { return std::pair(e.begin, e.order); });
    std::string all;
    std::size_t at = 0;
    for (const edit& e : edits_) {
      all += from_.text_of(at, e.begin);
      all += e.with;
      at = e.end;
    }
    all += from_.text_of(at, from_.text().size());
    return all;
  }

 private:
  struct edit {
    std::size_t begin;
    std::size_t order;
    std::size_t end;
    std::string with;
  };
  const source& from_;
  std::vector<edit> edits_;
};

}  // namespace orrery_cc
