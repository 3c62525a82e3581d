// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>

#include <cerrno>
#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace orrery::transport::internal {

/// strerror, but thread-safe.
[[nodiscard]] std::string os_text(int os_error);

/// The code for a system call that failed, where the caller knows nothing better.
[[nodiscard]] constexpr transport_errc code_of(int os_error) noexcept {
  switch (os_error) {
    case ENOSPC:
    case ENOMEM:
    case EFBIG:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return transport_errc::no_space;
    case EACCES:
    case EPERM:
      return transport_errc::refused;
    default:
      return transport_errc::system;
  }
}

template <class... Args>
[[nodiscard]] std::unexpected<transport_error> fail(transport_errc code, int os_error,
                                                    fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(transport_error{code, os_error, fmt::format(format, std::forward<Args>(args)...)});
}

/// A failed system call: appends what the system says.
template <class... Args>
[[nodiscard]] std::unexpected<transport_error> fail_os(int os_error, fmt::format_string<Args...> format,
                                                       Args&&... args) {
  std::string text = fmt::format(format, std::forward<Args>(args)...);
  text += ": ";
  text += os_text(os_error);
  if (os_error == EMFILE) text += "; raise the limit of open files (ulimit -n)";
  return std::unexpected(transport_error{code_of(os_error), os_error, std::move(text)});
}

/// Passes the error of one result on as that of another.
template <class T>
[[nodiscard]] std::unexpected<transport_error> pass(result<T>& failed) {
  return std::unexpected(std::move(failed.error()));
}

/// Repeats a system call while signals interrupt it.
template <class Call>
auto retry(Call&& call) noexcept(noexcept(call())) {
  for (;;) {
    const auto r = call();
    if (r != -1 || errno != EINTR) return r;
  }
}

}  // namespace orrery::transport::internal
