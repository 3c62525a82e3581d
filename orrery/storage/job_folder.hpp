// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/io.hpp>
#include <orrery/process/remote.hpp>

#include <optional>
#include <string>
#include <vector>

namespace orrery::storage {

namespace internal {
class job_presence;
}

/// Where a job that may be killed at any moment keeps what it needs to go on: its description,
/// which parts are done, files that are in between.
///
/// Problem: the same command, started again, must know whether what it finds was left by itself;
/// two of them at once would spoil each other's work; and a program can be killed between any two
/// steps. So the folder is locked while a program works with it (the system gives the lock back
/// when a program ends, however it does). Each node of the program shares in that: where one of
/// them was killed, the next program waits until all have ended, and says so on stderr if that
/// takes long. The folder says what the job is as soon as it has begun: that file gets its name
/// when it is complete. When the work is done the folder says so (`finish`), until the program has
/// nothing left to do: killed before, it is started again and finds that out, where it would
/// otherwise do the work once more, on its own result if that took the place of the input. `remove`
/// begins with the job's description: what is left without it means nothing to anybody. A folder is
/// a job's if a description is locked there, or if it has no names but those that jobs use.
///
/// Owned by one process of one program at a time. Errors are std::system_error, which names the
/// folder, or as said.
///
///     job_folder folder("/data/y.sort", "/data/y");
///     const bool resumed = folder.begun(description);
///     if (!resumed) folder.begin(description);
///     if (!folder.finished()) {
///       ...
///       folder.finish();
///     }
///     job_folder::remove(folder.path());  // at the end of the program
class job_folder {
 public:
  /// Makes the folder or takes it over, and locks it for all nodes of this program. `target`: what
  /// is worked on, for texts. Parks while a program that was killed comes to its end. Throws EBUSY
  /// (another program is at it, and lives), EEXIST (something else than a job's folder is there; it
  /// is left as it is), EACCES and others.
  job_folder(std::string path, std::string target);
  job_folder(const job_folder&) = delete;
  job_folder& operator=(const job_folder&) = delete;
  /// Removes the folder if the job has not begun.
  ~job_folder();

  /// True if a program has begun this job, and the folder is still there. Throws
  /// std::invalid_argument if it was another one, unless that is finished; its text ends with
  /// `advice`, how to forget the other one (empty: by removing the folder).
  [[nodiscard]] bool begun(const std::string& description, const std::string& advice = {}) const;
  /// From here on the job has begun.
  void begin(const std::string& description);
  /// A step that need not be done again.
  [[nodiscard]] bool passed(const std::string& step) const;
  /// Notes that the step is done.
  void pass(const std::string& step) { note(step, ""); }
  /// Keeps a text by that name, as a whole or not at all.
  void note(const std::string& name, const std::string& text);
  /// The text that was kept by that name, if any.
  [[nodiscard]] std::optional<std::string> noted(const std::string& name) const;
  /// The work is done, `result` is to be kept with that; and what was kept, if it is done.
  void finish(const std::string& result);
  /// The result that finish() kept; none if the work is not done.
  [[nodiscard]] std::optional<std::string> finished() const;
  /// Removes a folder with all that is in it, the description of its job first. Nothing if it is
  /// not there, or if another program has taken it over.
  static void remove(const std::string& path);
  /// Removes the folders of all interrupted jobs on `target`, with their intermediate data sets and
  /// the files that these have elsewhere. Returns how many there were. Parks. Throws EBUSY: a
  /// program is at one of them.
  static std::size_t forget(const std::string& target);

  /// A file in it.
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// The name of the folder.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Removes everything in it but the lock: before a job begins, what another one may have left.
  void clear();

 private:
  [[nodiscard]] std::string about() const;
  [[nodiscard]] bool take_lock();
  [[nodiscard]] bool has_lock() const noexcept;
  void await_nodes();
  void join_nodes();
  void leave() noexcept;

  std::string path_;
  std::string target_;
  io::descriptor lock_;
  io::descriptor nodes_;  // shared by all nodes
  std::vector<remote<internal::job_presence>> others_;
};

}  // namespace orrery::storage
