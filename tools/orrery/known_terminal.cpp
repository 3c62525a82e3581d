// SPDX-License-Identifier: Apache-2.0
// Apart from screen.cpp, since <term.h> defines macros with names like `lines`.
#include "screen.hpp"

#include <curses.h>
#include <term.h>
#include <unistd.h>

namespace orrery::tool {

bool is_known_terminal() {
  int error = 0;
  if (::setupterm(nullptr, STDOUT_FILENO, &error) != OK) return false;
  ::del_curterm(::cur_term);
  return true;
}

}  // namespace orrery::tool
