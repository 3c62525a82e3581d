// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/internal/words.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace orrery::task_detail {

namespace {

// As `sentence` says it to users of C++; empty: that is good for C, too.
std::string_view sentence_of_c(errc code) noexcept {
  switch (code) {
    case errc::process_gone:
      return "the task has ended; create another one, or look its name up again";
    case errc::node_lost:
      return "the OS process of the task has ended or was killed before it answered, so what it was asked may or may not have been done; create the task "
             "again in another one";
    case errc::deadlock:
      return "the tasks wait for each other, which would never end";
    case errc::stopped:
      return "the world ends, or this task is to end: return from its function";
    case errc::timeout:
      return "the time has passed; allow more, or check that the other side runs";
    case errc::mailbox_full:
      return "the receiver has no room now; try again later";
    case errc::name_not_found:
      return "no task has the name; check its spelling, or give a time to wait for it";
    case errc::name_taken:
      return "another task has the name; take it back with orrery_remove_name, or choose another one";
    case errc::not_in_process:
      return "only tasks may call it; the main function that orrery_run was given is one";
    case errc::not_running:
      return "no world runs on this thread; call it in a task, or in the main function that orrery_run was given "
             "(orrery-cc gives it main where the source defines a task or a message)";
    case errc::already_running:
      return "a world runs here already; orrery_run may be called again when it has returned";
    case errc::null_pointer:
      return "the task is null (all zero); create one, or find one by its name";
    case errc::no_such_place:
      return "the world has no such PE, node or machine; orrery_pes() and orrery_nodes() say how many there are";
    default:
      return {};
  }
}

// Calls of C++ that calls of C are made of.
constexpr std::string_view calls_below[] = {
    "publish", "unpublish", "lookup",    "await_name", "names",
    "receive", "yield",     "sleep_for", "spawn",      "a wait with a time limit"};

constexpr std::string_view class_of_tasks = " of class process function";

// The subject of the error, with the name of the call before it: `publish "x"` is
// `orrery_set_name "x"`.
std::string with_call(std::string_view about, std::string_view call) {
  if (about.starts_with("orrery_")) return std::string(about);
  for (const std::string_view below : calls_below) {
    if (!about.starts_with(below)) continue;
    const std::string_view rest = about.substr(below.size());
    if (rest.empty() || rest.front() == ' ' || rest.front() == ':') return fmt::format("{}{}", call, rest);
  }
  // The name of a method of ours, which users of C do not know.
  const auto end = std::min(about.find(": "), about.size());
  if (about.empty() || about.substr(0, end).find("::") != std::string_view::npos)
    return fmt::format("{}{}", call, about.substr(end));
  return fmt::format("{}: {}", call, about);
}

}  // namespace

std::string in_words_of_c(const error& e, std::string_view call) {
  std::string_view about = e.what();
  if (e.code() == errc::unknown_handler && about.contains("pointer to a function"))
    return fmt::format(
        "{}: that PE runs another program, or another build of this one, which does not have the function; "
        "orrery_program_pe() gives those that have it",
        call);
  const std::string_view said = sentence(e.code());
  const std::string_view better = sentence_of_c(e.code());
  if (better.empty() || !about.ends_with(said)) return with_call(about, call);
  about.remove_suffix(said.size());
  if (about.ends_with(": ")) about.remove_suffix(2);
  std::string text = with_call(about, call);
  if (const auto at = text.find(class_of_tasks); at != std::string::npos) text.erase(at, class_of_tasks.size());
  return fmt::format("{}: {}", text, better);
}

}  // namespace orrery::task_detail
