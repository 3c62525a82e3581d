// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/drive_rates.hpp>

#include <orrery/process/spawn.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

namespace orrery::storage {
namespace {

constexpr std::int64_t at_once = 8;

// Bytes per second of `count` transfers of `bytes` each; start_one(i) begins one.
template <class F>
double rate(std::int64_t count, std::size_t bytes, F&& start_one) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  for (std::int64_t i = 0; i < count; i += at_once) {
    std::vector<decltype(start_one(i))> some;
    for (std::int64_t k = i; k < std::min(i + at_once, count); ++k) some.push_back(start_one(k));
    for (auto& f : some) (void)f.get();
  }
  return static_cast<double>(count) * static_cast<double>(bytes) /
         std::chrono::duration<double>(clock::now() - begin).count();
}

}  // namespace

drive_rates measure_drives(const array& from, const std::string& file, std::size_t page_bytes) {
  constexpr std::int64_t bytes = 64 << 20;
  const std::int64_t all = from.grid().page_count();
  const std::size_t read_bytes = array_page::bytes_of(from.grid().page_shape, from.type());
  const std::int64_t count = std::max(at_once, bytes / static_cast<std::int64_t>(page_bytes));
  if (static_cast<std::int64_t>(page_bytes) * all < 4 * bytes) return {};
  std::filesystem::remove(file);
  const auto drive = spawn<page_device>(here(), file, static_cast<std::uint64_t>(count), page_bytes);
  const page p(page_bytes);
  const drive_rates found{
      rate(count, read_bytes,
           [&](std::int64_t i) { return from.start_read_whole(from.grid().page_at(i * (all / count) % all)); }),
      rate(count, page_bytes, [&](std::int64_t i) { return start(drive)->write(p, static_cast<std::uint64_t>(i)); })};
  drive->close();
  destroy(drive);
  std::filesystem::remove(file);
  return found;
}

}  // namespace orrery::storage
