// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything of shared data that an ordinary program needs, beside <orrery/orrery.hpp>.
#include <orrery/shared/adviser.hpp>
#include <orrery/shared/copy.hpp>
#include <orrery/shared/distribution.hpp>
#include <orrery/shared/gather.hpp>
#include <orrery/shared/generate.hpp>
#include <orrery/shared/halo.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/owner_computes.hpp>
#include <orrery/shared/read_cache.hpp>
#include <orrery/shared/read_mostly.hpp>
#include <orrery/shared/read_release.hpp>
#include <orrery/shared/redistribute.hpp>
#include <orrery/shared/release.hpp>
#include <orrery/shared/scalar.hpp>
#include <orrery/shared/scope.hpp>
#include <orrery/shared/shared_element.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/start_with.hpp>
#include <orrery/shared/team.hpp>
#include <orrery/shared/transfer.hpp>
#include <orrery/shared/vector.hpp>
