// SPDX-License-Identifier: Apache-2.0
// The database of examples/tasks/database for peers: the same index, the same requests from a server and clients that are OS processes, and the same mix.
#pragma once

#include "common.hpp"

extern "C" {
#include "../../examples/tasks/database/index.c"
}
#include "../../examples/tasks/database/histogram.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace peers {

enum operation { find_key, insert_key, update_key, delete_key, range_of_keys };

struct request {
  std::uint32_t client, number;
  std::int32_t operation, limit;
  std::int64_t key, last;
  value text;
};
struct answer {
  std::uint32_t number;
  std::int32_t done, count;
  value text;
  struct {
    std::int64_t key;
    value text;
  } pairs[20];

  // What of it travels.
  [[nodiscard]] std::size_t bytes() const { return offsetof(answer, pairs) + sizeof pairs[0] * std::size_t(count); }
};

class server_work {
 public:
  server_work() : index_(index_create()) {}
  // The answer is good until the next request.
  const answer& serve(const request& r) {
    answer_.number = r.number;
    answer_.count = 0;
    answer_.text = value{};
    switch (r.operation) {
      case insert_key:
        answer_.done = index_insert(index_, r.key, &r.text);
        break;
      case update_key:
        answer_.done = index_update(index_, r.key, &r.text);
        break;
      case delete_key:
        answer_.done = index_delete(index_, r.key);
        break;
      case find_key:
        if (const value* v = index_find(index_, r.key); (answer_.done = v != nullptr)) answer_.text = *v;
        break;
      default:
        list(r);
    }
    return answer_;
  }

 private:
  void list(const request& r) {
    std::int64_t keys[20];
    value values[20];
    answer_.count = index_range(index_, r.key, r.last, r.limit < 20 ? r.limit : 20, keys, values);
    for (int i = 0; i < answer_.count; ++i) answer_.pairs[i] = {keys[i], values[i]};
    answer_.done = 1;
  }
  struct index* index_;
  answer answer_{};
};

// As client.c: half of the requests look, one of 64 is a range; 1,000 keys of its own.
class client_work {
 public:
  explicit client_work(int number) : number_(number), random_(88172645463325252u + std::uint64_t(number) * 1000003) {}
  request next() {
    request r{};
    r.client = std::uint32_t(number_);
    r.number = sent_++;
    r.key = std::int64_t(number_) << 32 | std::int64_t(draw() % keys);
    const auto n = draw() % 64;
    r.operation = n == 0 ? range_of_keys : n < 32 ? find_key : n < 48 ? update_key : n < 56 ? insert_key : delete_key;
    r.limit = 20;
    r.last = r.key + 100;
    if (r.operation == insert_key || r.operation == update_key)
      std::snprintf(r.text.text, VALUE_BYTES, "%u of client %d", r.number, number_);
    return r;
  }
  void check(const answer& a) const {
    if (a.number + 1 == sent_) return;
    std::fputs("a wrong answer\n", stderr);
    std::exit(1);
  }

 private:
  static constexpr std::uint32_t keys = 1000;
  std::uint32_t draw() {
    random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
    return std::uint32_t(random_ >> 32);
  }
  int number_;
  std::uint64_t random_;
  std::uint32_t sent_ = 0;
};

// How many clients there are to be, one number after the other: the program's arguments.
inline std::vector<int> client_counts(int argc, char** argv) {
  std::vector<int> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(std::atoi(argv[i]));
  return counts.empty() ? std::vector<int>{1, 3, 7, 15} : counts;
}

// Measures `count` clients. `serve()` runs in an OS process until it is killed; connect(i), in that of client i, returns a function that sends a request and
// writes the answer to it. Reports <name>_db_<count>_k, thousands of requests a second of all, and <name>_db_<count>_p99_us.
template <class Serve, class Connect>
void measure_database(const char* name, int count, Serve serve, Connect connect) {
  struct state {
    std::atomic<int> ready{0};
    std::atomic<bool> go{false}, stop{false};
    std::atomic<std::uint64_t> requests{0};
    std::atomic<long> latencies[BUCKETS]{};
  };
  auto& s = shared<state>();
  pid_t server = fork_child(serve);
  std::vector<pid_t> pids;
  for (int i = 0; i < count; ++i)
    pids.push_back(fork_child([&, i] {
      auto call = connect(i);
      client_work work(i);
      answer a{};
      std::vector<long> counts(BUCKETS);
      const auto exchange = [&] {
        const auto begin = now_ns();
        call(work.next(), a);
        work.check(a);
        ++counts[std::size_t(bucket_of(std::int64_t(now_ns() - begin)))];
      };
      for (int n = 0; n < 50; ++n) exchange();
      std::fill(counts.begin(), counts.end(), 0);
      s.ready.fetch_add(1);
      while (!s.go.load()) usleep(500);
      std::uint64_t n = 0;
      for (; !s.stop.load(std::memory_order_relaxed); ++n) exchange();
      s.requests.fetch_add(n);
      for (std::size_t b = 0; b < BUCKETS; ++b) s.latencies[b].fetch_add(counts[b]);
    }));
  for (int waited = 0; s.ready.load() < count; usleep(1000))
    if (++waited > 10'000) {
      std::fputs("the clients did not connect within 10 s\n", stderr);
      for (pid_t p : pids) end_child(p);
      end_child(server);
      std::exit(1);
    }
  const auto start = now_ns();
  s.go.store(true);
  usleep(useconds_t(seconds() * 1e6));
  s.stop.store(true);
  const auto end = now_ns();
  for (pid_t p : pids) waitpid(p, nullptr, 0);
  end_child(server);
  std::vector<long> counts(BUCKETS);
  for (std::size_t b = 0; b < BUCKETS; ++b) counts[b] = s.latencies[b].load();
  char metric[64];
  std::snprintf(metric, sizeof metric, "%s_db_%d_k", name, count);
  report(metric, double(s.requests.load()) / (double(end - start) * 1e-9) / 1e3);
  std::snprintf(metric, sizeof metric, "%s_db_%d_p99_us", name, count);
  report(metric, quantile_us(counts.data(), 0.99));
}

}  // namespace peers
