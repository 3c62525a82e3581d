// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/placement_map.hpp>

#include <algorithm>
#include <limits>
#include <tuple>

namespace orrery::detail {
namespace {

// All ways to write a number as a product, one factor for each dimension.
class cutter {
 public:
  cutter(std::span<const std::int64_t> extent, std::span<std::uint32_t> best)
      : extent_(extent), best_(best), now_(extent.size(), 1) {}

  bool cut(std::uint32_t pes) {
    try_dimension(0, pes);
    return found_;
  }

 private:
  void try_dimension(std::size_t d, std::uint32_t left) {
    if (d + 1 == extent_.size()) {
      if (left > static_cast<std::uint64_t>(extent_[d])) return;
      now_[d] = left;
      weigh();
      return;
    }
    for (std::uint64_t n = 1; n * n <= left; ++n) {
      if (left % n != 0) continue;
      for (const std::uint64_t parts : {n, left / n})
        if (parts <= static_cast<std::uint64_t>(extent_[d])) {
          now_[d] = static_cast<std::uint32_t>(parts);
          try_dimension(d + 1, static_cast<std::uint32_t>(left / parts));
        }
    }
  }
  void weigh() {
    double largest = 1;
    double all = 1;
    for (std::size_t d = 0; d < now_.size(); ++d) {
      largest *= static_cast<double>((extent_[d] + now_[d] - 1) / now_[d]);
      all *= static_cast<double>(extent_[d]);
    }
    double cuts = 0;
    for (std::size_t d = 0; d < now_.size(); ++d) cuts += (now_[d] - 1) * (all / static_cast<double>(extent_[d]));
    const auto better = std::tie(largest, cuts, now_);  // few parts of the first dimensions
    if (found_ && better >= std::tie(largest_, cuts_, chosen_)) return;
    found_ = true;
    largest_ = largest;
    cuts_ = cuts;
    chosen_ = now_;
    std::ranges::copy(now_, best_.begin());
  }

  std::span<const std::int64_t> extent_;
  std::span<std::uint32_t> best_;
  std::vector<std::uint32_t> now_;
  std::vector<std::uint32_t> chosen_;
  double largest_ = 0;
  double cuts_ = 0;
  bool found_ = false;
};

}  // namespace

bool cut_box(std::span<const std::int64_t> extent, std::uint32_t pes, std::span<std::uint32_t> parts) {
  if (pes == 0 || std::ranges::any_of(extent, [](std::int64_t x) { return x <= 0; })) return false;
  return cutter(extent, parts).cut(pes);
}

}  // namespace orrery::detail
