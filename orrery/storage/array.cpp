// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/array.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/detail/finish.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/storage/detail/strided_copy.hpp>

#include <algorithm>
#include <deque>
#include <exception>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace orrery::storage {
namespace {

std::ptrdiff_t offset_of(const index3& at, const index3& strides, std::size_t element_bytes) {
  return (at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2]) * static_cast<std::ptrdiff_t>(element_bytes);
}

// A box of elements in memory that is not a page's: where it is, and how to walk in it along the
// dimensions of the array.
template <class Byte>
struct box_view {
  Byte* data;
  index3 strides;
  index3 origin;  // the place in the array of the first element
  std::size_t element_bytes;

  [[nodiscard]] Byte* at(const index3& place) const {
    return data + offset_of({place[0] - origin[0], place[1] - origin[1], place[2] - origin[2]}, strides, element_bytes);
  }
};
template <class Byte>
box_view<Byte> view(const domain& d, transposition t, std::span<Byte> memory, element_type type) {
  return {memory.data(), transposed(strides_of(transposed(d.shape(), t)), t), d.first, size_of(type)};
}

// One page that is on its way to a reader: all of it, or the part that is wanted.
struct arriving {
  future<page> whole;
  future<array_page> box;
  domain part;  // of the array
  index3 page_first;  // the array's place of the page's first element

  [[nodiscard]] bool ready() const { return whole.valid() ? whole.ready() : box.ready(); }
};

}  // namespace

array::array(const page_grid& grid, element_type type, any_page_map map, std::vector<remote<array_page_device>> devices)
    : grid_(page_grid::checked(grid.array_shape, grid.page_shape)),
      type_(type),
      map_(std::move(map)),
      devices_(std::move(devices)) {
  if (!map_ || map_->pages() != grid_.pages() || map_->devices() != devices_.size())
    throw std::invalid_argument(
        map_ ? fmt::format("the page map is for {} pages on {} devices, and the array has {} pages on {}",
                           to_string(map_->pages()), map_->devices(), to_string(grid_.pages()), devices_.size())
             : std::string("an array needs a page map"));
}

void array::check(const domain& d, std::size_t bytes, element_type type) const {
  if (!map_) throw std::invalid_argument("the array is empty: it was made without devices");
  if (type != type_)
    throw std::invalid_argument(
        fmt::format("the array holds {}, and was used as one of {}", to_string(type_), to_string(type)));
  if (!whole().contains(d))
    throw std::out_of_range(
        fmt::format("the domain {} is not inside of the array, which is {}", to_string(d), to_string(shape())));
  if (bytes != static_cast<std::size_t>(d.size()) * size_of(type))
    throw std::invalid_argument(
        fmt::format("the domain {} has {} elements, and the buffer {}", to_string(d), d.size(), bytes / size_of(type)));
}

std::size_t array::window() const noexcept {
  const std::uint64_t page_bytes = static_cast<std::uint64_t>(product(grid_.page_shape)) * size_of(type_);
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(window_bytes_ / page_bytes, 2, 256));
}

void array::read_bytes(const domain& d, transposition t, std::span<std::byte> into, element_type type) const {
  check(d, into.size(), type);
  const auto to = view(d, t, into, type);
  const index3 page_strides = strides_of(grid_.page_shape);
  const std::size_t most = window();
  std::deque<arriving> under_way;
  const auto take = [&] {
    // Drives do not answer in the order of the questions: whatever is there is copied while the
    // others come.
    const auto there = std::ranges::find_if(under_way, [](const arriving& a) { return a.ready(); });
    if (there != under_way.end()) std::swap(*there, under_way.front());
    arriving a = std::move(under_way.front());
    under_way.pop_front();
    if (a.whole.valid()) {
      const page p = a.whole.get();
      const domain in_page = a.part.relative_to(a.page_first);
      copy_box(to.at(a.part.first), to.strides,
               p.bytes().data() + offset_of(in_page.first, page_strides, to.element_bytes), page_strides,
               a.part.shape(), to.element_bytes);
    } else {
      const array_page p = a.box.get();
      copy_box(to.at(a.part.first), to.strides, p.bytes().data(), strides_of(p.shape()), p.shape(), to.element_bytes);
    }
  };
  for_each_place(grid_.pages_of(d), [&](const index3& place) {
    const domain elements = grid_.elements_of(place);
    const page_address at = map_->locate(place);
    arriving a{{}, {}, elements & d, elements.first};
    // Inside a node a page costs nothing to move. To another node its bytes are copied: then only
    // what is wanted.
    const auto& from = device(at);
    if (orrery::detail::on_this_node(orrery::detail::here_pe(), from.address().pe) ||
        2 * a.part.size() >= product(grid_.page_shape)) {
      a.whole = start(from)->read(at.index);
    } else {
      a.box = start(from)->read_box(at.index, a.part.relative_to(elements.first));
    }
    under_way.push_back(std::move(a));
    if (under_way.size() >= most) take();
  });
  while (!under_way.empty()) take();
}

void array::write_bytes(const domain& d, transposition t, std::span<const std::byte> from, element_type type) const {
  check(d, from.size(), type);
  const auto source = view(d, t, from, type);
  const index3 page_strides = strides_of(grid_.page_shape);
  const std::size_t most = window();
  std::deque<future<void>> under_way;
  std::exception_ptr error;
  // Waits for all, also after an error: when this returns nothing of it is under way any more.
  const auto take = [&] {
    future<void> f = std::move(under_way.front());
    under_way.pop_front();
    try {
      f.get();
    } catch (...) {
      if (error == nullptr) error = std::current_exception();
    }
  };
  for_each_place(grid_.pages_of(d), [&](const index3& place) {
    if (error != nullptr) return;
    const domain elements = grid_.elements_of(place);
    const domain part = elements & d;
    const page_address at = map_->locate(place);
    if (part == elements) {
      const bool hangs_over = part.shape() != grid_.page_shape;
      array_page p =
          hangs_over ? array_page(grid_.page_shape, type) : array_page::uninitialized(grid_.page_shape, type);
      copy_box(p.writable().data(), page_strides, source.at(part.first), source.strides, part.shape(),
               source.element_bytes);
      under_way.push_back(start(device(at))->write(p, at.index));
    } else {
      array_page p = array_page::uninitialized(part.shape(), type);
      copy_box(p.writable().data(), strides_of(p.shape()), source.at(part.first), source.strides, part.shape(),
               source.element_bytes);
      under_way.push_back(start(device(at))->write_box(p, part.relative_to(elements.first).first, at.index));
    }
    if (under_way.size() >= most) take();
  });
  while (!under_way.empty()) take();
  if (error != nullptr) std::rethrow_exception(error);
}

array_page array::read_page(const domain& d, transposition t) const {
  array_page p = array_page::uninitialized(transposed(d.shape(), t), type_);
  read_bytes(d, t, p.writable(), type_);
  return p;
}

void array::write_page(const domain& d, const array_page& p, transposition t) const {
  if (p.shape() != transposed(d.shape(), t))
    throw std::invalid_argument(
        fmt::format("a page of {} elements cannot be written to the domain {}", to_string(p.shape()), to_string(d)));
  write_bytes(d, t, p.bytes().first(array_page::bytes_of(p.shape(), p.type())), p.type());
}

const remote<array_page_device>& array::device(const page_address& at) const {
  return (on_nodes_.empty() ? devices_ : devices_of(this_node()))[at.device];
}
page_address array::locate(const index3& place) const {
  if (!map_ || !domain::of_shape(grid_.pages()).contains(place))
    throw std::out_of_range(fmt::format("page ({}, {}, {}) of an array of {} pages", place[0], place[1], place[2],
                                        to_string(map_ ? grid_.pages() : index3{})));
  return map_->locate(place);
}
future<page> array::start_read_whole(const index3& place) const {
  const page_address at = locate(place);
  return start(device(at))->read(at.index);
}
future<void> array::start_write_whole(const page& p, const index3& place) const {
  const page_address at = locate(place);
  return start(device(at))->write(p, at.index);
}

void array::read_into_cache(const domain& d) const {
  check(d, static_cast<std::size_t>(d.size()) * size_of(type_), type_);
  for_each_place(grid_.pages_of(d), [&](const index3& place) {
    const page_address at = map_->locate(place);
    post(device(at))->read_into_cache(at.index);
  });
}

void array::flush() const {
  std::vector<future<void>> all;
  orrery::detail::finish(all, [&] {
    for (const auto& d : devices_) all.push_back(start(d)->flush());
  });
}

}  // namespace orrery::storage
