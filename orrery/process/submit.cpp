// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/submit.hpp>

#include <orrery/process/function.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <mutex>
#include <unordered_set>

namespace orrery::detail {

namespace {

using scheduler::node;

[[noreturn]] void throw_no_world(const char* what) {
  throw usage_error(errc::not_running, verbatim,
                    std::string(what) +
                        ": no world runs in this OS process, or a simulated one, which other threads cannot enter; "
                        "call it between the beginning and the end of run()");
}

// Which world runs in this OS process. A thread that is no PE has nothing else to name it by.
class entrance {
 public:
  void open(node& to) {
    const std::lock_guard lock(mutex_);
    node_ = &to;
  }
  void close() {
    std::unordered_set<std::shared_ptr<submission>> left;
    {
      const std::lock_guard lock(mutex_);
      node_ = nullptr;
      was_open_ = true;
      left.swap(under_way_);
    }
    for (const auto& s : left) s->fail(make_error(errc::stopped, "submit"));
  }
  void submit(std::shared_ptr<submission> s);
  void ended(const std::shared_ptr<submission>& s) {
    const std::lock_guard lock(mutex_);
    under_way_.erase(s);
  }
  // Calls f(node) if a world runs.
  template <class F>
  bool with_node(F f) {
    const std::lock_guard lock(mutex_);
    if (node_ == nullptr) return false;
    f(*node_);
    return true;
  }

 private:
  std::mutex mutex_;
  node* node_ = nullptr;
  bool was_open_ = false;
  std::unordered_set<std::shared_ptr<submission>> under_way_;
};

entrance& the_entrance() {
  static entrance& e = *new entrance;  // other threads may outlive all static objects
  return e;
}

// The errand that a PE is given, between methods.
struct errand {
  std::shared_ptr<submission> what;
  node* to;
};

void start(void* argument) {
  const wire::unique_ptr<errand> e(static_cast<errand*>(argument));
  pe& self = *scheduler::current_pe;
  const std::shared_ptr<submission>& s = e->what;
  try {
    if (self.stopping()) throw stopped("submit");
    start_function(self, [s] {
      s->run();
      the_entrance().ended(s);
    });
  } catch (...) {
    s->fail(std::current_exception());
    the_entrance().ended(s);
  }
  e->to->end_outside();
}

void entrance::submit(std::shared_ptr<submission> s) {
  const std::lock_guard lock(mutex_);
  if (node_ == nullptr && was_open_) throw stopped("submit");
  if (node_ == nullptr) throw_no_world("submit");
  node& n = *node_;
  // The first PE of several runs main, which may wait for this very thread.
  const std::uint32_t others = n.pe_count() - 1;
  pe& at = n.local(n.first_pe() + (others != 0 ? 1 + n.turn() % others : 0));
  // Else functions that come fast enough would keep it from ending.
  if (at.stopping()) throw stopped("submit");
  auto e = wire::make_unique<errand>(s, &n);
  under_way_.insert(s);
  n.begin_outside();
  try {
    at.links().run_errand(&start, e.get());
  } catch (...) {
    n.end_outside();
    under_way_.erase(s);
    throw;
  }
  (void)e.release();
}

}  // namespace

void submit(std::shared_ptr<submission> what) { the_entrance().submit(std::move(what)); }

open_entrance::open_entrance(scheduler::node& to) { the_entrance().open(to); }
open_entrance::~open_entrance() { the_entrance().close(); }

}  // namespace orrery::detail

namespace orrery {

outside_work::outside_work() {
  if (!detail::the_entrance().with_node([](scheduler::node& n) { n.begin_outside(); }))
    detail::throw_no_world("outside_work");
}
outside_work::~outside_work() {
  detail::the_entrance().with_node([](scheduler::node& n) { n.end_outside(); });
}

}  // namespace orrery
