// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/serve.hpp>
#include <orrery/process/remote.hpp>
#include <orrery/process/remote_cast.hpp>
#include <orrery/process/time_limit.hpp>

#include <string>
#include <string_view>
#include <vector>

// Names: symbolic addresses of processes (Givelberg 2014, section 5.1).
//
// Problem: a program that joins a world, or a part of a program that was written on its own, has no
// remote pointer to begin with; and no single PE should have to know them all.
//
// So a process can be published under names. The repository that maps names to processes is spread
// by a hash of the name over all PEs of the program that made the world: to look one up costs one
// call, from anywhere, and none if the name is kept on the caller's own PE. A name stays for as
// long as its process: it is cleared when the process is destroyed, and when its node leaves or is
// lost. Programs that join the world and leave it move no names. When a node of the program that
// made it comes or goes, its PEs divide the names anew, from what the nodes know of their own
// processes; a lookup may then take a moment longer, but it neither misses a name that is published
// nor finds a process of a node that is known to be gone.
//
// A name is 1 to 255 bytes of UTF-8 without control characters. By convention it looks like a path,
// and `names` lists what begins with some text.
//
//     orrery::publish("/data/set/PageDevice/34", device);
//     ...
//     // maybe in another program
//     auto device = orrery::lookup<PageDevice>("/data/set/PageDevice/34");
//
// All functions are called by a process. They may park it. They throw usage_error for a name that
// cannot be one and outside of a process, and stopped when the runtime shuts down or this node has
// left the world.
namespace orrery {

/// One line of `names`.
struct published_name {
  std::string name;
  address process;
  std::string class_name;  ///< as C++ writes it; "process function" for a function

  friend bool operator==(const published_name&, const published_name&) = default;
};

namespace detail {
void publish(std::string_view name, const address& process);
[[nodiscard]] address lookup(std::string_view name, std::string_view class_name);
[[nodiscard]] address lookup(std::string_view name, std::string_view class_name, time_limit timeout);
[[nodiscard]] address await_name(std::string_view name, std::string_view class_name, time_limit timeout);
}  // namespace detail

/// Gives the process a name. When this returns, every lookup anywhere finds it. A process may have
/// many names; to publish the same process under the same name again does nothing. Other programs
/// of the world can call all methods that T's line lists, and those of the objects, groups and
/// arrays that these methods give and take; of overloaded ones only what this program calls, too.
///
/// May park. Throws name_taken if another living process has the name, process_gone, node_lost,
/// usage_error (also for a null pointer), stopped.
template <class T>
void publish(std::string_view name, const remote<T>& p) {
  (void)&detail::serve<T>;
  detail::publish(name, p.address());
}

/// The process that has the name, as a T: its class is T or derived from T.
///
/// May park. Throws name_not_found, which names up to three published names that are nearly the
/// same; bad_remote_cast, which names the class of the process; usage_error, stopped.
template <class T>
[[nodiscard]] remote<T> lookup(std::string_view name) {
  return remote<T>(detail::lookup(name, detail::class_name_of<T>()));
}

/// The same, but waits for the PE that keeps the name's entry at most for `timeout`. Throws
/// timeout_error, too, which says which PE that is, of which node and program.
template <class T>
[[nodiscard]] remote<T> lookup(std::string_view name, time_limit timeout) {
  return remote<T>(detail::lookup(name, detail::class_name_of<T>(), timeout));
}

/// As lookup, but parks until the name is published, at most for `timeout`.
///
/// Throws timeout_error, which says so if the PE that keeps the name's entry has not answered,
/// bad_remote_cast, usage_error, stopped.
template <class T>
[[nodiscard]] remote<T> await_name(std::string_view name, time_limit timeout) {
  return remote<T>(detail::await_name(name, detail::class_name_of<T>(), timeout));
}

/// Takes the name back, whoever published it; the process lives on. When this returns, no lookup
/// that begins finds it. False if the name was not published.
///
/// May park. Throws usage_error, stopped.
bool unpublish(std::string_view name);

/// All names of the world that begin with `prefix`, in the order of their bytes. Names that are
/// published or taken back meanwhile may be there or not.
///
/// May park. Throws stopped.
[[nodiscard]] std::vector<published_name> names(std::string_view prefix = {});

}  // namespace orrery
