// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/terminate.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/exception.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>

#include <fmt/format.h>

namespace orrery::scheduler {
namespace {

// The handler belongs to the whole OS process, so this is shared by all PEs.
std::mutex mutex;
int users = 0;
std::terminate_handler previous = nullptr;

std::string what_runs(const pe& self) {
  const activation* a = self.active();
  if (a == nullptr) return "the runtime";
  if (a->method != nullptr) return fmt::format("{}::{}", a->method->class_name, a->method->method);
  const class_info* cls = a->process->cls();
  const std::string_view name = cls != nullptr ? cls->name : "a process";
  return a->process->dying ? fmt::format("{}::(destructor)", name) : std::string(name);
}

std::string what_was_thrown() {
  const std::exception_ptr thrown = std::current_exception();
  if (thrown == nullptr) return "called std::terminate";
  const wire_exception e = encode_exception(thrown);
  if (e.type.empty() && e.what.empty()) return "threw an exception that is not a std::exception";
  const std::string_view separator = e.type.empty() || e.what.empty() ? "" : ": ";
  return fmt::format("threw {}{}{}", e.type, separator, e.what);
}

[[noreturn]] void on_terminate() {
  if (const pe* self = current_pe; self != nullptr) {
    try {
      const std::string line = fmt::format(
          "orrery: PE {}: {} {}, where no exception may leave (destructors and noexcept functions handle theirs): node {} "
          "ends\n",
          self->id(), what_runs(*self), what_was_thrown(), self->owner().index());
      std::fwrite(line.data(), 1, line.size(), stderr);
    } catch (...) {  // no memory for the line: the program ends without it
    }
  }
  if (previous != nullptr) previous();
  std::abort();
}

}  // namespace

terminate_report::terminate_report() {
  const std::lock_guard lock(mutex);
  if (users++ == 0) previous = std::set_terminate(on_terminate);
}

terminate_report::~terminate_report() {
  const std::lock_guard lock(mutex);
  if (--users == 0) std::set_terminate(previous);
}

}  // namespace orrery::scheduler
