// SPDX-License-Identifier: Apache-2.0
// As in the thesis: a queue with a mutex for those who put and one for who takes, in which both look again and again.
#include "../variable.hpp"

#include <array>

#include <pthread.h>

using namespace peers;

class queue {
 public:
  void put(int number) {
    for (;; sched_yield()) {
      pthread_mutex_lock(&putting_);
      if (put_ - taken_.load() < numbers_.size()) break;
      pthread_mutex_unlock(&putting_);
    }
    numbers_[put_ % numbers_.size()] = number;
    put_.fetch_add(1);
    pthread_mutex_unlock(&putting_);
  }
  int take() {
    for (;; sched_yield()) {
      pthread_mutex_lock(&taking_);
      if (taken_.load() < put_.load()) break;
      pthread_mutex_unlock(&taking_);
    }
    const int number = numbers_[taken_ % numbers_.size()];
    taken_.fetch_add(1);
    pthread_mutex_unlock(&taking_);
    return number;
  }

 private:
  pthread_mutex_t putting_ = PTHREAD_MUTEX_INITIALIZER, taking_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<std::size_t> put_{0}, taken_{0};
  std::array<int, 1024> numbers_{};
};

int main(int argc, char** argv) {
  queue q;
  return measure_variable(
      argc, argv, "shm",
      [&](int clients, long& variable) {
        while (clients > 0) {
          const int number = q.take();
          variable += number;
          clients -= number == 0;
        }
      },
      [&](int) { return [&](int number) { q.put(number); }; });
}
