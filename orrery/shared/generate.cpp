// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/generate.hpp>

#include <orrery/shared/detail/object.hpp>

#include <memory>

namespace orrery::detail {

written_by_owners::written_by_owners(const shared_id& id, const char* what, const std::source_location& where) {
  const std::shared_ptr<const shared_object> o = hold_object(id);
  require_owners(*o);
  guard_.begin(o, scope_guard::kind::write, where);
  watch_.begin(o, access_kind::write, where, what);
  if (watch_) watch_.add(0, 0, o->rows * o->columns);
  for (std::uint32_t p = 0; p < o->how().parts(); ++p)
    if (o->how().elements_of(p) != 0) owners_.push_back(o->how().pes[p]);
}

}  // namespace orrery::detail
