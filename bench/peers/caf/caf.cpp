// SPDX-License-Identifier: Apache-2.0
// The C++ Actor Framework, written against version 0.17. The driver runs this with
// --scheduler.max-threads=1 and with the default, and keeps the better figure for CAF.
#include "../common.hpp"

#include <caf/all.hpp>

using namespace caf;
using peers::now_ns;

// The median time of three runs for each of n steps, in ns.
template <class Run>
double ns_per_step(int n, Run run) {
  n = std::max(1000, int(n * peers::seconds()));
  run(n / 10);
  std::vector<double> samples;
  for (int i = 0; i < 3; ++i) {
    auto t = now_ns();
    run(n);
    samples.push_back(double(now_ns() - t) / n);
  }
  return peers::median(samples);
}

// A token goes around 1,000 actors. The last hop ends them all.
struct relay : event_based_actor {
  actor next;
  relay(actor_config& c, actor to) : event_based_actor(c), next(std::move(to)) {}
  behavior make_behavior() override {
    return {[this](int left) { send(next, left - 1); }};
  }
};

struct ring_head : event_based_actor {
  actor next;
  ring_head(actor_config& c) : event_based_actor(c) {}
  behavior make_behavior() override {
    return {[this](actor to) { next = std::move(to); }, [this](int left) { left > 0 ? send(next, left - 1) : quit(); }};
  }
};

static void ring(actor_system& system, int hops) {
  scoped_actor self{system};
  auto head = system.spawn<ring_head>();
  std::vector<actor> all{head};
  for (int i = 1; i < 1000; ++i) all.push_back(system.spawn<relay>(all.back()));
  self->send(head, all.back());
  self->send(head, hops);
  self->wait_for(head);
  for (auto& a : all) anon_send_exit(a, exit_reason::user_shutdown);
}

// 100 senders, one receiver.
static void fan_in(actor_system& system, int messages) {
  scoped_actor self{system};
  auto receiver = system.spawn([=](event_based_actor* a) -> behavior {
    return {[a, left = messages / 100 * 100](int) mutable {
      if (--left == 0) a->quit();
    }};
  });
  for (int i = 0; i < 100; ++i)
    system.spawn([=](event_based_actor* a) {
      for (int n = 0; n < messages / 100; ++n) a->send(receiver, n);
    });
  self->wait_for(receiver);
}

// 100 actors call one server with request and response.
static void call_next(event_based_actor* a, const actor& server, int left) {
  if (left > 0) a->request(server, infinite, left).await([=](int) { call_next(a, server, left - 1); });
}

static void calls(actor_system& system, int n) {
  scoped_actor self{system};
  auto server = system.spawn([]() -> behavior { return {[](int x) { return x + 1; }}; });
  std::vector<actor> callers;
  for (int i = 0; i < 100; ++i)
    callers.push_back(system.spawn([=](event_based_actor* a) { call_next(a, server, n / 100); }));
  self->wait_for(callers);
  anon_send_exit(server, exit_reason::user_shutdown);
}

// Spawn only: the actors' end is not in the figure.
static double spawn_ns(actor_system& system) {
  int n = std::max(1000, int(100'000 * peers::seconds()));
  std::vector<actor> all;
  all.reserve(std::size_t(n));
  auto t = now_ns();
  for (int i = 0; i < n; ++i)
    all.push_back(system.spawn<lazy_init>([]() -> behavior { return {[](int x) { return x; }}; }));
  return double(now_ns() - t) / n;
}

// Two actors with a thread of their own each.
static void round_trip(actor_system& system, int n) {
  scoped_actor self{system};
  auto server = system.spawn<detached>([]() -> behavior { return {[](int x) { return x + 1; }}; });
  auto caller = system.spawn<detached>([=](event_based_actor* a) { call_next(a, server, n); });
  self->wait_for(caller);
  anon_send_exit(server, exit_reason::user_shutdown);
}

int caf_main(actor_system& system) {
  using peers::report;
  report("caf_ring_1k_hop_ns", ns_per_step(200'000, [&](int n) { ring(system, n); }));
  report("caf_fanin_100_rate_m", 1e3 / ns_per_step(300'000, [&](int n) { fan_in(system, n); }));
  report("caf_calls_100_rate_m", 1e3 / ns_per_step(100'000, [&](int n) { calls(system, n); }));
  report("caf_spawn_ns", spawn_ns(system));
  report("caf_pingpong_rtt_us", ns_per_step(10'000, [&](int n) { round_trip(system, n); }) / 1e3);
  return 0;
}

CAF_MAIN()
