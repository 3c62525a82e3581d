// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/array_page_device.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>

namespace orrery::storage {

/// How much memory an array_device may use beside its transfers.
struct cache_options {
  std::uint32_t cache_pages = 16;  ///< pages that are kept for readers
  /// Pages that were written and are not on the drive yet; 0: a write returns when it is there.
  std::uint32_t write_behind_pages = 8;
};

/// An array_page_device with a cache: it reads before it is asked and writes after it has answered.
/// (Givelberg 2014, section 4.3.)
///
/// Problem: reading, computing and writing should go on at the same time, though a client does one
/// after the other. So `read_into_cache` reads a page that will be wanted; started or posted, it
/// costs the client nothing. And a write is done for the client as soon as the cache has the page;
/// the drive gets it afterwards. Both share bytes with their clients (pages are counted
/// references), so neither copies on one node.
///
/// The cache for readers: pages that nobody has read yet stay until someone does; of the others the
/// one longest unused makes place for the next. A hint for which there is no place is dropped, and
/// counted: it never waits, and never throws out what another client has asked for and not read
/// yet. Write-behind: a write waits while `write_behind_pages` are on their way. An error is never
/// lost: it is thrown, with the page that it was about, by the next write, flush or close of the
/// device, whoever calls that, which then has done nothing else; the page stays in memory, reads
/// find it, and the next flush tries again. Pages that are not written when the device is destroyed
/// are written then; if that fails it is said on stderr: call close() to see errors, and to know
/// when all is done.
///
/// As for page_device in all else. At most (cache_pages + write_behind_pages + depth) pages of
/// memory.
class array_device : public array_page_device {
 public:
  array_device(std::string file, std::uint64_t pages, const index3& shape, element_type type,
               device_options options = {}, cache_options cache = {});
  array_device(const remote<page_device>& existing, const index3& shape, element_type type, cache_options cache = {});
  ~array_device() override;

  void read_into_cache(std::uint64_t index) override;
  void flush() override;
  void close() override;

  /// Writes a page of the cache to the drive: a message of the device to itself.
  void write_back(std::uint64_t index);
  /// Forgets what the cache holds for readers, so that they read from the drive.
  void drop_cache();

 protected:
  page fetch(std::uint64_t index) override;
  void store(const page& p, std::uint64_t index) override;

 private:
  struct cache;
  void keep(const page& p, std::uint64_t index, bool used);
  void throw_error_of_the_past();
  void begin_write_back(std::uint64_t index);

  wire::unique_ptr<cache> cache_;
};
ORRERY_PROCESS(array_device, write_back, drop_cache);

}  // namespace orrery::storage
