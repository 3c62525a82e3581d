// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/domain.hpp>

#include <string>
#include <vector>

namespace orrery::tool {

/// What `orrery data` was asked for. Shapes are 0 where they were not given.
struct data_request {
  std::string path;  ///< of the data set
  std::string file;  ///< to import from or export to: .npy, or anything else for the bare elements
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> page_shape{64, 64, 64};
  std::string type;
  std::vector<std::string> folders;  ///< for the devices of a new one
  bool json = false;
};

// Each returns the exit code, and says on stderr why it is not 0. They run a world of their own, whose options are taken from the
// environment (ORRERY_PES and so on). Memory is bounded: one line of pages, and what devices use.

/// `orrery data info PATH`
int data_info(const data_request& r);
/// `orrery data verify PATH`: 1 if a page cannot be trusted.
int data_verify(const data_request& r);
/// `orrery data create PATH`: all zeros, finished.
int data_create(const data_request& r);
/// `orrery data import FILE PATH`
int data_import(const data_request& r);
/// `orrery data export PATH FILE`
int data_export(const data_request& r);

}  // namespace orrery::tool
