// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::task_detail {

/// The world has ended: signals end no task of it any more.
void forget_signals() noexcept;

}  // namespace orrery::task_detail
