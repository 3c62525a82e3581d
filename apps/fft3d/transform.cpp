// SPDX-License-Identifier: Apache-2.0
#include "transform.hpp"

#include "lines.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <orrery/storage/strided_copy.hpp>

namespace fft3d {
namespace {

using orrery::storage::for_each_place;
using orrery::storage::page;

using orrery::storage::copy_box;

bool is_single(element_type t) { return t == element_type::float32 || t == element_type::complex64; }

// Real numbers get an imaginary part of 0, complex ones lose theirs; one of the two types is `work`.
template <class Real>
page converted(const page& p, element_type to, element_type work) {
  page q = page::uninitialized(to == work ? 2 * p.size() : p.size() / 2);
  const auto* x = reinterpret_cast<const Real*>(p.bytes().data());
  auto* y = reinterpret_cast<Real*>(q.writable().data());
  const std::size_t n = std::min(p.size(), q.size()) / sizeof(Real);
  for (std::size_t i = 0; i < n; ++i) {
    if (to == work) {
      y[2 * i] = x[i];
      y[2 * i + 1] = 0;
    } else {
      y[i] = x[2 * i];
    }
  }
  return q;
}
page converted(page p, element_type from, element_type to, element_type work) {
  if (from == to) return p;
  return is_single(work) ? converted<float>(p, to, work) : converted<double>(p, to, work);
}

template <class Real>
std::uint64_t count_nan(const page& p) {
  const auto* x = reinterpret_cast<const Real*>(p.bytes().data());
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < p.size() / sizeof(Real); ++i) n += x[i] != x[i];
  return n;
}

// Of this OS process, in bytes: resident at most so far; what it shares with other nodes now, and at no time else, counts for each of them in part.
std::uint64_t peak_memory() {
  const bool alone = orrery::world_nodes() == 1;
  std::ifstream status(alone ? "/proc/self/status" : "/proc/self/smaps_rollup");
  for (std::string word; status >> word;)
    if (std::uint64_t kib = 0; word == (alone ? "VmHWM:" : "Pss:") && status >> kib) return kib << 10;
  return 0;
}

std::vector<double> squared_frequencies(std::int64_t n) {
  std::vector<double> f;
  for (std::int64_t k = 0; k < n; ++k) {
    const double x = static_cast<double>(std::min(k, n - k)) / static_cast<double>(n);
    f.push_back(x * x);
  }
  return f;
}

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

orrery::storage::array array_in_memory(const plan& p, const std::string& folder) {
  namespace storage = orrery::storage;
  const storage::circulant_map map(p.grid.pages(), orrery::world_pes());
  const std::size_t page = storage::array_page::bytes_of(p.grid.page_shape, p.work_type);
  const std::size_t slot = (page + storage::page_alignment - 1) / storage::page_alignment * storage::page_alignment;
  std::vector<orrery::remote<storage::array_page_device>> devices;
  for (std::uint32_t i = 0; i < orrery::world_pes(); ++i) {
    const std::string file = folder + "/memory-" + std::to_string(i);
    std::ofstream(file).flush();
    std::filesystem::resize_file(file, map.pages_on(i) * slot);
    devices.push_back(orrery::spawn<memory_device>(orrery::pe(i), file, map.pages_on(i), p.grid.page_shape, p.work_type,
                                                   storage::device_options{.mode = storage::open_mode::read_write}));
  }
  return {p.grid, p.work_type, map, devices};
}

transformer::transformer(plan p, const orrery::remote<ledger>& units) : plan_(std::move(p)), ledger_(units) {
  orrery::storage::set_page_pool_limit(plan_.pool_bytes);
  static std::once_flag once;
  std::call_once(once, load_wisdom);
}

work_log transformer::run(std::size_t pass, const orrery::storage::array& from, const orrery::storage::array& to) {
  log_ = {orrery::this_pe(), orrery::this_node(), {}, 0, 0};
  const auto note = [&](span::kind what, std::int64_t unit, double since) {
    log_.spans.push_back({what, unit, since, now(), std::exchange(busy_, 0)});
    return log_.spans.back().end;
  };
  try {
    for (std::int64_t n; (n = ledger_->next()) >= 0;) {
      const domain unit = plan_.unit_pages(pass, n);
      double at = now();
      pages all = read(unit, from, pass == 0);
      since_ = at = note(span::kind::read, n, at);
      for (const phase& p : plan_.passes[pass].phases) transform(unit, p, all);
      at = note(span::kind::transform, n, at);
      write(unit, std::move(all), to);
      note(span::kind::write, n, at);
      ledger_->done(n);
      log_.node_peak = std::max(log_.node_peak, peak_memory());
    }
  } catch (...) {
    ledger_->stop();
    throw;
  }
  return std::move(log_);
}

transformer::pages transformer::read(const domain& unit, const orrery::storage::array& from, bool input) {
  std::vector<orrery::future<page>> coming;
  for_each_place(unit, [&](const index3& p) { coming.push_back(from.start_read_whole(p)); });
  pages all;
  for (auto& f : coming) {
    page p = f.get();
    if (input) log_.not_a_number += is_single(from.type()) ? count_nan<float>(p) : count_nan<double>(p);
    all.push_back(converted(std::move(p), from.type(), plan_.work_type, plan_.work_type));
  }
  return all;
}

void transformer::write(const domain& unit, pages all, const orrery::storage::array& to) {
  std::vector<orrery::future<void>> going;
  auto next = all.begin();
  for_each_place(unit, [&](const index3& p) {
    going.push_back(
        to.start_write_whole(converted(std::exchange(*next++, {}), plan_.work_type, to.type(), plan_.work_type), p));
  });
  for (auto& f : going) f.get();
}

void transformer::transform(const domain& unit, const phase& what, pages& all) {
  plan_.work_type == element_type::complex64 ? transform<float>(unit, what, all) : transform<double>(unit, what, all);
}

// Tile by tile: lines are copied from the pages, so that they are contiguous, transformed, and copied back.
template <class Real>
void transformer::transform(const domain& unit, const phase& what, pages& all) {
  using number = std::complex<Real>;
  const auto& g = plan_.grid;
  const int along = what.dimension;
  const int across = along == 2 ? 1 : 2;  // tiles are wide in the direction in which pages are contiguous
  const int third = 3 - along - across;
  const std::int64_t n = g.array_shape[along];
  const std::int64_t width = tile_lines(g, along);
  lines<Real> tile(n, width);
  const index3 in_page = orrery::storage::strides_of(g.page_shape);
  index3 in_tile{};
  in_tile[along] = 1;
  in_tile[across] = n;
  const auto nu_along = squared_frequencies(n);
  const auto nu_across = squared_frequencies(g.array_shape[across]);
  const auto nu_third = squared_frequencies(g.array_shape[third]);
  const orrery::storage::page_grid places{unit.shape(), {1, 1, 1}};

  domain heads = unit;
  heads.last[along] = heads.first[along] + 1;
  for_each_place(heads, [&](const index3& head) {
    const domain elements = g.elements_of(head);
    std::vector<number*> line;  // of pages
    for (index3 p = head; p[along] < unit.last[along]; ++p[along])
      line.push_back(reinterpret_cast<number*>(
          all[places.number_of(domain{p, p}.relative_to(unit.first).first)].writable().data()));
    index3 at = elements.first;
    for (; at[third] < elements.last[third]; ++at[third])
      for (at[across] = elements.first[across]; at[across] < elements.last[across]; at[across] += width) {
        index3 box{1, 1, 1};
        box[across] = std::min(width, elements.last[across] - at[across]);
        const auto copy = [&](bool back) {
          for (std::int64_t k = 0; k < std::ssize(line); ++k) {
            const std::int64_t first = k * g.page_shape[along];
            box[along] = std::min(g.page_shape[along], n - first);
            auto* page =
                reinterpret_cast<std::byte*>(line[k] + (at[across] - elements.first[across]) * in_page[across] +
                                             (at[third] - elements.first[third]) * in_page[third]);
            auto* here = reinterpret_cast<std::byte*>(tile.data() + first);
            back ? copy_box(page, in_page, here, in_tile, box, sizeof(number))
                 : copy_box(here, in_tile, page, in_page, box, sizeof(number));
          }
        };
        copy(false);
        if (what.forward) tile.forward();
        if (what.filter)
          for (std::int64_t j = 0; j < box[across]; ++j)
            for (std::int64_t i = 0; i < n; ++i)
              tile.data()[j * n + i] *=
                  static_cast<Real>(plan_.filter.at(nu_along[i] + nu_across[at[across] + j] + nu_third[at[third]]));
        if (what.inverse) tile.inverse();
        copy(true);
        give_way();
      }
  });
}

// A PE serves drives and other processes only when a process lets it.
void transformer::give_way() {
  constexpr double slice = 2e-4;
  const double t = now();
  if (t - since_ < slice) return;
  busy_ += t - since_;
  orrery::yield();
  since_ = now();
}

}  // namespace fft3d
