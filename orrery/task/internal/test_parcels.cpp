// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/internal/test_parcels.hpp>

#include <array>
#include <cstring>
#include <random>

#include <fmt/format.h>

namespace orrery::testing {

namespace {

constexpr std::array<std::size_t, 8> sizes{0, 1, 100, 2047, 2048, 5000, 70'000, 300'000};
enum : std::uint64_t { go = 1, pass = 2, back = 3, wrong = 4 };

struct directory {
  orrery_task home;
  std::uint64_t seed;
  int workers;
  orrery_task all[64];
};

unsigned char expected(int number, int hops, std::size_t at) {
  return static_cast<unsigned char>(static_cast<std::size_t>(number) * 31 + static_cast<std::size_t>(hops) * 7 + at);
}

class worker {
 public:
  explicit worker(const directory& d) : where_(d), random_(d.seed + orrery_self().slot * 977 + orrery_self().pe) {}

  void run() {
    orrery_message m;
    for (;;) {
      const auto said = orrery_receive(&m, kept_.values.data != nullptr ? ORRERY_NOW : ORRERY_FOREVER);
      if (said == ORRERY_EMPTY) {
        send_kept();
        continue;
      }
      if (said != ORRERY_OK) return;
      handle(m);
      orrery_release(&m);
    }
  }

 private:
  void complain(const std::string& text) const {
    (void)orrery_send_bytes(where_.home, wrong, text.data(), text.size(), ORRERY_WAIT);
  }

  void handle(orrery_message& m) {
    auto* const p = static_cast<parcel*>(orrery_open(&m, &parcel_type));
    if (p == nullptr) return complain(orrery_error());
    if (const auto text = wrong_in(p->values, p->number, p->hops); !text.empty()) complain(text);
    --p->hops;
    switch (random_() % 3) {
      case 0:  // as it came
        rewrite(*p);
        send(*p);
        break;
      case 1: {  // kept, and what was kept before goes on
        parcel mine{p->number, p->hops, {}};
        if (orrery_buffer_take(&p->values, &mine.values) != ORRERY_OK) complain(orrery_error());
        if (p->values.data != nullptr) complain("the message has a buffer that was taken");
        send_kept();
        rewrite(mine);
        kept_ = mine;
        break;
      }
      default: {  // in another one
        parcel other{p->number, p->hops, filled(p->number, p->hops, sizes[random_() % sizes.size()])};
        if (random_() % 2 == 0 && orrery_buffer_free(&p->values) != ORRERY_OK) complain(orrery_error());
        send(other);
      }
    }
  }

  static void rewrite(parcel& p) {
    auto* const bytes = static_cast<unsigned char*>(p.values.data);
    for (std::size_t i = 0; i < p.values.size; ++i) bytes[i] = expected(p.number, p.hops, i);
  }

  void send_kept() {
    if (kept_.values.data == nullptr) return;
    const parcel p = kept_;
    kept_ = {};
    send(p);
  }

  void send(const parcel& p) {
    const bool ends = p.hops <= 0;
    const orrery_task to = ends ? where_.home : where_.all[random_() % static_cast<std::uint64_t>(where_.workers)];
    auto said = orrery_send(to, ends ? back : pass, &parcel_type, &p, ORRERY_TRY);
    if (said == ORRERY_FULL) said = orrery_send(to, ends ? back : pass, &parcel_type, &p, ORRERY_WAIT);
    if (said == ORRERY_STOPPED) return;
    if (said != ORRERY_OK) complain(orrery_error());
    if (orrery_send(to, pass, &parcel_type, &p, ORRERY_TRY) != ORRERY_USAGE) complain("a buffer was sent twice");
    orrery_buffer stale = p.values;
    if (orrery_buffer_free(&stale) != ORRERY_USAGE) complain("a buffer was freed that was sent");
  }

  directory where_;
  std::minstd_rand random_;
  parcel kept_{};
};

void run_worker(void*, std::size_t) {
  orrery_message m;
  if (orrery_receive_tag(go, &m, ORRERY_FOREVER) != ORRERY_OK) return;
  directory d;
  std::memcpy(&d, m.data, sizeof d);
  orrery_release(&m);
  worker(d).run();
}

constexpr orrery_field parcel_fields[] = {{"values", ORRERY_BUFFER, offsetof(parcel, values), 0, 0, 0, 0, nullptr}};

}  // namespace

const orrery_message_type parcel_type = {"Parcel", 4711, sizeof(parcel), 1, parcel_fields};

orrery_buffer filled(int number, int hops, std::size_t size) {
  orrery_buffer b;
  if (orrery_buffer_make(size, &b) != ORRERY_OK) return b;
  auto* const bytes = static_cast<unsigned char*>(b.data);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = expected(number, hops, i);
  return b;
}

std::string wrong_in(const orrery_buffer& b, int number, int hops) {
  if (b.data == nullptr) return fmt::format("parcel {} has no buffer", number);
  if (reinterpret_cast<std::uintptr_t>(b.data) % 64 != 0) return "a buffer is not aligned";
  const auto* const bytes = static_cast<const unsigned char*>(b.data);
  for (std::size_t i = 0; i < b.size; ++i)
    if (bytes[i] != expected(number, hops, i))
      return fmt::format("parcel {}, {} hops to go: byte {} of {} is wrong", number, hops, i, b.size);
  return {};
}

std::vector<std::string> pass_parcels(std::uint64_t seed, int workers, int parcels) {
  std::vector<std::string> said;
  directory d{orrery_self(), seed, workers, {}};
  for (int i = 0; i < workers; ++i) {
    const orrery_place place = orrery_pe(static_cast<std::uint32_t>(i) % orrery_pes());
    if (orrery_create(run_worker, nullptr, 0, place, &d.all[i]) != ORRERY_OK) return {orrery_error()};
  }
  for (int i = 0; i < workers; ++i) (void)orrery_send_bytes(d.all[i], go, &d, sizeof d, ORRERY_WAIT);
  std::minstd_rand random(static_cast<unsigned>(seed));
  for (int i = 0; i < parcels; ++i) {
    const int hops = 1 + static_cast<int>(random() % 12);
    const parcel p{i, hops, filled(i, hops, sizes[random() % sizes.size()])};
    if (orrery_send(d.all[i % workers], pass, &parcel_type, &p, ORRERY_WAIT) != ORRERY_OK)
      said.emplace_back(orrery_error());
  }
  std::vector<bool> seen(static_cast<std::size_t>(parcels));
  for (int left = parcels; left != 0 && said.size() < 10;) {
    orrery_message m;
    if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return {orrery_error()};
    if (m.tag == wrong) {
      said.emplace_back(static_cast<const char*>(m.data), m.size);
    } else if (const auto* p = static_cast<parcel*>(orrery_open(&m, &parcel_type)); p != nullptr) {
      if (auto text = wrong_in(p->values, p->number, 0); !text.empty()) said.push_back(std::move(text));
      if (seen[static_cast<std::size_t>(p->number)]) said.push_back(fmt::format("parcel {} came twice", p->number));
      seen[static_cast<std::size_t>(p->number)] = true;
      --left;
    }
    orrery_release(&m);
  }
  for (int i = 0; i < workers; ++i) (void)orrery_stop(d.all[i]);
  for (int i = 0; i < workers; ++i) (void)orrery_join(d.all[i], ORRERY_FOREVER);
  return said;
}

}  // namespace orrery::testing
