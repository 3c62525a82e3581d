// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/program.hpp>
#include <tools/orrery_cc/source.hpp>

namespace orrery_cc {

/// Finds messages, tasks and functions in a preprocessed source.
///
/// It is an island grammar: it knows what stands at file scope and inside of messages and tasks, and lets all else be water, in which it counts
/// brackets only. So it takes every C, and what it does not understand the compiler will judge. `message` and `task` are words of the language only where a
/// declaration begins with them, a name and a brace; `tag` only inside of a task. Throws source_error.
[[nodiscard]] program parse(const source& from);

}  // namespace orrery_cc
