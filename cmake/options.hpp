// SPDX-License-Identifier: Apache-2.0
// Read before a program of GCC's release build that reads its options with CLI11, which is headers only: what reads a
// command line need not be optimized (functions.cmake says what that saves).
#pragma once

// All that CLI11 includes of the standard library is included before, and is optimized.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>
#include <locale>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC push_options
#pragma GCC optimize("O0")
#include <CLI/CLI.hpp>
#pragma GCC pop_options
