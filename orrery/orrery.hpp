// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything of Orrery that an ordinary program needs.
#include <orrery/process/call.hpp>
#include <orrery/process/data.hpp>
#include <orrery/process/describe.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/future.hpp>
#include <orrery/process/group.hpp>
#include <orrery/process/idle.hpp>
#include <orrery/process/io.hpp>
#include <orrery/process/machines.hpp>
#include <orrery/process/member.hpp>
#include <orrery/process/names.hpp>
#include <orrery/process/placement.hpp>
#include <orrery/process/promise.hpp>
#include <orrery/process/remote.hpp>
#include <orrery/process/remote_cast.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/shared_future.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/process/spawn_here.hpp>
#include <orrery/process/wait_until.hpp>
#include <orrery/process/when_all.hpp>
#include <orrery/scheduler/counters.hpp>
#include <orrery/wire/exception_class.hpp>
