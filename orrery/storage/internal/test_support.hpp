// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the tests of this layer only: folders that vanish, programs around the body of a test, and
// data to recognize.

#include <orrery/process/runtime.hpp>
#include <orrery/storage/page.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace orrery::storage::testing {

/// A folder of its own on a disk (which /tmp may not be), removed at the end.
struct scratch {
  std::string path = "/var/tmp/orrery-storage-XXXXXX";
  scratch() { EXPECT_NE(mkdtemp(path.data()), nullptr) << path; }
  explicit scratch(const std::string& folder) : path(folder + "/orrery-storage-XXXXXX") {
    EXPECT_NE(mkdtemp(path.data()), nullptr) << path;
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path + "/" + name; }
};

/// Whether files there may have names that are no UTF-8, which some file systems refuse.
inline bool takes_any_name(const scratch& folder) {
  std::error_code refused;
  return std::filesystem::create_directory(folder / "\xe4\xff", refused) &&
         std::filesystem::remove(folder / "\xe4\xff", refused);
}

/// Runs the body as the main process of a program on two PEs.
inline void program(const std::function<void()>& body, std::string pes = "--orrery-pes=2") {
  std::string name = "storage.test";
  char* argv[] = {name.data(), pes.data(), nullptr};
  const int result = run(2, argv, [&](const args&) {
    body();
    return 0;
  });
  EXPECT_EQ(result, 0);
}

/// The text of the std::system_error that f throws, which must have this code.
inline std::string error_text(int code, const std::function<void()>& f) {
  try {
    f();
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code().value(), code) << e.what();
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}
/// The same for any other class.
template <class E>
std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// Elements that say where they are: no two of an array of fewer than 2^24 are equal, in any type.
template <class T>
T element_at(std::int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(n + 1);
  } else {
    using real = typename T::value_type;
    return T(static_cast<real>(n + 1), static_cast<real>(-n));
  }
}
template <class T>
std::vector<T> elements(std::int64_t count, std::int64_t from = 0) {
  std::vector<T> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = element_at<T>(from + static_cast<std::int64_t>(i));
  return v;
}

/// A page whose bytes depend on `seed`.
inline page page_of(std::size_t bytes, unsigned seed) {
  page p = page::uninitialized(bytes);
  auto b = p.writable();
  for (std::size_t i = 0; i < bytes; ++i) b[i] = static_cast<std::byte>(seed * 31 + i * 7 + i / 251);
  return p;
}

}  // namespace orrery::storage::testing
