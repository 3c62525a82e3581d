// SPDX-License-Identifier: Apache-2.0
#include <orrery/files/shared_data_set.hpp>

#include <orrery/files/box_plan.hpp>
#include <orrery/process/detail/finish.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/sharing_check.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

/// The work of each PE that owns a part of the object: the boxes that are its, one after the other.
struct box_job {
  shared_id id;
  storage::array file;
  file_axes axes;
  box_plan plan;
  std::uint32_t worker = 0;
  std::uint32_t workers = 1;
  std::string writer;  ///< empty: elements are stored, not loaded

  template <class A>
  void serialize(A& a) {
    a & id & file & axes & plan.rows & plan.columns & plan.box_rows & plan.box_columns & worker & workers & writer;
  }
};

/// A box goes to whom most of it is near, where the distribution says that; else all get as many.
std::uint32_t worker_of(const layout& l, const region& box, std::uint64_t number, std::uint32_t workers) {
  if (!l.rows.contiguous()) return static_cast<std::uint32_t>(number % workers);
  return static_cast<std::uint32_t>(std::uint64_t{l.find(box.row, box.column).part} * workers / l.parts());
}

storage::domain domain_of_box(const file_axes& axes, const region& box) {
  storage::domain d{{0, 0, 0}, {1, 1, 1}};
  const auto set = [&](int axis, std::uint64_t first, std::uint64_t count) {
    if (axis < 0) return;
    d.first[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(first);
    d.last[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(first + count);
  };
  set(axes.rows, box.row, box.rows);
  set(axes.columns, box.column, box.columns);
  return d;
}

/// Returns the bytes of its buffer.
std::uint64_t move_boxes(const box_job& job) {
  const std::shared_ptr<const shared_object> o = hold_object(job.id);
  std::vector<std::byte> buffer;
  for (std::uint64_t n = 0; n < job.plan.size(); ++n) {
    const region box = job.plan[n];
    if (worker_of(o->how(), box, n, job.workers) != job.worker) continue;
    if (buffer.empty()) buffer.resize(job.plan.box_rows * job.plan.box_columns * o->element_bytes());
    const std::uint64_t pitch = box.columns * o->element_bytes();
    const std::span<std::byte> used = std::span(buffer).first(box.rows * pitch);
    const storage::domain d = domain_of_box(job.axes, box);
    if (job.writer.empty()) {
      region_reader r;
      r.begin(o, box, used.data(), pitch);
      r.finish();
      job.file.write_bytes(d, storage::transposition::none, used, job.file.type());
    } else {
      job.file.read_bytes(d, storage::transposition::none, used, job.file.type());
      write_region(*o, box, used.data(), pitch, write_site(job.writer));
    }
  }
  return buffer.size();
}

file_axes checked_axes(const shared_object& o, const storage::array& file, storage::element_type type) {
  if (file.type() != type)
    throw std::invalid_argument(fmt::format("{}: its elements are {}, and those of the data set {}; give both the same",
                                            o.about.label, to_string(type), to_string(file.type())));
  std::array<std::uint64_t, 3> sides{};
  std::ranges::transform(file.shape(), sides.begin(), [](std::int64_t n) { return static_cast<std::uint64_t>(n); });
  if (const auto axes = axes_for(sides, o.rows, o.columns)) return *axes;
  throw std::invalid_argument(fmt::format(
      "{}: it has {} x {} elements, and the data set {} x {} x {}; both need the same shape, but for sides of 1",
      o.about.label, o.rows, o.columns, sides[0], sides[1], sides[2]));
}

file_traffic move_all(const std::shared_ptr<const shared_object>& o, storage::array file, storage::element_type type,
                      const std::string& writer, const file_options& options) {
  const file_axes axes = checked_axes(*o, file, type);
  require_owners(*o);
  const storage::index3& page = file.grid().page_shape;
  const auto page_bytes = static_cast<std::uint64_t>(storage::product(page)) * size_of(type);
  // A box of a page, and two pages on their way, are the least that a PE works with.
  const std::uint64_t fit = options.memory / 3 / page_bytes;
  if (fit == 0)
    throw std::invalid_argument(
        fmt::format("{}: {} bytes of memory are too little for pages of {} bytes; give at least {}", o->about.label,
                    options.memory, page_bytes, 3 * page_bytes));
  const auto workers = static_cast<std::uint32_t>(std::min<std::uint64_t>(fit, o->how().parts()));
  const std::uint64_t share = options.memory / workers;
  const std::uint64_t window = std::max(2 * page_bytes, share / 2);
  file.set_window(window);
  const auto unit = [&](int axis) {
    return axis < 0 ? 1 : static_cast<std::uint64_t>(page[static_cast<std::size_t>(axis)]);
  };
  const box_plan plan =
      plan_boxes(o->rows, o->columns, unit(axes.rows), unit(axes.columns), (share - window) / size_of(type), workers);
  std::vector<future<std::uint64_t>> started;
  // where one fails, the others still use the object
  const std::vector<std::uint64_t> peaks = finish(started, [&] {
    for (std::uint32_t w = 0; w < workers; ++w) {
      const auto part = static_cast<std::uint32_t>(std::uint64_t{w} * o->how().parts() / workers);
      started.push_back(start_call<&move_boxes>(orrery::pe(o->how().pes[part]),
                                                box_job{o->about.id, file, axes, plan, w, workers, writer}));
    }
  });
  const std::uint64_t buffers = std::reduce(peaks.begin(), peaks.end());
  return {o->rows * o->columns * o->element_bytes(), buffers + workers * window};
}

}  // namespace

file_traffic load_array(const storage::array& from, const shared_id& to, storage::element_type type,
                        const file_options& options, const std::source_location& where) {
  const std::shared_ptr<const shared_object> o = hold_object(to);
  scope_guard writes;
  writes.begin(o, scope_guard::kind::write, where);
  watched_access watch;
  watch.begin(o, access_kind::write, where, "load");
  if (watch) watch.add(0, 0, o->rows * o->columns);
  return move_all(o, from, type, write_site{"load", where}.text(), options);
}

file_traffic store_array(const shared_id& from, const storage::array& to, storage::element_type type,
                         const file_options& options, const std::source_location& where) {
  const std::shared_ptr<const shared_object> o = hold_object(from);
  watched_access watch;
  watch.begin(o, access_kind::read, where, "store");
  if (watch) watch.add(0, 0, o->rows * o->columns);
  const file_traffic moved = move_all(o, to, type, {}, options);
  to.flush();
  return moved;
}

}  // namespace orrery::detail
