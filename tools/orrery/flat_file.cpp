// SPDX-License-Identifier: Apache-2.0
// Elements that lie in a file one after the other: NumPy's format, and files of nothing but elements.
#include "array_file.hpp"
#include "commands.hpp"
#include "npy.hpp"

#include <orrery/process/io.hpp>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace orrery::tool {
namespace {

using namespace orrery::storage;

bool is_npy(const std::string& path) { return ends_in(path, {".npy"}); }

// Calls f(run of memory, place in the file) for the runs that a box of an array of `shape`, in C's order, consists of.
template <class Byte, class F>
void each_run(const domain& d, const index3& shape, std::size_t element_bytes, std::span<Byte> memory, F&& f) {
  const index3 s = d.shape();
  // Rows that follow each other in the file are one run, and so are planes.
  const bool whole_rows = s[2] == shape[2];
  const std::int64_t rows = whole_rows ? s[1] : 1;
  const std::int64_t planes = whole_rows && s[1] == shape[1] ? s[0] : 1;
  const std::size_t run = static_cast<std::size_t>(planes * rows * s[2]) * element_bytes;
  std::size_t at = 0;
  for (std::int64_t i = d.first[0]; i < d.last[0]; i += planes)
    for (std::int64_t j = d.first[1]; j < d.last[1]; j += rows, at += run)
      f(memory.subspan(at, run),
        static_cast<std::uint64_t>((i * shape[1] + j) * shape[2] + d.first[2]) * element_bytes);
}

npy_header header_of(const file_request& r) {
  if (!is_npy(r.path)) {
    if (!r.shape || !r.type)
      throw command_error(fmt::format("{} says nothing of itself: give --shape and --type", r.path));
    return {*r.shape, *r.type, false, 0};
  }
  const io::descriptor file(r.path, O_RDONLY);
  std::vector<std::byte> begin(longest_npy_header);
  begin.resize(io::read_all(file.get(), begin, 0));
  npy_header h;
  try {
    h = parse_npy(begin);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(fmt::format("{} cannot be imported: {}", r.path, e.what()));
  }
  if (r.type && *r.type != h.type)
    throw std::invalid_argument(fmt::format("{} holds {}; convert it with a.astype('{}') first, or leave --type out",
                                            r.path, to_string(h.type), to_string(*r.type)));
  if (r.shape && *r.shape != h.shape)
    throw std::invalid_argument(fmt::format("{} is {}: leave --shape out", r.path, storage::to_string(h.shape)));
  return h;
}

class flat_source final : public array_source {
 public:
  explicit flat_source(const file_request& r) : path_(r.path), file_(r.path, O_RDONLY) {
    const npy_header h = header_of(r);
    shape = h.shape;
    type = h.type;
    first_ = h.data_offset;
    if (h.fortran) {  // it is the transposed array in C's order
      order = transposition::t13;
      layout.order = {0, 1, 2};
    }
    std::uint64_t bytes = 0;
    try {
      bytes = first_ + static_cast<std::uint64_t>(checked_elements(shape, size_of(type))) * size_of(type);
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(fmt::format("{} cannot be imported: {}", path_, e.what()));
    }
    struct stat st{};
    if (::fstat(file_.get(), &st) != 0) throw std::system_error(errno, std::system_category(), path_);
    if (static_cast<std::uint64_t>(st.st_size) != bytes)
      throw std::invalid_argument(
          fmt::format("{} has {} bytes, and that array would take {}: was it cut off, or is the shape or type another?",
                      path_, st.st_size, bytes));
  }
  void read(const domain& d, std::span<std::byte> into) override {
    each_run(transposed(d, order), transposed(shape, order), size_of(type), into,
             [&](std::span<std::byte> run, std::uint64_t offset) {
               if (io::read_all(file_.get(), run, first_ + offset) != run.size())
                 throw std::invalid_argument(fmt::format("{} ends before its array does: it was cut off", path_));
             });
  }

 private:
  std::string path_;
  io::descriptor file_;
  std::uint64_t first_ = 0;
};

class flat_sink final : public array_sink {
 public:
  explicit flat_sink(const sink_request& r) : name_(r.path), file_(name_.path(), O_WRONLY | O_CREAT | O_TRUNC) {
    shape = r.shape;
    type = r.type;
    struct stat st{};
    in_place_ = ::fstat(file_.get(), &st) == 0 && S_ISREG(st.st_mode);
    layout.in_sequence = !in_place_;  // a pipe
    const std::string header = is_npy(r.path) ? make_npy(shape, type) : std::string();
    first_ = header.size();
    put(std::as_bytes(std::span(header)), 0);
  }
  void write(const domain& d, std::span<const std::byte> from) override {
    each_run(d, shape, size_of(type), from,
             [&](std::span<const std::byte> run, std::uint64_t offset) { put(run, first_ + offset); });
  }
  void finish() override {
    if (in_place_) io::fsync(file_.get());
    file_.close();
    name_.complete();
  }

 private:
  void put(std::span<const std::byte> bytes, std::uint64_t offset) {
    in_place_ ? io::write_all(file_.get(), bytes, offset) : io::write_all(file_.get(), bytes);
  }

  new_file name_;
  io::descriptor file_;
  bool in_place_ = true;
  std::uint64_t first_ = 0;
};

}  // namespace

std::unique_ptr<array_source> open_flat(const file_request& r) { return std::make_unique<flat_source>(r); }
std::unique_ptr<array_sink> make_flat(const sink_request& r) { return std::make_unique<flat_sink>(r); }

}  // namespace orrery::tool
