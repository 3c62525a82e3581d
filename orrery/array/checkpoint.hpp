// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/checkpoint_item.hpp>
#include <orrery/process/detail/finish.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// Checkpoints: arrays, groups and processes on disk, written by all PEs at once, read back by as
// many PEs and nodes as there are then.
//
//     checkpoint(folder, grid, solvers, settings);
//     ...
//     auto [grid, solvers, settings] =
//         restore<array<Block>, group<Solver>, remote<Settings>>(folder);

namespace orrery {

namespace detail {

/// To be called while an exception of a class's own serialize() or constructor is handled. It says
/// what is wrong, but not with whom, and has to arrive as what it is, so that this is a report.
template <class Item>
void report_state(const std::string& where, const Item& item, const typename saved<Item>::key& key, const char* what) {
  here_pe().failures().report(where + "the state of " + saved<Item>::text(item, key) + " cannot be " + what,
                              std::current_exception());
}

/// The PEs of this program, on which its arrays are, and where else members and processes live: in
/// a named world others may have joined.
template <class... Item>
[[nodiscard]] std::set<std::uint32_t> pes_that_save(const Item&... items) {
  const std::vector<std::uint32_t> own = program_pes();
  std::set<std::uint32_t> all(own.begin(), own.end());
  (saved<Item>::add_pes(items, all), ...);
  return all;
}

template <class... Item>
checkpoint_part save_here(const std::tuple<Item...>& items, const std::string& folder) {
  checkpoint_writer out(folder, "part-" + std::to_string(here_pe().id()));
  std::uint32_t number = 0;
  const auto save = [&]<class I>(const I& item) {
    saved<I>::save_here(item, [&](const auto& key, const auto& state) {
      bytes b = pack(0, key);
      try {
        pack_after(b, state);
      } catch (...) {
        report_state("checkpoint: ", item, key, "written");
        throw;
      }
      out.add({number, std::move(b)});
    });
    ++number;
  };
  std::apply([&](const Item&... item) { (save(item), ...); }, items);
  return out.finish();
}

/// A restart as one PE sees it: what was made, whose states are then read with the references
/// between them. A process, of which each PE has one as long as the restart takes; so that who
/// reads a state finds them at hand. It has no methods: it is used by functions on its PE.
template <class... Item>
class restart {
 public:
  using per_pe = group<restart>;

  restart(std::string folder, const std::tuple<Item...>& items, const std::vector<checkpoint_item>& from)
      : folder_(std::move(folder)), items_(items) {
    std::size_t n = 0;
    std::apply([&](const Item&... item) { (saved<Item>::rename(references_, from.at(n++), item), ...); }, items_);
  }

  /// Reads files, one after the other, and sends each state to where it belongs. Returns when all
  /// have been read there.
  static void load(const per_pe& all, const std::vector<checkpoint_part>& files) {
    const restart& own = on_this_pe(all[member_on(all, here_pe().id())]);
    for (const checkpoint_part& f : files) own.load_one(all, f);
  }

 private:
  void load_one(const per_pe& all, const checkpoint_part& file) const {
    constexpr std::size_t batch_bytes = 1 << 20;
    struct batch {
      std::vector<checkpoint_record> records;
      std::size_t bytes = 0;
    };
    std::vector<batch> for_member(all.size());
    std::vector<future<void>> sent;
    const auto send = [&](std::size_t m) {
      sent.push_back(start_call<&adopt>(orrery::pe(all[m].address().pe), all[m], std::move(for_member[m].records)));
      for_member[m] = {};
    };
    finish(sent, [&] {
      checkpoint_reader in(folder_, file);
      for (checkpoint_record r; in.next(r);) {
        std::uint32_t pe = 0;
        with_item(r, [&]<class I>(const I& item, const auto& key, reader&) { pe = saved<I>::pe_of(item, key); });
        const std::size_t m = member_on(all, pe);
        batch& b = for_member.at(m);
        b.bytes += r.data.size();
        b.records.push_back(std::exchange(r, {}));
        if (b.bytes >= batch_bytes) send(m);
      }
      for (std::size_t m = 0; m < for_member.size(); ++m)
        if (!for_member[m].records.empty()) send(m);
    });
  }
  // Mostly the one with the number of the PE.
  static std::size_t member_on(const per_pe& all, std::uint32_t pe) {
    if (pe < all.size() && all[pe].address().pe == pe) return pe;
    std::size_t m = 0;
    while (m < all.size() && all[m].address().pe != pe) ++m;
    return m;
  }
  static void adopt(const remote<restart>& here, const std::vector<checkpoint_record>& records) {
    const restart& own = on_this_pe(here);
    for (const checkpoint_record& r : records)
      own.with_item(r, [&]<class I>(const I& item, const auto& key, reader& state) {
        state.set_references(&own.references_);
        try {
          saved<I>::adopt(item, key, state);
          state.finish();
        } catch (const bad_message& e) {
          throw bad_message(e.code(), own.folder_ + ": the state of " + saved<I>::text(item, key) +
                                          ", as its serialize() reads it now");
        } catch (...) {
          report_state(own.folder_ + ": ", item, key, "read");
          throw;
        }
      });
  }
  static const restart& on_this_pe(const remote<restart>& p) {
    slot* s = here_pe().find(p.address().slot, p.address().generation);
    const restart* own = s != nullptr ? object_in<restart>(*s) : nullptr;
    if (own == nullptr) throw process_gone("a restart");
    return *own;
  }
  // Calls f with the item that a record belongs to, the key, and a reader of the state.
  template <class F>
  void with_item(const checkpoint_record& r, F f) const {
    std::uint32_t number = 0;
    const auto look = [&]<class I>(const I& item) {
      if (number++ != r.item) return;
      orrery::reader head(r.data);
      const auto key = orrery::read<typename saved<I>::key>(head);
      orrery::reader state(after_section(r.data, head));
      f(item, key, state);
    };
    std::apply([&](const Item&... item) { (look(item), ...); }, items_);
    if (r.item >= sizeof...(Item))
      throw bad_message(errc::message_corrupt, folder_ + ": the state of something that it does not name");
  }

  std::string folder_;
  std::tuple<Item...> items_;
  references references_;
};

/// Destroys what was made in vain.
template <class Item>
void unmake(const Item& item) {
  if (item == Item{}) return;
  try {
    destroy(item);
  } catch (const error&) {  // a node is lost; what comes first says so
  }
}

}  // namespace detail

/// Writes arrays, groups (`group<T>`) and single processes (`remote<T>`), as one checkpoint, to a
/// folder, which all nodes see and which must not hold a checkpoint yet; when it returns everything
/// is on the disk. The state of an element, member or process is what its serialize() says. To be
/// called when nothing of them is on its way (see quiescence()): whose method runs, or who has
/// messages, is a usage_error that names it, and what waits for elements that do not exist is not
/// part of it. An array whose elements move or get messages meanwhile is a usage_error, too. A
/// group or process is of the class T, not of one derived from it.
///
/// Parks. Throws also process_gone, std::system_error (no space, no rights), node_lost. If it
/// throws, or a node is killed meanwhile, there is no checkpoint.
template <class... Item>
  requires(sizeof...(Item) > 0)
void checkpoint(const std::string& folder, const Item&... items) {
  detail::checkpoint_header h{{detail::saved<Item>::describe(items)...}, {}};
  const io::descriptor lock = detail::begin_checkpoint(folder, h.items);
  const auto before = detail::activity_of(h.items);
  const std::tuple<Item...> all(items...);
  std::vector<future<detail::checkpoint_part>> writing;
  h.parts = detail::finish(writing, [&] {
    for (const std::uint32_t p : detail::pes_that_save(items...))
      writing.push_back(start_call<&detail::save_here<Item...>>(pe(p), all, folder));
  });
  // an element that moves is on both PEs or on none when they write theirs
  detail::require_rest_since(before, h.items);
  detail::write_checkpoint_header(folder, h);
}

/// How restore makes an Item: an array by its array_options (a name that is not given is the old
/// one), a group at its placements (everywhere()), a single process at its placement (anywhere()).
template <class Item>
using restore_options = typename detail::saved<Item>::options;

/// Makes what `checkpoint` wrote, named in the same order, in a world of any number of PEs and
/// nodes: elements at their homes, groups with their sizes and ranks, each constructed without
/// arguments and then filled by its serialize().
///
/// A `remote<T>`, `group<T>`, `array<T, Index>` or `element_ptr<T, Index>` in a state names what is
/// made here, if the checkpoint has it, too; anything else in them that names a process, sections
/// and targets of reductions included, is null (as a key, once).
///
/// Parks. Throws usage_error (no finished checkpoint, or of other things), std::system_error
/// (EBADMSG: damaged; else what the system says of a file), bad_message (a state is not what the
/// class's serialize() reads now), node_lost, what constructors and serialize() throw. If it throws
/// nothing of what was made is left.
template <class... Item>
  requires(sizeof...(Item) > 0)
[[nodiscard]] std::tuple<Item...> restore(const std::string& folder, const restore_options<Item>&... how) {
  using detail::saved;
  const auto h = detail::read_checkpoint_header(folder, {saved<Item>::type()...});
  using restart = detail::restart<Item...>;
  std::tuple<Item...> made;
  typename restart::per_pe readers;
  try {
    std::size_t n = 0;
    std::apply([&](Item&... item) { ((item = saved<Item>::make(how, h.items.at(n++))), ...); }, made);
    std::vector<placement> places;
    for (const std::uint32_t p : std::apply([](const auto&... i) { return detail::pes_that_save(i...); }, made))
      places.push_back(pe(p));
    const std::size_t count = places.size();
    readers = spawn_group<restart>(std::move(places), count, folder, made, h.items);
    std::vector<std::vector<detail::checkpoint_part>> files(readers.size());
    for (std::size_t k = 0; k < h.parts.size(); ++k) files[k % files.size()].push_back(h.parts[k]);
    std::vector<future<void>> loading;
    detail::finish(loading, [&] {
      for (std::uint32_t p = 0; p < files.size(); ++p)
        if (!files[p].empty())
          loading.push_back(start_call<&restart::load>(pe(readers[p].address().pe), readers, std::move(files[p])));
    });
    destroy(readers);
  } catch (...) {
    detail::unmake(readers);
    std::apply([](const Item&... item) { (detail::unmake(item), ...); }, made);
    throw;
  }
  return made;
}
/// The same as is usual for each.
template <class... Item>
  requires(sizeof...(Item) > 0)
[[nodiscard]] std::tuple<Item...> restore(const std::string& folder) {
  return restore<Item...>(folder, detail::saved<Item>::default_options()...);
}

}  // namespace orrery
