// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/service/detail/list_head.hpp>
#include <orrery/service/detail/list_range.hpp>
#include <orrery/service/handle.hpp>
#include <orrery/service/list_session.hpp>
#include <orrery/service/lost_keys.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

/// How an ordered list is made.
template <class Key>
struct list_options {
  std::vector<std::uint32_t> pes = {};  ///< where its ranges live; empty: program_pes()
  /// A range with more items gives half of them to another range.
  std::uint32_t range_items = tuning::automatic;
  std::vector<Key> splits = {};  ///< keys at which ranges begin from the start
  /// Ranges are split, joined and moved by themselves, by what they have to do.
  bool balancing = true;
};

/// An ordered map that is spread over the PEs of a program and used by any number of clients, of
/// any program in the world: a service.
///
/// Problem: a map that one process owns is no faster than this process, and one that all share
/// needs locks and one address space.
///
/// The keys are divided into ranges, each of which is owned by a process. Clients open sessions,
/// through which requests go in batches straight to the ranges. A range that grows beyond
/// `range_items` splits; the new one is on the next PE of the list. Ranges that have much to do
/// split and move, too, and small ones that have little become one (balance).
///
/// The list lives until end(), or as long as its nodes. An `ordered_list` is a small value that
/// names it, to be copied and sent like a remote pointer.
///
/// Keys and values are serializable, have a default constructor, and can be copied; keys are
/// ordered by `<`.
///
///     auto list = orrery::ordered_list<int, std::string>::make();
///     list.publish("/stars");
///     auto s = list.open();
///     s.insert(1, "Sun");
template <class Key, class Value>
class ordered_list : public service::handle<ordered_list<Key, Value>> {
 public:
  static constexpr const char* kind = "ordered list";
  /// The types of keys and values, in words that all compilers agree on.
  [[nodiscard]] static std::string types() { return service::types_in_words<Key, Value>(); }
  /// The window of one client.
  using session = list_session<Key, Value>;

  ordered_list() noexcept = default;

  /// Makes an empty list, on the PEs of the program that calls this (program_pes()) unless the
  /// options name others: what lies on PEs of a program that leaves goes with it. Parks. Throws
  /// usage_error, node_lost, stopped.
  [[nodiscard]] static ordered_list make(list_options<Key> options = {}) {
    if (options.pes.empty()) options.pes = program_pes();
    // throws: most get their part with the first split only
    for (const std::uint32_t p : options.pes) (void)pe(p).resolve();
    if (options.range_items < 2) throw usage_error(errc::bad_argument, "list_options::range_items must be 2 or more");
    std::vector<Key> splits = std::move(options.splits);
    std::ranges::sort(splits, [](const Key& a, const Key& b) { return a < b; });
    const auto same = std::ranges::unique(splits, [](const Key& a, const Key& b) { return !(a < b); });
    splits.erase(same.begin(), same.end());
    ordered_list list(spawn<service::service_root>(here(), kind, types(), options.pes));
    base::make_or_end(list, [&] {
      using range = service::list_range<Key, Value>;
      const std::uint32_t limit =
          options.range_items == tuning::automatic ? service::service_root::first_limit : options.range_items;
      const service::range_setup setup{list.root_, limit};
      std::optional<Key> end;
      remote<range> successor;
      for (std::size_t i = splits.size() + 1; i-- != 0;) {
        const std::optional<Key> least = i == 0 ? std::optional<Key>() : std::optional<Key>(splits[i - 1]);
        const remote<range> fresh = spawn<range>(pe(options.pes[i % options.pes.size()]), setup);
        service::range_content content;
        service::owned_keys<Key>{least, end, fresh.address(), 1}.pack_to(content.keys);
        content.successor = successor.address();
        fresh->begin(content, limit);
        service::bytes packed;
        if (least) service::pack(packed, *least);
        list.root_->add(std::move(packed), fresh, 1);
        successor = fresh;
        end = least;
      }
      list.root_->set_balancing(options.balancing, options.range_items);
      list.root_->set_head(
          spawn<service::list_head<Key, Value>>(pe(options.pes.front()), list.root_, std::string(kind)));
    });
    return list;
  }
  /// Ranges with more items than this split from now on (`tuning::automatic`: the balancing finds
  /// it); those that have more split at once, while requests go on. Parks. Throws usage_error if it
  /// is less than 2, or the list has other types, process_gone, node_lost, stopped.
  void tune(std::uint32_t range_items) const {
    if (range_items < 2) throw usage_error(errc::bad_argument, "ordered_list::tune: a range must hold 2 items or more");
    this->ask_checked([&](const auto& root) { root->tune(range_items); });
  }
  /// Balances the ranges now, by what they have done since the last time: hot ones split, or move
  /// to where most of their clients are, or to a PE with less to do; neighbours with few items and
  /// little to do become one. This happens by itself if list_options::balancing says so. Requests
  /// go on meanwhile. Returns how many ranges were split, moved and joined. Parks. Throws
  /// usage_error if the list has other types, process_gone, node_lost, stopped.
  std::uint32_t balance() const {
    return this->ask_checked([](const auto& root) { return root->balance(); });
  }
  /// The number of items, without stopping any range: not at one moment. Lost ranges are not
  /// counted. Parks.
  [[nodiscard]] std::uint64_t estimated_size() const { return this->count_items(); }
  /// The keys whose ranges are lost with their nodes, as of the last split, join or move that was
  /// complete: requests for them fail with node_lost, all others go on. In the order of keys.
  /// Parks. Throws usage_error if the list has other types, process_gone, stopped; node_lost if the
  /// root of the list is lost.
  [[nodiscard]] std::vector<key_bounds<Key>> lost() const {
    return service::lost_keys<Key>::find([this] { return this->open_directory(); });
  }
  /// A session for the calling process. Parks. Throws usage_error if the list has other types or
  /// the options make no sense, process_gone if it has ended, node_lost, stopped.
  [[nodiscard]] list_session<Key, Value> open(const session_options& o = {}) const {
    return list_session<Key, Value>(root_, o);
  }

 private:
  using base = service::handle<ordered_list>;
  friend base;
  using base::root_;

  explicit ordered_list(remote<service::service_root> root) noexcept : base(root) {}
};

}  // namespace orrery
