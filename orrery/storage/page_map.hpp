// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/domain.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::storage {

/// Where a page lies: on which device of an array, and at which place there. (Givelberg 2014,
/// section 2.3.)
struct page_address {
  std::uint32_t device = 0;
  std::uint64_t index = 0;
  friend constexpr bool operator==(const page_address&, const page_address&) noexcept = default;
  template <class A>
  void serialize(A& a) {
    a & device & index;
  }
};

/// How the pages of an array are spread over its devices. (Givelberg 2014, section 2.3.)
///
/// Problem: which drives work at the same time depends on which pages a computation reads together,
/// so the layout is the user's choice. So the map is an interface: derive from it, or use one of
/// those below. A map is immutable and made for one grid of pages and one number of devices; it may
/// be asked by any thread at once, and does not park. Invariants that every map keeps (tests hold
/// each map to them; `tabulate` refuses one that does not): no two pages have the same address;
/// every device is below devices(), every index below pages_on(device).
class page_map {
 public:
  virtual ~page_map() = default;

  /// The address of page (p1, p2, p3), each below the grid's number of pages. Undefined for others.
  [[nodiscard]] virtual page_address locate(const index3& page) const = 0;
  /// How many devices the map needs.
  [[nodiscard]] virtual std::uint32_t devices() const = 0;
  /// How many pages a device must have room for.
  [[nodiscard]] virtual std::uint64_t pages_on(std::uint32_t device) const = 0;
  /// "circulant", "blocked", or another name; how it is written in headers of data sets.
  [[nodiscard]] virtual std::string_view kind() const = 0;
  /// Pages of the array in each dimension.
  [[nodiscard]] const index3& pages() const noexcept { return pages_; }

 protected:
  explicit page_map(const index3& pages) : pages_(pages) {}
  page_map(const page_map&) = default;
  page_map& operator=(const page_map&) = default;

  index3 pages_;
};

/// Page (p1, p2, p3) is on device (p1 + p2 + p3) mod devices, at the first place that is free there
/// when the pages are dealt out in their order; so each line of pages, in any dimension, is spread
/// over all devices, and no device has gaps. (Givelberg 2014, section 4.1.) An address is computed
/// in constant time, from tables of as many numbers as there are devices.
class circulant_map final : public page_map {
 public:
  /// Throws std::invalid_argument if there is no device or a side is not positive.
  circulant_map(const index3& pages, std::uint32_t devices);
  [[nodiscard]] page_address locate(const index3& page) const override;
  [[nodiscard]] std::uint32_t devices() const override { return static_cast<std::uint32_t>(n_); }
  [[nodiscard]] std::uint64_t pages_on(std::uint32_t device) const override;
  [[nodiscard]] std::string_view kind() const override { return "circulant"; }

 private:
  [[nodiscard]] std::int64_t extras_of_rows(std::int64_t k, std::int64_t rows) const noexcept;
  [[nodiscard]] std::int64_t before_plane(std::int64_t device, std::int64_t planes) const noexcept;

  std::int64_t n_;
  std::int64_t rest_;  // pages of a line beyond the last full round of all devices
  // [k]: extras of the planes that begin 0, 1, ..., k - 1 devices away
  std::vector<std::int64_t> plane_sums_;
};

/// Each device has one block of consecutive pages; the blocks' sizes differ by one at most.
class blocked_map final : public page_map {
 public:
  /// Throws as circulant_map.
  blocked_map(const index3& pages, std::uint32_t devices);
  [[nodiscard]] page_address locate(const index3& page) const override;
  [[nodiscard]] std::uint32_t devices() const override { return devices_; }
  [[nodiscard]] std::uint64_t pages_on(std::uint32_t device) const override;
  [[nodiscard]] std::string_view kind() const override { return "blocked"; }

 private:
  std::uint32_t devices_;
  std::uint64_t each_;
  std::uint64_t larger_;  // so many devices, the first, have one page more
};

/// Any addresses, computed before and given as a table.
class table_map final : public page_map {
 public:
  /// `table[n]` is the address of page number n, the third dimension running fastest. Throws
  /// std::invalid_argument, which names the page, if the table has another length than the grid, a
  /// device is not below `devices`, or two pages have one address.
  table_map(const index3& pages, std::uint32_t devices, std::vector<page_address> table);
  [[nodiscard]] page_address locate(const index3& page) const override;
  [[nodiscard]] std::uint32_t devices() const override { return static_cast<std::uint32_t>(counts_.size()); }
  [[nodiscard]] std::uint64_t pages_on(std::uint32_t device) const override { return counts_.at(device); }
  [[nodiscard]] std::string_view kind() const override { return "table"; }
  /// The places of all pages, in the order of their numbers.
  [[nodiscard]] std::span<const page_address> table() const noexcept { return table_; }

 private:
  std::vector<page_address> table_;
  std::vector<std::uint64_t> counts_;
};

/// The table of a map, whatever its class. Throws std::invalid_argument, which names the pages, if
/// it breaks the invariants.
[[nodiscard]] std::vector<page_address> tabulate(const page_map& m);

/// A map of that kind ("circulant", "blocked"). Throws std::invalid_argument, which names the kinds
/// there are.
[[nodiscard]] std::shared_ptr<const page_map> make_page_map(std::string_view kind, const index3& pages,
                                                            std::uint32_t devices);

/// A page map as a value that can be copied, kept and sent to another node: maps of the classes
/// above travel as what they were made from, any other class as its table. Empty by default. Does
/// not park.
class any_page_map {
 public:
  any_page_map() noexcept = default;
  any_page_map(std::shared_ptr<const page_map> m) noexcept
      : map_(std::move(m)) {}  // NOLINT(google-explicit-constructor)
  template <std::derived_from<page_map> M>
  any_page_map(M m) : map_(std::make_shared<const M>(std::move(m))) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const page_map* operator->() const noexcept { return map_.get(); }
  [[nodiscard]] const page_map& operator*() const noexcept { return *map_; }
  [[nodiscard]] explicit operator bool() const noexcept { return map_ != nullptr; }

  template <class A>
  void serialize(A& a) {
    form f;
    if constexpr (!A::is_loading::value) f = to_form();
    a & f.kind & f.pages & f.devices & f.table;
    if constexpr (A::is_loading::value) from_form(std::move(f));
  }

 private:
  struct form {
    std::string kind;  // empty: no map
    index3 pages{};
    std::uint32_t devices = 0;
    std::vector<page_address> table;  // of what is neither circulant nor blocked
  };
  [[nodiscard]] form to_form() const;
  void from_form(form f);

  std::shared_ptr<const page_map> map_;
};

}  // namespace orrery::storage
