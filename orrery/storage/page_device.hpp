// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/process/remote.hpp>
#include <orrery/storage/detail/page_file.hpp>
#include <orrery/storage/page.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::storage {

/// The arguments of a device. Travels as an aggregate.
struct device_options {
  open_mode mode = open_mode::create;
  transfer_mode transfers = transfer_mode::automatic;
  std::uint32_t depth = 8;  ///< transfers that the drive is given at once; 1 to 256
  /// Path of the file of checksums (page_sums); empty: pages are not verified.
  std::string sums = {};
  /// False: other device processes, on other nodes, have the same files open (`beside`). Nobody
  /// then keeps anything in memory but what it is at, and who uses two of them for one page sees to
  /// it that one call has returned before the other is made, if either of them writes.
  bool alone = true;
  std::uint64_t owner = 0;  ///< of the file of checksums: see page_sums
  std::uint32_t number = 0;  ///< among the owner's devices, from 1: see page_sums
};

/// The properties of a device.
struct device_geometry {
  std::string file;
  std::uint64_t pages = 0;
  std::uint64_t page_bytes = 0;
  bool writable = false;
  bool direct = false;  ///< its transfers go past the page cache
  bool verified = false;  ///< its pages have checksums
};

/// The work of a device so far.
struct device_statistics {
  std::uint64_t pages_read = 0;  ///< from the drive
  std::uint64_t pages_written = 0;  ///< to the drive
  std::uint64_t cache_hits = 0;  ///< reads that found their page in the cache
  /// Pages that were read into the cache because somebody asked for that.
  std::uint64_t prefetches = 0;
  /// No room, or the read failed: whoever reads the page reads it then.
  std::uint64_t prefetches_dropped = 0;
  std::int64_t busy_ns = 0;  ///< in which the drive had a transfer to do
};

/// A drive as a process: pages of equal size in one preallocated file. (Givelberg 2014, sections
/// 2.2 and 3.1.)
///
/// Problem: a drive reaches its rate only if it always has several transfers to do, and a process
/// runs one method at a time. Clients come from any number of processes, nodes and programs, and do
/// not know of each other. So the class is reentrant: a method that waits for the drive parks, and
/// the process takes the next message; eight clients that each read one page, or one client that
/// has started eight reads, keep the drive eight deep, by plain sequential code. Why so and not
/// otherwise: a method that takes many pages would keep the drive busy for one client only, and
/// empty between two calls; helper processes for each device cost a message and a hand-over more
/// for each page and need an order of their own; commands that return at once still need someone
/// who waits. Reentrance gives up the order of calls, which is given back where it matters: for
/// each page there is a queue of readers and writers, in the order of arrival, so that a read which
/// a client started after its write finds what was written. At most `depth` transfers are given to
/// the drive at once: more would not make it faster, but delay whoever comes next.
///
/// A page that is read is moved to a caller on this node (its memory is what the drive wrote into);
/// a caller on another node gets it by one copy into a message and one out of it. Pages to be
/// written are not copied here at all.
///
/// With checksums (`device_options::sums`) each page is verified when it is read. A page that was
/// never written reads as zeros.
///
/// Made by spawn; ends by destroy, or with the world. As other reentrant processes it ends when its
/// last method does, for which `destroy` does not wait: call `close()` first to know when the file
/// is free. Called from any process; all methods may park the caller. They throw std::out_of_range
/// for an index, std::invalid_argument for a page of another size, std::system_error for all that
/// happens with the file, naming it, the page, the cause and what to do: EBADMSG for a page whose
/// checksum is wrong, EROFS for writing to a read-only device. Derived classes change what a page
/// is read from and written to by overriding `fetch` and `store` (whole pages, verified and
/// counted) or `read_raw` and `write_raw` (the transfer itself).
///
///     auto device = spawn<storage::page_device>(machine(1), "pagefile", 1024, 32 << 20);
///     device->write(p, 17);
///     auto next = start(device)->read(18);
class page_device {
 public:
  static constexpr bool orrery_reentrant = true;

  /// `pages` pages of `page_bytes` bytes in `file`. Throws as page_file and page_sums do.
  page_device(std::string file, std::uint64_t pages, std::uint64_t page_bytes, device_options options = {});
  /// The same pages as an existing device, which does the work. On its node nothing is copied.
  /// (Section 4.1.)
  explicit page_device(const remote<page_device>& existing);
  page_device(const page_device&) = delete;
  page_device& operator=(const page_device&) = delete;
  virtual ~page_device();

  /// Returns when the drive (or a cache, in derived classes) has taken the page.
  void write(const page& p, std::uint64_t index);
  /// The page, from the drive or a cache.
  [[nodiscard]] page read(std::uint64_t index);
  /// A hint that the page will be read soon. Returns when it was followed: start it or post it.
  /// Never fails. Does nothing here.
  virtual void read_into_cache(std::uint64_t index);
  /// Returns when all writes that came before are on the drive. Errors of earlier ones that nobody
  /// saw are thrown here.
  virtual void flush();
  /// Whether pages may be written from now on; else `write` throws EROFS and says that the data set
  /// is finished. Reads and `flush` go on. Does not park.
  void take_writes(bool taken);
  /// Flushes and gives the file back. The device can then only be destroyed. Throws what flush
  /// throws, and is then still open.
  virtual void close();

  /// The file, and how many pages it has of which size.
  [[nodiscard]] device_geometry geometry() const;
  /// Counts of its work so far.
  [[nodiscard]] device_statistics statistics() const { return statistics_; }
  /// Reads the page on disk, verifies it, and says what is wrong with it; empty if nothing is.
  [[nodiscard]] std::string damage_of(std::uint64_t index);
  /// The same of a page that somebody has written: one that the checksums know nothing of is
  /// damaged, too. A machine that lost power may have lost the write with the record of it.
  [[nodiscard]] std::string damage_of_written(std::uint64_t index);
  /// The pages that were never written, as far as the checksums know, in their order; none without
  /// checksums.
  [[nodiscard]] std::vector<std::uint64_t> unwritten() const;

 protected:
  /// Without a file: for derived classes that override fetch and store and have another place for
  /// pages.
  page_device(std::uint64_t pages, std::uint64_t page_bytes);

  /// A whole page from below. The caller holds the page's lock, shared at least.
  virtual page fetch(std::uint64_t index);
  /// A whole page to what is below. The caller holds the page's lock.
  virtual void store(const page& p, std::uint64_t index);
  /// The transfer itself: geometry().page_bytes, rounded up to page_alignment.
  virtual void read_raw(std::span<std::byte> into, std::uint64_t index);
  /// As read_raw, to write.
  virtual void write_raw(std::span<const std::byte> from, std::uint64_t index);

  /// Holds a page's lock for the duration of a method; exclusive: as a write, for which flush
  /// waits.
  class page_lock {
   public:
    page_lock(page_device& d, std::uint64_t index, bool exclusive);
    page_lock(const page_lock&) = delete;
    page_lock& operator=(const page_lock&) = delete;
    ~page_lock();

   private:
    struct held;
    wire::unique_ptr<held> held_;
  };

  /// Parks until the writes that came before have been stored.
  void await_writes();
  /// Throws std::out_of_range.
  void check(std::uint64_t index) const;
  /// Throws EROFS: it was opened read-only, or takes no writes now.
  void check_writable() const;
  /// Throws if the device is closed.
  void check_open() const;
  /// As store, without waiting for a turn: for destructors.
  void store_now(const page& p, std::uint64_t index);
  /// The size of each page.
  [[nodiscard]] std::uint64_t page_bytes() const noexcept { return page_bytes_; }
  /// The number of pages.
  [[nodiscard]] std::uint64_t pages() const noexcept { return pages_; }
  /// As errors name it: with its host in a world of several machines.
  [[nodiscard]] const std::string& file_name() const noexcept { return name_; }

  device_statistics statistics_;

 private:
  struct state;  // file, checksums, queues
  struct transfer;

  void load(page& p, std::uint64_t index);
  void store_with(const page& p, std::uint64_t index, std::uint64_t sum);

  std::string name_;
  std::uint64_t pages_ = 0;
  std::uint64_t page_bytes_ = 0;
  remote<page_device> source_;
  wire::unique_ptr<state> state_;
};
ORRERY_PROCESS(page_device, write, read, read_into_cache, flush, take_writes, close, geometry, statistics, damage_of,
               damage_of_written, unwritten);

}  // namespace orrery::storage
