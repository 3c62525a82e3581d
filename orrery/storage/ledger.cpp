// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/ledger.hpp>

#include <algorithm>
#include <system_error>

#include <fcntl.h>

namespace orrery::storage {

ledger::ledger(const std::string& file, const std::vector<std::int64_t>& units) : first_{0}, name_(file) {
  for (const std::int64_t n : units) first_.push_back(first_.back() + static_cast<std::size_t>(n));
  done_.resize(first_.back());
  if (file.empty()) return;
  file_ = io::descriptor(file, O_RDWR | O_CREAT);
  (void)io::read_all(file_.get(), done_, 0);
  count_ = std::ranges::count(done_, std::byte{1});
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
  const std::size_t at = first_[sweep_] + static_cast<std::size_t>(unit);
  count_ += done_[at] == std::byte{0};
  done_[at] = std::byte{1};
  if (!file_) return;
  try {
    io::write_all(file_.get(), std::span(done_).subspan(at, 1), at);
  } catch (const std::system_error& e) {
    throw std::system_error(e.code(), "cannot note in " + name_ + " what is done");
  }
}
bool ledger::finished(std::size_t sweep) const {
  return std::all_of(done_.begin() + static_cast<std::ptrdiff_t>(first_[sweep]),
                     done_.begin() + static_cast<std::ptrdiff_t>(first_[sweep + 1]),
                     [](std::byte b) { return b == std::byte{1}; });
}

}  // namespace orrery::storage
