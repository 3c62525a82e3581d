// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/sweeper.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

namespace orrery::storage {
namespace {

// The memory of this OS process, in bytes: resident at most so far; what it shares with other nodes
// now, and at no time else, counts for each of them in part.
std::uint64_t peak_memory() {
  const bool alone = world_nodes() == 1;
  std::ifstream status(alone ? "/proc/self/status" : "/proc/self/smaps_rollup");
  for (std::string word; status >> word;)
    if (std::uint64_t kib = 0; word == (alone ? "VmHWM:" : "Pss:") && status >> kib) return kib << 10;
  return 0;
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

sweeper::sweeper(const sweep_plan& plan, const remote<ledger>& units) : plan_(plan), ledger_(units) {
  set_page_pool_limit(plan_.pool_bytes, array_page::bytes_of(plan_.grid.page_shape, plan_.work_type));
}

void sweeper::begin(std::size_t) {}
void sweeper::compute(std::size_t sweep, page_block& unit) {
  for_each_box(unit.elements(), box_shape(sweep), [&](const domain& box) {
    compute_box(sweep, unit, box);
    give_way();
  });
}
index3 sweeper::box_shape(std::size_t) const { return plan_.grid.array_shape; }
void sweeper::compute_box(std::size_t, page_block&, const domain&) {}

work_log sweeper::run(std::size_t sweep, const array& from, const array& to) {
  log_ = {.pe = this_pe(), .node = this_node()};
  try {
    if (number_ < plan_.at_once.at(sweep)) do_units(sweep, from, to);
  } catch (...) {
    ledger_->stop();
    throw;
  }
  log_.node_peak = peak_memory();
  return std::move(log_);
}

void sweeper::do_units(std::size_t sweep, const array& from, const array& to) {
  const auto note = [&](work_span::kind what, std::int64_t unit, double since) {
    log_.spans.push_back({what, unit, since, seconds_now(), std::exchange(busy_, 0)});
  };
  std::uint64_t counted = 0;
  const auto done = [&](std::int64_t unit) {
    if (log_.counted != counted) ledger_->count(unit, log_.counted - counted);
    counted = log_.counted;
    ledger_->done(unit);
  };
  const auto block_of = [&](std::int64_t unit) {
    return page_block(plan_.grid, plan_.unit_pages(sweep, unit), plan_.work_type);
  };
  if (helpers_.empty()) prepare(sweep);
  std::int64_t unit = ledger_->next();
  if (unit < 0) return;
  double since = seconds_now();
  page_block block = block_of(unit);
  block.read(from, plan_.window);
  for (std::int64_t next = 0; unit >= 0; unit = next) {
    note(work_span::kind::read, unit, since);
    since = since_ = seconds_now();
    if (helpers_.empty()) {
      compute(sweep, block);
      busy_ += seconds_now() - since_;
    } else {
      compute_shared(sweep, block);
    }
    note(work_span::kind::compute, unit, since);
    since = seconds_now();
    next = ledger_->next();
    if (next >= 0) {
      page_block other = block_of(next);
      block.write_and_read(to, other, from, plan_.window);
      block = std::move(other);
    } else {
      block.write(to, plan_.window);
    }
    note(work_span::kind::write, unit, since);
    done(unit);
  }
}

// --- helpers -------------------------------------------------------------------------------------

// A unit with which several processes of a node compute. A helper that comes late finds no box any
// more.
struct sweeper::shared_unit {
  page_block block;
  std::vector<domain> boxes;
  std::atomic<std::size_t> next{0};
};

void sweeper::be_helped(const std::vector<std::vector<remote<sweeper>>>& helpers) {
  helpers_ = helpers.at(this_node());
}
std::uint32_t sweeper::node_of() const { return this_node(); }

void sweeper::prepare(std::size_t sweep) {
  if (prepared_ == sweep) return;
  begin(sweep);
  prepared_ = sweep;
}

void sweeper::compute_shared(std::size_t sweep, page_block& unit) {
  const auto shared = std::make_shared<shared_unit>();
  for_each_box(unit.elements(), box_shape(sweep), [&](const domain& box) { shared->boxes.push_back(box); });
  shared->block = std::move(unit);
  shared->block.make_own();
  // Each message has a share of its own: the unit lives until the last helper has left it, whatever
  // becomes of this process.
  std::vector<future<helped>> working;
  for (const remote<sweeper>& h : helpers_)
    working.push_back(start(h)->help(sweep, reinterpret_cast<std::uint64_t>(new std::shared_ptr<shared_unit>(shared))));
  for (auto& w : working) {
    const helped done = w.get();
    busy_ += done.busy;
    log_.counted += done.counted;
  }
  unit = std::move(shared->block);
}

helped sweeper::help(std::size_t sweep, std::uint64_t unit) {
  const wire::unique_ptr<std::shared_ptr<shared_unit>> mine(reinterpret_cast<std::shared_ptr<shared_unit>*>(unit));
  shared_unit& u = **mine;
  prepare(sweep);
  busy_ = 0;
  log_.counted = 0;
  since_ = seconds_now();
  // SYNC: the order of the boxes' bytes is that of the messages: `help` is called after they were
  // read, and answers after they were changed.
  for (std::size_t i = 0; (i = u.next.fetch_add(1, std::memory_order_relaxed)) < u.boxes.size();) {
    compute_box(sweep, u.block, u.boxes[i]);
    give_way();
  }
  return {busy_ + seconds_now() - since_, log_.counted};
}

void sweeper::give_way() {
  constexpr double slice = 2e-4;
  const double now = seconds_now();
  if (now - since_ < slice) return;
  busy_ += now - since_;
  yield();
  since_ = seconds_now();
}

}  // namespace orrery::storage
