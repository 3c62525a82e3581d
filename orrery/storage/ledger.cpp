// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/ledger.hpp>

#include <algorithm>
#include <system_error>

#include <fcntl.h>

namespace orrery::storage {

ledger::ledger(const std::string& file, const std::vector<std::int64_t>& units) : first_{0}, name_(file) {
  for (const std::int64_t n : units) first_.push_back(first_.back() + static_cast<std::size_t>(n));
  done_.resize(first_.back());
  counts_.resize(done_.size());
  if (file.empty()) return;
  file_ = io::descriptor(file, O_RDWR | O_CREAT);
  (void)io::read_all(file_.get(), done_, 0);
  (void)io::read_all(file_.get(), std::as_writable_bytes(std::span(counts_)), done_.size());
  count_ = std::ranges::count(done_, std::byte{1});
}

std::size_t ledger::place_of(std::int64_t unit) const { return first_[sweep_] + static_cast<std::size_t>(unit); }
void ledger::keep(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (!file_) return;
  try {
    io::write_all(file_.get(), bytes, offset);
  } catch (const std::system_error& e) {
    throw std::system_error(e.code(), "cannot note in " + name_ + " what is done");
  }
}

void ledger::begin(std::size_t sweep) {
  sweep_ = sweep;
  next_ = first_[sweep];
}
std::int64_t ledger::next() {
  const std::size_t end = first_[sweep_ + 1];
  while (next_ < end && done_[next_] != std::byte{0}) ++next_;
  return next_ < end ? static_cast<std::int64_t>(next_++ - first_[sweep_]) : -1;
}
void ledger::done(std::int64_t unit) {
  const std::size_t at = place_of(unit);
  count_ += done_[at] == std::byte{0};
  done_[at] = std::byte{1};
  keep(std::span(done_).subspan(at, 1), at);
}
void ledger::count(std::int64_t unit, std::uint64_t n) {
  const std::size_t at = place_of(unit);
  counts_[at] = n;
  keep(std::as_bytes(std::span(counts_).subspan(at, 1)), done_.size() + at * sizeof n);
}
std::uint64_t ledger::counted() const {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < done_.size(); ++at)
    if (done_[at] == std::byte{1}) sum += counts_[at];
  return sum;
}
void ledger::redo(std::size_t sweep, const std::vector<std::int64_t>& units) {
  for (const std::int64_t unit : units) done_[first_[sweep] + static_cast<std::size_t>(unit)] = std::byte{0};
  count_ = std::ranges::count(done_, std::byte{1});
  keep(done_, 0);
}
void ledger::flush() {
  if (!file_) return;
  try {
    io::fdatasync(file_.get());
  } catch (const std::system_error& e) {
    throw std::system_error(e.code(), "cannot bring " + name_ + " to its drive");
  }
}
std::vector<std::int64_t> ledger::done_units(std::size_t sweep) const {
  std::vector<std::int64_t> units;
  for (std::size_t at = first_[sweep]; at < first_[sweep + 1]; ++at)
    if (done_[at] == std::byte{1}) units.push_back(static_cast<std::int64_t>(at - first_[sweep]));
  return units;
}
bool ledger::finished(std::size_t sweep) const {
  return std::all_of(done_.begin() + static_cast<std::ptrdiff_t>(first_[sweep]),
                     done_.begin() + static_cast<std::ptrdiff_t>(first_[sweep + 1]),
                     [](std::byte b) { return b == std::byte{1}; });
}

}  // namespace orrery::storage
