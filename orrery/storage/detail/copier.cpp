// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/detail/copier.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/storage/detail/page_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <deque>
#include <stdexcept>

#include <fmt/format.h>

namespace orrery::storage {
namespace {

template <class From, class To>
std::uint64_t convert(std::span<const std::byte> from, std::span<std::byte> to, std::size_t step) {
  const auto* x = reinterpret_cast<const From*>(from.data());
  auto* y = reinterpret_cast<To*>(to.data());
  std::uint64_t overflows = 0;
  for (std::size_t i = 0; i < from.size() / sizeof(From); ++i) {
    const To v = static_cast<To>(x[i]);
    if constexpr (sizeof(To) < sizeof(From)) overflows += std::isinf(v) && !std::isinf(x[i]);
    y[i * step] = v;
    if (step == 2) y[i * step + 1] = 0;
  }
  return overflows;
}

std::span<std::byte> memory_for(page& buffer, std::size_t bytes) {
  if (buffer.size() < bytes) {
    buffer = page();
    buffer = page::uninitialized(bytes);
  }
  return buffer.writable().first(bytes);
}

}  // namespace

std::uint64_t convert_elements(std::span<const std::byte> from, element_type from_type, std::span<std::byte> to,
                               element_type to_type) {
  if (is_complex(from_type) && !is_complex(to_type))
    throw std::invalid_argument(fmt::format("{} cannot become {}: the imaginary parts would be lost",
                                            to_string(from_type), to_string(to_type)));
  const std::size_t step = is_complex(to_type) && !is_complex(from_type) ? 2 : 1;
  if (is_single(from_type))
    return is_single(to_type) ? convert<float, float>(from, to, step) : convert<float, double>(from, to, step);
  return is_single(to_type) ? convert<double, float>(from, to, step) : convert<double, double>(from, to, step);
}

domain copy_plan::unit_pages(std::int64_t n) const {
  const page_grid cut{to.pages(), unit};
  return cut.elements_of(cut.page_at(n));
}
domain copy_plan::unit_elements(std::int64_t n) const {
  const domain pages = unit_pages(n);
  domain d{to.elements_of(pages.first).first, {}};
  for (int k = 0; k < 3; ++k) d.last[k] = std::min(pages.last[k] * to.page_shape[k], to.array_shape[k]);
  return d;
}

copier::copier(const copy_plan& plan, const remote<ledger>& units) : plan_(plan), ledger_(units) {
  set_page_pool_limit(plan_.pool_bytes);
}

template <class F>
void copier::each_unit(F&& f) {
  try {
    for (std::int64_t unit; (unit = ledger_->next()) >= 0;) {
      f(unit);
      ledger_->done(unit);
    }
  } catch (...) {
    ledger_->stop();
    throw;
  }
}

std::uint64_t copier::copy_unit(std::int64_t unit, const array& from, const array& to) {
  const domain d = plan_.unit_elements(unit);
  const auto n = static_cast<std::size_t>(d.size());
  const auto read = memory_for(read_, n * size_of(plan_.from_type));
  from.read_bytes(d, transposition::none, read, plan_.from_type);
  if (plan_.from_type == plan_.to_type) {
    to.write_bytes(d, transposition::none, read, plan_.to_type);
    return 0;
  }
  const auto converted = memory_for(converted_, n * size_of(plan_.to_type));
  const std::uint64_t overflows = convert_elements(read, plan_.from_type, converted, plan_.to_type);
  to.write_bytes(d, transposition::none, converted, plan_.to_type);
  return overflows;
}

void copier::copy(array from, array to) {
  from.set_window(plan_.window);
  to.set_window(plan_.window);
  each_unit([&](std::int64_t unit) {
    if (const std::uint64_t overflows = copy_unit(unit, from, to); overflows != 0) ledger_->count(unit, overflows);
  });
}

void copier::verify(array from, array to) {
  from.set_window(plan_.window);
  to.set_window(plan_.window);
  // One page at a time on each device: the processes together keep them busy.
  const auto damage = [&](std::int64_t unit) {
    std::string what;
    for_each_place(plan_.unit_pages(unit), [&](const index3& p) {
      if (!what.empty()) return;
      const page_address at = to.map().locate(p);
      what = to.devices_of(this_node())[at.device]->damage_of_written(at.index);
    });
    return what;
  };
  each_unit([&](std::int64_t unit) {
    if (damage(unit).empty()) return;
    (void)copy_unit(unit, from, to);  // what became infinite was counted before
    to.flush();  // the note that the unit is good may come to its drive at any time
    if (const std::string what = damage(unit); !what.empty())
      detail::throw_errno(EBADMSG, fmt::format("a page was written twice and read back otherwise: {}", what));
  });
}

}  // namespace orrery::storage
