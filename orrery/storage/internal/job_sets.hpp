// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/data_set.hpp>
#include <orrery/storage/job_folder.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace orrery::storage::internal {

/// Which data sets a job reads and makes, as its folder keeps it: a job that was interrupted must
/// not go on with others that have taken their places.
///
/// Used by one job, whose folder is locked.
class job_sets {
 public:
  /// `output`: empty if the input is replaced.
  job_sets(job_folder& folder, const data_set_info& input, std::string output)
      : folder_(folder), input_(input), output_(std::move(output)) {}

  /// Whether a job that was begun has something to go on with. False if the output is gone or is
  /// another one by now, or if the job is finished and the input has changed since. Throws
  /// std::invalid_argument if the job is not finished and the input has changed.
  [[nodiscard]] bool are_as_noted();
  /// Whether what is at the output, if anything, was made by the job.
  [[nodiscard]] bool has_own_output();
  /// Whether the data set at that path has the number that the folder of a job has noted.
  [[nodiscard]] static bool is_noted(const std::string& folder, const std::string& output);
  /// Before the job begins.
  void note();
  /// The numbers for data_set_description and data_set_options, after note() or are_as_noted().
  [[nodiscard]] std::uint64_t output_id() const noexcept { return output_id_; }
  [[nodiscard]] std::uint64_t edition() const noexcept { return edition_; }
  /// How to forget the job, as a part of a sentence.
  [[nodiscard]] std::string advice() const;

 private:
  [[nodiscard]] bool has_noted_id() const;
  [[nodiscard]] bool has_noted_input();

  job_folder& folder_;
  const data_set_info& input_;
  std::string output_;
  std::uint64_t output_id_ = 0;
  std::uint64_t edition_ = 0;  // that the input has while it is replaced
};

}  // namespace orrery::storage::internal
