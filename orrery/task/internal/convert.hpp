// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/task/task.h>
#include <orrery/task/internal/mail.hpp>
#include <orrery/wire/address.hpp>

#include <chrono>
#include <cstdint>
#include <cstring>

// The types of C and their counterparts.
namespace orrery::task_detail {

inline address address_of(const orrery_task& t) noexcept { return {t.pe, t.slot, t.generation}; }
inline orrery_task task_of(const address& a) noexcept { return {a.pe, a.slot, a.generation}; }

// As the runtime takes a time: nothing negative. ORRERY_FOREVER is the longest that it can say.
inline std::chrono::nanoseconds time_of(std::int64_t ns) noexcept { return std::chrono::nanoseconds(ns < 0 ? 0 : ns); }
static_assert(std::chrono::nanoseconds(ORRERY_FOREVER) == std::chrono::nanoseconds::max());

class bytes_writer final : public mail_writer {
 public:
  bytes_writer(const void* data, std::size_t size) noexcept : data_(data), size_(size) {}
  void write(std::byte* to) const noexcept override {
    if (size_ != 0) std::memcpy(to, data_, size_);
  }

 private:
  const void* data_;
  std::size_t size_;
};

}  // namespace orrery::task_detail
