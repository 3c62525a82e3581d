// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/name_board.hpp>

#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/thread_limits.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/serialize.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include <pthread.h>

namespace orrery::detail {

names_on_board decode_names(std::span<const std::byte> text) {
  if (text.empty()) return {};
  orrery::reader r(text);
  auto all = orrery::read<names_on_board>(r);
  for (const name_on_board& n : all.names)
    if (n.cls >= all.classes.size()) throw bad_message(errc::message_corrupt, "a board of names");
  return all;
}

std::vector<std::byte> encode_names(const names_on_board& names) {
  std::vector<std::byte> text(orrery::wire_size(names));
  orrery::writer w(text);
  orrery::write(w, names);
  return text;
}

name_board::name_board(transport::shm_world* world, std::function<names_on_board(std::size_t)> list)
    : world_(world != nullptr && !world->name().empty() ? world : nullptr), list_(std::move(list)) {
  if (sched_getaffinity(0, sizeof cores_, &cores_) != 0) CPU_ZERO(&cores_);
}

name_board::~name_board() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  news_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void name_board::changed() noexcept {
  if (world_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (changed_ || failed_) return;
  changed_ = true;
  if (thread_.joinable()) {
    news_.notify_one();
    return;
  }
  try {
    start();
  } catch (const std::exception&) {
    // no memory or no thread: the program goes on, and tools see no names
    failed_ = true;
  }
}

void name_board::start() {
  auto made = transport::board::create();
  if (!made) {
    failed_ = true;
    return;
  }
  board_ = std::move(*made);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // the program's signals are for the program's threads
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& e) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw std::system_error(
        e.code(), "no thread that shows names to `orrery ls` can be started; " + transport::more_threads_advice());
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  world_->show_board(board_->fd());
}

void name_board::run() {
  using clock = std::chrono::steady_clock;
  constexpr clock::duration pause = std::chrono::milliseconds(5);
  constexpr int share = 20;
  if (CPU_COUNT(&cores_) != 0) pthread_setaffinity_np(pthread_self(), sizeof cores_, &cores_);
  std::unique_lock lock(mutex_);
  for (;;) {
    news_.wait(lock, [&] { return changed_ || stop_; });
    if (stop_) return;
    changed_ = false;
    lock.unlock();
    const auto begin = clock::now();
    try {
      show();
    } catch (const std::exception&) {  // no memory: what was shown stays until the next change
    }
    const auto took = clock::now() - begin;
    lock.lock();
    news_.wait_for(lock, std::max(pause, share * took), [&] { return stop_; });
  }
}

void name_board::show() {
  constexpr std::size_t lengths = 64;  // of the lists themselves
  names_on_board names = list_(transport::board::capacity - lengths);
  if (board_->show(encode_names(names))) return;
  names = {names.total, {}, {}};  // no space: what was shown before is not true any more
  (void)board_->show(encode_names(names));
}

}  // namespace orrery::detail
