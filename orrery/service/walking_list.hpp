// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/runtime.hpp>
#include <orrery/service/detail/typed_walk_manager.hpp>
#include <orrery/service/detail/walk_node.hpp>
#include <orrery/service/handle.hpp>
#include <orrery/service/walk_session.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

/// How a walking list is made.
struct walking_options {
  std::vector<std::uint32_t> pes = {};  ///< where its processes live; empty: program_pes()
  std::uint32_t processes = 1000;  ///< list processes of each PE (P)
  /// Items of a process (G); `tuning::automatic`: it grows as processes are used up.
  std::uint32_t granularity = 1;
  /// Requests that a process passes on between two synchronous sends (K), at most 65,535; or
  /// `tuning::automatic`.
  std::uint32_t forwards = 64;
  spare_order spares = spare_order::local_first;  ///< from where free processes are taken
  /// Without them all requests begin at the head, and a process needs less memory.
  bool shortcuts = true;
  /// In simulated worlds: what it takes to look at one item of a process.
  std::chrono::nanoseconds search{};
};

/// An ordered list of the kind that Alam, Kamal and Wagner describe: a chain of processes, along
/// which requests walk to where their keys are. Clients use it through the sessions of
/// ordered_list.
///
/// It is for the study of such lists: a request costs a message for each process that it passes. It
/// can hold P x G items for each PE at most; a request that finds no free process fails with
/// usage_error: the list is full. The loss of a node ends the list: all requests fail with
/// node_lost.
///
/// The levels of consistency say which shortcuts are used. `total`: none, and the order is that of
/// the arrival at the head. `sequential`: the session sends runs of ascending keys, one after the
/// other, each through a shortcut of its PE. `sequential_of_the_paper`: each request through a
/// shortcut that is not behind those of outstanding requests, which is less than sequential.
/// `per_key` and `unordered`: each through the best shortcut; list processes use those of their
/// PEs, too.
///
/// A `walking_list` is a small value that names the list, and can be published, found and sent like
/// an ordered_list.
///
///     auto list = orrery::walking_list<int, int>::make({.processes = 100, .granularity = 8});
///     auto s = list.open({.window = 32});
template <class Key, class Value>
class walking_list : public service::handle<walking_list<Key, Value>> {
 public:
  static constexpr const char* kind = "walking list";
  /// The types of keys and values, in words that all compilers agree on.
  [[nodiscard]] static std::string types() { return service::types_in_words<Key, Value>(); }
  /// A key and its value.
  using item = std::pair<Key, Value>;
  /// The window of one client.
  using session = walk_session<Key, Value>;

  walking_list() noexcept = default;

  /// Makes an empty list and its free processes, which are of the class Node, on the PEs of the
  /// program that calls this unless the options name others. Parks. Throws usage_error, node_lost,
  /// stopped.
  template <class Node = service::walk_node<Key, Value>>
  [[nodiscard]] static walking_list make(walking_options options = {}) {
    if (options.pes.empty()) options.pes = program_pes();
    // throws before anything is made
    for (const std::uint32_t p : options.pes) (void)pe(p).resolve();
    check_parameters(options.granularity, options.forwards);
    if (options.processes == 0)
      throw usage_error(errc::bad_argument, "a walking list without processes holds nothing: give P 1 or more");
    walking_list list(spawn<service::service_root>(here(), kind, types(), options.pes));
    base::make_or_end(list, [&] {
      using manager = service::typed_walk_manager<Key, Value, Node>;
      std::vector<remote<service::walk_manager>> all;
      for (const std::uint32_t p : options.pes)
        all.push_back(spawn<manager>(pe(p), static_cast<std::int64_t>(options.search.count()), options.shortcuts));
      const remote<service::walk_process> head = all.front()->make_head();
      for (std::uint32_t i = 0; i < all.size(); ++i) {
        all[i]->set_parameters(options.granularity, options.forwards);
        all[i]->set_head(head);
        all[i]->set_processes(options.processes);
        all[i]->join(all, i, options.spares);
        list.root_->add({}, all[i], 0);
      }
    });
    return list;
  }

  /// A session for the calling process. Parks. Throws usage_error if the list has other types or
  /// the options make no sense, process_gone if it has ended, node_lost, stopped.
  [[nodiscard]] session open(const session_options& o = {}) const { return session(manager_for(this_pe()), o); }

  /// Fills an empty list with items whose keys ascend, without walking: evenly, in blocks on the
  /// PEs in their order, or (`in_turn`) neighbours on PEs that follow each other. No request may be
  /// outstanding. Parks. Throws usage_error if the keys do not ascend, the list is not empty, or
  /// there is no room.
  void fill(std::span<const item> items, bool in_turn = false) const {
    for (std::size_t i = 1; i < items.size(); ++i)
      if (!(items[i - 1].first < items[i].first))
        throw usage_error(errc::bad_argument, "walking_list::fill: the keys of the items do not ascend");
    const std::vector<remote<service::walk_manager>> all = managers();
    const std::uint64_t processes = room_for(items.size());
    if (items.empty()) return;
    const std::size_t each = (items.size() - 1) / processes + 1;
    const std::size_t blocks = (items.size() - 1) / each + 1;
    service::walk_link behind;
    for (std::size_t b = blocks; b-- != 0;) {
      const auto part = items.subspan(b * each, std::min(each, items.size() - b * each));
      service::bytes packed;
      for (const item& i : part) {
        service::pack(packed, i.first);
        service::pack(packed, i.second);
      }
      const auto& m = all[in_turn ? b % all.size() : b * all.size() / blocks];
      const auto others = static_cast<std::uint32_t>(all.size() - 1);
      const service::spare s = m->pass(others, behind, std::span<const std::byte>(packed));
      s.process->join(service::walk_request{});  // not a post: all of them would wait here at once
      behind = {s.process.address(), {}, 0};
      service::pack(behind.least, part.front().first);
    }
    all.front()->head()->begin(behind, std::span<const std::byte>());
  }

  /// G and K from now on, or `tuning::automatic`; what processes hold stays there. Parks. Throws
  /// usage_error if G is 0, or K more than 65,535.
  void tune(std::uint32_t granularity, std::uint32_t forwards) const {
    check_parameters(granularity, forwards);
    for (const auto& m : managers()) m->set_parameters(granularity, forwards);
  }
  /// At most so many processes of each PE are in the list from now on (P). Those that are in it
  /// stay until they are empty. Parks.
  void set_processes(std::uint32_t of_each_pe) const {
    for (const auto& m : managers()) m->set_processes(of_each_pe);
  }
  /// Processes that are free. Not at one moment. Parks.
  [[nodiscard]] std::uint64_t free_processes() const {
    std::uint64_t n = 0;
    for (const auto& m : managers()) n += m->free();
    return n;
  }
  /// The number of items, without stopping any process: not at one moment. Parks.
  [[nodiscard]] std::uint64_t estimated_size() const {
    std::uint64_t n = 0;
    for (const auto& m : managers()) n += m->describe().items;
    return n;
  }
  /// The work of the processes of each PE, and the present W, K, G and P. Not at one moment. Parks.
  [[nodiscard]] std::vector<service::walk_report> statistics() const {
    std::vector<service::walk_report> all;
    for (const auto& m : managers()) all.push_back(m->describe());
    return all;
  }
  /// Ends the list when the requests that it has taken are answered; later ones fail with
  /// process_gone. Parks.
  void end() {
    using service::walk_manager;
    const std::vector<remote<walk_manager>> all = managers();
    at_all(all, [](const remote<walk_manager>& m) { return start(m)->finish_requests(); });
    at_all(all, [](const remote<walk_manager>& m) { return start(m)->end(); });
    base::end();
  }

 private:
  // The free processes of a list that is to be filled.
  [[nodiscard]] std::uint64_t room_for(std::size_t items) const {
    std::uint64_t free = 0;
    std::uint64_t held = 0;
    std::uint64_t room = 0;
    bool grows = false;
    for (const service::walk_report& r : statistics()) {
      free += r.free;
      held += r.items;
      room += r.free * r.granularity;
      grows |= r.tunes_granularity;
    }
    service::check_fill(items, held, grows && free != 0 ? items : room);
    return free;
  }
  static void check_parameters(std::uint32_t granularity, std::uint32_t forwards) {
    if (granularity == 0)
      throw usage_error(errc::bad_argument, "a walking list with processes of 0 items holds nothing: give G 1 or more");
    if (forwards != tuning::automatic && forwards > service::walk_settings::most_counted)
      throw usage_error(errc::bad_argument,
                        "a walking list that passes on more than 65,535 requests before it waits for an answer: give "
                        "a smaller K, or tuning::automatic");
  }
  /// A node that is lost has taken its manager along.
  template <class Start>
  static void at_all(const std::vector<remote<service::walk_manager>>& managers, Start begin) {
    std::vector<future<void>> all;
    const auto if_there = [](auto f) {
      try {
        f();
      } catch (const node_lost&) {
      }
    };
    for (const auto& m : managers) if_there([&] { all.push_back(begin(m)); });
    for (auto& f : all) if_there([&] { f.get(); });
  }
  [[nodiscard]] std::vector<remote<service::walk_manager>> managers() const {
    std::vector<remote<service::walk_manager>> all;
    for (const service::directory_entry& e : this->open_directory())
      all.emplace_back(e.owner.address());  // of this kind there is nothing else
    return all;
  }
  // The one on the PE; clients on PEs that the list is not on are spread.
  [[nodiscard]] remote<service::walk_manager> manager_for(std::uint32_t p) const {
    const auto all = managers();
    for (const auto& m : all)
      if (m.address().pe == p) return m;
    return all[p % all.size()];
  }

  using base = service::handle<walking_list>;
  friend base;
  using base::root_;

  explicit walking_list(remote<service::service_root> root) noexcept : base(root) {}
};

}  // namespace orrery
