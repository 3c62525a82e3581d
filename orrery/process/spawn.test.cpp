// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/spawn.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/spawn_here.hpp>

namespace orrery {
namespace spawn_tests {

using testing::in_world;
using testing::what_is_thrown;

std::atomic<int> alive{0};

class Plain {
 public:
  Plain() { ++alive; }
  Plain(std::string name, std::unique_ptr<int> owned) : name_(std::move(name)), owned_(std::move(owned)) { ++alive; }
  explicit Plain(const std::vector<int>& values) : name_(std::to_string(values.size())) { ++alive; }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
  ~Plain() { --alive; }
  std::string name() const { return name_; }
  int owned() const { return *owned_; }
  std::uint32_t home() const { return this_pe(); }

 private:
  std::string name_ = "plain";
  std::unique_ptr<int> owned_;
};
ORRERY_PROCESS(Plain, name, owned, home);

struct Aggregate {
  int a;
  std::string b;
  int get() const { return a; }
};
ORRERY_PROCESS(Aggregate, get);

struct Thrower {
  explicit Thrower(int n) {
    if (n > 0) throw std::out_of_range("no such thing");
  }
  void use() {}
};
ORRERY_PROCESS(Thrower, use);

ORRERY_AT_EACH_PLACE(spawning);

TEST_P(spawning, constructs_the_object_where_it_is_told_to) {
  in_world([] {
    const auto p = spawn<Plain>(where());
    EXPECT_EQ(p->home(), where().index);
    EXPECT_EQ(p.address().pe, where().index);
    EXPECT_EQ(p->name(), "plain");
    EXPECT_EQ(spawn<Plain>(near(p))->home(), where().index);
  });
}

TEST_P(spawning, hands_over_any_arguments) {
  in_world([] {
    const auto p = spawn<Plain>(where(), "literal", std::make_unique<int>(4));
    EXPECT_EQ(p->name(), "literal");
    EXPECT_EQ(p->owned(), 4);
    const std::vector<int> values(12);
    EXPECT_EQ(spawn<Plain>(where(), values)->name(), "12");
    EXPECT_EQ(start_spawn<Plain>(where(), "started", std::make_unique<int>(5)).get()->name(), "started");
  });
}

TEST_P(spawning, makes_aggregates_too) {
  in_world([] { EXPECT_EQ(spawn<Aggregate>(where(), 5, "text")->get(), 5); });
}

TEST_P(spawning, fails_with_what_the_constructor_throws) {
  const auto counts = in_world([] {
    EXPECT_EQ(what_is_thrown<std::out_of_range>([] { spawn<Thrower>(where(), 1); }), "no such thing");
    EXPECT_THROW((void)start_spawn<Thrower>(where(), 1).get(), std::out_of_range);
    spawn<Thrower>(where(), 0)->use();
  });
  EXPECT_EQ(counts[GetParam()].failed_posts, 0U);
}

TEST_P(spawning, outside_of_the_world_fails_with_usage_error) {
  in_world([] {
    EXPECT_THROW(spawn<Plain>(pe(2)), usage_error);
    EXPECT_THROW(spawn<Plain>(machine(1)), usage_error);
    EXPECT_THROW(spawn<Plain>(node(1)), usage_error);
    EXPECT_THROW((void)start_spawn<Plain>(pe(99)), usage_error);
  });
}

/// Its constructor calls, waits, and gives its own pointer away.
class Busy {
 public:
  Busy(remote<Plain> other, int depth) : name_(other->name()) {
    yield();
    if (depth > 0) inner_ = spawn<Busy>(pe((this_pe() + 1) % world_pes()), other, depth - 1);
    yield();
  }
  std::string name() const { return name_; }
  int depth() const { return inner_ ? inner_->depth() + 1 : 0; }
  ORRERY_PROCESS_MEMBERS(Busy, name, depth)

 private:
  std::string name_;
  remote<Busy> inner_;
};

TEST_P(spawning, lets_a_constructor_call_wait_and_spawn) {
  in_world([] {
    const auto other = spawn<Plain>(where());
    const auto b = spawn<Busy>(where(), other, 20);
    EXPECT_EQ(b->name(), "plain");
    EXPECT_EQ(b->depth(), 20);
  });
}

class Eager {
 public:
  explicit Eager(remote<function> tell) {
    send(tell, this_process<Eager>());
    yield();
    ready_ = true;
  }
  bool ready() const { return ready_; }
  ORRERY_PROCESS_MEMBERS(Eager, ready)

 private:
  bool ready_ = false;
};

TEST_P(spawning, keeps_messages_until_the_constructor_has_ended) {
  in_world([] {
    auto f = start_spawn<Eager>(where(), this_process<function>());
    EXPECT_TRUE(receive<remote<Eager>>()->ready());
    (void)f.get();
  });
}

class Doomed {
 public:
  explicit Doomed(remote<function> tell) {
    send(tell, this_process<Doomed>());
    for (int i = 0; i < 100; ++i) yield();
    throw std::runtime_error("doomed");
  }
  void use() {}
  ORRERY_PROCESS_MEMBERS(Doomed, use)
};

TEST_P(spawning, fails_calls_to_a_process_whose_constructor_throws) {
  in_world([] {
    auto f = start_spawn<Doomed>(where(), this_process<function>());
    const auto d = receive<remote<Doomed>>();
    EXPECT_THROW(d->use(), process_gone);
    EXPECT_THROW((void)f.get(), std::runtime_error);
  });
}

TEST_P(spawning, fails_calls_to_a_process_whose_constructor_throws_at_once) {
  in_world([] {
    const auto me = this_process<function>();
    spawn_here(where(), [me] {
      try {
        spawn<Doomed>(here(), me);
      } catch (const std::runtime_error&) {
        send(me, 1);
      }
    });
    EXPECT_THROW(receive<remote<Doomed>>()->use(), process_gone);
    EXPECT_EQ(receive<int>(), 1);
  });
}

// --- destroy -------------------------------------------------------------------------------------

ORRERY_AT_EACH_PLACE(destroying);

TEST_P(destroying, runs_the_destructor_before_it_returns) {
  alive = 0;
  in_world([] {
    const auto p = spawn<Plain>(where());
    EXPECT_EQ(alive, 1);
    destroy(p);
    EXPECT_EQ(alive, 0);
    const auto q = spawn<Plain>(where());
    start_destroy(q).get();
    EXPECT_EQ(alive, 0);
  });
}

class Recorder {
 public:
  explicit Recorder(remote<function> tell) : tell_(tell) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() { send(tell_, count_); }
  void count() { ++count_; }
  void count_late() {
    yield();
    ++count_;
  }
  int get() { return count_; }

 private:
  remote<function> tell_;
  int count_ = 0;
};
ORRERY_PROCESS(Recorder, count, count_late, get);

TEST_P(destroying, comes_after_the_messages_that_were_sent_before) {
  in_world([] {
    const auto r = spawn<Recorder>(where(), this_process<function>());
    for (int i = 0; i < 100; ++i) {
      post(r)->count();
      post(r)->count_late();
    }
    destroy(r);
    EXPECT_EQ(receive<int>(), 200);
  });
}

TEST_P(destroying, fails_what_was_sent_after_with_process_gone) {
  ::testing::internal::CaptureStderr();
  const auto counts = in_world([] {
    const auto r = spawn<Recorder>(where(), this_process<function>());
    post(r)->count_late();
    auto gone = start_destroy(r);
    auto late = start(r)->get();
    post(r)->count();
    EXPECT_THROW((void)late.get(), process_gone);
    gone.get();
    EXPECT_EQ(receive<int>(), 1);
    EXPECT_THROW(r->count(), process_gone);
  });
  EXPECT_EQ(counts[GetParam()].failed_posts, 1U);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("Recorder::count"), std::string::npos);
}

class Waiting {
 public:
  explicit Waiting(remote<Plain> other) : other_(other) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    yield();
    (void)other_->name();
    yield();
    --alive;
  }
  void use() {}

 private:
  remote<Plain> other_;
};
ORRERY_PROCESS(Waiting, use);

TEST_P(destroying, lets_the_destructor_call_and_wait) {
  in_world([] {
    const auto other = spawn<Plain>(pe(1));
    alive = 1;
    const auto w = spawn<Waiting>(where(), other);
    destroy(w);
    EXPECT_EQ(alive, 0);
    EXPECT_THROW(w->use(), process_gone);
  });
}

class Suicide {
 public:
  void end() { destroy(this_process<Suicide>()); }
  void end_later() { (void)start_destroy(this_process<Suicide>()).valid(); }
  ORRERY_PROCESS_MEMBERS(Suicide, end, end_later)
};

TEST_P(destroying, itself_is_a_deadlock_unless_it_does_not_wait) {
  in_world([] {
    const auto s = spawn<Suicide>(where());
    EXPECT_THROW(s->end(), deadlock_error);
    s->end_later();
    EXPECT_THROW(s->end(), process_gone);
  });
}

/// Is destroyed while methods of it are parked.
class Crowd {
 public:
  static constexpr bool orrery_reentrant = true;
  explicit Crowd(remote<function> tell) : tell_(tell) {}
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    EXPECT_EQ(inside_, 0);
    yield();  // no message is taken meanwhile
    EXPECT_EQ(inside_, 0);
    send(tell_, std::string("ended"));
  }
  void wait() {
    ++inside_;
    send(tell_, 1);
    while (!open_) yield();
    --inside_;
  }
  void open() { open_ = true; }
  void call_itself() {
    ++inside_;
    send(tell_, 1);
    while (!open_) yield();
    try {
      this_process<Crowd>()->open();
      send(tell_, std::string("was answered"));
    } catch (const process_gone&) {
      send(tell_, std::string("gone"));
    }
    --inside_;
  }
  ORRERY_PROCESS_MEMBERS(Crowd, wait, open, call_itself)

 private:
  remote<function> tell_;
  int inside_ = 0;
  bool open_ = false;
};

TEST_P(destroying, a_reentrant_process_waits_for_parked_methods_and_takes_nothing_more) {
  in_world([] {
    const auto c = spawn<Crowd>(where(), this_process<function>());
    for (int i = 0; i < 3; ++i) post(c)->wait();
    post(c)->call_itself();
    for (int i = 0; i < 4; ++i) (void)receive<int>();
    // The other PE does nothing until all three are on their way.
    std::atomic<int> held = 0;
    if (where().resolve() != this_pe()) {
      spawn_here(where(), [&held] {
        held = 1;
        while (held != 2) std::this_thread::yield();
      });
      while (held != 1) std::this_thread::yield();
    }
    auto open = start(c)->open();
    auto gone = start_destroy(c);
    auto late = start(c)->wait();
    held = 2;
    open.get();
    gone.get();
    EXPECT_THROW(late.get(), process_gone);
    EXPECT_EQ(receive<std::string>(), "gone");
    EXPECT_EQ(receive<std::string>(), "ended");
    EXPECT_FALSE(try_receive<int>());
  });
}

// --- remote functions ----------------------------------------------------------------------------

int twice(int n) { return 2 * n; }
std::string shout(std::string_view text, const std::string& end) { return std::string(text) + end; }
int fail(int n) {
  yield();
  throw std::domain_error(std::to_string(n));
}
void tell(remote<function> to, std::vector<int> values) { send(to, std::move(values)); }

ORRERY_AT_EACH_PLACE(remote_function);

TEST_P(remote_function, returns_its_result_and_its_exception) {
  in_world([] {
    EXPECT_EQ(call<&twice>(where(), 4), 8);
    EXPECT_EQ(call<&shout>(where(), "text", "!"), "text!");
    EXPECT_EQ(what_is_thrown<std::domain_error>([] { (void)call<&fail>(where(), 3); }), "3");
    EXPECT_EQ(start_call<&twice>(where(), 5).get(), 10);
    EXPECT_THROW((void)start_call<&fail>(where(), 5).get(), std::domain_error);
  });
}

int half(int x) noexcept { return x / 2; }
struct Quarters {
  static int of(int x) noexcept { return x * 4; }
};

TEST_P(remote_function, may_be_noexcept_and_a_static_method) {
  in_world([] {
    EXPECT_EQ(call<&half>(where(), 8), 4);
    EXPECT_EQ(start_call<&Quarters::of>(where(), 2).get(), 8);
  });
}

TEST_P(remote_function, can_be_called_one_way) {
  in_world([] {
    post_call<&tell>(where(), this_process<function>(), std::vector{1, 2, 3});
    EXPECT_EQ(receive<std::vector<int>>(), (std::vector{1, 2, 3}));
  });
}

TEST(spawning_many, gives_each_its_own_place_and_takes_them_again) {
  in_world(2, [] {
    for (int round = 0; round < 3; ++round) {
      std::vector<remote<Plain>> all;
      for (int i = 0; i < 1000; ++i) all.push_back(spawn<Plain>(pe(i % 2)));
      for (const auto& p : all) destroy(p);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_LT(spawn<Plain>(here()).address().slot, 1100U);
  });
}

}  // namespace spawn_tests
}  // namespace orrery
