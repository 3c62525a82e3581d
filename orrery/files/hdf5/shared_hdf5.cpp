// SPDX-License-Identifier: Apache-2.0
#include <orrery/files/hdf5/shared_hdf5.hpp>

#include <orrery/files/box_plan.hpp>
#include <orrery/files/hdf5/dataset.hpp>
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/sharing_check.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::detail {

namespace {

using hdf5::with_library;

const std::string option = "dataset";

/// A reader or a writer, which is made, used and ended while no other thread uses the library.
template <class Dataset>
class locked {
 public:
  template <class... A>
  explicit locked(A&&... a) {
    with_library([&] { set_.emplace(std::forward<A>(a)...); });
  }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;
  ~locked() {
    with_library([&] { set_.reset(); });
  }
  template <class F>
  decltype(auto) operator()(F f) {
    return with_library([&]() -> decltype(auto) { return f(*set_); });
  }

 private:
  std::optional<Dataset> set_;
};

/// A box of the object, in the dimensions of the dataset.
struct place {
  std::vector<hsize_t> first;
  std::vector<hsize_t> count;
  place(std::size_t rank, const file_axes& axes, const region& box) : first(rank, 0), count(rank, 1) {
    const auto set = [&](int axis, std::uint64_t f, std::uint64_t n) {
      if (axis < 0) return;
      first[static_cast<std::size_t>(axis)] = f;
      count[static_cast<std::size_t>(axis)] = n;
    };
    set(axes.rows, box.row, box.rows);
    set(axes.columns, box.column, box.columns);
  }
};

[[noreturn]] void throw_other_type(const shared_object& o, hdf5_type type, const std::string& what,
                                   const std::string& found) {
  throw std::invalid_argument(fmt::format("{}: its elements are {}, and those of {} {}; give both the same",
                                          o.about.label, hdf5::name_of({type.kind, type.bytes, "r", "i"}), what,
                                          found));
}

struct load_plan {
  std::size_t rank = 0;
  file_axes axes;
  box_plan boxes;
  hdf5::number elements;
};

/// Under the lock.
load_plan plan_load(const hdf5::dataset_reader& set, const shared_object& o, hdf5_type type, std::uint64_t memory) {
  load_plan p;
  const hdf5::handle stored = set.stored_type();
  const auto number = hdf5::number_of(stored);
  if (!number) throw_other_type(o, type, set.what(), hdf5::name_of_class(H5Tget_class(stored)));
  if (number->kind != type.kind || number->bytes != type.bytes)
    throw_other_type(o, type, set.what(), hdf5::name_of(*number));
  p.elements = *number;
  const std::vector<std::uint64_t> sides(set.sides().begin(), set.sides().end());
  p.rank = sides.size();
  const auto axes = axes_for(sides, o.rows, o.columns);
  if (!axes)
    throw std::invalid_argument(
        fmt::format("{}: it has {} x {} elements, and {} has {}; both need the same shape, but for sides of 1",
                    o.about.label, o.rows, o.columns, set.what(), fmt::join(sides, " x ")));
  p.axes = *axes;
  set.require_filters();
  const auto unit = [&](int axis) {
    return axis < 0 || set.chunk().empty() ? 1 : set.chunk()[static_cast<std::size_t>(axis)];
  };
  const std::uint64_t chunk = std::accumulate(set.chunk().begin(), set.chunk().end(), type.bytes, std::multiplies<>());
  if (memory / 2 < chunk)
    throw std::invalid_argument(
        fmt::format("{}: {} bytes of memory are too little for {}, whose chunks have {} bytes; give at least {}",
                    o.about.label, memory, set.what(), chunk, 2 * chunk));
  p.boxes = plan_boxes(o.rows, o.columns, unit(p.axes.rows), unit(p.axes.columns), memory / 2 / type.bytes, 1);
  return p;
}

std::vector<std::byte> buffer_for(const box_plan& boxes, std::size_t element_bytes) {
  return std::vector<std::byte>(boxes.size() == 0 ? 0 : boxes.box_rows * boxes.box_columns * element_bytes);
}

}  // namespace

file_traffic load_hdf5(const std::string& file, const std::string& dataset, const shared_id& to, hdf5_type type,
                       const file_options& options, const std::source_location& where) {
  const std::shared_ptr<const shared_object> o = hold_object(to);
  require_owners(*o);
  scope_guard writes;
  writes.begin(o, scope_guard::kind::write, where);
  watched_access watch;
  watch.begin(o, access_kind::write, where, "load_hdf5");
  if (watch) watch.add(0, 0, o->rows * o->columns);

  const std::uint64_t cache = options.memory / 2;
  locked<hdf5::dataset_reader> set(file, dataset, option, static_cast<std::size_t>(cache));
  const load_plan plan = set([&](auto& s) { return plan_load(s, *o, type, options.memory); });
  std::vector<std::byte> buffer = buffer_for(plan.boxes, type.bytes);
  for (std::uint64_t n = 0; n < plan.boxes.size(); ++n) {
    const region box = plan.boxes[n];
    set([&](auto& s) {
      const place at(plan.rank, plan.axes, box);
      s.read(at.first, at.count, hdf5::memory_type(plan.elements), buffer.data());
    });
    write_region(*o, box, buffer.data(), box.columns * type.bytes, {"load_hdf5", where});
  }
  return {o->rows * o->columns * type.bytes, buffer.size() + cache};
}

file_traffic store_hdf5(const shared_id& from, int dimensions, const std::string& file, const std::string& dataset,
                        hdf5_type type, const file_options& options, const std::source_location& where) {
  const std::shared_ptr<const shared_object> o = hold_object(from);
  require_owners(*o);
  if (options.memory < type.bytes)
    throw std::invalid_argument(fmt::format("{}: {} bytes of memory are too little for an element; give at least {}",
                                            o->about.label, options.memory, type.bytes));
  watched_access watch;
  watch.begin(o, access_kind::read, where, "store_hdf5");
  if (watch) watch.add(0, 0, o->rows * o->columns);

  std::vector<hsize_t> sides{o->rows};
  if (dimensions == 2) sides.push_back(o->columns);
  const file_axes axes{0, dimensions == 2 ? 1 : -1};
  const box_plan boxes = plan_boxes(o->rows, o->columns, 1, 1, options.memory / type.bytes, 1);
  locked<hdf5::dataset_writer> set(file, dataset, sides, hdf5::number{type.kind, type.bytes, "r", "i"}, option);
  std::vector<std::byte> buffer = buffer_for(boxes, type.bytes);
  for (std::uint64_t n = 0; n < boxes.size(); ++n) {
    const region box = boxes[n];
    region_reader r;
    r.begin(o, box, buffer.data(), box.columns * type.bytes);
    r.finish();
    const place at(sides.size(), axes, box);
    set([&](auto& s) { s.write(at.first, at.count, buffer.data()); });
  }
  set([](auto& s) { s.finish(); });
  return {o->rows * o->columns * type.bytes, buffer.size()};
}

}  // namespace orrery::detail

namespace orrery {

std::vector<std::uint64_t> hdf5_sides(const std::string& file, const std::string& dataset) {
  detail::locked<hdf5::dataset_reader> set(file, dataset, detail::option, 0);
  return set([](auto& s) { return std::vector<std::uint64_t>(s.sides().begin(), s.sides().end()); });
}

}  // namespace orrery
