// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/error.hpp>

#include <utility>

#include <fmt/core.h>

namespace orrery {
namespace {

struct entry {
  std::string_view name;
  std::string_view sentence;
};

entry entry_of(errc code) noexcept {
  switch (code) {
    case errc::process_gone:
      return {"process_gone", "the process was destroyed; spawn a new one or look its name up again"};
    case errc::node_lost:
      return {"node_lost",
              "the node of the process has left the world, or crashed, before it answered, so the "
              "call may or may not have taken effect; spawn the process again on another node"};
    case errc::deadlock:
      return {"deadlock",
              "the calls wait for each other and would never end; post or start one of them, or "
              "declare the class reentrant"};
    case errc::remote:
      return {"remote", "a method threw; its text says which and why"};
    case errc::stopped:
      return {"stopped",
              "the runtime is shutting down; finish work before the main function returns, or "
              "wait for quiescence()"};
    case errc::timeout:
      return {"timeout", "the time limit passed; allow more time or check that the other side runs"};
    case errc::mailbox_full:
      return {"mailbox_full", "there is no room for the message; try again later"};
    case errc::broken_promise:
      return {"broken_promise",
              "the promise of this result has ended, and nobody had kept it; was the process that had it destroyed?"};
    case errc::name_not_found:
      return {"name_not_found",
              "nothing is published under this name; check the spelling, or use await_name() if "
              "it is yet to be published"};
    case errc::name_taken:
      return {"name_taken",
              "another process is published under this name; unpublish it first or choose another "
              "name"};
    case errc::message_truncated:
      return {"message_truncated",
              "a message ends before the value it holds does; sender and receiver disagree about "
              "the type, or memory was overwritten"};
    case errc::message_corrupt:
      return {"message_corrupt",
              "a message holds bytes that are no value of the expected type; sender and receiver "
              "disagree about the type, or memory was overwritten"};
    case errc::message_too_deep:
      return {"message_too_deep",
              "a message holds a value nested deeper than orrery::max_depth; send the parts in a "
              "flat container"};
    case errc::message_misaligned:
      return {"message_misaligned",
              "the buffer of a message is not aligned to orrery::wire_alignment, so a view of it "
              "cannot be given; this is a fault of the transport"};
    case errc::unknown_handler:
      return {"unknown_handler",
              "a message asks for a method that this program does not have; call what both "
              "programs have"};
    case errc::world_other_build:
      return {"world_other_build",
              "the world was started by a different build of the program; run the same executable "
              "on every node"};
    case errc::world_other_user:
      return {"world_other_user", "the world belongs to another user; choose another name for yours"};
    case errc::world_no_space:
      return {"world_no_space",
              "there is not enough shared memory for the world; free some in /dev/shm or lower "
              "the limits of the world"};
    case errc::world_too_large:
      return {"world_too_large", "the world would have more PEs, nodes or machines than it can; ask for fewer"};
    case errc::world_exists:
      return {"world_exists", "a world of this name is running already; join it or choose another name"};
    case errc::world_not_found:
      return {"world_not_found", "no world of this name is running; start it before joining it"};
    case errc::world_no_transport:
      return {"world_no_transport",
              "the transport that the start-up asks for is not available; install its plug-in or "
              "choose another transport"};
    case errc::world_bad_setting:
      return {"world_bad_setting", "a setting has a value that it cannot have; correct it"};
    case errc::bad_remote_cast:
      return {"bad_remote_cast",
              "the process is not of the class asked for; cast to its own class or to a base of "
              "it"};
    case errc::not_in_process:
      return {"not_in_process",
              "this may be called only by a process; call it from a method or from the function "
              "given to run()"};
    case errc::not_running:
      return {"not_running",
              "no runtime runs here; call this inside run(), in a process; another thread gives a function to "
              "orrery::submit, which runs it as one"};
    case errc::already_running:
      return {"already_running", "a runtime runs here already; leave it before starting another"};
    case errc::null_pointer:
      return {"null_pointer", "the remote pointer names no process; spawn one or look one up before the call"};
    case errc::no_such_place:
      return {
          "no_such_place",
          "the world has no such PE, node or machine; world_pes(), world_nodes() and world_machines() say how many there are"};
    case errc::value_too_deep:
      return {"value_too_deep",
              "a value nested deeper than orrery::max_depth, or containing itself, cannot be sent; "
              "send the parts in a flat container"};
    case errc::value_changed:
      return {"value_changed",
              "a value changed its size while it was being written; do not change it meanwhile, "
              "and let its serialize() name the same parts every time"};
    case errc::value_without_state:
      return {"value_without_state", "a std::variant that is valueless_by_exception cannot be sent; give it a value"};
    case errc::method_parked:
      return {"method_parked", "another method of it is parked, with its stack on this PE; let it end first"};
    case errc::bad_argument:
      return {"bad_argument", "an argument has a value that it cannot have; correct it"};
  }
  return {"unknown", "an error with an unknown code"};
}

std::string compose(errc code, std::string_view about) {
  if (about.empty()) return std::string(sentence(code));
  // who refuses it has said what is wrong with it
  if (code == errc::bad_argument) return std::string(about);
  return fmt::format("{}: {}", about, sentence(code));
}

// One place knows which class a code belongs to. `make` is called with std::type_identity of the
// class and the code; false means that the number is no code of a class with such a constructor.
template <class F>
bool with_class_of(errc code, F&& make) {
  switch (code) {
    case errc::process_gone:
      return make.template operator()<process_gone>();
    case errc::node_lost:
      return make.template operator()<node_lost>();
    case errc::deadlock:
      return make.template operator()<deadlock_error>();
    case errc::remote:
      return false;
    case errc::stopped:
      return make.template operator()<stopped>();
    case errc::timeout:
      return make.template operator()<timeout_error>();
    case errc::mailbox_full:
      return make.template operator()<mailbox_full>();
    case errc::broken_promise:
      return make.template operator()<broken_promise>();
    case errc::name_not_found:
      return make.template operator()<name_not_found>();
    case errc::name_taken:
      return make.template operator()<name_taken>();
    case errc::message_truncated:
    case errc::message_corrupt:
    case errc::message_too_deep:
    case errc::message_misaligned:
    case errc::unknown_handler:
      return make.template operator()<bad_message>();
    case errc::world_other_build:
    case errc::world_other_user:
    case errc::world_no_space:
    case errc::world_too_large:
    case errc::world_exists:
    case errc::world_not_found:
    case errc::world_no_transport:
    case errc::world_bad_setting:
      return make.template operator()<world_error>();
    case errc::bad_remote_cast:
      return make.template operator()<bad_remote_cast>();
    case errc::not_in_process:
    case errc::not_running:
    case errc::already_running:
    case errc::null_pointer:
    case errc::no_such_place:
    case errc::value_too_deep:
    case errc::value_changed:
    case errc::value_without_state:
    case errc::bad_argument:
    case errc::method_parked:
      return make.template operator()<usage_error>();
  }
  return false;
}

// Classes of several codes take the code first, classes of one code do not take it.
template <class Class, class... Args>
Class construct(errc code, const Args&... args) {
  if constexpr (std::is_constructible_v<Class, errc, const Args&...>) {
    return Class(code, args...);
  } else {
    return Class(args...);
  }
}

std::string remote_text(const where& at, std::string_view type, std::string_view text) {
  return fmt::format("{}{}{} on PE {} threw {}{}{}", at.class_name,
                     at.class_name.empty() ? "" : "::", at.method.empty() ? "a method" : at.method, at.pe,
                     type.empty() ? "an unknown type" : type, text.empty() ? "" : ": ", text);
}

}  // namespace

std::string_view to_string(errc code) noexcept { return entry_of(code).name; }

std::string_view sentence(errc code) noexcept { return entry_of(code).sentence; }

error::error(errc code, std::string_view about) : std::runtime_error(compose(code, about)), code_(code) {}

error::~error() = default;

remote_error::remote_error(where at, std::string type, std::string text)
    : error(errc::remote, verbatim, remote_text(at, type, text)),
      parts_(new const parts(std::move(at), std::move(type), std::move(text))) {}

void throw_error(errc code, std::string_view about) {
  with_class_of(code, [&]<class Class>() -> bool { throw construct<Class>(code, about); });
  throw error(code, about);  // a number that is no code: better a base class than silence
}

std::exception_ptr make_error(errc code, std::string_view about) {
  std::exception_ptr result;
  const bool known = with_class_of(code, [&]<class Class>() {
    result = std::make_exception_ptr(construct<Class>(code, about));
    return true;
  });
  return known ? result : std::make_exception_ptr(error(code, about));
}

std::exception_ptr make_error(errc code, verbatim_t, const std::string& what) {
  std::exception_ptr result;
  with_class_of(code, [&]<class Class>() {
    result = std::make_exception_ptr(construct<Class>(code, verbatim, what));
    return true;
  });
  return result;
}

}  // namespace orrery
