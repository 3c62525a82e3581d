// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/trace_file.hpp>

#include <orrery/scheduler/trace.hpp>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace orrery::scheduler {

std::string trace_first_line(std::uint64_t world, std::uint32_t node) {
  return fmt::format(R"({{"displayTimeUnit":"ns","otherData":{{"world":"{:016x}","node":{}}},"traceEvents":[)", world,
                     node);
}

std::string trace_error_text(int os_error) { return std::generic_category().message(os_error); }

bool is_trace_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

file_limit_is_an_error::file_limit_is_an_error() noexcept {
  ::sigemptyset(&signal_);
  ::sigaddset(&signal_, SIGXFSZ);
  ::sigset_t pending{};
  ::sigpending(&pending);
  was_pending_ = ::sigismember(&pending, SIGXFSZ) == 1;
  ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
}
file_limit_is_an_error::~file_limit_is_an_error() {
  constexpr ::timespec at_once{};
  if (!was_pending_)
    while (::sigtimedwait(&signal_, nullptr, &at_once) == SIGXFSZ) {
    }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// --- merging -----------------------------------------------------------------------------------

namespace {

constexpr std::string_view metadata = R"({"ph":"M")";

/// Copies the events of a node's file; false if there is none of that world.
bool append_part(std::ofstream& out, bool& first, const std::string& part, std::uint64_t world, std::uint32_t node,
                 trace_summary& s) {
  std::ifstream in(part);
  std::string line;
  if (!std::getline(in, line) || line != trace_first_line(world, node)) return false;
  std::string held;  // the last line may have been cut off by the node's end
  const auto put = [&](std::string_view text) {
    if (text.ends_with(',')) text.remove_suffix(1);
    out << (std::exchange(first, false) ? "\n" : ",\n") << text;
    if (!text.starts_with(metadata)) ++s.events;
  };
  bool whole = false;
  while (!whole && std::getline(in, line)) {
    if (line.starts_with(trace_last_line)) {
      whole = true;
      std::uint64_t dropped = 0;
      std::from_chars(line.data() + trace_last_line.size(), line.data() + line.size(), dropped);
      s.dropped += dropped;
    } else {
      if (!held.empty()) put(held);
      held = std::move(line);
    }
  }
  if (whole ? !held.empty() : nlohmann::json::accept(held)) put(held);
  return true;
}

}  // namespace

trace_summary merge_traces(const std::string& path, std::uint64_t world, std::uint32_t nodes) {
  const file_limit_is_an_error limit;
  trace_summary s;
  s.path = path;
  const bool replace = is_trace_file(path) || !std::filesystem::exists(path);
  const std::string unfinished = replace ? path + ".merging" : path;
  std::ofstream out(unfinished, std::ios::trunc);
  out << R"({"displayTimeUnit":"ns","traceEvents":[)";
  std::vector<std::string> parts;
  bool first = true;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const std::string part = trace_part(path, n);
    const bool there = append_part(out, first, part, world, n, s);
    if (!there) s.missing.push_back(n);
    // A node that has crashed leaves the empty file that it had opened.
    if (there || (is_trace_file(part) && std::filesystem::is_empty(part))) parts.push_back(part);
  }
  out << '\n' << trace_last_line << s.dropped << "}\n";
  out.close();
  if (!out || (replace && std::rename(unfinished.c_str(), path.c_str()) != 0)) {
    s.problem = fmt::format("{}: {}", path, trace_error_text(errno));
    if (replace && is_trace_file(unfinished)) ::unlink(unfinished.c_str());
    std::erase_if(
        parts, [](const std::string& part) { return std::filesystem::is_empty(part) && ::unlink(part.c_str()) == 0; });
    if (!parts.empty())
      s.problem += fmt::format("; what the nodes have written of it is in {}", fmt::join(parts, ", "));
    return s;
  }
  for (const std::string& part : parts) ::unlink(part.c_str());
  return s;
}

}  // namespace orrery::scheduler
