// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/index_types.hpp>

ORRERY_ARRAY_INDEX_WITHOUT_RANGE(, orrery::bit_path);
