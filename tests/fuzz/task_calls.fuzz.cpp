// SPDX-License-Identifier: Apache-2.0
// The C interface, called in any order with any arguments that a program could make a mistake with: each call returns a status, nothing crashes or hangs.
//
// The input is a program for the main task: a byte says what to call, those behind it with which task, tag, size, time. Other tasks run what is left of it then, on
// two simulated machines, so that an input always does the same. Whoever waits for what never comes ends with the world.
#include <orrery/task/task.h>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace {

struct parcel {
  int count;
  char* text;
  orrery_buffer one;
  int* numbers;
};
constexpr std::array<orrery_field, 3> parcel_fields = {
    {{"text", ORRERY_STRING, offsetof(parcel, text), 0, 0, 0, 0, nullptr},
     {"one", ORRERY_BUFFER, offsetof(parcel, one), 0, 0, 0, 0, nullptr},
     {"numbers", ORRERY_ARRAY, offsetof(parcel, numbers), sizeof(int), offsetof(parcel, count), sizeof(int), 1,
      nullptr}}};
constexpr orrery_message_type parcel_type = {"Parcel", 4001, sizeof(parcel), 3, parcel_fields.data()};

constexpr int most_tasks = 40;  // of one input
constexpr int most_calls = 400;
int tasks_left = 0;
int calls_left = 0;

// A call that returns what is no status has lost its mind.
void look_at(orrery_status s) {
  if (s < ORRERY_OK || s > ORRERY_FAILED || orrery_status_text(s) == nullptr || orrery_error() == nullptr) std::abort();
}

class caller {
 public:
  caller(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) { tasks_[1] = orrery_self(); }
  ~caller() {
    for (orrery_message& m : held_) orrery_release(&m);
  }
  caller(const caller&) = delete;
  caller& operator=(const caller&) = delete;

  void run() {
    while (next_ != end_ && calls_left-- > 0) call();
  }

 private:
  std::uint8_t byte() { return next_ == end_ ? std::uint8_t{0} : *next_++; }
  orrery_task& task() { return tasks_[byte() % tasks_.size()]; }
  orrery_buffer& buffer() { return buffers_[byte() % buffers_.size()]; }
  orrery_message& message() { return held_[byte() % held_.size()]; }
  std::uint64_t tag() { return byte() % 4; }
  orrery_sending sending() { return byte() % 2 == 0 ? ORRERY_TRY : ORRERY_WAIT; }
  std::int64_t time() {
    constexpr std::array<std::int64_t, 6> times = {ORRERY_NOW, 1, 50'000, 1'000'000, -7, ORRERY_FOREVER};
    const std::int64_t t = times[byte() % times.size()];
    return t == ORRERY_FOREVER && polls_ ? 1000 : t;  // who polls for ever is never taken for dead
  }
  std::size_t size() {
    constexpr std::array<std::size_t, 8> sizes = {0,    1,    64,     2047,
                                                  2048, 5000, 70'000, std::numeric_limits<std::size_t>::max() / 2};
    return sizes[byte() % sizes.size()];
  }
  orrery_place place() {
    switch (byte() % 6) {
      case 0:
        return orrery_here();
      case 1:
        return orrery_anywhere();
      case 2:
        return orrery_pe(byte() % 4);
      case 3:
        return orrery_machine(byte() % 4);
      case 4:
        return orrery_near(task());
      default:
        return {byte(), byte()};
    }
  }
  std::string name() {
    const std::size_t length = byte() % 8;
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += static_cast<char>(byte() % 4 == 0 ? byte() : 'a');
    return byte() % 16 == 0 ? std::string(300, 'n') : text;
  }
  orrery_message& free_place() {
    orrery_message& m = message();
    orrery_release(&m);  // does nothing to one that was given back
    return m;
  }

  void call();
  void create();
  void send();
  void receive();

  const std::uint8_t* next_;
  const std::uint8_t* end_;
  std::array<orrery_task, 6> tasks_{};  // the first is none
  std::array<orrery_buffer, 4> buffers_{};
  std::array<orrery_message, 4> held_{};
  bool polls_ = false;
};

void caller::create() {
  if (tasks_left-- <= 0) return;
  const std::size_t rest = std::min<std::size_t>(static_cast<std::size_t>(end_ - next_), byte());
  const std::size_t stack = byte() % 4 == 0 ? size() : 0;
  const orrery_place where = place();
  const auto left = std::min<std::size_t>(rest, static_cast<std::size_t>(end_ - next_));
  look_at(orrery_create_with_stack(
      byte() % 32 == 0 ? nullptr
                       : [](void* argument, std::size_t n) { caller(static_cast<std::uint8_t*>(argument), n).run(); },
      next_ == end_ ? nullptr : next_, std::min<std::size_t>(left, static_cast<std::size_t>(end_ - next_)), stack,
      where, &tasks_[2 + byte() % (tasks_.size() - 2)]));
}

void caller::send() {
  const orrery_task to = task();
  const std::uint64_t with = tag();
  const std::size_t bytes = std::min<std::size_t>(size(), 70'000);
  if (byte() % 2 == 0) {
    const std::vector<char> data(bytes, 'd');
    look_at(orrery_send_bytes(to, with, data.data(), data.size(), sending()));
    return;
  }
  std::string text(bytes % 3000, 't');
  std::array<int, 8> numbers{};
  const parcel p{byte() % 12 - 3, byte() % 2 == 0 ? nullptr : text.data(), buffer(),
                 byte() % 4 == 0 ? nullptr : numbers.data()};
  if (p.count > static_cast<int>(numbers.size()) || (p.count > 0 && p.numbers == nullptr))
    return;  // what no C can check
  look_at(orrery_send(to, with, &parcel_type, &p, sending()));
  std::free(orrery_clone(&parcel_type, &p));
}

void caller::receive() {
  orrery_message& m = free_place();
  switch (byte() % 5) {
    case 0:
      return look_at(orrery_receive(&m, time()));
    case 1:
      return look_at(orrery_receive_tag(tag(), &m, time()));
    case 2: {
      orrery_message peeked{};
      look_at(orrery_peek(&peeked, time()));
      if (peeked.data != nullptr) std::abort();
      return;
    }
    case 3:
      return look_at(orrery_drop());
    default:
      if (auto* p = static_cast<parcel*>(orrery_open(&m, &parcel_type)); p != nullptr)
        look_at(orrery_buffer_take(&p->one, &buffer()));
  }
}

void caller::call() {
  switch (byte() % 20) {
    case 0:
    case 1:
      return create();
    case 2:
    case 3:
    case 4:
      return send();
    case 5:
    case 6:
    case 7:
      return receive();
    case 8:
      return look_at(orrery_join(task(), time()));
    case 9:
      return look_at(orrery_watch(task(), tag()));
    case 10:
      return look_at(orrery_stop(task()));
    case 11: {
      orrery_buffer& b = buffer();
      look_at(orrery_buffer_free(&b));
      look_at(orrery_buffer_make(size(), &b));
      if (b.data != nullptr && b.size != 0) std::memset(b.data, 'b', std::min<std::size_t>(b.size, 100));
      return;
    }
    case 12: {
      orrery_buffer copy = buffer();  // the same buffer, which its owner may have sent
      return look_at(orrery_buffer_free(&copy));
    }
    case 13:
      return orrery_release(&message());
    case 14: {
      orrery_message& m = message();
      if (auto* p = static_cast<parcel*>(orrery_open(&m, &parcel_type)); p != nullptr)
        look_at(orrery_buffer_free(&p->one));
      return;
    }
    case 15:
      return look_at(orrery_set_name(task(), name().c_str()));
    case 16: {
      orrery_task& found = tasks_[2 + byte() % (tasks_.size() - 2)];
      return look_at(orrery_find(name().c_str(), &found, byte() % 2 == 0 ? ORRERY_NOW : 1000));
    }
    case 17: {
      const int strategy = byte() % 4;
      polls_ = strategy != ORRERY_NOTIFY;
      return look_at(orrery_set_strategy(static_cast<orrery_strategy>(strategy)));
    }
    case 18:
      (void)orrery_message_immediate();
      return look_at(byte() % 2 == 0 ? orrery_message_wait() : orrery_yield());
    default:
      if (byte() % 8 == 0) orrery_exit();
      return look_at(orrery_sleep(byte()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::array<std::string, 5> words = {"fuzz", "--orrery-sim=machines=2,jitter=3us", "--orrery-quiet",
                                      "--orrery-failed-exit=0", "--orrery-mailbox=64K"};
  std::array<char*, words.size()> argv{};
  for (std::size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
  tasks_left = most_tasks;
  calls_left = most_calls;
  (void)orrery::run(static_cast<int>(argv.size()), argv.data(), [&](const orrery::args&) {
    caller(data, size).run();
    return 0;
  });
  return 0;
}
