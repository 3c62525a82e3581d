// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/wait_watcher.hpp>
#include <orrery/wire/address.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace orrery::scheduler {

struct idle_task;
struct slot;

/// The state that a layer above keeps on each PE. Made, used and destroyed on the PE's thread.
struct layer_state {
  layer_state() = default;
  layer_state(const layer_state&) = delete;
  layer_state& operator=(const layer_state&) = delete;
  virtual ~layer_state() = default;
  /// In a simulation: the PE will run soon, and what it has is in no cache. Called with `step` 0 to
  /// fetch_steps - 1, some time after each other, so that each step may read what the one before
  /// has asked for (the first may read this object).
  virtual void fetch(int /*step*/) const noexcept {}
  /// A process gives the PE work that it will do later: a number, other than 0, if it is this layer
  /// that counts it as work of something of its own until end_work of that number.
  virtual std::uint64_t begin_work(const slot& /*by*/) noexcept { return 0; }
  virtual void end_work(std::uint64_t /*number*/) noexcept {}
  /// A process that was `watched` has ended: nothing finds it any more. Must not park.
  virtual void process_ended(const address& /*gone*/) noexcept {}
  /// This layer's name of a process, for reports; empty: it has no name for it.
  [[nodiscard]] virtual std::string name_of(const slot&) const { return {}; }
  static constexpr int fetch_steps = 4;
};

/// The layers that keep a state on PEs.
enum class upper_layer : std::uint8_t { process, array, shared, service, task };
inline constexpr std::size_t upper_layers = 5;

/// The states of the layers above on one PE: the state of each, null until it has put one there,
/// and their wait watchers. Owned by the PE, used on its thread.
class layer_states {
 public:
  [[nodiscard]] wire::unique_ptr<layer_state>& of(upper_layer l) noexcept { return all_[static_cast<std::size_t>(l)]; }
  /// Calls f for each that is there.
  template <class F>
  void for_each(F f) const {
    for (const auto& s : all_)
      if (s != nullptr) f(*s);
  }
  /// Has the work of a process counted by the first layer that wants to.
  void count_work(idle_task& t) const noexcept;
  /// The layers' name of a process; empty: none has a name for it.
  [[nodiscard]] std::string name_of(const slot& s) const;
  void clear() noexcept {
    for (auto& s : all_) s.reset();
  }
  [[nodiscard]] watcher_list& watchers() noexcept { return watchers_; }
  [[nodiscard]] const watcher_list& watchers() const noexcept { return watchers_; }

 private:
  wire::unique_ptr<layer_state> all_[upper_layers];
  watcher_list watchers_;
};

}  // namespace orrery::scheduler
