// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "log.hpp"

#include <orrery/orrery.hpp>
#include <orrery/process/simulated_drive.hpp>
#include <orrery/storage/page_map.hpp>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace fft_servers {

/// The work of ArrayDevice, without data: for arrays that are simulated. Messages carry as many
/// bytes as the pages have, and transfers take the time of a simulated drive.
class PhantomDevice {
 public:
  static constexpr bool orrery_reentrant =
      true;  // as devices are: a page that comes from the cache does not wait for the drive

  PhantomDevice(std::uint64_t page_bytes, std::uint32_t cache_pages)
      : page_bytes_(page_bytes), cache_pages_(cache_pages) {}

  void read_into_cache(std::uint64_t index) {
    if (cache_.size() >= cache_pages_) return;
    reads_.begin();
    const auto done = drive_.reserve(page_bytes_);
    cache_[index] = done;
    orrery::sleep_until(done);
    reads_.end();
  }
  bool read(std::uint64_t index) {
    const auto at = cache_.find(index);
    const auto done = at != cache_.end() ? at->second : drive_.reserve(page_bytes_);
    orrery::sleep_until(done);
    cache_.erase(index);
    orrery::carry(page_bytes_);
    return true;
  }
  void write(std::uint64_t) {
    writes_.begin();
    drive_.transfer(page_bytes_);
    writes_.end();
  }
  server_log take_log() {
    const server_log log{reads_.pages(), reads_.busy(), writes_.pages(), writes_.busy()};
    reads_.clear();
    writes_.clear();
    return log;
  }
  void remove() {}

 private:
  std::uint64_t page_bytes_;
  std::uint32_t cache_pages_;
  std::unordered_map<std::uint64_t, std::chrono::nanoseconds> cache_;  // when a page is there
  orrery::simulated_drive drive_;
  transfers reads_;
  transfers writes_;
};
ORRERY_PROCESS(PhantomDevice, read_into_cache, read, write, take_log, remove);

/// An array on such devices.
class phantom_array {
 public:
  phantom_array() = default;
  phantom_array(const orrery::storage::page_grid& grid, orrery::storage::any_page_map map,
                std::vector<orrery::remote<PhantomDevice>> devices)
      : grid_(grid), map_(std::move(map)), devices_(std::move(devices)) {}

  [[nodiscard]] const orrery::storage::page_grid& grid() const { return grid_; }
  void read(const domain& d) const {
    std::vector<orrery::future<bool>> all;
    each_page(d, [&](const auto& device, std::uint64_t index) { all.push_back(start(device)->read(index)); });
    for (auto& f : all) (void)f.get();
  }
  void read_into_cache(const domain& d) const {
    each_page(d, [](const auto& device, std::uint64_t index) { post(device)->read_into_cache(index); });
  }
  void write(const domain& d) const {
    const auto bytes = static_cast<std::uint64_t>(orrery::storage::product(grid_.page_shape)) * 16;
    std::vector<orrery::future<void>> all;
    each_page(d, [&](const auto& device, std::uint64_t index) {
      orrery::carry(bytes);
      all.push_back(start(device)->write(index));
    });
    for (auto& f : all) f.get();
  }

  template <class A>
  void serialize(A& a) {
    a & grid_.array_shape & grid_.page_shape & map_ & devices_;
  }

 private:
  template <class F>
  void each_page(const domain& d, F&& f) const {
    orrery::storage::for_each_place(grid_.pages_of(d), [&](const index3& page) {
      const orrery::storage::page_address at = map_->locate(page);
      f(devices_[at.device], at.index);
    });
  }

  orrery::storage::page_grid grid_;
  orrery::storage::any_page_map map_;
  std::vector<orrery::remote<PhantomDevice>> devices_;
};

}  // namespace fft_servers
