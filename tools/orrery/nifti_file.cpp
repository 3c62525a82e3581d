// SPDX-License-Identifier: Apache-2.0
// Volumes in NIfTI files, versions 1 and 2, one file or a pair, compressed or not. An array here is what nibabel makes of them: element (i, j, k) is voxel
// (i, j, k), and i runs fastest in the file.
#include "array_file.hpp"
#include "convert.hpp"
#include "nifti_attributes.hpp"
#include "nifti_header.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nifti2_io.h>
#include <sys/stat.h>

namespace orrery::tool {
namespace {

using namespace orrery::storage;

struct free_image {
  void operator()(nifti_image* n) const { nifti_image_free(n); }
};
using image = std::unique_ptr<nifti_image, free_image>;

struct close_stream {
  void operator()(znzFile f) const { (void)Xznzclose(&f); }
};
using stream = std::unique_ptr<std::remove_pointer_t<znzFile>, close_stream>;

struct datatype {
  int code;
  number kind;
};
constexpr datatype datatypes[] = {
    {NIFTI_TYPE_INT8, number::int8},           {NIFTI_TYPE_UINT8, number::uint8},
    {NIFTI_TYPE_INT16, number::int16},         {NIFTI_TYPE_UINT16, number::uint16},
    {NIFTI_TYPE_INT32, number::int32},         {NIFTI_TYPE_UINT32, number::uint32},
    {NIFTI_TYPE_INT64, number::int64},         {NIFTI_TYPE_UINT64, number::uint64},
    {NIFTI_TYPE_FLOAT32, number::float32},     {NIFTI_TYPE_FLOAT64, number::float64},
    {NIFTI_TYPE_COMPLEX64, number::complex64}, {NIFTI_TYPE_COMPLEX128, number::complex128}};

// --- reading ----------------------------------------------------------------------------------------------------------

class nifti_source final : public array_source {
 public:
  explicit nifti_source(const file_request& r) : path_(r.path) {
    nifti_set_debug_level(0);  // what is wrong is said here
    if (r.shape) throw std::invalid_argument(fmt::format("{} knows its shape: leave --shape out", path_));
    check_nifti_header(path_);
    header_.reset(nifti_image_read(path_.c_str(), 0));
    if (header_ == nullptr)
      throw std::invalid_argument(
          fmt::format("{} is not a file in NIfTI's format, or was cut off in its header", path_));
    set_shape();
    set_type(r);
    attributes = attributes_of(*header_);
    order = transposition::t13;
    layout.order = {0, 1, 2};
    layout.in_sequence = nifti_is_gzfile(header_->iname) != 0;
    require_regular(header_->iname);
    if (!layout.in_sequence) require_size();
    stream_.reset(znzopen(header_->iname, "rb", layout.in_sequence ? 1 : 0));
    if (stream_ == nullptr)
      throw std::system_error(errno, std::system_category(), fmt::format("cannot read {}", header_->iname));
  }

  void read(const domain& d, std::span<std::byte> into) override {
    const index3 s = d.shape();
    const bool whole_rows = s[0] == shape[0];
    const std::int64_t rows = whole_rows ? s[1] : 1;
    const auto run = static_cast<std::size_t>(rows * s[0]);
    std::byte* to = into.data();
    for (std::int64_t k = d.first[2]; k < d.last[2]; ++k)
      for (std::int64_t j = d.first[1]; j < d.last[1]; j += rows, to += run * size_of(type))
        read_run((k * shape[1] + j) * shape[0] + d.first[0], run, to);
  }

 private:
  void set_shape() {
    const auto n = static_cast<std::size_t>(std::clamp<std::int64_t>(header_->dim[0], 0, 7));
    try {
      shape = three_sides(std::span<const std::int64_t>(header_->dim + 1, n), true);
      checked_elements(shape, size_of(element_type::complex128));
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(fmt::format("{} cannot be imported: {}", path_, e.what()));
    }
  }
  void set_type(const file_request& r) {
    const auto* const found = std::ranges::find(datatypes, header_->datatype, &datatype::code);
    if (found == std::end(datatypes))
      throw std::invalid_argument(
          fmt::format("the voxels of {} are {}: integers, float32, float64, complex64 or complex128 can be imported",
                      path_, nifti_datatype_to_string(header_->datatype)));
    conversion_.from = found->kind;
    type = r.type.value_or(element_for(found->kind));
    conversion_.to = type;
    if (is_complex(type) != is_complex(found->kind))
      throw std::invalid_argument(fmt::format("the voxels of {} are {}, which cannot become {}", path_,
                                              is_complex(found->kind) ? "complex" : "real", to_string(type)));
    if (header_->scl_slope != 0 && std::isfinite(header_->scl_slope) && std::isfinite(header_->scl_inter)) {
      conversion_.slope = header_->scl_slope;
      conversion_.intercept = header_->scl_inter;
    }
  }
  void require_size() const {
    struct stat st{};
    if (::stat(header_->iname, &st) != 0)
      throw std::system_error(errno, std::system_category(), fmt::format("cannot read {}", header_->iname));
    const std::int64_t bytes = header_->iname_offset + product(shape) * header_->nbyper;
    if (st.st_size < bytes)
      throw std::invalid_argument(fmt::format("{} has {} bytes, and its volume would take {}: it was cut off",
                                              header_->iname, st.st_size, bytes));
  }
  void read_run(std::int64_t first, std::size_t n, std::byte* to) {
    const auto voxel = static_cast<std::size_t>(header_->nbyper);
    const std::int64_t offset = header_->iname_offset + first * header_->nbyper;
    if (offset != at_ && znzseek(stream_.get(), offset, SEEK_SET) < 0) cut_off();
    at_ = offset;
    constexpr std::size_t most = 64 << 10;
    buffer_.resize(std::min(n, most) * voxel);
    for (std::size_t done = 0; done < n;) {
      const std::size_t now = std::min(n - done, most);
      if (znzread(buffer_.data(), 1, now * voxel, stream_.get()) != now * voxel) cut_off();
      if (header_->swapsize > 1 && header_->byteorder != nifti_short_order())
        nifti_swap_Nbytes(static_cast<std::int64_t>(now * voxel) / header_->swapsize, header_->swapsize,
                          buffer_.data());
      convert(conversion_, buffer_.data(), to + done * size_of(type), now);
      done += now;
      at_ += static_cast<std::int64_t>(now * voxel);
    }
  }
  [[noreturn]] void cut_off() const {
    throw std::invalid_argument(fmt::format(
        "{} ends before its volume does, or cannot be decompressed: it was cut off or damaged", header_->iname));
  }

  std::string path_;
  image header_;
  stream stream_;
  conversion conversion_;
  std::int64_t at_ = -1;
  std::vector<std::byte> buffer_;
};

// --- writing ----------------------------------------------------------------------------------------------------------

class nifti_sink final : public array_sink {
 public:
  explicit nifti_sink(const sink_request& r) : path_(r.path), name_(r.path) {
    nifti_set_debug_level(0);
    if (!ends_in(path_, {".nii", ".nii.gz"}))
      throw std::invalid_argument(fmt::format("{}: volumes are written to one file, .nii or .nii.gz", path_));
    shape = r.shape;
    type = r.type;
    order = transposition::t13;
    layout.order = {0, 1, 2};
    layout.in_sequence = nifti_is_gzfile(path_.c_str()) != 0;
    // Version 1 has sides of 16 bits.
    const bool large = std::ranges::any_of(shape, [](std::int64_t n) { return n > 32767; });
    const std::int64_t sides[8] = {3, shape[0], shape[1], shape[2], 1, 1, 1, 1};
    const auto kind = type == element_type::float32     ? NIFTI_TYPE_FLOAT32
                      : type == element_type::float64   ? NIFTI_TYPE_FLOAT64
                      : type == element_type::complex64 ? NIFTI_TYPE_COMPLEX64
                                                        : NIFTI_TYPE_COMPLEX128;
    header_.reset(nifti_make_new_nim(sides, kind, 0));
    if (header_ == nullptr) throw std::bad_alloc();
    restore(*header_, r.attributes, r.first);
    header_->nifti_type = large ? NIFTI_FTYPE_NIFTI2_1 : NIFTI_FTYPE_NIFTI1_1;
    if (nifti_set_filenames(header_.get(), name_.path().c_str(), 0, 1) != 0) failed();
    nifti_set_iname_offset(header_.get(), large ? 2 : 1);
    constexpr int only_header_and_leave_open = 2;
    stream_.reset(nifti_image_write_hdr_img(header_.get(), only_header_and_leave_open, "wb"));
    if (stream_ == nullptr) failed();
  }

  void write(const domain& d, std::span<const std::byte> from) override {
    const index3 s = d.shape();
    const bool whole_rows = s[0] == shape[0];
    const std::int64_t rows = whole_rows ? s[1] : 1;
    const std::size_t run = static_cast<std::size_t>(rows * s[0]) * size_of(type);
    const std::byte* at = from.data();
    for (std::int64_t k = d.first[2]; k < d.last[2]; ++k)
      for (std::int64_t j = d.first[1]; j < d.last[1]; j += rows, at += run) {
        const std::int64_t element = (k * shape[1] + j) * shape[0] + d.first[0];
        const std::int64_t offset = header_->iname_offset + element * static_cast<std::int64_t>(size_of(type));
        if (offset != at_ && znzseek(stream_.get(), offset, SEEK_SET) < 0) failed();
        errno = 0;
        if (znzwrite(at, 1, run, stream_.get()) != run) failed();
        at_ = offset + static_cast<std::int64_t>(run);
      }
  }
  void finish() override {
    znzFile f = stream_.release();
    errno = 0;
    if (Xznzclose(&f) != 0) failed();
    name_.complete();
  }

 private:
  [[noreturn]] void failed() const {
    throw std::system_error(errno != 0 ? errno : EIO, std::system_category(), fmt::format("cannot write {}", path_));
  }

  std::string path_;
  new_file name_;
  image header_;
  stream stream_;
  std::int64_t at_ = -1;
};

}  // namespace

std::unique_ptr<array_source> open_nifti(const file_request& r) { return std::make_unique<nifti_source>(r); }
std::unique_ptr<array_sink> make_nifti(const sink_request& r) { return std::make_unique<nifti_sink>(r); }

}  // namespace orrery::tool
