// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/pe.hpp>

#include <barrier>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace orrery::scheduler {

/// How a node is started.
struct node_settings {
  std::uint32_t pes = 0;  ///< 0: as many as there are cores for this node
  pe_settings pe;
  bool pin = true;  ///< bind each PE to a core, when there are enough
};

/// One OS process of the world: its PEs and what they share. Made by the runtime, lives for one run. The functions are called by the
/// node's PEs, from any of their threads.
class node {
 public:
  explicit node(const node_settings& settings);
  node(const node&) = delete;
  node& operator=(const node&) = delete;
  ~node();

  [[nodiscard]] std::uint32_t first_pe() const noexcept { return first_pe_; }
  [[nodiscard]] std::uint32_t pe_count() const noexcept { return static_cast<std::uint32_t>(pes_.size()); }
  /// PEs of the whole world, as far as this node knows: numbers are below this.
  [[nodiscard]] std::uint32_t world_pes() const noexcept { return pe_count(); }
  [[nodiscard]] bool is_local(std::uint32_t pe) const noexcept { return pe - first_pe_ < pes_.size(); }
  [[nodiscard]] pe& local(std::uint32_t pe) noexcept { return *pes_[pe - first_pe_]; }

  /// Runs the PEs until stop(); the first one on the calling thread. `first` is called there before its loop begins.
  void run(const std::function<void(pe&)>& first);
  /// Makes run() return, from any thread.
  void stop() noexcept;

  [[nodiscard]] bool shares_memory() const noexcept { return false; }
  [[nodiscard]] bool has_reentrant() const noexcept { return reentrant_.load(std::memory_order_relaxed); }
  void set_reentrant() noexcept { reentrant_.store(true, std::memory_order_relaxed); }

  // For PEs.
  std::unique_ptr<channel> connect(pe& from, std::uint32_t to);
  void adopt_remote(pe& to, std::vector<std::unique_ptr<inbound>>& rings);
  void wake(std::uint32_t pe) noexcept;
  void stop_barrier() noexcept { stopped_->arrive_and_wait(); }
  void failed_post(pe& at, const handler* method, std::exception_ptr why) noexcept;
  void peer_corrupt(std::uint32_t pe, const char* what) noexcept;
  [[nodiscard]] std::byte* block(std::uint32_t source_pe, const wire::block_ref& ref) noexcept;
  /// Memory for a payload that PE `to` will read in place; `offset` names it.
  std::byte* allocate_block(std::uint32_t to, std::size_t bytes, std::uint64_t& offset);
  void release_block(pe& self, std::uint32_t source_pe, std::uint64_t offset) noexcept;
  void block_released(std::uint32_t by_pe, std::uint64_t offset) noexcept;
  void control(pe& at, inbound& in, wire::envelope& e) noexcept;
  void trace_span(pe& at, const handler& method, address process, std::int64_t begin, std::int64_t end) noexcept;

 private:
  node_settings settings_;
  std::uint32_t first_pe_ = 0;
  std::unique_ptr<transport::doorbell[]> bells_;
  std::vector<std::unique_ptr<pe>> pes_;
  std::optional<std::barrier<>> stopped_;
  std::atomic<bool> reentrant_{false};
  struct heap_rings;
  std::unique_ptr<heap_rings> rings_;
};

}  // namespace orrery::scheduler
