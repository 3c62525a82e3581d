// SPDX-License-Identifier: Apache-2.0
// A camera hands pictures to a scaler, and that to a writer: each picture is one buffer, which
// changes its owner and is never copied on one machine.
//
//   ./buffers [pictures]
//
// run: ./buffers 20 --orrery-pes=2
// run: ./buffers 20 --orrery-nodes=2 --orrery-pes=1
// run: ./buffers 20 --orrery-sim=machines=3,jitter=3us --orrery-quiet
#include <orrery/task.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 640, HEIGHT = 480 };

message Picture {
  int number;
  int width, height;
  buffer pixels;
};
message Start {
  int pictures;
  orrery_task next;
};

// The messages that main receives.
enum { SUM };
message Sum { long pictures, light; };

task Scaler {
  tag START(Start);
  tag PICTURE(Picture);
  orrery_task next;
  int pictures = -1;  // not known yet
  int done = 0;
};

static void Scaler_handle_START(Scaler this, Start message) {
  this->next = message->next;
  this->pictures = message->pictures;
}

task Writer {
  tag START(Start);
  tag PICTURE(Picture);
  struct Sum sum;
  orrery_task home;
  int pictures = -1;
};

// Halves the picture in place, and passes its buffer on.
static void Scaler_handle_PICTURE(Scaler this, Picture message) {
  unsigned char* pixels = message->pixels.data;
  const int width = message->width / 2, height = message->height / 2;
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) pixels[y * width + x] = pixels[2 * y * message->width + 2 * x];
  Writer_send_PICTURE(this->next, &(struct Picture){message->number, width, height, message->pixels});
  this->done++;
}

static void Scaler_start(Scaler this) {
  while (this->done != this->pictures && Scaler_receive(this) == ORRERY_OK) {
  }
}

static void Writer_handle_START(Writer this, Start message) {
  this->home = message->next;
  this->pictures = message->pictures;
}

// Its buffer goes with the message when this returns.
static void Writer_handle_PICTURE(Writer this, Picture message) {
  const unsigned char* pixels = message->pixels.data;
  for (int i = 0; i < message->width * message->height; i++) this->sum.light += pixels[i];
  this->sum.pictures++;
}

static void Writer_start(Writer this) {
  while (this->sum.pictures != this->pictures && Writer_receive(this) == ORRERY_OK) {
  }
  Sum_send(this->home, SUM, &this->sum);
}

int main(int argc, char** argv) {
  const int pictures = argc > 1 ? atoi(argv[1]) : 100;
  orrery_task scaler = Scaler_create(), writer = Writer_create();
  Scaler_send_START(scaler, &(struct Start){pictures, writer});
  Writer_send_START(writer, &(struct Start){pictures, orrery_self()});
  for (int n = 0; n < pictures; n++) {
    struct Picture picture = {n, WIDTH, HEIGHT, {0}};
    if (orrery_buffer_make((size_t)WIDTH * HEIGHT, &picture.pixels) != ORRERY_OK)
      return fprintf(stderr, "%s\n", orrery_error());
    unsigned char* pixels = picture.pixels.data;
    for (int i = 0; i < WIDTH * HEIGHT; i++) pixels[i] = (unsigned char)n;
    if (Scaler_send_PICTURE(scaler, &picture) != ORRERY_OK) return fprintf(stderr, "%s\n", orrery_error());
    // The pixels are the scaler's now.
    if (Scaler_send_PICTURE(scaler, &picture) != ORRERY_USAGE) return EXIT_FAILURE;
  }
  orrery_message m;
  if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return EXIT_FAILURE;
  const Sum sum = Sum_open(&m);
  long expected = 0;
  for (int n = 0; n < pictures; n++) expected += (long)(n % 256) * (WIDTH / 2) * (HEIGHT / 2);
  printf("%ld pictures, light %ld\n", sum->pictures, sum->light);
  const bool good = sum->pictures == pictures && sum->light == expected;
  orrery_release(&m);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
