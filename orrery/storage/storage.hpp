// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The storage layer: arrays far larger than memory, on drives that are processes. (Givelberg 2014,
/// sections 2 to 4.)
#include <orrery/storage/array.hpp>
#include <orrery/storage/array_device.hpp>
#include <orrery/storage/array_page_device.hpp>
#include <orrery/storage/copy_job.hpp>
#include <orrery/storage/data_set.hpp>
#include <orrery/storage/domain.hpp>
#include <orrery/storage/element_type.hpp>
#include <orrery/storage/job_folder.hpp>
#include <orrery/storage/ledger.hpp>
#include <orrery/storage/memory_array.hpp>
#include <orrery/storage/page.hpp>
#include <orrery/storage/page_block.hpp>
#include <orrery/storage/page_device.hpp>
#include <orrery/storage/page_map.hpp>
#include <orrery/storage/sweep.hpp>
#include <orrery/storage/sweep_job.hpp>
#include <orrery/storage/sweeper.hpp>
