// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/array_page_device.hpp>

#include <orrery/storage/detail/strided_copy.hpp>

#include <stdexcept>

#include <fmt/format.h>

namespace orrery::storage {
namespace {

std::ptrdiff_t offset_of(const index3& at, const index3& shape, element_type type) {
  const index3 s = strides_of(shape);
  return (at[0] * s[0] + at[1] * s[1] + at[2]) * static_cast<std::ptrdiff_t>(size_of(type));
}

}  // namespace

array_page_device::array_page_device(std::string file, std::uint64_t pages, const index3& shape, element_type type,
                                     device_options options)
    : page_device(std::move(file), pages, array_page::bytes_of(shape, type), std::move(options)),
      shape_(shape),
      type_(type) {}

array_page_device::array_page_device(const remote<page_device>& existing, const index3& shape, element_type type)
    : page_device(existing), shape_(shape), type_(type) {
  if (page_bytes() < array_page::bytes_of(shape, type))
    throw std::invalid_argument(fmt::format("pages of {} have {} bytes, too few for {} elements of type {}",
                                            file_name(), page_bytes(), to_string(shape), to_string(type)));
}

array_page_device::array_page_device(std::uint64_t pages, const index3& shape, element_type type)
    : page_device(pages, array_page::bytes_of(shape, type)), shape_(shape), type_(type) {}

void array_page_device::check_box(const domain& box, std::uint64_t index) const {
  if (!domain::of_shape(shape_).contains(box))
    throw std::out_of_range(fmt::format("the box {} of page {} of {}: its pages are {}", to_string(box), index,
                                        file_name(), to_string(shape_)));
}
void array_page_device::check_type(const array_page& p) const {
  if (p.type() != type_)
    throw std::invalid_argument(fmt::format("elements of type {} cannot be written to {}, which holds {}",
                                            to_string(p.type()), file_name(), to_string(type_)));
}

array_page array_page_device::read_elements(std::uint64_t index) { return {read(index), shape_, type_}; }

array_page array_page_device::read_box(std::uint64_t index, const domain& box) {
  check(index);
  check_box(box, index);
  page whole;
  {
    const page_lock lock(*this, index, false);
    whole = fetch(index);
  }
  array_page part = array_page::uninitialized(box.shape(), type_);
  copy_box(part.writable().data(), strides_of(part.shape()), whole.bytes().data() + offset_of(box.first, shape_, type_),
           strides_of(shape_), part.shape(), size_of(type_));
  return part;
}

void array_page_device::write_elements(const array_page& p, std::uint64_t index) {
  check_type(p);
  if (p.shape() != shape_)
    throw std::invalid_argument(fmt::format("a page of {} elements cannot be written to {}, whose pages are {}",
                                            to_string(p.shape()), file_name(), to_string(shape_)));
  write(p, index);
}

void array_page_device::write_box(const array_page& part, const index3& first, std::uint64_t index) {
  check(index);
  check_writable();
  check_type(part);
  const array_page kept = part;
  domain box{first, first};
  for (int k = 0; k < 3; ++k) box.last[k] += kept.shape()[k];
  check_box(box, index);
  const page_lock lock(*this, index, true);
  page whole = fetch(index);
  copy_box(whole.writable().data() + offset_of(first, shape_, type_), strides_of(shape_), kept.bytes().data(),
           strides_of(kept.shape()), kept.shape(), size_of(type_));
  store(whole, index);
}

array_page array_page_device::read_transpose13(std::uint64_t index) {
  array_page p = read_elements(index);
  p.transpose13();
  return p;
}
array_page array_page_device::read_transpose23(std::uint64_t index) {
  array_page p = read_elements(index);
  p.transpose23();
  return p;
}
void array_page_device::write_transposed(const array_page& p, std::uint64_t index, transposition t) {
  array_page q = p;
  q.transpose(t);
  write_elements(q, index);
}
void array_page_device::write_transpose13(const array_page& p, std::uint64_t index) {
  write_transposed(p, index, transposition::t13);
}
void array_page_device::write_transpose23(const array_page& p, std::uint64_t index) {
  write_transposed(p, index, transposition::t23);
}

}  // namespace orrery::storage
