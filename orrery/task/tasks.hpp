// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Messages between tasks of C and processes of C++. `orrery-cc --emit-cpp-header weather.h` makes
/// the types of the messages and tags.
#include <orrery/task/owned_buffer.hpp>
#include <orrery/task/receiver.hpp>
#include <orrery/task/typed.hpp>
