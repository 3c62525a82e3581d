// SPDX-License-Identifier: Apache-2.0
// Listing A.2. The thesis has no definition of it.
#pragma once
#include "IntMsg.h"

task SimpleTask { tag A_MESSAGE_TAG = 0; };
