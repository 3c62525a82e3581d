// SPDX-License-Identifier: Apache-2.0
// Which sanitizer this file is compiled with; GCC and Clang say it differently.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define ORRERY_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ORRERY_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define ORRERY_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ORRERY_TSAN 1
#endif
#endif

#if defined(ORRERY_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace orrery::scheduler {

/// True where a sanitizer makes everything several times slower and larger.
#if defined(ORRERY_ASAN) || defined(ORRERY_TSAN)
inline constexpr bool slowed_down = true;
#else
inline constexpr bool slowed_down = false;
#endif

}  // namespace orrery::scheduler
