// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/error.hpp>

#include <string>
#include <string_view>

namespace orrery::task_detail {

/// The text of an error of the layers below, for who calls a function of task.h: it names that call
/// instead of the one of C++, and speaks of tasks instead of processes and remote pointers. The own
/// text of an error (verbatim, bad_argument) stays as it is, behind the call's name.
[[nodiscard]] std::string in_words_of_c(const error& e, std::string_view call);

}  // namespace orrery::task_detail
