// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ledger.hpp"
#include "plan.hpp"

#include <map>
#include <vector>

namespace fft3d {

/// What a process did, and when; seconds of the clock that all processes of a machine share.
struct span {
  enum class kind : std::uint8_t { read, transform, write };
  kind what = kind::read;
  std::int64_t unit = 0;
  double begin = 0;
  double end = 0;
  double busy = 0;  ///< of a transform: without the times in which other processes had the PE
};
struct work_log {
  std::uint32_t pe = 0;
  std::uint32_t node = 0;
  std::vector<span> spans;
  std::uint64_t not_a_number = 0;  ///< elements of the input
  std::uint64_t node_peak = 0;     ///< resident memory of the node, in bytes, at most so far
};

/// Pages in memory instead of on a drive: for arrays that fit. A page is given away when it is read, so that nothing is there twice.
class memory_device : public orrery::storage::array_page_device {
 public:
  using array_page_device::array_page_device;

 protected:
  orrery::storage::page fetch(std::uint64_t index) override { return std::move(pages_.extract(index).mapped()); }
  void store(const orrery::storage::page& p, std::uint64_t index) override { pages_[index] = p; }

 private:
  std::map<std::uint64_t, orrery::storage::page> pages_;
};
ORRERY_PROCESS(memory_device);

/// An array of the plan's in such devices, one on each PE. A device has a file: these have one in the folder, without blocks, which they do not use.
[[nodiscard]] orrery::storage::array array_in_memory(const plan& p, const std::string& folder);

/// Transforms units, one after the other: reads one, transforms its lines, writes it. (Givelberg 2014, section 4.2.)
///
/// The paper overlaps reading and computing by hints to the drives for the next unit. Here there are more of these processes than PEs, as many as units fit in
/// memory: while some wait for their drives others compute, and each is plain sequential code that owns its memory, so that a page which the drive has filled is
/// transformed where it is, and given back.
class transformer : public orrery::member<transformer> {
 public:
  transformer(plan p, const orrery::remote<ledger>& units);
  /// Returns when no unit of the pass is left. Throws what the devices throw; the others then end, too.
  work_log run(std::size_t pass, const orrery::storage::array& from, const orrery::storage::array& to);

 private:
  using pages = std::vector<orrery::storage::page>;
  pages read(const domain& unit, const orrery::storage::array& from, bool input);
  void transform(const domain& unit, const phase& what, pages& all);
  template <class Real>
  void transform(const domain& unit, const phase& what, pages& all);
  void write(const domain& unit, pages all, const orrery::storage::array& to);
  void give_way();

  plan plan_;
  orrery::remote<ledger> ledger_;
  work_log log_;
  double since_ = 0;  // when it was given the PE
  double busy_ = 0;
};
ORRERY_PROCESS(transformer, run);

[[nodiscard]] double now();

}  // namespace fft3d
