// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/remote_cast.hpp>

#include <orrery/process/internal/class_chain.hpp>
#include <orrery/process/spawn.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace orrery::detail {

class_chain chain_of(const scheduler::class_info& cls) {
  class_chain chain{std::string(cls.name)};
  for (const scheduler::class_info::base& b : cls.bases) {
    const class_chain above = chain_of(b.info());
    chain.insert(chain.end(), above.begin(), above.end());
  }
  return chain;
}

bool is_kind_of(const class_chain& chain, std::string_view wanted) noexcept {
  return std::ranges::find(chain, wanted) != chain.end();
}

namespace {

class_chain class_at(address process) {
  const slot* s = here_pe().find(process.slot, process.generation);
  if (s == nullptr || s->cls() == nullptr) throw process_gone(fmt::format("the class of {}", to_string(process)));
  return chain_of(*s->cls());
}

class_chain ask_class(const address& process) {
  pe& self = here_pe();
  if (!process) throw usage_error(errc::null_pointer, "the class of a process");
  if (process.pe == self.id()) return class_at(process);
  return call<&class_at>(orrery::pe(process.pe), process);
}

}  // namespace

std::string ask_class_name(const address& process) { return ask_class(process).front(); }

void require_class(const address& process, std::string_view class_name) {
  const class_chain chain = ask_class(process);
  if (is_kind_of(chain, class_name)) return;
  throw bad_remote_cast(
      fmt::format("remote_cast<{}>: {} is of class {}", class_name, to_string(process), chain.front()));
}

}  // namespace orrery::detail
