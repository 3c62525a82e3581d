// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "log.hpp"

#include <orrery/orrery.hpp>
#include <orrery/storage/storage.hpp>

#include <filesystem>
#include <string>

namespace fft_servers {

/// A drive with a cache, as a process (Givelberg 2014, section 4.3), that measures what it does.
class ArrayDevice : public orrery::storage::array_device {
 public:
  /// `file` and its folder are made here, on the machine of the process.
  ArrayDevice(const std::string& file, std::uint64_t pages, const index3& shape, std::uint32_t cache_pages)
      : array_device(made(file), pages, shape, orrery::storage::element_type::complex128, {}, {cache_pages, 0}) {}

  void read_into_cache(std::uint64_t index) override {
    reads_.begin();
    array_device::read_into_cache(index);
    reads_.end();
  }
  server_log take_log() {
    const server_log log{reads_.pages(), reads_.busy(), writes_.pages(), writes_.busy()};
    reads_.clear();
    writes_.clear();
    return log;
  }
  /// Gives the drive back as it was.
  void remove() {
    const std::filesystem::path file = geometry().file;
    close();
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    std::filesystem::remove(file.parent_path(), ignored);  // if nothing else is in it
  }

 protected:
  void write_raw(std::span<const std::byte> from, std::uint64_t index) override {
    writes_.begin();
    array_device::write_raw(from, index);
    writes_.end();
  }

 private:
  static std::string made(const std::string& file) {
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    return file;
  }

  transfers reads_;
  transfers writes_;
};
ORRERY_PROCESS(ArrayDevice, take_log, remove);

}  // namespace fft_servers
