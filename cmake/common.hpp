// SPDX-License-Identifier: Apache-2.0
// What most sources of the library include, precompiled for GCC's release and the sanitizers' builds (library.cmake
// says why). No source leans on it.
#pragma once

#include <orrery/orrery.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
