// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/node.hpp>

#include <cstdio>
#include <mutex>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

namespace orrery::scheduler {
namespace {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cpus.push_back(i);
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

void pin_to(int cpu) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

// Rings between PEs of this node: private memory, zeroed and backed lazily by the kernel.
struct node::heap_rings {
  std::mutex mutex;
  std::vector<std::pair<void*, std::size_t>> maps;
  ~heap_rings() {
    for (auto [p, n] : maps) munmap(p, n);
  }
};

node::node(const node_settings& settings) : settings_(settings), rings_(std::make_unique<heap_rings>()) {
  const auto cpus = allowed_cpus();
  const auto n = settings_.pes != 0 ? settings_.pes : static_cast<std::uint32_t>(cpus.size());
  if (n > cpus.size()) settings_.pe.yield = true;
  transport::enable_asymmetric_fences();
  bells_ = std::make_unique<transport::doorbell[]>(n);
  for (std::uint32_t i = 0; i < n; ++i)
    pes_.push_back(std::make_unique<pe>(*this, first_pe_ + i, bells_[i], settings_.pe));
  stopped_.emplace(static_cast<std::ptrdiff_t>(n));
}

node::~node() = default;

void node::run(const std::function<void(pe&)>& first) {
  const auto cpus = allowed_cpus();
  const bool pin = settings_.pin && pes_.size() <= cpus.size();
  cpu_set_t before;
  CPU_ZERO(&before);
  pthread_getaffinity_np(pthread_self(), sizeof before, &before);
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < pes_.size(); ++i)
    threads.emplace_back([this, i, pin, &cpus] {
      if (pin) pin_to(cpus[i]);
      pes_[i]->run();
    });
  if (pin) pin_to(cpus[0]);
  first(*pes_[0]);
  pes_[0]->run();
  for (auto& t : threads) t.join();
  if (pin) pthread_setaffinity_np(pthread_self(), sizeof before, &before);
}

void node::stop() noexcept {
  for (auto& p : pes_) p->stop();
}

std::unique_ptr<channel> node::connect(pe& from, std::uint32_t to) {
  if (!is_local(to)) throw usage_error(errc::no_such_place, fmt::format("PE {} in a world of {} PEs", to, world_pes()));
  const std::uint64_t capacity = settings_.pe.ring_bytes;
  const std::size_t bytes = transport::ring_header::bytes_for(capacity);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc{};
  {
    const std::lock_guard lock(rings_->mutex);
    rings_->maps.emplace_back(memory, bytes);
  }
  transport::ring_header* header = transport::make_ring(memory, capacity, from.id(), to);
  auto c = std::make_unique<channel>();
  c->ring = transport::ring_producer(*header);
  c->bell = &local(to).bell();
  c->pe = to;
  auto in = std::make_unique<inbound>();
  in->ring = transport::ring_consumer(*header, capacity);
  in->pe = from.id();
  local(to).add_inbound(std::move(in));
  return c;
}

void node::adopt_remote(pe&, std::vector<std::unique_ptr<inbound>>&) {}

void node::wake(std::uint32_t pe) noexcept {
  if (is_local(pe)) transport::ring_doorbell(local(pe).bell(), shares_memory());
}

void node::failed_post(pe& at, const handler* method, std::exception_ptr why) noexcept {
  std::string what = "an exception that is not a std::exception";
  try {
    std::rethrow_exception(std::move(why));
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
  }
  const std::string line =
      fmt::format("orrery: PE {}: a one-way message failed: {}::{}: {}\n", at.id(),
                  method ? method->class_name : "?", method ? method->method : "?", what);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void node::peer_corrupt(std::uint32_t pe, const char* what) noexcept {
  const std::string line =
      fmt::format("orrery: PE {} sent {}: what it sends is ignored from now on\n", pe, what);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::byte* node::allocate_block(std::uint32_t, std::size_t, std::uint64_t&) { throw std::bad_alloc{}; }
std::byte* node::block(std::uint32_t, const wire::block_ref&) noexcept { return nullptr; }
void node::release_block(pe&, std::uint32_t, std::uint64_t) noexcept {}
void node::block_released(std::uint32_t, std::uint64_t) noexcept {}
void node::control(pe&, inbound&, wire::envelope&) noexcept {}
void node::trace_span(pe&, const handler&, address, std::int64_t, std::int64_t) noexcept {}

}  // namespace orrery::scheduler
