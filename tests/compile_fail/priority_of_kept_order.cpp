// expect: the order of this method's messages is kept \(keep_order\), so that none goes before another
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/priority.hpp>

struct Account;
ORRERY_PROCESS(Account, receive);
struct Account : orrery::element<Account> {
  static constexpr bool keep_order(std::string_view) { return true; }
  void receive(int) {}
};

void pay(orrery::element_ptr<Account> a) { post(a, orrery::urgent)->receive(1); }
