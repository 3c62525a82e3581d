// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/internal/test_text_index.hpp>

ORRERY_ARRAY_INDEX_WITHOUT_RANGE(, std::string);
