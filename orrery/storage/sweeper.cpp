// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/sweeper.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <utility>

namespace orrery::storage {
namespace {

// Of this OS process, in bytes: resident at most so far; what it shares with other nodes now, and at no time else, counts for each of them in part.
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
  set_page_pool_limit(plan_.pool_bytes);
}

void sweeper::begin(std::size_t) {}

work_log sweeper::run(std::size_t sweep, const array& from, const array& to) {
  log_ = {.pe = this_pe(), .node = this_node()};
  try {
    begin(sweep);
    for (std::int64_t unit; (unit = ledger_->next()) >= 0;) do_unit(sweep, unit, from, to);
  } catch (...) {
    ledger_->stop();
    throw;
  }
  return std::move(log_);
}

void sweeper::do_unit(std::size_t sweep, std::int64_t unit, const array& from, const array& to) {
  double since = seconds_now();
  const auto note = [&](work_span::kind what) {
    const double now = seconds_now();
    log_.spans.push_back({what, unit, std::exchange(since, now), now, std::exchange(busy_, 0)});
  };
  page_block block(plan_.grid, plan_.unit_pages(sweep, unit), plan_.work_type);
  block.read(from, plan_.window);
  note(work_span::kind::read);
  since_ = since;
  compute(sweep, block);
  busy_ += seconds_now() - since_;
  note(work_span::kind::compute);
  block.write(to, plan_.window);
  note(work_span::kind::write);
  ledger_->done(unit);
  log_.node_peak = std::max(log_.node_peak, peak_memory());
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
