// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/spawn_here.hpp>
#include <orrery/service/event.hpp>
#include <orrery/wire/error.hpp>

#include <utility>
#include <vector>

namespace orrery::service {

/// A process that is there as long as a session is.
///
/// Problem: a service that keeps something for a client must learn that the client has ended, in
/// whatever way: it returns, it throws, its node is killed.
///
/// A session makes a presence on its own PE, and ends it in its destructor. The service calls
/// hold(), which parks until leave(). So the call ends when the session ends, and with `node_lost`
/// when its node is lost.
///
/// Owned by the session. It is reentrant, so many services can hold it.
class presence {
 public:
  static constexpr bool orrery_reentrant = true;

  /// Parks until leave() has been called. Throws stopped.
  void hold();
  /// The session ends: who is in hold() goes on.
  void leave();

 private:
  std::vector<event*> held_;
  bool left_ = false;
};
ORRERY_PROCESS(presence, hold, leave);

/// The resources of a session: makes the presence, and ends it.
class own_presence {
 public:
  /// Throws std::bad_alloc.
  own_presence();
  own_presence(const own_presence&) = delete;
  own_presence& operator=(const own_presence&) = delete;
  ~own_presence();
  /// The presence, to be sent to a service.
  [[nodiscard]] remote<presence> get() const noexcept { return there_; }

 private:
  remote<presence> there_;
};

/// Calls `lost(const node_lost&)` as a process of its own on this PE when the node of the presence
/// is lost, and not if the presence ends otherwise. It says nothing of the errors of services that
/// are lost or have ended. Throws std::bad_alloc.
template <class F>
void when_lost(remote<presence> of, F lost) {
  spawn_here([of, lost = std::move(lost)] {
    try {
      try {
        of->hold();
      } catch (const node_lost& e) {
        lost(e);
      }
    } catch (const process_gone&) {
    } catch (const node_lost&) {
    }
  });
}

/// Calls `gone()` as a process of its own on this PE when the presence has ended. It says nothing
/// of the errors of services that are lost or have ended. Throws std::bad_alloc.
template <class F>
void when_gone(remote<presence> of, F gone) {
  spawn_here([of, gone = std::move(gone)] {
    try {
      of->hold();
    } catch (const process_gone&) {
    } catch (const node_lost&) {
    }
    try {
      gone();
    } catch (const process_gone&) {
    } catch (const node_lost&) {
    }
  });
}

}  // namespace orrery::service
