// SPDX-License-Identifier: Apache-2.0
#include "TextMsg.h"

#include <stdio.h>

static char* getMsg(TextMsg this) { return this->msg; }

static void setMsg(TextMsg this, char* text) { snprintf(this->msg, sizeof this->msg, "%s", text); }
