// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::detail {

/// Something that a layer above does when the main function has ended and the world still runs, in
/// its process: it may park. Given the exit code, it returns that, or another one if it has found
/// something wrong.
using end_of_main = int (*)(int result);

/// Has `f` called at the end of each main function. While the program starts, before main; returns
/// true, for an initializer.
bool at_end_of_main(end_of_main f);

/// Calls all of them. Exceptions are reported.
[[nodiscard]] int end_main(int result);

}  // namespace orrery::detail
