// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <orrery/storage/detail/page_file.hpp>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace orrery::tool {
namespace {

using storage::detail::bytes_text;

std::size_t terminal_width() {
  struct winsize w{};
  return ioctl(2, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

std::string time_text(double seconds) {
  const auto s = static_cast<std::uint64_t>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}:{:02} min", s / 60, s % 60);
  return fmt::format("{}:{:02} h", s / 3600, s / 60 % 60);
}

}  // namespace

progress::progress(std::string what, std::uint64_t bytes, std::uint64_t before)
    : what_(std::move(what)),
      all_(std::max<std::uint64_t>(bytes, 1)),
      before_(before),
      done_(before),
      shown_(isatty(2) != 0) {}

progress::~progress() {
  if (!shown_) return;
  draw(clock::now());
  std::fputc('\n', stderr);
}

void progress::at(std::uint64_t bytes, const std::string& what) {
  done_ = std::min(bytes, all_);
  what_ = what;
  if (!shown_) return;
  const auto now = clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  draw(now);
}

void progress::draw(clock::time_point now) {
  const double part = static_cast<double>(done_) / static_cast<double>(all_);
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_ - before_) / seconds : 0;
  const std::string head = fmt::format("{} {:3} %", what_, static_cast<int>(part * 100));
  std::string tail = fmt::format("{} of {}, {}/s, ", bytes_text(done_), bytes_text(all_),
                                 bytes_text(static_cast<std::uint64_t>(rate)));
  if (done_ == all_) {
    tail += time_text(seconds);
  } else {
    tail += rate > 0 ? time_text(static_cast<double>(all_ - done_) / rate) + " left" : "? left";
  }
  const std::size_t width = terminal_width() - 1;
  const std::size_t taken = head.size() + tail.size() + 4;
  std::string bar;
  if (taken + 5 <= width) {
    const std::size_t room = std::min<std::size_t>(width - taken, 50);
    bar = fmt::format(" [{:<{}}]", std::string(static_cast<std::size_t>(part * static_cast<double>(room)), '#'), room);
  }
  std::string line = fmt::format("{}{} {}", head, bar, tail);
  line.resize(std::min(line.size(), width));
  fmt::print(stderr, "\r{}\x1b[K", line);
  std::fflush(stderr);
}

}  // namespace orrery::tool
