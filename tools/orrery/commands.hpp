// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace orrery::tool {

/// What all commands take.
struct common {
  std::string directory;  ///< where named worlds are found; empty: $ORRERY_SHM_DIR, else /dev/shm
  bool json = false;
};

/// A word of the command line is wrong, as was seen only when it was used. The exit code is that of
/// a command line that cannot be read.
class command_error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
  static constexpr int exit_code = 2;
};

// Each returns the exit code, and says on stderr why it is not 0.

/// `orrery ls`: the worlds of this user.
int list_all(const common& c);
/// `orrery ls NAME`: nodes and PEs of a world, and its names that begin with `prefix`.
int list_one(const common& c, const std::string& name, const std::string& prefix);

struct top_settings {
  std::chrono::milliseconds interval{1000};
  bool once = false;
};
/// `orrery top NAME`: what the PEs of a world do, again and again. On a terminal until q, else
/// until the world ends.
int top(const common& c, const std::string& name, const top_settings& s);

/// `orrery clean`: removes what crashed worlds have left.
int clean(const common& c);

/// What is asked of an ordered list.
struct list_request {
  std::string world;
  std::string name;  ///< under which the list is published
  std::string action;  ///< find, insert, erase, range, load, size, statistics
  std::vector<std::string> arguments;
  double timeout = 10;  ///< seconds in which the list must be found, and answer; see use_in_time
};
/// `orrery list`: joins the world and uses the list. The exit code is 1 if there was nothing to find, insert or erase, 2 if the
/// arguments are wrong, 3 if it failed.
int list(const common& c, const list_request& r);

}  // namespace orrery::tool
