// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/process/channel.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/future.hpp>
#include <orrery/process/group.hpp>
#include <orrery/process/latch.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/semaphore.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/process/spawn_here.hpp>
#include <orrery/process/when_all.hpp>
#include <orrery/shared/internal/test_sharing.hpp>
#include <orrery/shared/shared.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace orrery::testing {

namespace {

using longs = shared_vector<long>;
using reals = shared_matrix<double>;

void write_released(longs v, std::uint64_t i) {
  with(release(v), [&](auto& w) { w[i] = 1; });
}
long read_cached(longs v) {
  return with(read_cache(v), [](auto& c) { return c[0]; });
}
void write_default(longs v, std::uint64_t i) { v[i] = 3; }
long read_default(longs v, std::uint64_t i) { return v[i]; }

// --- mistakes ------------------------------------------------------------------------------------

void two_writers(team_member&, longs v) { write_released(v, 1); }

void two_writers_on_one_pe(team_member&, longs v) {
  with(release(v), [](auto& w) { w[1] = 1; });
}

void reader_and_writer(team_member& t, longs v) {
  if (t.rank() == 0) {
    write_released(v, 0);
  } else {
    (void)read_cached(v);
  }
}

void elements_by_default(team_member& t, longs v) {
  if (t.rank() == 0) {
    v[2] = 7;
  } else if (v[2] == 8) {
    v[3] = 0;
  }
}

void owner_and_copy(team_member& t, longs v) {
  if (t.rank() == 0) {
    with(owner_computes(v, t), [](auto& own) { own[0] = 5; });
  } else {
    std::array<long, 4> to{};
    copy(v.part(0, 4), std::span<long>(to));
  }
}

void view_and_write(team_member& t, longs v) {
  if (t.rank() == 0) {
    with(read_view(v), [](auto& c) { (void)c[0]; });
  } else {
    v[1] = 4;
  }
}

void own_view_and_write(team_member& t, longs v) {
  if (t.rank() != 0) return;
  with(read_view(v), [&](auto&) { v[1] = 4; });
}

void owner_and_element(team_member& t, longs v) {
  if (t.rank() == 0) {
    with(owner_computes(v, t), [](auto& own) { own[0] = own[0] + 1; });
  } else {
    v[0] += 1;
    v[0] = 9;
  }
}

void diffusion_without_barrier(team_member& t, reals now, reals next) {
  for (int step = 0; step < 2; ++step) {
    with(halo_cache(now, t, 1), owner_computes(next, t), [](auto& a, auto& b) {
      for (const auto i : b.rows())
        for (const auto j : b.columns()) b[i, j] = a[static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)] + 1;
    });
    std::swap(now, next);
  }
}

void counter_and_cache(team_member& t, longs v) {
  if (t.rank() == 0) {
    (void)v[1].fetch_add(1);
  } else {
    (void)read_cached(v);
  }
}

void future_not_waited_for(team_member& t, longs v) {
  if (t.rank() != 0) return;
  auto written = start_call<&write_default>(pe(world_pes() - 1), v, 1);
  (void)read_default(v, 1);
  written.get();
}

void meet_in_part(team_member& t, longs v) {
  with(release(v), [](auto& w) { w[0] = 1; });
  t.barrier();
}
void barrier_of_another_team(team_member& t, longs v) {
  const sub_team part = t.split(t.rank() == 0 ? 0 : 1);
  if (part.leads()) spmd<&meet_in_part>(part.members(), v);
}

void fill_and_read(team_member& t, longs v) {
  if (t.rank() == 0) {
    v.fill(6);
  } else {
    (void)read_default(v, 5);
  }
}

void read_mostly_and_default(team_member& t, longs v) {
  if (t.rank() == 0) {
    with(read_mostly(v), [](auto& m) { (void)m[0].get(); });
  } else {
    v[0] = 2;  // replicas are not told
  }
}

void write_and_count(longs v, remote<latch> written) {
  v[0] = 3;
  written->count_down();
}
/// Waits for the write before the vector ends, but reads before it waits.
void one_way_and_read(team_member& t, longs v) {
  if (t.rank() != 0) return;
  const auto written = spawn<latch>(here(), 1);
  post_call<&write_and_count>(pe(world_pes() - 1), v, written);
  (void)read_cached(v);
  written->wait();
  destroy(written);
}

/// One forgets to take the lock.
void lock_of_one(team_member& t, longs v) {
  if (t.rank() == 0) {
    while (v[7].exchange(1) != 0) yield();
    v[0] = 1;
    v[7].exchange(0);
  } else {
    v[0] = 2;
  }
}

/// A mark that is only read and written orders nothing, however long one waits for it.
void mark_without_change(team_member& t, longs v) {
  if (t.rank() == 0) {
    v[1] = 1;
    v[0] = 1;
  } else {
    while (v[0].get() == 0) yield();
    (void)read_default(v, 1);
  }
}

class inspector {
 public:
  explicit inspector(std::vector<std::string>& wrong) : wrong_(wrong), known_(sharing_mistakes().size()) {}
  /// The output since the last call has to be one or more lines with both texts.
  void expect(const char* program, std::string_view one, std::string_view other) {
    const std::vector<std::string> all = sharing_mistakes();
    if (all.size() == known_) wrong_.push_back(fmt::format("{}: not found", program));
    for (std::size_t i = known_; i < all.size(); ++i)
      if (all[i].find(one) == std::string::npos || all[i].find(other) == std::string::npos ||
          all[i].find("test_sharing.cpp:") == std::string::npos)
        wrong_.push_back(fmt::format("{}: not '{}' and '{}': {}", program, one, other, all[i]));
    known_ = all.size();
  }

 private:
  std::vector<std::string>& wrong_;
  std::size_t known_;
};

template <auto F>
void run_on_vector(const team& t, const std::vector<std::uint32_t>& owners = {0, 1}) {
  const longs v(8, distribution::block().over(owners), 0);
  spmd<F>(t, v);
  (void)sharing_mistakes();  // before it ends
  destroy(v);
}

// --- no mistakes ---------------------------------------------------------------------------------

void take_turns(team_member& t, longs v) {
  for (std::uint64_t turn = 0; turn < 3 * t.size(); ++turn) {
    if (turn % t.size() == t.rank()) write_released(v, 0);
    t.barrier();
    (void)read_cached(v);
    (void)t.all_reduce(1);
  }
}

void broadcast_orders(team_member& t, longs v) {
  if (t.rank() == 0) v[0] = 5;
  (void)t.broadcast(1);
  (void)read_default(v, 0);
  (void)t.scan(1);
  if (t.rank() == t.size() - 1) v[0] = 6;
}

void proper_diffusion(team_member& t, reals now, reals next) {
  for (int step = 0; step < 4; ++step) {
    with(halo_cache(now, t, 1, edges::periodic), owner_computes(next, t), [](auto& a, auto& b) {
      for (const auto i : b.rows())
        for (const auto j : b.columns()) b[i, j] = a[static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)] + 1;
    });
    t.barrier();
    std::swap(now, next);
  }
}

void count_together(team_member& t, longs v) {
  for (int i = 0; i < 4; ++i) v[0] += 1;
  with(read_mostly(v), [](auto& m) {
    m[1].fetch_max(m[1].get() + 1);
    m[2] = 1;
  });
  t.barrier();
  (void)read_cached(v);
}

/// Locks, counters and marks that are changed as a whole order what is done around them.
void take_the_lock(longs v, std::uint64_t lock) {
  for (long expected = 0; !v[lock].compare_exchange(expected, 1); expected = 0) yield();
}
void atomics_order(team_member& t, longs v, shared<long> arrived, shared<long> mark) {
  for (int i = 0; i < 3; ++i) {
    take_the_lock(v, 7);
    v[0] = v[0] + 1;
    write_released(v, 1);
    (void)v[7].exchange(0);
  }
  if (t.rank() == 0) {
    v[2] = 9;
    mark += 1;
  } else {
    while (mark.get() == 0) yield();  // reads what was changed: it comes after the change
    (void)read_default(v, 2);
  }
  v[3 + t.rank() % 2].fetch_add(1);
  ++arrived;
  if (t.rank() == 1) {
    while (arrived.fetch_add(0) != static_cast<long>(t.size())) yield();
    (void)read_cached(v);
    v[0] = 0;
  }
}

/// A process that writes when it is told to; it is told by one, asked by another.
class writer_process : public member<writer_process> {
 public:
  void write(longs v, std::uint64_t i) { v[i] = 1; }
  void write_by_rank(longs v) { v[rank()] = 2; }
  void meet_and_read(longs v) {
    v[rank()] = 3;
    barrier();
    (void)read_cached(v);
  }
};
ORRERY_PROCESS(writer_process, write, write_by_rank, meet_and_read);

void calls_and_futures(longs v) {
  const placement last = pe(world_pes() - 1);
  call<&write_default>(last, v, 0);
  v[0] = 4;
  call<&write_default>(here(), v, 0);
  auto f = start_call<&write_default>(last, v, 0);
  f.get();
  (void)read_default(v, 0);
  auto g = start_call<&write_default>(last, v, 1).then([v] { v[1] = 8; });
  g.get();
  v[1] = 9;
  std::vector<future<void>> all;
  for (std::uint32_t p = 0; p < world_pes(); ++p) all.push_back(start_call<&write_default>(pe(p), v, p));
  when_all(std::move(all)).get();
  (void)read_cached(v);
}

void processes_and_groups(longs v) {
  const auto p = spawn<writer_process>(pe(world_pes() - 1));
  p->write(v, 0);
  post(p)->write(v, 0);  // after the one before, as it is the same process
  p->write(v, 0);
  (void)read_cached(v);
  destroy(p);
  const auto g = spawn_group<writer_process>(everywhere(), 4);
  g->write_by_rank(v);
  (void)read_cached(v);
  g->meet_and_read(v);
  v[3] = 0;
  destroy(g);
}

void function_processes(longs v) {
  v[5] = 1;
  const auto me = this_process<function>();
  spawn_here([v, me] {
    v[5] = v[5] + 1;  // it comes after what has made it
    send(me, 1);
  });
  (void)receive<int>();
  v[5] = 3;
}

void count_under(longs v, remote<semaphore> s) {
  for (int i = 0; i < 5; ++i) {
    s->acquire();
    v[6] = v[6] + 1;
    s->release();
  }
}
void write_and_send(longs v, remote<channel<int>> to, remote<latch> all) {
  for (int i = 0; i < 3; ++i) {
    v[7] = i;
    to->send(i);
  }
  all->wait();
  (void)v[2].get();
}

// Processes whose methods wait until something holds.
void gates(longs v) {
  const auto s = spawn<semaphore>(pe(world_pes() - 1), 1);
  std::vector<future<void>> done;
  for (std::uint32_t p = 0; p < 4; ++p) done.push_back(start_call<&count_under>(pe(p % world_pes()), v, s));
  for (auto& d : done) d.get();
  const auto numbers = spawn<channel<int>>(pe(world_pes() / 2));
  const auto all = spawn<latch>(pe(world_pes() - 1), 1);
  done.clear();
  done.push_back(start_call<&write_and_send>(pe(world_pes() - 1), v, numbers, all));
  for (int i = 0; i < 3; ++i) (void)numbers->receive();
  (void)v[7].get();
  v[2] = 1;
  all->count_down();
  done[0].get();
}

}  // namespace

std::vector<std::string> planted_mistakes_missed() {
  std::vector<std::string> wrong;
  inspector found(wrong);
  const team two(placements({pe(0), pe(1)}), 2);
  const team two_on_one(placements({pe(0), pe(0)}), 2);
  run_on_vector<&two_writers>(two);
  found.expect("two writers", "element 1 written", "(release) on PE");
  run_on_vector<&two_writers_on_one_pe>(two_on_one);
  found.expect("two writers on one PE", "element 1 written", "(release) on PE 0 and at");
  run_on_vector<&reader_and_writer>(two);
  found.expect("reader and writer", "(release)", "read at test_sharing.cpp");
  run_on_vector<&elements_by_default>(two);
  found.expect("elements by default", "element 2 written", "(element)");
  run_on_vector<&owner_and_copy>(two);
  found.expect("owner and copy", "element 0 written", "(copy)");
  run_on_vector<&view_and_write>(two);
  found.expect("view and write", "element 1 viewed", "written at");
  run_on_vector<&own_view_and_write>(two);
  found.expect("own view and write", "element 1 viewed", "written at");
  run_on_vector<&owner_and_element>(two);
  found.expect("owner and element", "element 0", "(owner_computes)");
  run_on_vector<&counter_and_cache>(two);
  found.expect("counter and cache", "element 1 changed", "(read_cache)");
  run_on_vector<&future_not_waited_for>(two);
  found.expect("future not waited for", "element 1 written", "(element)");
  run_on_vector<&barrier_of_another_team>(two);
  found.expect("barrier of another team", "element 0 written", "(release)");
  run_on_vector<&fill_and_read>(two);
  found.expect("fill and read", "element 5 written", "(fill)");
  run_on_vector<&read_mostly_and_default>(two);
  found.expect("read mostly and default", "element 0 written", "(read_mostly)");
  run_on_vector<&one_way_and_read>(two);
  found.expect("one way and read", "element 0 written", "(read_cache)");
  run_on_vector<&lock_of_one>(two);
  found.expect("lock of one", "element 0 written", "(element)");
  run_on_vector<&mark_without_change>(two);
  found.expect("mark without change", "written", "(element)");
  const reals a(4, 4, distribution::block().over({0, 1}), 1.0);
  const reals b(4, 4, distribution::block().over({0, 1}), 1.0);
  spmd<&diffusion_without_barrier>(two, a, b);
  found.expect("diffusion without barrier", "(halo_cache)", "(owner_computes)");
  return wrong;
}

std::vector<std::string> false_alarms() {
  const std::size_t known = sharing_mistakes().size();
  const longs v(8, distribution::block(), 0);
  const team all(everywhere(), 2 * std::size_t{world_pes()});
  spmd<&take_turns>(all, v);
  spmd<&broadcast_orders>(all, v);
  spmd<&count_together>(team(), v);
  spmd<&atomics_order>(team(everywhere(), world_pes() + 1), v, shared<long>(0), shared<long>(0, pe(world_pes() - 1)));
  const reals a(9, 7, distribution::block(), 1.0);
  const reals b(9, 7, distribution::block(), 2.0);
  spmd<&proper_diffusion>(all, a, b);
  calls_and_futures(v);
  processes_and_groups(v);
  function_processes(v);
  gates(v);
  (void)read_cached(redistribute(v, distribution::cyclic()));
  std::vector<std::string> mistakes = sharing_mistakes();
  mistakes.erase(mistakes.begin(), mistakes.begin() + static_cast<std::ptrdiff_t>(known));
  return mistakes;
}

}  // namespace orrery::testing
