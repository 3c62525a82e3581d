// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/array.hpp>
#include <orrery/storage/array_device.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace orrery::storage {

/// The form of a new data set.
struct data_set_description {
  index3 shape{};
  index3 page_shape{};
  element_type type = element_type::complex128;
  /// One for each device, mostly each on another drive; empty: one device, in the data set's own
  /// folder. "node7:/disk1/x" is a folder on the machine with that host name: the device's process
  /// lives there.
  std::vector<std::string> folders = {};
  any_page_map map = {};  ///< empty: circulant
  bool checksums = true;
  /// Further facts of the array (voxel size, units, where it comes from): a JSON object, which is
  /// kept in the header as it is. Empty: nothing.
  std::string attributes = {};
  /// data_set_info::id, as a job has noted it before it makes the data set; 0: a new one.
  std::uint64_t id = 0;
};

/// How a data set is opened.
struct data_set_options {
  open_mode mode = open_mode::read_only;  ///< of an existing one: read_only or read_write
  bool unfinished = false;  ///< open it read-only also if its last writer has not finished
  transfer_mode transfers = transfer_mode::automatic;
  std::uint32_t depth = 8;
  cache_options cache = {};
  /// Where the devices live, in turn; empty: all PEs of the world, from the data set's own on. In a
  /// world of several machines each device takes one of these that is on the machine of its folder.
  std::vector<std::uint32_t> pes = {};
  /// Each node has devices of its own for the files of its machine: no page goes from node to node
  /// of a machine. The callers order writes of one node and reads of another
  /// (device_options::alone), and there is no cache.
  bool on_each_node = false;
  /// data_set_info::edition from now on, if it is opened for writing, as a job has noted it before;
  /// 0: a new one.
  std::uint64_t edition = 0;
};

/// The content of a data set's header.
struct data_set_info {
  std::string path;
  index3 shape{};
  index3 page_shape{};
  element_type type = element_type::complex128;
  std::string map;  ///< kind of the page map
  std::vector<std::string> files;  ///< of the devices
  std::vector<std::uint64_t> pages;  ///< of the devices
  bool checksums = false;
  bool finished = false;  ///< its last writer has called finish()
  std::string attributes = {};  ///< a JSON object; empty if there is none
  /// Is also in its files of checksums, which so are known to be its own; 0: made before there were
  /// ids.
  std::uint64_t id = 0;
  /// Another one whenever somebody has opened it for writing; 0: nobody has since there are
  /// editions. So who has read it knows later whether it is as it was.
  std::uint64_t edition = 0;
  bool intact = true;  ///< false: the header was changed by somebody else
  /// Paths of the devices' files; empty: the machine where the header is.
  std::vector<std::string> hosts = {};

  /// The folder of each device, as in data_set_description.
  [[nodiscard]] std::vector<std::string> folders() const;
};

/// A page that cannot be trusted.
struct page_damage {
  index3 page{};
  std::string what;  ///< names file, place and cause
};

/// An array on disk: a folder with a header (`orrery.json`) and one device file, with its
/// checksums, for each drive. As a process: it makes the devices, and owns them.
///
/// Problem: files outlive programs. Files that another program finds, later and elsewhere, must say
/// what they are; what an interrupted program has left must not be taken for data; and several
/// programs may want it at once. So the header is replaced as a whole (written beside, synced,
/// renamed). It says `unfinished` from the moment when somebody may write until `finish()`, and an
/// unfinished data set is opened read-only only by who asks for that. Each page has a checksum, see
/// page_sums: what was being written when a program died is named when it is read. One program at a
/// time can have it open for writing (the device files are locked), any number for reading.
///
/// Made by spawn. Its methods may be called by any process; they may park. Errors are
/// std::system_error or std::invalid_argument, whose texts name the file and say what to do. When
/// it is destroyed its devices are: what is not flushed is written, but the data set stays
/// unfinished unless finish() was called.
///
///     storage::data_set_description what{.shape = {512, 512, 512}, .page_shape = {64, 64, 64}};
///     auto set = spawn<storage::data_set>(here(), "/data/x", what);
///     storage::array a = set->contents();       // a value, to be sent to whoever works on it
///     ...
///     set->finish();
///     publish("/data/x", set);  // lookup<storage::data_set>("/data/x")->contents()
class data_set {
 public:
  /// Creates it, open for writing; `path` and the folders are made if they are not there (their
  /// parents are). Throws EEXIST if there is one already, ENOSPC if there is no room for all pages,
  /// EHOSTDOWN if a folder is on a machine that is not in the world: nothing is left behind then.
  data_set(std::string path, const data_set_description& description, const data_set_options& options = {});
  /// Opens it. Throws ENOENT (no header, or a device file is missing), EINVAL (a header that makes
  /// no sense, a device file that was truncated), EBUSY (a second writer), EBADMSG (unfinished, or
  /// a header that somebody has changed), EHOSTDOWN (a folder is on a machine that is not in the
  /// world).
  explicit data_set(std::string path, const data_set_options& options = {});
  data_set(const data_set&) = delete;
  data_set& operator=(const data_set&) = delete;
  ~data_set();

  /// The header at that path, and whether it is intact. Opens nothing else.
  [[nodiscard]] static data_set_info read_info(const std::string& path);
  /// Removes the data set's files, the header last, so that what an interrupted removal leaves can
  /// be removed again; then its folders, if nothing else is in them. Nothing is removed that it has
  /// not made, and no symbolic link is followed. Programs that have it open keep what is open.
  /// Throws ENOENT (there is none), EBUSY (somebody has it open for writing), EBADMSG (a header
  /// that somebody has changed), EPERM (a file that is not its own) and what unlink(2) gives.
  static void remove(const std::string& path);
  /// Throws what remove() would throw before it removes anything.
  static void require_removable(const std::string& path);

  /// Its path, shape, pages and type. Does not park.
  [[nodiscard]] data_set_info info() const { return info_; }
  /// The array. It can be used for as long as this process lives.
  [[nodiscard]] array contents() const { return array_; }
  /// Everything that was written is on the drives when this returns. Throws errors of writes that
  /// nobody saw.
  void flush();
  /// As flush, and the header says that the data set is finished. From then on writes are refused
  /// (EROFS), whoever writes, until `reopen`.
  void finish();
  /// Marks it unfinished again, and takes writes.
  void reopen();
  /// Reads every page and returns those that cannot be trusted, in the order of pages. (Of a data
  /// set without checksums: those that cannot be read.)
  [[nodiscard]] std::vector<page_damage> verify();
  /// The same for a box of pages (places in the grid of pages): for who shows how far it is. Throws
  /// std::out_of_range.
  [[nodiscard]] std::vector<page_damage> verify_part(const domain& pages);

 private:
  void make_devices(const data_set_options& options, open_mode mode, const std::vector<std::uint32_t>& machines);
  void make_devices_on_nodes(const std::vector<std::uint32_t>& sharing, const data_set_options& options, open_mode mode,
                             const std::vector<std::uint32_t>& machines);
  [[nodiscard]] device_options options_of(std::size_t file, const data_set_options& options, open_mode mode,
                                          bool alone) const;
  void take(std::vector<future<remote<array_device>>>& started);
  void end_devices() noexcept;
  void mark(bool finished);
  void take_writes(bool taken);

  data_set_info info_;
  any_page_map map_;
  // one for each file; behind them those of other nodes
  std::vector<remote<array_device>> devices_;
  array array_;
  bool writable_ = false;
};
ORRERY_PROCESS(data_set, info, contents, flush, finish, reopen, verify, verify_part);

}  // namespace orrery::storage
