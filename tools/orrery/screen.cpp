// SPDX-License-Identifier: Apache-2.0
#include "screen.hpp"

#include "text.hpp"

#include <algorithm>
#include <cstdio>

#include <curses.h>

namespace orrery::tool {

std::unique_ptr<screen> screen::open() {
  // newterm would leave memory behind, and initscr end the OS process.
  if (!is_known_terminal()) return nullptr;
  SCREEN* const terminal = ::newterm(nullptr, stdout, stdin);
  if (terminal == nullptr) return nullptr;
  ::set_term(terminal);
  ::cbreak();
  ::noecho();
  ::keypad(::stdscr, true);
  ::curs_set(0);
  return std::unique_ptr<screen>(new screen(terminal));
}

screen::~screen() {
  ::endwin();
  ::delscreen(static_cast<SCREEN*>(terminal_));
}

std::size_t screen::rows() const noexcept { return static_cast<std::size_t>(std::max(1, getmaxy(::stdscr))); }

void screen::draw(const std::vector<std::string>& lines, std::size_t highlighted, bool anew) {
  ::werase(::stdscr);
  if (anew) ::clearok(::stdscr, true);
  const int width = getmaxx(::stdscr);
  const std::size_t count = std::min(lines.size(), rows());
  for (std::size_t i = 0; i < count; ++i) {
    if (i == highlighted) ::wattron(::stdscr, A_REVERSE);
    std::string line = printable(lines[i]);
    if (i == highlighted) line.append(static_cast<std::size_t>(width), ' ');
    mvwaddnstr(::stdscr, static_cast<int>(i), 0, line.c_str(), width);
    if (i == highlighted) ::wattroff(::stdscr, A_REVERSE);
  }
  ::wrefresh(::stdscr);
}

key screen::wait_key(std::chrono::milliseconds limit) {
  ::wtimeout(::stdscr, static_cast<int>(limit.count()));
  switch (::wgetch(::stdscr)) {
    case ERR:
      return key::none;
    case 'q':
    case 'Q':
    case 27:  // escape
      return key::quit;
    case KEY_UP:
    case 'k':
      return key::up;
    case KEY_DOWN:
    case 'j':
      return key::down;
    case KEY_PPAGE:
      return key::page_up;
    case KEY_NPAGE:
    case ' ':
      return key::page_down;
    case KEY_RESIZE:
      return key::resized;
    default:
      return key::other;
  }
}

}  // namespace orrery::tool
