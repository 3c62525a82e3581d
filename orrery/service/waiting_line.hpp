// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/event.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <utility>

namespace orrery::service {

/// Clients that wait in a process of a service for what it will have later: who has waited longest
/// is served first.
///
/// Problem: a method that has no answer yet parks; meanwhile its client may give up, or die. An
/// item that becomes free must not go to such a client.
///
/// A method waits in the line, on its own stack. Another method of the process serves the line, or
/// sends a client away. So what is given is given at that moment, and nothing is on the way to
/// somebody who has gone.
///
/// Owned by a reentrant process; used by its methods only.
template <class Found>
class waiting_line {
 public:
  /// Parks until serve() has found something, or cancel() was called: then it returns nothing.
  /// Throws what `find` has thrown for it, deadlock_error, stopped.
  Found wait(std::uint32_t client, std::uint32_t most) {
    struct in_line {
      std::deque<place*>& all;
      place self;
      ~in_line() { std::erase(all, &self); }
    } me{line_, {client, most, {}, {}, {}}};
    line_.push_back(&me.self);
    me.self.end.wait();
    if (me.self.why != nullptr) std::rethrow_exception(me.self.why);
    return std::move(me.self.found);
  }
  /// Gives `find(client, most)` to one after the other, while `more()` says so. If `find`
  /// throws, the wait of that client throws it, and the others go on. Does not park.
  template <class More, class Find>
  void serve(More more, Find find) {
    while (!line_.empty() && more()) {
      place& p = *line_.front();
      line_.pop_front();
      try {
        p.found = find(p.client, p.most);
      } catch (...) {
        p.why = std::current_exception();
      }
      p.end.set();
    }
  }
  /// The client gets nothing. Does not park.
  void cancel(std::uint32_t client) {
    std::erase_if(line_, [&](place* p) {
      if (p->client != client) return false;
      p->end.set();
      return true;
    });
  }

 private:
  struct place {
    std::uint32_t client;
    std::uint32_t most;
    event end{};
    Found found{};
    std::exception_ptr why;
  };

  std::deque<place*> line_;
};

}  // namespace orrery::service
