// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/io.hpp>
#include <orrery/storage/data_set.hpp>
#include <orrery/storage/job_folder.hpp>

#include <cstdint>
#include <string>
#include <vector>

// How jobs that may be killed at any moment treat the data sets they read and make.
namespace orrery::storage::internal {

/// Removes a data set with all its files, and what a program that was killed while it made one has
/// left. Throws EBUSY: somebody writes it.
void remove_remains(const std::string& path);
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

/// Whether a folder is there in which nothing is but folders and headers that were being written.
[[nodiscard]] bool holds_nothing_yet(const std::string& path);
/// Takes id, edition and state of the data set as they are now: somebody may have written it while
/// this program waited. Throws std::invalid_argument if it has another form.
void read_again(data_set_info& input);
/// Throws EEXIST if there is anything at the path, be it a link to nowhere.
void require_nothing_at(const std::string& path);
/// Keeps others from replacing a data set that is read, or, if it will be `replaced`, from reading
/// it, while the descriptor is open. Parks for up to half a second. Throws EBUSY.
[[nodiscard]] io::descriptor held_input(const std::string& path, bool replaced);
/// Throws ENOSPC if so many bytes, spread over the folders, which may name their machines, have no
/// room; EHOSTDOWN. Parks.
void require_room(const std::string& target, const std::vector<std::string>& folders, std::uint64_t bytes);

}  // namespace orrery::storage::internal
