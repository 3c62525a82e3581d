// SPDX-License-Identifier: Apache-2.0
// What it costs to wait for others: promises, conditions, ends.
#include "bench.hpp"

#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>
#include <orrery/process/channel.hpp>
#include <orrery/process/inbox.hpp>
#include <orrery/process/latch.hpp>
#include <orrery/process/on_end.hpp>

#include <algorithm>
#include <memory>

using namespace orrery;
using namespace bench;

namespace {

// --- a call whose answer another process gives later -------------------------------------------------------------------------

struct Desk {
  future<int> ask() {
    promise<int> p;
    auto f = p.get_future();
    asked = std::move(p);
    return f;
  }
  void answer(int x) { asked.set_value(x); }
  promise<int> asked;
};
ORRERY_PROCESS(Desk, ask, answer);

struct Clerk;
ORRERY_PROCESS(Clerk, work);
struct Clerk {
  explicit Clerk(remote<Desk> d) : desk(d) {}
  void work(int x) { desk->answer(x); }
  remote<Desk> desk;
};

double promise_reply(effort e) {
  const int n = e.times(1'000'000);
  const auto desk = spawn<Desk>(here());
  const auto clerk = spawn<Clerk>(here(), desk);
  long sum = 0;
  const auto begin = clock::now();
  for (int i = 0; i < n; ++i) {
    post(clerk)->work(i);
    sum += desk->ask();
  }
  const double t = ns_since(begin);
  destroy(clerk);
  destroy(desk);
  return sum == static_cast<long>(n) * (n - 1) / 2 ? t / n : -1;
}

// --- conditions --------------------------------------------------------------------------------------------------------------

double latch_wait(effort e) {
  const int waiters = 1000;
  const int rounds = std::max(1, e.times(1'000'000) / waiters);
  const auto me = this_process<function>();
  double all = 0;
  for (int r = 0; r < rounds; ++r) {
    const auto l = spawn<latch>(here(), 1);
    const auto done = spawn<latch>(here(), waiters);
    for (int i = 0; i < waiters; ++i)
      spawn(
          here(),
          [](remote<function> main, remote<latch> open, remote<latch> last) {
            open->wait();
            last->count_down();
            if (last->is_open()) send(main, 0);
          },
          me, l, done);
    yield();
    const auto begin = clock::now();
    l->count_down();
    (void)receive<int>();
    all += ns_since(begin);
    destroy(l);
    destroy(done);
  }
  return all / rounds / waiters;
}

double channel_ring(effort e) {
  const std::size_t size = 1000;
  const int hops = e.times(2'000'000);
  std::vector<remote<channel<int>>> ring;
  for (std::size_t i = 0; i < size; ++i) ring.push_back(spawn<channel<int>>(here()));
  const auto me = this_process<function>();
  for (std::size_t i = 0; i < size; ++i)
    spawn(
        here(),
        [](remote<channel<int>> from, remote<channel<int>> to, remote<function> done) {
          for (;;) {
            const int left = from->receive();
            if (left == 0) send(done, 0);
            if (left < 0) return;
            if (left > 0) to->send(left - 1);
          }
        },
        ring[i], ring[(i + 1) % size], me);
  ring[0]->send(static_cast<int>(size));
  (void)receive<int>();
  const auto begin = clock::now();
  ring[0]->send(hops);
  (void)receive<int>();
  const double t = ns_since(begin);
  for (const auto& c : ring) c->send(-1);
  yield();
  for (const auto& c : ring) destroy(c);
  return t / hops;
}

struct Block : element<Block, int> {
  void plain(int, int x) { sum += x; }
  void border(int step, int x) { borders.put(step, x); }
  void await(int steps) {
    for (int s = 0; s < steps; ++s)
      for (const int x : borders.take(s, 4)) sum += x;
    done = true;
  }
  long total() const { return done ? sum : -1; }
  long sum = 0;
  bool done = false;
  inbox<int, int> borders;
};
ORRERY_PROCESS(Block, plain, border, await, total);

// Four borders for each step of each of 64 elements, awaited or not: the difference of a post.
double when_border(effort e) {
  const int steps = std::max(1, e.times(2'000'000) / 256);
  const auto run = [&](bool awaited) {
    const auto a = create_array<Block>(range<int>{64});
    if (awaited)
      for (int i = 0; i < 64; ++i) post(a[i])->await(steps);
    yield();
    const auto begin = clock::now();
    for (int s = 0; s < steps; ++s) {
      for (int side = 0; side < 4; ++side)
        for (int i = 0; i < 64; ++i) awaited ? post(a[i])->border(s, 1) : post(a[i])->plain(s, 1);
      yield();
    }
    const double t = ns_since(begin);
    const long seen = a[0]->total();
    destroy(a);
    return !awaited || seen == 4L * steps ? t / steps / 256 : -1;
  };
  const double plain = run(false);
  const double awaited = run(true);
  return awaited < 0 ? -1 : std::max(0.0, awaited - plain);
}

// --- ends --------------------------------------------------------------------------------------------------------------------

struct Thing {
  int touch() const { return 1; }
};
ORRERY_PROCESS(Thing, touch);
struct Witness {
  void told(const ending&) { ++seen; }
  long count() const { return seen; }
  long seen = 0;
};
ORRERY_PROCESS(Witness, told, count);

double monitor_bytes(effort e) {
  const int n = e.times(1'000'000);
  std::vector<remote<Thing>> all;
  for (int i = 0; i < n; ++i) all.push_back(spawn<Thing>(here()));
  const auto w = spawn<Witness>(here());
  const double before = resident_bytes();
  for (const auto& t : all) on_end<&Witness::told>(t, w);
  return (resident_bytes() - before) / n;
}

// Beside an end that nobody watches.
double on_end_time(effort e) {
  const int n = e.times(300'000);
  const auto w = spawn<Witness>(here());
  const auto run = [&](bool watched) {
    std::vector<remote<Thing>> all;
    for (int i = 0; i < n; ++i) all.push_back(spawn<Thing>(here()));
    if (watched)
      for (const auto& t : all) on_end<&Witness::told>(t, w);
    const auto begin = clock::now();
    for (const auto& t : all) destroy(t);
    (void)w->count();
    return ns_since(begin) / n;
  };
  const double plain = run(false);
  const double watched = run(true);
  const bool good = w->count() == n;
  destroy(w);
  return good ? std::max(0.0, watched - plain) : -1;
}

}  // namespace

std::vector<metric> bench::waits() {
  const std::vector<std::string> world{"--orrery-pes=1"};
  return {
      {"promise_reply_ns", world, promise_reply},
      {"latch_wait_ns", world, latch_wait},
      {"channel_hop_ns", world, channel_ring},
      {"when_border_ns", world, when_border},
      {"monitor_bytes", world,
       [value = -1.0](effort e) mutable { return value < 0 ? value = monitor_bytes(e) : value; }},
      {"on_end_ns", world, on_end_time},
  };
}
