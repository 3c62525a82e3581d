// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/task.h>
#include <orrery/process/function.hpp>
#include <orrery/process/names.hpp>
#include <orrery/process/on_end.hpp>
#include <orrery/process/roles.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/task/internal/convert.hpp>
#include <orrery/task/internal/mail.hpp>
#include <orrery/task/internal/signals.hpp>
#include <orrery/task/internal/state.hpp>
#include <orrery/task/internal/task_frame.hpp>
#include <orrery/task/internal/watches.hpp>
#include <orrery/task/receiver.hpp>
#include <orrery/transport/world.hpp>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery::task_detail {
namespace {

using detail::here_pe;
using scheduler::pe;

// Where there are other programs `anywhere` is the program's own PEs: others do not have its
// functions, and are not to suffer from its end.
placement placement_of(const orrery_place& p) {
  const placement place{static_cast<placement::kind>(p.kind), p.number};
  if (place.what != placement::kind::anywhere) return place;
  scheduler::node& n = here_pe().owner();
  if (n.world() == nullptr || !n.world()->has_other_programs()) return place;
  const std::vector<std::uint32_t> own = program_pes();
  return own.empty() ? here() : orrery::pe(own[n.turn() % own.size()]);
}
orrery_place place_of(const placement& p) noexcept { return {static_cast<std::uint32_t>(p.what), p.index}; }

// The function of a task of C, in a form that can travel.
struct c_task {
  detail::callable<orrery_task_function> run;
  std::vector<std::byte> argument;
  std::uint64_t stack_bytes;  // at least; 0: the usual size

  void operator()() {
    pe& self = here_pe();
    const task_frame frame(self);
    try {
      (*run.f)(argument.empty() ? nullptr : argument.data(), argument.size());
    } catch (const task_exit&) {  // it has unwound the stack
    }
  }
  template <class A>
  void serialize(A& a) {
    a & run & argument & stack_bytes;
  }
};

// Reports of a world that is dead say that the caller waits in that call.
class waits_in {
 public:
  waits_in(pe& self, std::string call) : text_(std::move(call)), waiter_(*self.running()) {
    waiter_.waits_in = text_.c_str();
  }
  waits_in(const waits_in&) = delete;
  waits_in& operator=(const waits_in&) = delete;
  ~waits_in() { waiter_.waits_in = nullptr; }

 private:
  std::string text_;
  scheduler::fiber& waiter_;
};

bool has_ended(address task) { return here_pe().find(task.slot, task.generation) == nullptr; }

orrery_status join(const orrery_task& task, std::int64_t timeout_ns) {
  pe& self = here_pe();
  self.require_process();
  require(task, "orrery_join");
  if (address_of(task) == self.self())
    throw usage_error(errc::bad_argument, "orrery_join: a task that waits for its own end waits for ever");
  const auto late = [&] {
    return fail(ORRERY_TIMEOUT, fmt::format("orrery_join: task {} has not ended", to_string(address_of(task))));
  };
  if (timeout_ns <= 0) return call<&has_ended>(orrery::pe(task.pe), address_of(task)) ? ORRERY_OK : late();
  const waits_in said(self, fmt::format("orrery_join of task {}", to_string(address_of(task))));
  const detail::watch_key key = new_watch(self);
  auto end = detail::await_end(address_of(task), key);
  if (timeout_ns != ORRERY_FOREVER && !end.wait_for(time_of(timeout_ns))) {
    detail::forget_end(self, address_of(task), key);
    detail::future_access<ending>::disregard(std::move(end));
    return late();
  }
  if (end.get().cause == end_cause::node_lost)
    throw node_lost(fmt::format("orrery_join: task {}", to_string(address_of(task))));
  return ORRERY_OK;
}

orrery_status create(const char* call, orrery_task_function run, std::span<const std::byte> argument,
                     std::size_t stack_bytes, orrery_place where, orrery_task* task) {
  return guarded(call, [&] {
    here_pe().require_process();
    require(reinterpret_cast<const void*>(run), call, "the function");
    if (!argument.empty()) require(argument.data(), call, "the argument, whose size is not 0,");
    if (where.kind > static_cast<std::uint32_t>(placement::kind::nowhere))
      throw usage_error(errc::bad_argument, fmt::format("{}: this is no place; use orrery_here() and its like", call));
    c_task body{{run}, {argument.begin(), argument.end()}, stack_bytes};
    const auto made = spawn(placement_of(where), std::move(body));
    if (task != nullptr) *task = task_of(made.address());
    return ORRERY_OK;
  });
}

template <class T>
address find(const char* name, std::int64_t timeout_ns) {
  return (timeout_ns <= 0 ? lookup<T>(name) : await_name<T>(name, time_of(timeout_ns))).address();
}
// A task, a function, or an object of C++ that is given messages.
address find(const char* name, std::int64_t timeout_ns) {
  try {
    return find<function>(name, timeout_ns);
  } catch (const bad_remote_cast&) {
  }
  try {
    return find<tasks::receiver>(name, timeout_ns);
  } catch (const bad_remote_cast&) {
    throw usage_error(
        errc::bad_argument,
        fmt::format("orrery_find \"{}\": an object of C++ has the name, which is not given messages of tasks", name));
  }
}

int run_main(const args& all, int (*main)(int, char**)) {
  std::vector<std::string> words = all;
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const task_frame frame(here_pe());
  try {
    return main(static_cast<int>(words.size()), argv.data());
  } catch (const task_exit&) {
    return 0;
  } catch (const stopped&) {  // it was told so, and waited again
    return 0;
  }
}

// Filled before the world begins, also by constructors of the program, which can be told nothing.
struct c_roles {
  roles all;
  std::string wrong;  // what is wrong with one of them
};
c_roles& roles_of_c() {
  static c_roles* const all = new c_roles;
  return *all;
}

// "task 3.1: ", and the text as printf makes it.
std::string said_by_task(const char* format, va_list values) {
  std::string text;
  if (format != nullptr) {
    va_list again;
    va_copy(again, values);
    const int size = std::vsnprintf(nullptr, 0, format, again);
    va_end(again);
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    if (size > 0) (void)std::vsnprintf(text.data(), text.size() + 1, format, values);
  }
  const auto me = address_of(orrery_self());
  return me ? fmt::format("task {}: {}", to_string(me), text) : text;
}

}  // namespace
}  // namespace orrery::task_detail

using namespace orrery::task_detail;  // NOLINT: the C functions are its face
using orrery::scheduler::pe;

extern "C" {

int orrery_run(int argc, char** argv, int (*main)(int argc, char** argv)) {
  int result = 1;
  const orrery_status said = guarded("orrery_run", [&] {
    require(reinterpret_cast<const void*>(main), "orrery_run", "the main function");
    require(argv, "orrery_run", "argv");
    if (const std::string& wrong = roles_of_c().wrong; !wrong.empty())
      throw orrery::usage_error(orrery::errc::bad_argument, orrery::verbatim, wrong);
    const auto main_function = [main](const orrery::args& all) { return run_main(all, main); };
    result = orrery::run(argc, argv, main_function, roles_of_c().all);
    forget_signals();
    return ORRERY_OK;
  });
  if (said != ORRERY_OK) std::fputs(fmt::format("orrery: {}\n", orrery_error()).c_str(), stderr);
  return result;
}

void orrery_add_role(const char* name, int (*role)(int, char**)) {
  c_roles& known = roles_of_c();
  if (name == nullptr || *name == '\0') {
    known.wrong = "orrery_add_role: a role needs a name, by which --orrery-role chooses it";
  } else if (role == nullptr) {
    known.wrong = fmt::format("orrery_add_role: the role \"{}\" is no function", name);
  } else if (!known.all.emplace(name, [role](const orrery::args& all) { (void)run_main(all, role); }).second) {
    known.wrong = fmt::format("orrery_add_role: two roles have the name \"{}\": give one of them another name", name);
  }
}

orrery_place orrery_here(void) { return place_of(orrery::here()); }
orrery_place orrery_anywhere(void) { return place_of(orrery::anywhere()); }
orrery_place orrery_pe(uint32_t number) { return place_of(orrery::pe(number)); }
orrery_place orrery_node(uint32_t number) { return place_of(orrery::node(number)); }
orrery_place orrery_machine(uint32_t number) { return place_of(orrery::machine(number)); }
orrery_place orrery_near(orrery_task other) {
  return place_of(orrery::near(orrery::remote<orrery::function>(address_of(other))));
}

orrery_status orrery_create(orrery_task_function run, const void* argument, size_t size, orrery_place where,
                            orrery_task* task) {
  return create("orrery_create", run, {static_cast<const std::byte*>(argument), size}, 0, where, task);
}

orrery_status orrery_create_with_stack(orrery_task_function run, const void* argument, size_t size, size_t stack_bytes,
                                       orrery_place where, orrery_task* task) {
  return create("orrery_create_with_stack", run, {static_cast<const std::byte*>(argument), size}, stack_bytes, where,
                task);
}

orrery_task orrery_self(void) {
  const orrery::scheduler::pe* self = orrery::scheduler::current_pe;
  return self != nullptr && self->active() != nullptr ? task_of(self->self()) : orrery_task{};
}

orrery_status orrery_join(orrery_task task, int64_t timeout_ns) {
  return guarded("orrery_join", [&] { return join(task, timeout_ns); });
}

orrery_status orrery_watch(orrery_task task, uint64_t tag) {
  return guarded("orrery_watch", [&] {
    pe& self = here_pe();
    self.require_process();
    require(task, "orrery_watch");
    (void)orrery::pe(task.pe).resolve();  // said here: who watches would wait for ever
    task_state::of(self).watches.add(address_of(task), tag);
    return ORRERY_OK;
  });
}

orrery_status orrery_stop(orrery_task task) {
  return guarded("orrery_stop", [&] {
    here_pe().require_process();
    require(task, "orrery_stop");
    orrery::detail::future_access<void>::disregard(
        orrery::start_destroy(orrery::remote<orrery::function>(address_of(task))));
    return ORRERY_OK;
  });
}

void orrery_exit(void) { throw task_exit(); }

orrery_status orrery_sleep(int64_t ns) {
  return guarded("orrery_sleep", [&] {
    orrery::sleep_for(time_of(ns));
    return ORRERY_OK;
  });
}

orrery_status orrery_yield(void) {
  return guarded("orrery_yield", [] {
    orrery::yield();
    return ORRERY_OK;
  });
}

int64_t orrery_now_ns(void) { return orrery::now().count(); }
void orrery_compute(int64_t ns) {
  if (orrery::scheduler::current_pe != nullptr) orrery::compute(time_of(ns));
}

uint32_t orrery_this_pe(void) { return orrery::scheduler::current_pe != nullptr ? orrery::this_pe() : 0; }
uint32_t orrery_this_node(void) { return orrery::scheduler::current_pe != nullptr ? orrery::this_node() : 0; }
uint32_t orrery_pes(void) { return orrery::scheduler::current_pe != nullptr ? orrery::world_pes() : 0; }
uint32_t orrery_program_pes(void) {
  return orrery::scheduler::current_pe != nullptr ? static_cast<uint32_t>(orrery::program_pes().size()) : 0;
}
orrery_place orrery_program_pe(uint32_t rank) {
  if (orrery::scheduler::current_pe == nullptr) return place_of(orrery::pe(rank));
  const std::vector<std::uint32_t> own = orrery::program_pes();
  return place_of(own.empty() ? orrery::here() : orrery::pe(own[rank % own.size()]));
}
uint32_t orrery_nodes(void) { return orrery::scheduler::current_pe != nullptr ? orrery::world_nodes() : 0; }

void orrery_log(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::string line = said_by_task(format, values);
  va_end(values);
  line += '\n';
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

void orrery_log_failure(const char* format, ...) {
  va_list values;
  va_start(values, format);
  const std::string line = said_by_task(format, values);
  va_end(values);
  if (orrery::scheduler::pe* const self = orrery::scheduler::current_pe; self != nullptr) {
    self->failures().report(line, nullptr);
  } else {
    (void)std::fputs((line + '\n').c_str(), stderr);
  }
}

orrery_status orrery_set_name(orrery_task task, const char* name) {
  return guarded("orrery_set_name", [&] {
    require(name, "orrery_set_name", "the name");
    orrery::publish(name, orrery::remote<orrery::function>(address_of(task)));
    return ORRERY_OK;
  });
}

orrery_status orrery_remove_name(const char* name) {
  return guarded("orrery_remove_name", [&] {
    require(name, "orrery_remove_name", "the name");
    if (orrery::unpublish(name)) return ORRERY_OK;
    return fail(ORRERY_NAME_NOT_FOUND, fmt::format("orrery_remove_name \"{}\": no task has the name", name));
  });
}

orrery_status orrery_find(const char* name, orrery_task* task, int64_t timeout_ns) {
  return guarded("orrery_find", [&] {
    require(name, "orrery_find", "the name");
    require(task, "orrery_find", "the task that it is to fill in");
    pe& self = here_pe();
    self.require_process();
    const waits_in said(self, fmt::format("orrery_find \"{}\"", name));
    *task = task_of(find(name, timeout_ns));
    return ORRERY_OK;
  });
}

}  // extern "C"
