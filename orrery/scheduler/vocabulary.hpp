// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/shm/registry.hpp>

#include <deque>
#include <string>

namespace orrery::scheduler {

/// Names this build of the program: what is compiled otherwise has another one.
[[nodiscard]] std::uint64_t build_of_program() noexcept;

/// The handlers of this program as a world's registry takes them, in the order of own_handlers().
///
/// A handler that only one build of a program can mean has a key with the build in it: one with a
/// lambda or a type without a name in it, which compilers number, and one of several with the same
/// name (classes of one name in namespaces without a name).
///
/// Made by who creates or joins a world, after freeze_handlers; takes some microseconds for each
/// handler.
class own_vocabulary {
 public:
  own_vocabulary();
  own_vocabulary(const own_vocabulary&) = delete;
  own_vocabulary& operator=(const own_vocabulary&) = delete;

  [[nodiscard]] const transport::vocabulary& all() const noexcept { return all_; }

 private:
  transport::vocabulary all_;
  std::deque<std::string> keys_;  // of types, where views point to
};

}  // namespace orrery::scheduler
