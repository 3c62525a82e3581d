// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace orrery::tool {

/// A key that the user has pressed.
enum class key { none, quit, up, down, page_up, page_down, resized, other };

/// True if stdout is a terminal of a kind ($TERM) that can be drawn on.
[[nodiscard]] bool is_known_terminal();

/// The terminal, taken over: its old contents come back with the destructor. One at a time.
class screen {
 public:
  /// Null if the terminal is not one that can be drawn on.
  [[nodiscard]] static std::unique_ptr<screen> open();
  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;
  ~screen();

  [[nodiscard]] std::size_t rows() const noexcept;
  /// Draws from the top; what does not fit is cut. The line `highlighted` stands out. `anew`: also
  /// what has not changed, in case something else has written to the terminal.
  void draw(const std::vector<std::string>& lines, std::size_t highlighted, bool anew);
  /// Waits for a key, at most that long.
  [[nodiscard]] key wait_key(std::chrono::milliseconds limit);

 private:
  explicit screen(void* terminal) noexcept : terminal_(terminal) {}
  void* terminal_;
};

}  // namespace orrery::tool
