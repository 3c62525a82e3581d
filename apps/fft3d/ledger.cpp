// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include <algorithm>
#include <numeric>

#include <fcntl.h>

namespace fft3d {

ledger::ledger(const std::string& file, std::vector<std::int64_t> units) : first_{0} {
  std::ranges::for_each(units, [&](std::int64_t n) { first_.push_back(first_.back() + static_cast<std::size_t>(n)); });
  done_.resize(first_.back());
  if (file.empty()) return;
  file_ = orrery::io::descriptor(file, O_RDWR | O_CREAT);
  (void)orrery::io::read_all(file_.get(), done_, 0);
}

void ledger::begin(std::size_t pass) {
  pass_ = pass;
  next_ = first_[pass];
}
std::int64_t ledger::next() {
  const std::size_t end = first_[pass_ + 1];
  while (next_ < end && done_[next_] != std::byte{0}) ++next_;
  return next_ < end ? static_cast<std::int64_t>(next_++ - first_[pass_]) : -1;
}
void ledger::done(std::int64_t unit) {
  const std::size_t at = first_[pass_] + static_cast<std::size_t>(unit);
  done_[at] = std::byte{1};
  if (file_) orrery::io::write_all(file_.get(), std::span(done_).subspan(at, 1), at);
}
std::int64_t ledger::units_done() const { return std::ranges::count(done_, std::byte{1}); }
bool ledger::finished(std::size_t pass) const {
  return std::all_of(done_.begin() + static_cast<std::ptrdiff_t>(first_[pass]),
                     done_.begin() + static_cast<std::ptrdiff_t>(first_[pass + 1]),
                     [](std::byte b) { return b == std::byte{1}; });
}

}  // namespace fft3d
