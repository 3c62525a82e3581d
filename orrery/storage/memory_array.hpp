// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/array.hpp>

#include <map>

namespace orrery::storage {

/// A device whose pages are in memory, not in a file: for arrays that fit, used by the same code as
/// those that do not.
///
/// Problem: a computation in several sweeps over an array that fits into memory should not hold it
/// twice, once in devices and once in the units under way. So a page is *given away* when it is
/// read: whoever reads it owns it, and writes it back. A page that is not there (never written, or
/// read and not written back) reads as zeros.
class memory_device : public array_page_device {
 public:
  memory_device(std::uint64_t pages, const index3& shape, element_type type);

 protected:
  page fetch(std::uint64_t index) override;
  void store(const page& p, std::uint64_t index) override { pages_[index] = p; }

 private:
  std::map<std::uint64_t, page> pages_;
};
ORRERY_PROCESS(memory_device);

/// An array in such devices, one on each PE of the world: each page that is read, also for a part
/// of it, is taken away. Its maker destroys its devices.
[[nodiscard]] array make_memory_array(const page_grid& grid, element_type type);

}  // namespace orrery::storage
