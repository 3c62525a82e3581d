// SPDX-License-Identifier: Apache-2.0
// A sorted set of Redis over a Unix socket: the score of a member is its key.
#include "workload.hpp"

#include <cstdio>
#include <stdexcept>

#ifdef ORRERY_BENCH_HIREDIS
#include <hiredis/hiredis.h>

namespace bench {
namespace {

class redis {
 public:
  explicit redis(const std::string& socket) : connection_(redisConnectUnix(socket.c_str())) {
    if (connection_ == nullptr || connection_->err != 0)
      throw std::runtime_error("bench_service: no Redis at " + socket);
  }
  redis(const redis&) = delete;
  redis& operator=(const redis&) = delete;
  ~redis() { redisFree(connection_); }

  void find(std::uint32_t key) { redisAppendCommand(connection_, "ZSCORE list %u", key); }
  void insert(std::uint32_t key) { redisAppendCommand(connection_, "ZADD list NX %u %u", key, key); }
  void erase(std::uint32_t key) { redisAppendCommand(connection_, "ZREM list %u", key); }
  void range(std::uint32_t from, std::uint32_t to) {
    redisAppendCommand(connection_, "ZRANGE list %u (%u BYSCORE WITHSCORES", from, to);
  }
  /// Elements of the next reply; 1 of one that is no array.
  std::size_t reply() {
    void* r = nullptr;
    if (redisGetReply(connection_, &r) != REDIS_OK) throw std::runtime_error("bench_service: Redis does not answer");
    auto* const answer = static_cast<redisReply*>(r);
    const std::size_t n = answer->type == REDIS_REPLY_ARRAY ? answer->elements : 1;
    freeReplyObject(answer);
    return n;
  }

 private:
  redisContext* connection_;
};

// Millions a second, with so many in flight.
double rate(redis& to, const settings& s, bool mix, std::uint32_t in_flight) {
  settings some = s;
  some.operations = std::min(s.operations, in_flight == 1 ? 100'000U : 1'000'000U);
  const auto all = plan(some, 0, mix);
  const auto begin = clock_type::now();
  for (std::size_t i = 0; i < all.size() + in_flight; ++i) {
    if (i >= in_flight) (void)to.reply();
    if (i >= all.size()) continue;
    if (all[i].what == operation::find) to.find(all[i].key);
    if (all[i].what == operation::insert) to.insert(all[i].key);
    if (all[i].what == operation::erase) to.erase(all[i].key);
  }
  return some.operations / seconds_since(begin) / 1e6;
}

double range_rate(redis& to, const settings& s, std::uint32_t length) {
  const std::uint64_t width = (std::uint64_t{1} << 32U) / s.items * length;
  std::uint64_t items = 0;
  const std::uint32_t times = s.smoke ? 3 : 500'000 / length;
  const auto begin = clock_type::now();
  for (std::uint32_t i = 0; i < times; ++i) {
    const auto from = static_cast<std::uint32_t>(mixed(i) % ((std::uint64_t{1} << 32U) - width));
    to.range(from, static_cast<std::uint32_t>(from + width));
    items += to.reply() / 2;
  }
  return static_cast<double>(items) / seconds_since(begin) / 1e6;
}

}  // namespace

void measure_redis(const settings& s, const std::string& socket, metrics& found) {
  redis to(socket);
  for (std::uint32_t i = 0; i < s.items + 128; ++i) {
    if (i >= 128) (void)to.reply();
    if (i < s.items) to.insert(mixed(i));
  }
  for (int run = 0; run < s.runs; ++run) {
    found["redis_find_one_us"].push_back(1 / rate(to, s, false, 1));
    found["redis_128_find_m"].push_back(rate(to, s, false, 128));
    found["redis_128_mix_m"].push_back(rate(to, s, true, 128));
  }
  found["redis_range_100_m"].push_back(range_rate(to, s, 100));
  const std::uint32_t many = s.smoke ? 1000 : 10'000;
  found["redis_range_" + std::to_string(many) + "_m"].push_back(range_rate(to, s, many));
}

}  // namespace bench

#else

namespace bench {
void measure_redis(const settings&, const std::string&, metrics&) {
  std::puts("redis_*                  absent: libhiredis-dev was not there when this was built");
}
}  // namespace bench

#endif
