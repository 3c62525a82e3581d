// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/page_map.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace orrery::storage {
namespace {

void check(const index3& pages, std::uint32_t devices) {
  if (devices == 0 || devices > 1U << 20)
    throw std::invalid_argument(fmt::format("a page map needs 1 to 2^20 devices, not {}", devices));
  for (const std::int64_t n : pages)
    if (n <= 0) throw std::invalid_argument(fmt::format("a page map of {} pages cannot be", to_string(pages)));
}

std::int64_t number_of(const index3& pages, const index3& p) noexcept {
  return (p[0] * pages[1] + p[1]) * pages[2] + p[2];
}
index3 page_at(const index3& pages, std::int64_t n) noexcept {
  return {n / (pages[1] * pages[2]), n / pages[2] % pages[1], n % pages[2]};
}

std::int64_t modulo(std::int64_t x, std::int64_t n) noexcept { return (x % n + n) % n; }

}  // namespace

// --- circulant -----------------------------------------------------------------------------------
//
// A line (p1, p2, *) gives each device floor(P3 / n) pages, and one more, an *extra*, to the `rest`
// devices from p1 + p2 on. Device d gets an extra of the line iff k - p2 mod n < rest, with k = d -
// p1: so the lines of a plane are counted from k, and the planes from d.

circulant_map::circulant_map(const index3& pages, std::uint32_t devices) : page_map(pages), n_(devices) {
  check(pages, devices);
  rest_ = pages_[2] % n_;
  plane_sums_.resize(static_cast<std::size_t>(n_) + 1);
  for (std::int64_t k = 0; k < n_; ++k)
    plane_sums_[static_cast<std::size_t>(k) + 1] =
        plane_sums_[static_cast<std::size_t>(k)] + extras_of_rows(k, pages_[1]);
}

// How many of the lines p2 = 0 ... rows - 1 give an extra to the device that is k behind the
// plane's first.
std::int64_t circulant_map::extras_of_rows(std::int64_t k, std::int64_t rows) const noexcept {
  const std::int64_t rounds = rows / n_;
  const std::int64_t more = rows % n_;
  // k - j mod n for j = 0 ... more - 1 is k, k - 1, ..., down to 0, and then from n - 1 down.
  const std::int64_t down = std::min(more, k + 1);  // values k - down + 1 ... k
  const std::int64_t in_first = std::max<std::int64_t>(0, std::min(k + 1, rest_) - (k - down + 1));
  const std::int64_t wrapped = more - down;  // values n - wrapped ... n - 1
  const std::int64_t in_second = std::max<std::int64_t>(0, rest_ - (n_ - wrapped));
  return rounds * rest_ + in_first + (wrapped > 0 ? in_second : 0);
}

// Extras of the device in the planes p1 = 0 ... planes - 1; k runs down from the device.
std::int64_t circulant_map::before_plane(std::int64_t device, std::int64_t planes) const noexcept {
  const auto sum = [&](std::int64_t from, std::int64_t to) {
    return plane_sums_[static_cast<std::size_t>(to)] - plane_sums_[static_cast<std::size_t>(from)];
  };
  const std::int64_t more = planes % n_;
  const std::int64_t down = std::min(more, device + 1);
  const std::int64_t wrapped = more - down;
  return planes / n_ * sum(0, n_) + sum(device + 1 - down, device + 1) + sum(n_ - wrapped, n_);
}

page_address circulant_map::locate(const index3& p) const {
  const std::int64_t device = (p[0] + p[1] + p[2]) % n_;
  const std::int64_t lines = p[0] * pages_[1] + p[1];
  const std::int64_t index = lines * (pages_[2] / n_) + before_plane(device, p[0]) +
                             extras_of_rows(modulo(device - p[0], n_), p[1]) + p[2] / n_;
  return {static_cast<std::uint32_t>(device), static_cast<std::uint64_t>(index)};
}

std::uint64_t circulant_map::pages_on(std::uint32_t device) const {
  return static_cast<std::uint64_t>(pages_[0] * pages_[1] * (pages_[2] / n_) + before_plane(device, pages_[0]));
}

// --- blocked -------------------------------------------------------------------------------------

blocked_map::blocked_map(const index3& pages, std::uint32_t devices) : page_map(pages), devices_(devices) {
  check(pages, devices);
  const auto all = static_cast<std::uint64_t>(product(pages));
  each_ = all / devices;
  larger_ = all % devices;
}
page_address blocked_map::locate(const index3& p) const {
  const auto n = static_cast<std::uint64_t>(number_of(pages_, p));
  const std::uint64_t in_larger = larger_ * (each_ + 1);
  if (n < in_larger) return {static_cast<std::uint32_t>(n / (each_ + 1)), n % (each_ + 1)};
  return {static_cast<std::uint32_t>(larger_ + (n - in_larger) / each_), (n - in_larger) % each_};
}
std::uint64_t blocked_map::pages_on(std::uint32_t device) const { return each_ + (device < larger_ ? 1 : 0); }

// --- table ---------------------------------------------------------------------------------------

table_map::table_map(const index3& pages, std::uint32_t devices, std::vector<page_address> table)
    : page_map(pages), table_(std::move(table)) {
  check(pages, devices);
  if (table_.size() != static_cast<std::uint64_t>(product(pages)))
    throw std::invalid_argument(
        fmt::format("the table of a page map has {} addresses for {} pages", table_.size(), to_string(pages)));
  counts_.resize(devices);
  for (std::size_t n = 0; n < table_.size(); ++n) {
    const page_address& a = table_[n];
    if (a.device >= devices || a.index >= std::uint64_t{1} << 62)
      throw std::invalid_argument(fmt::format("page ({}) is mapped to place {} of device {}; there are {} devices",
                                              to_string(page_at(pages, static_cast<std::int64_t>(n))), a.index,
                                              a.device, devices));
    counts_[a.device] = std::max(counts_[a.device], a.index + 1);
  }
  std::vector<std::size_t> order(table_.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  const auto key = [&](std::size_t n) { return std::pair(table_[n].device, table_[n].index); };
  std::ranges::sort(order, {}, key);
  for (std::size_t n = 1; n < order.size(); ++n)
    if (table_[order[n]] == table_[order[n - 1]])
      throw std::invalid_argument(fmt::format("pages ({}) and ({}) are both mapped to place {} of device {}",
                                              to_string(page_at(pages, static_cast<std::int64_t>(order[n - 1]))),
                                              to_string(page_at(pages, static_cast<std::int64_t>(order[n]))),
                                              table_[order[n]].index, table_[order[n]].device));
}
page_address table_map::locate(const index3& p) const { return table_[static_cast<std::size_t>(number_of(pages_, p))]; }

std::vector<page_address> tabulate(const page_map& m) {
  std::vector<page_address> table;
  table.reserve(static_cast<std::size_t>(product(m.pages())));
  for_each_place(domain::of_shape(m.pages()), [&](const index3& p) {
    table.push_back(m.locate(p));
    if (const page_address& a = table.back(); a.device < m.devices() && a.index >= m.pages_on(a.device))
      throw std::invalid_argument(fmt::format("page ({}) is mapped to place {} of device {}, which has {} places",
                                              to_string(p), a.index, a.device, m.pages_on(a.device)));
  });
  // looks for devices that are not there, and places given twice
  (void)table_map(m.pages(), m.devices(), table);
  return table;
}

// --- as values -----------------------------------------------------------------------------------

std::shared_ptr<const page_map> make_page_map(std::string_view kind, const index3& pages, std::uint32_t devices) {
  if (kind == "circulant") return std::make_shared<const circulant_map>(pages, devices);
  if (kind == "blocked") return std::make_shared<const blocked_map>(pages, devices);
  throw std::invalid_argument(fmt::format("there is no page map of the kind '{}': circulant, blocked, table", kind));
}

any_page_map::form any_page_map::to_form() const {
  if (map_ == nullptr) return {};
  form f{std::string(map_->kind()), map_->pages(), map_->devices(), {}};
  const page_map* m = map_.get();
  if (dynamic_cast<const circulant_map*>(m) != nullptr || dynamic_cast<const blocked_map*>(m) != nullptr) return f;
  f.kind = "table";
  f.table = tabulate(*m);
  return f;
}
void any_page_map::from_form(form f) {
  if (f.kind.empty()) {
    map_ = nullptr;
  } else if (f.kind == "table") {
    map_ = std::make_shared<const table_map>(f.pages, f.devices, std::move(f.table));
  } else {
    map_ = make_page_map(f.kind, f.pages, f.devices);
  }
}

}  // namespace orrery::storage
