// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/own_index.hpp>

#include <string>

// Several tests have arrays whose indices are texts: what depends on that type is compiled once.
ORRERY_ARRAY_INDEX_WITHOUT_RANGE(extern, std::string);
