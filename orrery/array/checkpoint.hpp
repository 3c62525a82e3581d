// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Arrays on disk: written by all PEs at once, read back by as many PEs and nodes as there are then.
//
// A checkpoint is a folder that all nodes see: a file for each PE with its elements, and `array.json`, which is written last: without it the
// checkpoint was not finished.

namespace orrery {

namespace detail {

/// A file of a checkpoint.
struct checkpoint_part {
  std::string file;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  ///< XXH3
  template <class A>
  void serialize(A& a) {
    a & file & elements & bytes & checksum;
  }
};
struct checkpoint_header {
  std::string name;  ///< of the array
  std::string element_class;
  std::string index_class;
  std::vector<checkpoint_part> parts;
};

/// Writes a file of a checkpoint piece by piece. Used by one process.
class checkpoint_writer {
 public:
  checkpoint_writer(const std::string& folder, std::string file);
  checkpoint_writer(const checkpoint_writer&) = delete;
  checkpoint_writer& operator=(const checkpoint_writer&) = delete;
  ~checkpoint_writer();
  /// One element: its index and its state, packed. May park.
  void add(const bytes& element);
  /// Everything is on the disk. May park.
  [[nodiscard]] checkpoint_part finish();

 private:
  void flush();
  struct file;
  std::unique_ptr<file> file_;
};

/// A file of a checkpoint as it was written. Throws bad_message if it is damaged. Parks.
[[nodiscard]] bytes read_checkpoint_part(const std::string& folder, const checkpoint_part& part);
/// Throws usage_error if there is a checkpoint already. Makes the folder.
void begin_checkpoint(const std::string& folder);
void write_checkpoint_header(const std::string& folder, const checkpoint_header& h);
/// Throws usage_error if that is not a checkpoint, or one of other classes.
[[nodiscard]] checkpoint_header read_checkpoint_header(const std::string& folder, std::string_view element_class,
                                                       std::string_view index_class);
[[noreturn]] void throw_not_quiescent(const std::string& element);

template <class T, class Index>
struct checkpointer {
  static_assert(
      can_be_packed<T>,
      "orrery: checkpoint: the class of the elements needs a default constructor and `template <class A> void serialize(A& a)`");

  static checkpoint_part save(std::uint32_t id, const std::string& folder) {
    pe& self = here_pe();
    std::vector<Index> all;
    for (const cell_base* c : part_of<T, Index>(self, id).cells())
      all.push_back(static_cast<const cell<T, Index>*>(c)->index);
    checkpoint_writer out(folder, "part-" + std::to_string(self.id()));
    for (const Index& i : all) {
      auto& part = part_of<T, Index>(self, id);
      auto* c = part.find_local(i);
      if (c == nullptr || c->process->state != scheduler::process_state::idle) throw_not_quiescent(part.text_of(i));
      bytes b = pack(0, i);
      pack_after(b, *c->object());
      out.add(b);
    }
    return out.finish();
  }
  // Elements of which this PE is the home: their length and bytes, one after the other.
  static void adopt(std::uint32_t id, const std::vector<bytes>& elements) {
    auto& part = part_of<T, Index>(here_pe(), id);
    for (const bytes& b : elements) {
      orrery::reader r(b);
      const auto i = orrery::read<Index>(r);
      orrery::reader state(after_section(b, r));
      auto& c = part.conceive(i, part.admit(i));
      part.construct_inline(c);
      orrery::read_into(state, *c.object());
    }
  }
  static std::uint64_t load(std::uint32_t id, const std::string& folder, const checkpoint_part& from) {
    const bytes all = read_checkpoint_part(folder, from);
    constexpr std::size_t batch_bytes = 1 << 20;
    const std::uint32_t pes = part_of<T, Index>(here_pe(), id).about().pes;
    std::vector<std::vector<bytes>> for_home(pes);
    std::vector<std::size_t> size(pes, 0);
    std::vector<future<void>> sent;
    const auto send = [&](std::uint32_t home) {
      sent.push_back(start_call<&adopt>(orrery::pe(home), id, std::exchange(for_home[home], {})));
      size[home] = 0;
    };
    std::uint64_t n = 0;
    for (std::size_t at = 0; at < all.size(); ++n) {
      std::uint64_t length = 0;
      if (all.size() - at < sizeof length) throw bad_message(errc::message_truncated, folder + "/" + from.file);
      std::memcpy(&length, all.data() + at, sizeof length);
      at += sizeof length;
      if (length > all.size() - at) throw bad_message(errc::message_truncated, folder + "/" + from.file);
      bytes b(all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at + length));
      at += length;
      orrery::reader r(b);
      const std::uint32_t home = part_of<T, Index>(here_pe(), id).home_of(orrery::read<Index>(r));
      size[home] += b.size();
      for_home[home].push_back(std::move(b));
      if (size[home] >= batch_bytes) send(home);
    }
    for (std::uint32_t home = 0; home < pes; ++home)
      if (!for_home[home].empty()) send(home);
    for (auto& f : sent) f.get();
    return n;
  }
};

}  // namespace detail

/// Writes an array to a folder, which all nodes see and which must not hold a checkpoint yet; when it returns everything is on the disk. The elements'
/// state is what their serialize() says. To be called when nothing of the array is on its way (see quiescence()): an element whose method runs or
/// has messages is a usage_error, and what waits for elements that do not exist is not part of it. Parks. Throws std::system_error (no space, no
/// rights), node_lost. If it throws, or a node is killed meanwhile, there is no checkpoint.
template <class T, class Index>
void checkpoint(const array<T, Index>& a, const std::string& folder) {
  detail::begin_checkpoint(folder);
  detail::checkpoint_header h{detail::part_of<T, Index>(detail::here_pe(), a.id()).about().name,
                              std::string(detail::type_name<T>()),
                              std::string(detail::type_name<Index>()),
                              {}};
  std::vector<future<detail::checkpoint_part>> all;
  for (std::uint32_t p = 0; p < world_pes(); ++p)
    all.push_back(start_call<&detail::checkpointer<T, Index>::save>(pe(p), a.id(), folder));
  for (auto& f : all) h.parts.push_back(f.get());
  detail::write_checkpoint_header(folder, h);
}

/// Makes an array as it was when `checkpoint` wrote it, in a world of any number of PEs and nodes: elements are created at their homes. Options are
/// not part of a checkpoint, but for the name, if none is given. Parks. Throws usage_error (no finished checkpoint, or of other classes),
/// bad_message (damaged), std::system_error, node_lost.
template <class T, array_index Index = typename detail::index_type_of<T>::type>
array<T, Index> restore_array(const std::string& folder, array_options<Index> o = {.name = {}}) {
  const auto h = detail::read_checkpoint_header(folder, detail::type_name<T>(), detail::type_name<Index>());
  if (o.name.empty()) o.name = h.name;
  const auto a = create_array<T, Index>(o);
  std::vector<future<std::uint64_t>> all;
  for (std::size_t k = 0; k < h.parts.size(); ++k)
    all.push_back(start_call<&detail::checkpointer<T, Index>::load>(pe(static_cast<std::uint32_t>(k % world_pes())),
                                                                    a.id(), folder, h.parts[k]));
  for (auto& f : all) (void)f.get();
  return a;
}

}  // namespace orrery
