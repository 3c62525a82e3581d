// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/future.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/service/detail/exposed_memory.hpp>
#include <orrery/service/detail/exposed_range.hpp>

namespace orrery::service {

exposed_memory* exposed_range::memory_here() noexcept {
  return detail::here_pe().owner().shares_memory() ? exposed_memory::make() : nullptr;
}

exposed_range::exposed_range(exposed_memory* memory) noexcept {
  if (memory == nullptr) return;
  try {
    header_ = memory->take_header();
    version_ = header_->version.load(std::memory_order_relaxed);
  } catch (...) {  // no memory
  }
}

exposed_range::~exposed_range() {
  if (header_ == nullptr) return;
  close();
  exposed_memory::made()->give_back(header_);
}

exposed_place exposed_range::place() const noexcept {
  if (header_ == nullptr) return {};
  return {exposed_memory::made()->name(), reinterpret_cast<std::uintptr_t>(header_), header_->id};
}

}  // namespace orrery::service
