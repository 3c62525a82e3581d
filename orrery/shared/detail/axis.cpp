// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/axis.hpp>

#include <algorithm>
#include <utility>

namespace orrery::detail {

axis axis::in_blocks(std::uint64_t n, std::uint32_t parts) {
  axis a;
  a.kind_ = kind::blocks;
  a.parts_ = parts;
  a.size_ = n;
  a.block_ = n / parts;
  return a;
}

axis axis::dealt_out(std::uint64_t n, std::uint32_t parts, std::uint64_t block) {
  axis a;
  a.kind_ = kind::dealt;
  a.parts_ = parts;
  a.size_ = n;
  // a round of runs is no larger than n times the parts
  a.block_ = std::max<std::uint64_t>(1, std::min(block, n));
  return a;
}

axis axis::with_ends(std::vector<std::uint64_t> ends) {
  axis a;
  a.kind_ = kind::bounded;
  a.parts_ = static_cast<std::uint32_t>(ends.size());
  a.size_ = ends.back();
  a.ends_ = std::move(ends);
  return a;
}

axis::place axis::find(std::uint64_t i) const noexcept {
  if (parts_ == 1) return {0, i};
  switch (kind_) {
    case kind::blocks: {
      const std::uint64_t larger = size_ % parts_;
      const std::uint64_t in_larger = larger * (block_ + 1);
      if (i < in_larger) return {static_cast<std::uint32_t>(i / (block_ + 1)), i % (block_ + 1)};
      const std::uint64_t rest = i - in_larger;
      return {static_cast<std::uint32_t>(larger + rest / block_), rest % block_};
    }
    case kind::dealt: {
      const std::uint64_t run = i / block_;
      return {static_cast<std::uint32_t>(run % parts_), run / parts_ * block_ + i % block_};
    }
    case kind::bounded:
      break;
  }
  const auto end = std::ranges::upper_bound(ends_, i);
  const auto part = static_cast<std::uint32_t>(end - ends_.begin());
  return {part, i - (part == 0 ? 0 : ends_[part - 1])};
}

std::uint64_t axis::below(std::uint32_t part, std::uint64_t i) const noexcept {
  std::uint64_t first = 0;
  std::uint64_t last = size_;
  switch (kind_) {
    case kind::blocks: {
      const std::uint64_t larger = size_ % parts_;
      first = part * block_ + std::min<std::uint64_t>(part, larger);
      last = first + block_ + (part < larger ? 1 : 0);
      break;
    }
    case kind::dealt: {
      const std::uint64_t round = block_ * parts_;
      const std::uint64_t in_round = i % round;
      const std::uint64_t begin = part * block_;
      return i / round * block_ + (in_round <= begin ? 0 : std::min(in_round - begin, block_));
    }
    case kind::bounded:
      first = part == 0 ? 0 : ends_[part - 1];
      last = ends_[part];
      break;
  }
  return i <= first ? 0 : std::min(i, last) - first;
}

std::uint64_t axis::index(std::uint32_t part, std::uint64_t local) const noexcept {
  switch (kind_) {
    case kind::blocks:
      return part * block_ + std::min<std::uint64_t>(part, size_ % parts_) + local;
    case kind::dealt:
      return local / block_ * block_ * parts_ + part * block_ + local % block_;
    case kind::bounded:
      break;
  }
  return (part == 0 ? 0 : ends_[part - 1]) + local;
}

axis_walk axis::walk(std::uint32_t part, std::uint64_t first, std::uint64_t last) const noexcept {
  if (first >= last) return {};
  const std::uint64_t count = last - first;
  const std::uint64_t begin = index(part, first);
  if (contiguous()) return {begin, count, count, count, 0};
  return {begin, count, block_ - first % block_, block_, block_ * (parts_ - 1)};
}

bool axis::valid() const noexcept {
  if (parts_ == 0) return false;
  switch (kind_) {
    case kind::blocks:
      return block_ == size_ / parts_;
    case kind::dealt:
      return block_ != 0 && block_ <= std::max<std::uint64_t>(1, size_);
    case kind::bounded:
      return ends_.size() == parts_ && std::ranges::is_sorted(ends_) && ends_.back() == size_;
  }
  return false;
}

}  // namespace orrery::detail
