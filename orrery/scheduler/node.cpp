// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/node.hpp>

#include <orrery/scheduler/fork.hpp>
#include <orrery/scheduler/io_pool.hpp>
#include <orrery/scheduler/short_turns.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/scheduler/stuck_watch.hpp>
#include <orrery/transport/carrier.hpp>
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/world.hpp>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

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

void say(const std::string& line) noexcept { std::fwrite(line.data(), 1, line.size(), stderr); }

[[noreturn]] void throw_transport(const transport::transport_error& e) {
  using transport::transport_errc;
  switch (e.code) {
    case transport_errc::gone:
    case transport_errc::ended:
      throw node_lost(e.message);
    case transport_errc::no_space:
    case transport_errc::full:
      throw world_error(errc::world_no_space, verbatim, e.message);
    default:
      throw world_error(errc::world_no_transport, verbatim, e.message);
  }
}

}  // namespace

std::uint32_t available_cores() noexcept { return static_cast<std::uint32_t>(allowed_cpus().size()); }

// Hears of nodes that come and go, on the monitor's thread, and passes it on to the PEs.
class node::observer final : public transport::membership_observer {
 public:
  explicit observer(node& n) : node_(n) {
    if (!n.world_->is_open()) return;
    for (std::uint32_t place = 0; place < n.world_->node_limit(); ++place)
      if (const std::uint32_t i = n.world_->node_at(place); n.world_->state(i) == transport::node_state::dead)
        gone_before_.push_back(i);
  }
  void node_joined(std::uint32_t) noexcept override { node_.tell_pes(); }
  void node_leaving(std::uint32_t n) noexcept override {
    node_.tell_pes();
    if (n == node_.settings_.launcher) node_.stop();
  }
  void node_left(std::uint32_t n) noexcept override {
    node_.forget_memory_of(n);
    node_.tell_pes();
    if (n == node_.settings_.launcher) node_.stop();
  }
  void node_lost(std::uint32_t n, std::string_view how) noexcept override {
    if (n == 0) return;  // world_lost follows, and has the last word
    if (n == node_.settings_.launcher) {  // nobody else would ever end this one, which the user does not know of
      say(fmt::format("orrery: node {}, which started this one, {}: node {} ends too\n", n, how, node_.index()));
      _exit(1);
    }
    node_.forget_memory_of(n);
    const bool known = std::ranges::find(gone_before_, n) == gone_before_.end();
    if (known && !node_.stopping_.load(std::memory_order_relaxed) && (node_.sim_ == nullptr || node_.index() == 0)) {
      if (node_.announced_ != nullptr)
        node_.announced_[n % node_.world_->node_capacity()].store(n + 1, std::memory_order_relaxed);
      // Once for each program: who has started other nodes says it for them, and knows more of the end of its own ones.
      if (node_.settings_.launcher == transport::no_node)
        say(fmt::format("orrery: node {} {}: calls to it fail with node_lost\n", n, how));
    }
    node_.tell_pes();
  }
  void world_ending() noexcept override { node_.stop(); }
  void world_lost(std::string_view how) noexcept override {
    // Nothing can be trusted to come to an end by itself: methods may compute for hours for a caller that is gone.
    say(fmt::format("orrery: the first node of the world {}: node {} ends too\n", how, node_.index()));
    if (node_.sim_ == nullptr) _exit(1);
    node_.stop();
  }

 private:
  node& node_;
  std::vector<std::uint32_t> gone_before_;  // whose loss is no news to this node
};

node::node(const node_settings& settings, transport::world* world)
    : settings_(settings), world_(world), io_pool_(std::make_unique<io_pool>()) {
  const std::uint32_t cores = available_cores();
  const std::uint32_t n = world_ != nullptr ? world_->pe_count() : settings_.pes != 0 ? settings_.pes : cores;
  transport::enable_asymmetric_fences();
  if (world_ != nullptr) {
    first_pe_ = world_->first_pe();
    if (settings.pe.fibers == nullptr) {  // simulated nodes are one program
      distrusted_ = std::make_unique<std::atomic<std::uint32_t>[]>(world_->node_capacity());
      announced_ = std::make_unique<std::atomic<std::uint32_t>[]>(world_->node_capacity());
    }
  } else {
    own_bells_ = std::make_unique<transport::doorbell[]>(n);
    own_idleness_ = std::make_unique<idleness[]>(n);
  }
  const auto [nodes_here, pes_here] = world_ != nullptr ? world_->crowd() : std::pair{1U, n};
  if (n > cores || pes_here > cores) settings_.pe.yield = true;
  if (settings_.queue_bytes == 0) settings_.queue_bytes = 2 * transport::arena::default_limit() / nodes_here;
  for (std::uint32_t i = 0; i < n; ++i) {
    transport::doorbell& bell = world_ != nullptr ? world_->bell(first_pe_ + i) : own_bells_[i];
    pes_.push_back(std::make_unique<pe>(*this, first_pe_ + i, bell, settings_.pe));
  }
}

node::~node() {
  watch_.reset();
  for (auto [p, n] : local_rings_) munmap(p, n);
}

std::uint32_t node::index() const noexcept { return world_ != nullptr ? world_->node() : 0; }
std::uint32_t node::world_pes() const noexcept {
  return world_ != nullptr ? world_->pe_limit() : static_cast<std::uint32_t>(std::max<std::size_t>(pes_.size(), 1));
}
std::uint32_t node::world_nodes() const noexcept { return world_ != nullptr ? world_->node_limit() : 1; }

std::uint32_t node::pe_at(std::uint32_t place) const noexcept {
  return world_ != nullptr ? world_->pe_at(place) : place;
}
std::uint32_t node::node_at(std::uint32_t place) const noexcept {
  return world_ != nullptr ? world_->node_at(place) : place;
}
bool node::knows(std::uint32_t pe) const noexcept {
  return is_local(pe) || (world_ != nullptr && world_->knows_pe(pe));
}

std::uint32_t node::node_of(std::uint32_t pe) const noexcept {
  return world_ != nullptr ? world_->pe_node(pe) : is_local(pe) ? 0 : transport::no_node;
}

std::pair<std::uint32_t, std::uint32_t> node::pes_of(std::uint32_t node) const {
  if (world_ != nullptr ? !world_->knows_node(node) : node != 0)
    throw usage_error(errc::no_such_place, fmt::format("node({}) in a world of {} nodes", node, world_nodes()));
  if (node == index()) return {first_pe_, pe_count()};
  return world_->pes_of(node);
}

bool node::reachable(std::uint32_t pe) const noexcept {
  if (is_local(pe)) return true;
  if (world_ == nullptr) return false;
  const std::uint32_t n = world_->pe_node(pe);
  return n != transport::no_node && world_->answers(n) && !is_distrusted(n);
}

bool node::has_ended(std::uint32_t pe) const noexcept {
  if (is_local(pe) || world_ == nullptr) return false;
  const std::uint32_t n = world_->pe_node(pe);
  return n != transport::no_node ? world_->has_ended(n) : world_->is_past_pe(pe);
}

bool node::takes_work(std::uint32_t pe) const noexcept {
  if (is_local(pe)) return true;
  return reachable(pe) && world_->alive(world_->pe_node(pe));
}

bool node::world_runs() const noexcept {
  return world_ == nullptr || world_->state() == transport::world_state::running;
}

void node::run(const std::function<void(pe&)>& first) {
  watch_for_fork();
  begin();
  const auto cpus = allowed_cpus();
  const bool pin = settings_.pin && world_pes() <= cpus.size();
  const std::uint32_t first_place = transport::place_of(first_pe_);
  cpu_set_t before;
  CPU_ZERO(&before);
  pthread_getaffinity_np(pthread_self(), sizeof before, &before);
  stuck_watch watch(*this, settings_.stuck_ns);
  // No PE runs before all have their thread: the loops of some would wait for the others to end.
  enum : int { waiting, running, given_up };
  std::atomic<int> start{waiting};
  std::vector<std::thread> threads;
  const auto let = [&](int what) {
    start.store(what, std::memory_order_release);  // SYNC: with the threads' wait
    start.notify_all();
  };
  try {
    for (std::uint32_t i = 1; i < pe_count(); ++i)
      threads.emplace_back([this, i, pin, first_place, &cpus, &start, &watch] {
        start.wait(waiting, std::memory_order_acquire);  // SYNC: with `let`
        if (start.load(std::memory_order_relaxed) == given_up) return;
        if (pin) pin_to(cpus[first_place + i]);
        const short_turns turns;
        watch.begin(i);
        pes_[i]->run();
      });
  } catch (const std::system_error& e) {
    let(given_up);
    for (auto& t : threads) t.join();
    finish();
    throw world_error(
        errc::world_no_space, verbatim,
        fmt::format(
            "threads for {} of the {} PEs of node {} can be started, and then no more are to be had ({}): ask for "
            "fewer PEs (--orrery-pes), or raise the limit of threads (ulimit -u, or that of the container)",
            threads.size() + 1, pe_count(), index(), e.code().message()));
  }
  let(running);
  if (pin) pin_to(cpus[first_place]);
  {
    const short_turns turns;
    watch.begin(0);
    first(*pes_[0]);
    pes_[0]->run();
  }
  for (auto& t : threads) t.join();
  if (pin) pthread_setaffinity_np(pthread_self(), sizeof before, &before);
  finish();
}

void node::begin() {
  if (settings_.layer != nullptr)
    for (auto& p : pes_) settings_.layer->prepare(*p);
  if (world_ == nullptr) return;
  // A child of fork() that returns from its method would answer in the name of its parent: it has no such memory.
  if (transport::shm_world* shared = world_->shared(); shared != nullptr)
    if (const auto own = shared->map(shared->node())) (void)madvise(own->data(), own->size(), MADV_DONTFORK);
  observer_ = std::make_unique<observer>(*this);
  auto watch = world_->watch(*observer_);
  if (!watch) throw_transport(watch.error());
  watch_ = std::move(*watch);
}

void node::finish() noexcept { watch_.reset(); }

idleness& node::idleness_of(std::uint32_t pe) noexcept {
  if (world_ == nullptr) return own_idleness_[pe];
  // The last words of the PE's counters in the world segment.
  return *reinterpret_cast<idleness*>(world_->counters(pe).data() + transport::counters_per_pe - 4);
}

bool node::ends_when_dead() const noexcept { return index() == 0 && (world_ == nullptr || !world_->is_open()); }

void node::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  for (auto& p : pes_) p->stop();
}

// --- rings -------------------------------------------------------------------------------------------------------

std::unique_ptr<channel> node::connect(pe& from, std::uint32_t to) {
  if (is_local(to) && sim_ == nullptr) return connect_local(from, to);
  if (!knows(to)) throw usage_error(errc::no_such_place, fmt::format("PE {} in a world of {} PEs", to, world_pes()));
  if (!reachable(to)) throw_not_sent(to);
  if (sim_ != nullptr) return sim_->connect(from, to);
  return connect_remote(from, to);
}

std::unique_ptr<channel> node::connect_local(pe& from, std::uint32_t to) {
  const std::uint64_t capacity = settings_.pe.ring_bytes;
  const std::size_t bytes = transport::ring_header::bytes_for(capacity);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc{};
  {
    const std::lock_guard lock(mutex_);
    local_rings_.emplace_back(memory, bytes);
  }
  transport::ring_header* header = transport::make_ring(memory, capacity, from.id(), to);
  auto c = std::make_unique<channel>();
  c->ring = transport::ring_producer(*header);
  c->bell = &local(to).bell();
  c->shared_bell = shares_memory();
  c->pe = to;
  auto in = std::make_unique<inbound>();
  in->ring = transport::ring_consumer(*header, capacity);
  in->pe = from.id();
  local(to).links().add_inbound(std::move(in));
  return c;
}

std::unique_ptr<channel> node::connect_remote(pe& from, std::uint32_t to) {
  transport::carrier* const carrier = world_->carrier();
  const bool is_far =
      carrier != nullptr && world_->machine_of(world_->pe_node(to)) != world_->machine_of(world_->node());
  const std::uint64_t wanted = settings_.pe.ring_bytes;
  const std::uint64_t capacity = is_far ? carrier->next_ring_bytes(wanted) : wanted;
  const std::uint64_t bytes = transport::ring_header::bytes_for(capacity);
  // Payloads that have taken all memory do not keep answers, errors and flow control from having a ring.
  auto block = world_->allocate_beyond(bytes);
  if (!block) throw_transport(block.error());
  if (!block->zeroed) std::memset(block->data, 0, bytes);
  transport::ring_header* header = transport::make_ring(block->data, capacity, from.id(), to);
  auto c = std::make_unique<channel>();
  c->ring = transport::ring_producer(*header);
  c->bell = &world_->bell(to);
  c->shared_bell = true;
  c->pe = to;
  c->remote = true;
  c->offset = block->offset;
  world_->publish_ring(to, from.id(), block->offset);
  return c;
}

void node::give_back(channel& c, std::uint32_t from) noexcept {
  if (!c.remote || c.returned) return;
  if (!has_ended(c.pe)) return;  // it is leaving, or only not trusted: it still reads there
  c.returned = true;
  world_->release(c.offset);
  free_blocks(from, c.pe);
}

void node::adopt_remote(pe& to, std::vector<std::unique_ptr<inbound>>& rings) {
  if (world_ == nullptr || sim_ != nullptr) return;
  const std::uint32_t limit = world_->pe_limit();
  for (std::uint32_t place = 0; place < limit; ++place) {
    const std::uint32_t from = world_->pe_at(place);
    if (from == transport::no_pe || is_local(from)) continue;
    const auto offset = world_->ring_offset(to.id(), from);
    if (!offset) continue;
    bool known = false;
    for (const auto& in : rings) known = known || (in->remote && in->pe == from);
    if (known || !reachable(from)) continue;
    if (auto in = open_ring(from, to.id(), *offset)) {
      rings.push_back(std::move(in));
      // The sender, which may be about to end, hears so that its records are safe (links::await_receivers).
      if (transport::shm_world* shared = world_->shared(); shared != nullptr) shared->withdraw_ring(to.id(), from);
    }
  }
}

namespace {
// Nothing is read from it; but the PE learns whom it has to tell that its node is not trusted (links::lose_gone).
std::unique_ptr<inbound> refused_ring(std::uint32_t from) {
  auto in = std::make_unique<inbound>();
  in->pe = from;
  in->remote = true;
  in->lost = true;
  return in;
}
}  // namespace

std::unique_ptr<inbound> node::open_ring(std::uint32_t from, std::uint32_t to, std::uint64_t offset) {
  hold(from);  // before it is mapped: the last user of a node that has ended unmaps it
  auto in = map_ring(from, to, offset);
  if (in == nullptr || in->lost) let_go(from);
  return in;
}

std::unique_ptr<inbound> node::map_ring(std::uint32_t from, std::uint32_t to, std::uint64_t offset) {
  const std::uint32_t n = sender_node(from);
  auto head = world_->map(n, offset, sizeof(transport::ring_header));
  if (!head) {
    if (head.error().code == transport::transport_errc::gone) return nullptr;
    peer_unreadable(from, head.error().message);
    return refused_ring(from);
  }
  auto* header = reinterpret_cast<transport::ring_header*>(head->data());
  const std::uint64_t capacity = header->capacity;  // read once: it is another OS process's memory
  const bool sound = header->magic == transport::ring_header::magic_value && std::has_single_bit(capacity) &&
                     capacity >= 4096 && capacity <= (std::uint64_t{1} << 30) && header->producer_pe == from &&
                     header->consumer_pe == to && offset % 64 == 0;
  if (!sound || !world_->map(n, offset, transport::ring_header::bytes_for(capacity))) {
    peer_corrupt(from, "a ring with an impossible header");
    return refused_ring(from);
  }
  auto in = std::make_unique<inbound>();
  in->ring = transport::ring_consumer(*header, capacity);
  in->pe = from;
  in->remote = true;
  return in;
}

void node::wake(std::uint32_t pe) noexcept {
  if (sim_ != nullptr) {
    sim_->wake(sim_->at(pe));
  } else if (is_local(pe)) {
    transport::ring_doorbell(local(pe).bell(), shares_memory());
  } else if (world_ != nullptr && world_->knows_pe(pe)) {
    transport::ring_doorbell(world_->bell(pe), true);
  }
}

// --- membership --------------------------------------------------------------------------------------------------

void node::tell_pes() noexcept {
  for (auto& p : pes_) announce(*p);
}

void node::end_outside() noexcept {
  outside_.fetch_sub(1, std::memory_order_relaxed);
  tell_pes();  // those that rest have said that there is some
}

void node::announce(pe& to) noexcept {
  to.bell().announce.fetch_add(1, std::memory_order_release);  // SYNC: with links::take_news
  if (sim_ == nullptr) {
    transport::notify(to.bell(), shares_memory());
  } else {
    sim_->wake(to);
  }
}

void node::announce_elsewhere(std::uint32_t pe) noexcept {
  if (sim_ != nullptr || world_ == nullptr || is_local(pe) || !world_->knows_pe(pe)) return;
  world_->bell(pe).announce.fetch_add(1, std::memory_order_release);  // SYNC: with links::take_news
  transport::notify(world_->bell(pe), true);
}

void node::peer_corrupt(std::uint32_t pe, const char* what) noexcept {
  const std::uint32_t n = sender_node(pe);
  if (is_local(pe) || n == transport::no_node) {
    say(fmt::format("orrery: PE {} sent {}: this is a bug in orrery, or memory was overwritten\n", pe, what));
    return;
  }
  if (distrust(n)) return;
  say(fmt::format("orrery: PE {} of node {} sent {}: the node is treated as lost\n", pe, n, what));
  tell_pes();
}

void node::peer_unreadable(std::uint32_t pe, const std::string& why) noexcept {
  const std::uint32_t n = sender_node(pe);
  if (n == transport::no_node || distrust(n)) return;
  say(fmt::format("orrery: node {} cannot read what node {} sends: {}: they treat each other as lost\n", index(), n,
                  why));
  tell_pes();
}

void node::peer_without_ring(std::uint32_t pe, const std::string& why) noexcept {
  const std::uint32_t n = node_of(pe);
  if (n == transport::no_node || distrust(n)) return;
  say(fmt::format("orrery: node {} cannot send to node {}: {}: they treat each other as lost\n", index(), n, why));
  tell_pes();
}

void node::refused_by(std::uint32_t pe) noexcept {
  const std::uint32_t n = node_of(pe);
  if (is_local(pe) || n == transport::no_node || distrust(n)) return;
  say(fmt::format(
      "orrery: node {} takes nothing more from this one, node {}, and has said why: it is treated as lost here too\n",
      n, index()));
  tell_pes();
}

bool node::is_refused(std::uint32_t pe) const noexcept {
  const std::uint32_t n = node_of(pe);
  return world_ != nullptr && n != transport::no_node && world_->alive(n) && is_distrusted(n);
}

std::unique_ptr<channel> node::connect_to_refused(pe& from, std::uint32_t to) {
  return is_refused(to) ? connect_remote(from, to) : nullptr;
}

void node::hold(std::uint32_t source_pe) noexcept {
  const std::uint32_t n = node_of(source_pe);
  const std::lock_guard lock(mutex_);
  sender& from = senders_.try_emplace(source_pe, sender{n, 0}).first->second;
  ++from.uses;
  ++segment_use_[from.node];
}

std::uint32_t node::sender_node(std::uint32_t pe) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = senders_.find(pe); it != senders_.end()) return it->second.node;
  }
  return node_of(pe);
}

void node::let_go(std::uint32_t source_pe) noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = senders_.find(source_pe);
  if (it == senders_.end()) return;
  const std::uint32_t n = it->second.node;
  if (--it->second.uses == 0) senders_.erase(it);
  if (const auto used = segment_use_.find(n); --used->second == 0) {
    segment_use_.erase(used);
    if (world_->has_ended(n)) world_->unmap(n);
  }
}

// It has ended. What was let go of before is unmapped now, the rest with its last use.
void node::forget_memory_of(std::uint32_t node) noexcept {
  const std::lock_guard lock(mutex_);
  if (!segment_use_.contains(node)) world_->unmap(node);
}

// --- payload blocks ----------------------------------------------------------------------------------------------

// With no bytes: the block at `offset`, which lies in this node's segment and is no PE's yet, is for PE `to` from now on. So memory that was written
// before its reader was known becomes a payload block without a copy.
std::byte* node::allocate_block(std::uint32_t from, std::uint32_t to, std::size_t bytes, std::uint64_t& offset,
                                bool beyond_limit) {
  if (bytes == 0) {
    const std::lock_guard lock(mutex_);
    blocks_[offset] = {from, to};
    return nullptr;
  }
  auto block = beyond_limit ? world_->allocate_beyond(bytes) : world_->allocate(bytes);
  if (!block) {
    const std::lock_guard lock(mutex_);
    // Those that are on their way come back.
    if (block.error().code == transport::transport_errc::no_space && !blocks_.empty()) return nullptr;
    throw_transport(block.error());
  }
  offset = block->offset;
  const std::lock_guard lock(mutex_);
  blocks_[offset] = {from, to};
  return block->data;
}

void node::block_released(std::uint32_t by_pe, std::uint64_t offset) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto it = blocks_.find(offset);
    if (it == blocks_.end() || it->second.to != by_pe) return;  // not its to release: ignored
    blocks_.erase(it);
  }
  world_->release(offset);
}

void node::free_blocks(std::uint32_t from, std::uint32_t to) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(blocks_, [&](const auto& b) {
    if (b.second.from != from || b.second.to != to) return false;
    world_->release(b.first);
    return true;
  });
}

std::byte* node::block(std::uint32_t source_pe, const wire::block_ref& ref) noexcept {
  const auto range = world_->map(sender_node(source_pe), ref.offset, ref.bytes);
  return range && ref.offset % 64 == 0 ? range->data() : nullptr;
}

// --- reports -----------------------------------------------------------------------------------------------------

std::uint64_t node::failed_posts() const noexcept {
  std::uint64_t all = 0;
  for (const auto& p : pes_) all += p->count().failed_posts;
  return all;
}

}  // namespace orrery::scheduler
