// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/data_set_header.hpp>
#include <orrery/storage/internal/job_data.hpp>
#include <orrery/storage/internal/job_sets.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace orrery::storage::internal {

namespace fs = std::filesystem;

void job_sets::note() {
  output_id_ = new_id();
  edition_ = new_id();
  folder_.note("output-id", std::to_string(output_id_));
  folder_.note("input-id", fmt::format("{} {} {}", input_.id, input_.edition, edition_));
}

bool job_sets::are_as_noted() {
  if (!folder_.noted("input-id"))  // of a former version, which kept no such notes
    return output_.empty() || !folder_.passed("made") || fs::exists(output_);
  if (!output_.empty() && !has_own_output()) return false;
  if (has_noted_input()) return true;
  if (folder_.finished()) return false;
  if (output_.empty() && !has_noted_id())
    throw std::invalid_argument(fmt::format(
        "the data set {0} is another one than the one that an interrupted job was replacing: move it away, forget that "
        "job (orrery data remove {0}), and move it back",
        input_.path));
  throw std::invalid_argument(fmt::format(
      "the data set {} was written or replaced after the interrupted job in {} had begun, which cannot go on with it: {}",
      input_.path, folder_.path(), advice()));
}

bool job_sets::has_own_output() {
  const bool made = folder_.passed("made");
  std::istringstream(folder_.noted("output-id").value_or("")) >> output_id_;
  if (!fs::exists(fs::symlink_status(output_))) return !made;
  try {
    return data_set::read_info(output_).id == output_id_;
  } catch (const std::system_error&) {  // it had no header yet when its program was killed
    return !made && holds_nothing_yet(output_);
  }
}

bool job_sets::is_noted(const std::string& folder, const std::string& output) {
  std::uint64_t id = 0;
  if (!(std::ifstream(folder + "/output-id") >> id)) return false;
  try {
    return data_set::read_info(output).id == id;
  } catch (const std::system_error&) {
    return false;
  }
}

bool job_sets::has_noted_id() const {
  std::uint64_t id = 0;
  std::istringstream(folder_.noted("input-id").value_or("")) >> id;
  return id == input_.id;
}

bool job_sets::has_noted_input() {
  std::istringstream noted(folder_.noted("input-id").value_or(""));
  std::uint64_t id = 0;
  std::uint64_t edition = 0;
  if (!(noted >> id >> edition >> edition_)) return false;
  return id == input_.id && (edition == input_.edition || (output_.empty() && edition_ == input_.edition));
}

std::string job_sets::advice() const {
  if (!output_.empty()) return fmt::format("forget it: orrery data remove {}", output_);
  return fmt::format("give up {0}, parts of which may be in {1} alone: orrery data remove {0}", input_.path,
                     folder_.path());
}

}  // namespace orrery::storage::internal
