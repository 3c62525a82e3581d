// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of the HDF5 library that are needed, with errors as exceptions. It is not made for
// threads: a program that has several calls what is declared here in with_library.

#include <cstddef>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <hdf5.h>

namespace orrery::hdf5 {

/// Only one thread at a time has it.
[[nodiscard]] std::mutex& library_mutex();
/// Calls f while no other thread uses the library, in another call of this. f must not park.
template <class F>
decltype(auto) with_library(F f) {
  const std::scoped_lock lock(library_mutex());
  return f();
}

/// The library's text of its innermost error: "truncated file: eof = 96, ...".
[[nodiscard]] std::string reason();
/// The library prints nothing from now on: what is wrong is thrown.
void quiet();

/// An id that the library has returned. Throws std::invalid_argument if it is an error: `what`, and
/// the reason.
template <class Id>
Id checked(Id id, const std::string& what) {
  if (id < 0) throw std::invalid_argument(fmt::format("{}: {}", what, reason()));
  return id;
}

/// Closes what it holds.
class handle {
 public:
  /// A function of HDF5 that closes such an object.
  using closer = herr_t (*)(hid_t);
  handle() = default;
  handle(hid_t id, closer how) : id_(id), close_(how) {}
  handle(handle&& o) noexcept : id_(std::exchange(o.id_, -1)), close_(o.close_) {}
  handle& operator=(handle&& o) noexcept {
    handle taken(std::move(o));
    std::swap(id_, taken.id_);
    std::swap(close_, taken.close_);
    return *this;
  }
  ~handle() {
    if (id_ >= 0) (void)close_(id_);
  }
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)
  /// Throws what closing says: for files, which write what they still have.
  void close(const std::string& what) {
    if (id_ >= 0) (void)checked(close_(std::exchange(id_, -1)), what);
  }

 private:
  hid_t id_ = -1;
  closer close_ = nullptr;
};

/// The names of all datasets in a file, in their order.
[[nodiscard]] std::vector<std::string> datasets_of(hid_t file);
/// Throws std::invalid_argument, which says what datasets there are, and which is most like the one
/// that was wanted. `option`: how a user says which one, "--dataset".
[[noreturn]] void no_such_dataset(const std::string& path, const std::string& wanted, std::vector<std::string> all,
                                  const std::string& option);
[[nodiscard]] std::string absolute(const std::string& name);
/// True if every group on the way and the last link exist.
[[nodiscard]] bool is_there(hid_t file, const std::string& name);

/// A number: its kind is 'i', 'u' (without sign), 'f' or 'c' (complex), as in NumPy.
struct number {
  char kind = 'f';
  std::size_t bytes = 8;
  std::string real = "r", imaginary = "i";  ///< names of the parts, as h5py has them
};
/// "int32", "complex128".
[[nodiscard]] std::string name_of(const number& n);
/// The type of a dataset's elements; nothing if they are no numbers.
[[nodiscard]] std::optional<number> number_of(hid_t t);
/// Such a number in memory, of at most 8 bytes, or 16 if it is complex.
[[nodiscard]] handle memory_type(const number& n);
/// "strings", for errors.
[[nodiscard]] std::string name_of_class(H5T_class_t c);
/// A dataset's filters must be there: what a plug-in has compressed only that can read. Throws
/// std::invalid_argument.
void require_filters(hid_t properties, const std::string& what);

}  // namespace orrery::hdf5
