// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a sanitizer slows the tests of this layer down and takes address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ORRERY_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ORRERY_TEST_SANITIZED 1
#endif
#endif
#ifndef ORRERY_TEST_SANITIZED
#define ORRERY_TEST_SANITIZED 0
#endif
