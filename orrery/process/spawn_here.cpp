// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/spawn_here.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <fmt/format.h>

namespace orrery::detail {

// Where a body waits, on the stack of its caller, for the PE that takes it.
struct body_place {
  using stays_as_it_is = void;
  wire::unique_ptr<function_body>* at = nullptr;
  template <class A>
  void serialize(A&) {
    throw bad_message(errc::message_corrupt, "spawn_here: a function that stays in its node has come from another one");
  }
};

struct begin_here_operation {
  using object = void;
  using result = remote<function>;
  static constexpr std::string_view class_name() noexcept { return "process function"; }
  static constexpr std::string_view name() noexcept { return "(spawn_here)"; }
  static remote<function> run(pe& self, slot& s, void*, body_place body) {
    const address a = self.address_of(s);
    begin_function(self, s, std::move(*body.at));
    return remote<function>(a);
  }
};

remote<function> begin_here(placement where, wire::unique_ptr<function_body> body) {
  pe& self = here_pe();
  const std::uint32_t target = where.resolve();
  if (target == self.id()) {
    slot& s = self.allocate_slot();
    try {
      begin_function(self, s, std::move(body));
    } catch (...) {
      self.free_slot(s);
      throw;
    }
    return remote<function>(self.address_of(s));
  }
  if (!on_this_node(self, target))
    throw usage_error(
        errc::bad_argument, verbatim,
        fmt::format(
            "spawn_here: PE {} is on another node, where a function that stays in its OS process cannot run; use "
            "spawn with a function or a lambda without captures, and pass what it needs as arguments",
            target));
  typed_sink<remote<function>> k;
  send_call<typed_handler<begin_here_operation, body_place>>(self, pe_address(target), k, body_place{&body});
  return k.take();
}

}  // namespace orrery::detail
