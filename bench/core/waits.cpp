// SPDX-License-Identifier: Apache-2.0
// What it costs to wait for others: promises, conditions, ends.
#include "bench.hpp"

#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>
#include <orrery/process/channel.hpp>
#include <orrery/process/inbox.hpp>
#include <orrery/process/latch.hpp>
#include <orrery/process/on_end.hpp>
#include <orrery/process/receive_any.hpp>

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

// A ring of a thousand processes, ten laps: in each one a process waits for a latch and opens that of
// the next process. As a latch opens once, each lap has its own.
double latch_ring(effort e) {
  constexpr std::size_t size = 1000;
  constexpr std::size_t laps = 10;
  using row = std::vector<remote<latch>>;
  const int rounds = std::max(1, e.times(1'000'000) / static_cast<int>(size * laps));
  double all = 0;
  for (int r = 0; r < rounds; ++r) {
    row latches;  // in the order in which they open
    for (std::size_t i = 0; i <= size * laps; ++i) latches.push_back(spawn<latch>(here(), 1));
    std::vector<remote<function>> ring;
    for (std::size_t i = 0; i < size; ++i) {
      row own, next;
      for (std::size_t l = 0; l < laps; ++l) {
        own.push_back(latches[l * size + i]);
        next.push_back(latches[l * size + i + 1]);
      }
      ring.push_back(spawn(
          here(),
          [](const row& waits_for, const row& opens) {
            for (std::size_t l = 0; l < laps; ++l) {
              waits_for[l]->wait();
              opens[l]->count_down();
            }
            (void)receive<int>();  // to end would cost more than a hop
          },
          own, next));
    }
    yield();
    const auto begin = clock::now();
    latches.front()->count_down();
    latches.back()->wait();
    all += ns_since(begin);
    for (const auto& f : ring) send(f, 0);
    yield();
    for (const auto& l : latches) destroy(l);
  }
  return all / rounds / static_cast<double>(size * laps);
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

// A token of five types in turn goes round functions that receive any of them.
template <int N>
struct token {
  int left;
};
struct ends {};

void pass_on(remote<function> to, remote<function> done) {
  const auto next = [&]<int N>(token<N> t) {
    if (t.left == 0) {
      send(done, 0);
    } else {
      send(to, token<(N + 1) % 5>{t.left - 1});
    }
    return true;
  };
  while (receive(on<token<0>>(next), on<token<1>>(next), on<token<2>>(next), on<token<3>>(next), on<token<4>>(next),
                 on<ends>([](ends) { return false; }))) {
  }
}

double receive_any_ring(effort e) {
  const int size = 1000;
  const int hops = e.times(2'000'000);
  const auto me = this_process<function>();
  std::vector<remote<function>> ring;
  ring.push_back(spawn(here(), [](remote<function> done) { pass_on(receive<remote<function>>(), done); }, me));
  for (int i = 1; i < size; ++i) ring.push_back(spawn(here(), &pass_on, ring.back(), me));
  send(ring[0], ring.back());
  send(ring.back(), token<0>{size});
  (void)receive<int>();
  const auto begin = clock::now();
  send(ring.back(), token<0>{hops});
  (void)receive<int>();
  const double t = ns_since(begin);
  for (const auto& f : ring) send(f, ends{});
  yield();
  return t / hops;
}

struct Block : element<Block, int> {
  void plain(int, int x) {
    sum += x;
    ++come;
  }
  void border(int step, int x) {
    borders.put(step, x);
    ++come;
  }
  void await(int steps) {
    for (int s = 0; s < steps; ++s)
      for (const int x : borders.take(s, 4)) sum += x;
    done = true;
  }
  long total() const { return done ? sum : -1; }
  static inline long come = 0;  // to all
  long sum = 0;
  bool done = false;
  inbox<int, int> borders;
};
ORRERY_PROCESS(Block, plain, border, await, total);

// Four borders for each step of each of 64 elements, awaited or not: the difference of a post. A step
// begins when the borders of the one before have come: after one yield most of them still lie in
// mailboxes, and posts that fill these until they are full measure memory.
double when_border(effort e) {
  const int steps = std::max(1, e.times(2'000'000) / 256);
  const auto run = [&](bool awaited) {
    const auto a = create_array<Block>(range<int>{64});
    if (awaited)
      for (int i = 0; i < 64; ++i) post(a[i])->await(steps);
    yield();
    Block::come = 0;
    const auto begin = clock::now();
    for (int s = 0; s < steps; ++s) {
      for (int side = 0; side < 4; ++side)
        for (int i = 0; i < 64; ++i) awaited ? post(a[i])->border(s, 1) : post(a[i])->plain(s, 1);
      while (Block::come != 256L * (s + 1)) yield();
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
      {"latch_wait_ns", world, latch_ring},
      {"channel_hop_ns", world, channel_ring},
      {"receive_any_hop_ns", world, receive_any_ring},
      {"when_border_ns", world, when_border},
      {"monitor_bytes", world,
       [value = -1.0](effort e) mutable { return value < 0 ? value = monitor_bytes(e) : value; }},
      {"on_end_ns", world, on_end_time},
  };
}
