// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/index_types.hpp>

ORRERY_ARRAY_INDEX(, int);
