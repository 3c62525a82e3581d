// SPDX-License-Identifier: Apache-2.0
// C and C++ in one program: stations are tasks of C, which send their readings to an object of C++
// and pass pictures on to a function of C++.
//
// run: ./weather_board --orrery-pes=1
// run: ./weather_board --orrery-pes=2
// run: ./weather_board --orrery-nodes=3 --orrery-pes=1
// run: ./weather_board --orrery-sim=machines=3,jitter=20us --orrery-quiet
#include <orrery/orrery.hpp>

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "weather.hpp"

namespace {

// An object: it is given what is sent to it by a method for each tag, and has methods that C++
// calls.
class Board : public weather::Board::receiver {
 public:
  void handle_READING(weather::Reading message) override {
    warmest_[message.place.value_or("nowhere")] = *std::ranges::max_element(message.celsius);
    for (const weather::Wind& w : message.wind) storm_ = std::max(storm_, w.speed);
    ++readings_;
  }
  void handle_DONE() override { ++done_; }

  int done() const { return done_; }
  std::string text() const {
    std::string all = fmt::format("{} readings, wind up to {} m/s\n", readings_, storm_);
    for (const auto& [place, celsius] : warmest_) all += fmt::format("{}: {} degrees\n", place, celsius);
    return all;
  }

 private:
  std::map<std::string, double> warmest_;
  double storm_ = 0;
  int readings_ = 0;
  int done_ = 0;
};
ORRERY_PROCESS(Board, done, text);

// A function: it asks for its messages.
void viewer(orrery::remote<orrery::function> back) {
  auto picture = orrery::tasks::receive(weather::Viewer::PICTURE);
  const auto bytes = picture.pixels.bytes();
  const bool good = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0xff}; });
  orrery::send(back,
               fmt::format("a picture {} wide, {} bytes, {}", picture.width, bytes.size(), good ? "good" : "bad"));
}

int run(const orrery::args&) {
  const auto board = orrery::spawn<Board>(orrery::pe(orrery::world_pes() - 1));
  orrery::publish("board", board);
  const auto here = orrery::this_process<orrery::function>();
  orrery::publish("viewer", orrery::spawn(orrery::anywhere(), &viewer, here));

  orrery_task station{};
  for (const char* place : {"Montreal", "Oslo"}) {
    if (weather::Station::create(station) != ORRERY_OK) throw std::runtime_error(orrery_error());
    send(station, weather::Station::SETUP, {.place = place, .board = "board", .hours = 24});
  }
  weather::Picture picture{.width = 300, .pixels = orrery::tasks::buffer(300 * 200)};
  std::ranges::fill(picture.pixels.bytes(), std::byte{0});
  send(station, weather::Station::PICTURE, std::move(picture));

  fmt::print("{}\n", orrery::receive<std::string>());
  while (board->done() < 2) orrery::sleep_for(std::chrono::milliseconds(1));
  fmt::print("{}", board->text());
  return board->text() == "48 readings, wind up to 80.5 m/s\nMontreal: 23.5 degrees\nOslo: 23.5 degrees\n" ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return orrery::run(argc, argv, run); }
