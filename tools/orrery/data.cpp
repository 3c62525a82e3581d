// SPDX-License-Identifier: Apache-2.0
#include "data.hpp"

#include "attach.hpp"
#include "npy.hpp"

#include <orrery/orrery.hpp>
#include <orrery/storage/storage.hpp>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace orrery::tool {
namespace {

using namespace orrery::storage;
using nlohmann::ordered_json;

// Runs the body in a world of its own; what it throws is said as other errors of this program are.
int in_world(const std::function<int()>& body) {
  std::string name = "orrery";
  char* argv[] = {name.data(), nullptr};
  return run(1, argv, [&](const args&) {
    try {
      return body();
    } catch (const std::exception& e) {
      return fail(e.what());
    }
  });
}

// Only where somebody is looking.
class progress_bar {
 public:
  progress_bar(std::string what, std::uint64_t all) : what_(std::move(what)), all_(all), shown_(isatty(2) != 0) {}
  void at(std::uint64_t done) {
    if (!shown_ || all_ == 0) return;
    const int percent = static_cast<int>(100 * done / all_);
    if (percent == last_) return;
    last_ = percent;
    fmt::print(stderr, "\r{} [{:<50}] {:3} %{}", what_, std::string(static_cast<std::size_t>(percent / 2), '#'),
               percent, percent == 100 ? "\n" : "");
  }

 private:
  std::string what_;
  std::uint64_t all_;
  int last_ = -1;
  bool shown_;
};

index3 three(const std::vector<std::int64_t>& sides) {
  if (sides.size() != 3) throw std::invalid_argument("a shape has three sides: 512,512,512");
  return {sides[0], sides[1], sides[2]};
}

// Calls f with each line of pages, a domain of the array, in order.
void for_each_line(const page_grid& grid, const std::function<void(const domain&)>& f) {
  const index3 pages = grid.pages();
  for_each_place(domain{{0, 0, 0}, {pages[0], pages[1], 1}}, [&](const index3& p) {
    domain line = grid.elements_of(p);
    line.last[2] = grid.array_shape[2];
    f(line);
  });
}

// A file of elements without gaps, of an array of `shape` in C order. Moves boxes of it, run by run.
class element_file {
 public:
  element_file(std::string path, int flags, std::uint64_t first, const index3& shape, std::size_t element_bytes)
      : path_(std::move(path)), file_(path_, flags), first_(first), shape_(shape), element_bytes_(element_bytes) {}
  [[nodiscard]] int fd() const { return file_.get(); }

  void read(const domain& d, std::span<std::byte> into) const {
    each_run(d, into, [&](std::span<std::byte> run, std::uint64_t offset) {
      if (io::read_all(file_.get(), run, offset) != run.size())
        throw std::invalid_argument(fmt::format("{} ends before its array does: it was cut off", path_));
    });
  }
  void write(const domain& d, std::span<std::byte> from) const {
    each_run(d, from,
             [&](std::span<const std::byte> run, std::uint64_t offset) { io::write_all(file_.get(), run, offset); });
  }

 private:
  template <class F>
  void each_run(const domain& d, std::span<std::byte> memory, F&& f) const {
    const index3 s = d.shape();
    // Rows that follow each other in the file are one run.
    const bool whole_rows = s[2] == shape_[2];
    const std::int64_t rows = whole_rows ? s[1] : 1;
    const std::size_t run = static_cast<std::size_t>(rows * s[2]) * element_bytes_;
    std::size_t at = 0;
    for (std::int64_t i = d.first[0]; i < d.last[0]; ++i)
      for (std::int64_t j = d.first[1]; j < d.last[1]; j += rows, at += run)
        f(memory.subspan(at, run),
          first_ + static_cast<std::uint64_t>((i * shape_[1] + j) * shape_[2] + d.first[2]) * element_bytes_);
  }

  std::string path_;
  io::descriptor file_;
  std::uint64_t first_;
  index3 shape_;
  std::size_t element_bytes_;
};

element_type type_named(const std::string& name) {
  const auto type = element_type_named(name);
  if (!type)
    throw std::invalid_argument(fmt::format("there is no type '{}': float32, float64, complex64, complex128", name));
  return *type;
}

bool is_npy(const std::string& file) { return std::filesystem::path(file).extension() == ".npy"; }

npy_header source_of(const data_request& r) {
  if (!is_npy(r.file)) {
    if (r.shape.empty() || r.type.empty())
      throw std::invalid_argument(fmt::format("{} says nothing of itself: give --shape and --type", r.file));
    return {three(r.shape), type_named(r.type), false, 0};
  }
  const io::descriptor file(r.file, O_RDONLY);
  std::vector<std::byte> begin(longest_npy_header);
  begin.resize(io::read_all(file.get(), begin, 0));
  try {
    return parse_npy(begin);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(fmt::format("{} cannot be imported: {}", r.file, e.what()));
  }
}

void require_size(const element_file& file, const std::string& path, std::uint64_t bytes) {
  struct stat st{};
  if (::fstat(file.fd(), &st) != 0) throw std::system_error(errno, std::system_category(), path);
  if (static_cast<std::uint64_t>(st.st_size) != bytes)
    throw std::invalid_argument(
        fmt::format("{} has {} bytes, and that array would take {}: was it cut off, or is the shape or type another?",
                    path, st.st_size, bytes));
}

remote<data_set> create(const data_request& r, const index3& shape, element_type type) {
  return spawn<data_set>(
      here(), r.path,
      data_set_description{.shape = shape, .page_shape = three(r.page_shape), .type = type, .folders = r.folders},
      data_set_options{});
}

}  // namespace

int data_info(const data_request& r) {
  return in_world([&] {
    const data_set_info i = data_set::read_info(r.path);
    if (r.json) {
      print_json({{"path", i.path},
                  {"shape", i.shape},
                  {"page_shape", i.page_shape},
                  {"type", to_string(i.type)},
                  {"map", i.map},
                  {"checksums", i.checksums},
                  {"finished", i.finished},
                  {"devices", i.files}});
      return 0;
    }
    fmt::print("{}: {} elements of type {} in pages of {}, {}{}\n", i.path, storage::to_string(i.shape),
               to_string(i.type), storage::to_string(i.page_shape),
               i.checksums ? "with checksums" : "without checksums",
               i.finished ? "" : "; unfinished: its last writer is still at work, or was interrupted");
    for (std::size_t d = 0; d < i.files.size(); ++d)
      fmt::print("  device {}: {}, {} pages ({} map)\n", d, i.files[d], i.pages[d], i.map);
    return 0;
  });
}

int data_verify(const data_request& r) {
  return in_world([&] {
    const auto set = spawn<data_set>(here(), r.path, data_set_options{.unfinished = true});
    const auto damage = set->verify();
    if (r.json) {
      auto list = ordered_json::array();
      for (const page_damage& d : damage) list.push_back({{"page", d.page}, {"what", d.what}});
      print_json({{"damaged", std::move(list)}});
    } else {
      for (const page_damage& d : damage) fmt::print("({}, {}, {}): {}\n", d.page[0], d.page[1], d.page[2], d.what);
      fmt::print("{} of {} pages cannot be trusted\n", damage.size(), set->contents().grid().page_count());
    }
    return damage.empty() ? 0 : 1;
  });
}

int data_create(const data_request& r) {
  return in_world([&] {
    create(r, three(r.shape), type_named(r.type.empty() ? "complex128" : r.type))->finish();
    return 0;
  });
}

int data_import(const data_request& r) {
  return in_world([&] {
    const npy_header h = source_of(r);
    const std::size_t size = size_of(h.type);
    // In Fortran's order the file is the transposed array in C's.
    const transposition t = h.fortran ? transposition::t13 : transposition::none;
    const element_file file(r.file, O_RDONLY, h.data_offset, transposed(h.shape, t), size);
    const page_grid grid = page_grid::checked(h.shape, three(r.page_shape));
    require_size(file, r.file, h.data_offset + static_cast<std::uint64_t>(product(h.shape)) * size);
    const auto set = create(r, h.shape, h.type);
    const storage::array a = set->contents();
    progress_bar bar("import", static_cast<std::uint64_t>(product(h.shape)));
    std::uint64_t done = 0;
    page buffer;
    for_each_line(grid, [&](const domain& line) {
      const std::size_t bytes = static_cast<std::size_t>(line.size()) * size;
      if (buffer.size() < bytes) buffer = page::uninitialized(bytes);
      const auto memory = buffer.writable().first(bytes);
      file.read(transposed(line, t), memory);
      a.write_bytes(line, t, memory, h.type);
      bar.at(done += static_cast<std::uint64_t>(line.size()));
    });
    set->finish();
    return 0;
  });
}

int data_export(const data_request& r) {
  return in_world([&] {
    const auto set = spawn<data_set>(here(), r.path, data_set_options{});
    const storage::array a = set->contents();
    const std::string header = is_npy(r.file) ? make_npy(a.shape(), a.type()) : std::string();
    const element_file file(r.file, O_WRONLY | O_CREAT | O_TRUNC, header.size(), a.shape(), size_of(a.type()));
    io::write_all(file.fd(), std::as_bytes(std::span(header)), 0);
    progress_bar bar("export", static_cast<std::uint64_t>(product(a.shape())));
    std::uint64_t done = 0;
    page buffer;
    for_each_line(a.grid(), [&](const domain& line) {
      const std::size_t bytes = static_cast<std::size_t>(line.size()) * size_of(a.type());
      if (buffer.size() < bytes) buffer = page::uninitialized(bytes);
      const auto memory = buffer.writable().first(bytes);
      a.read_bytes(line, transposition::none, memory, a.type());
      file.write(line, memory);
      bar.at(done += static_cast<std::uint64_t>(line.size()));
    });
    io::fsync(file.fd());
    return 0;
  });
}

}  // namespace orrery::tool
