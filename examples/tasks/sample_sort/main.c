// SPDX-License-Identifier: Apache-2.0
// Sample sort (Gingras 2018, section 4.4): a bucket task on each PE. The array and the sorted
// buckets are passed as references, which are good inside a node, the parts that buckets send each
// other as buffers.
//
//   ./sample_sort [-s quick|radix] [-f FILE] [-o FILE] [-g] [-q] [N] [buckets]
//
// Sorts N random numbers, or those of a file (32 bits each, as the machine has them), checks the
// result, writes it to a file, and prints the phases of tables 4.2 and B.1 to B.5. -g: as figures
// for a program. -q: sorts them with one qsort instead, the thesis' reference.
//
// run: ./sample_sort 200000 --orrery-pes=2
// run: ./sample_sort 50000 7 --orrery-pes=2 -s radix
// run: ./sample_sort 3 4 --orrery-pes=1
// run: ./sample_sort 50000 --orrery-sim=pes=4,jitter=3us --orrery-quiet
// run: head -c 400000 /dev/urandom > sort.in; for s in quick radix; do ./sample_sort -s $s -f sort.in -o sort.out 0 3 --orrery-pes=2; cmp <(od -An -v -td4 -w4 sort.in | sort -n) <(od -An -v -td4 -w4 sort.out); done
#include "sample_sort.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
  enum sorting sorting;
  const char* from;
  const char* to;
  bool figures, reference;
  long n;
  int buckets;
};

static double seconds_since(int64_t begin) { return (double)(orrery_now_ns() - begin) / 1e9; }

static int failed(const char* what) {
  perror(what);
  return EXIT_FAILURE;
}

static bool read_options(int argc, char** argv, struct options* o) {
  *o = (struct options){.sorting = QUICK, .n = 10000000, .buckets = (int)orrery_pes()};
  for (int option; (option = getopt(argc, argv, "s:f:o:gq")) != -1;) switch (option) {
      case 's':
        if (strcmp(optarg, "quick") != 0 && strcmp(optarg, "radix") != 0) return false;
        o->sorting = *optarg == 'q' ? QUICK : RADIX;
        break;
      case 'f':
        o->from = optarg;
        break;
      case 'o':
        o->to = optarg;
        break;
      case 'g':
        o->figures = true;
        break;
      case 'q':
        o->reference = true;
        break;
      default:
        return false;
    }
  if (optind < argc) o->n = atol(argv[optind]);
  if (optind + 1 < argc) o->buckets = atoi(argv[optind + 1]);
  return o->n >= 0 && o->buckets > 0;
}

// The numbers of the file, all if N is 0, or random ones.
static int* numbers_of(struct options* o) {
  FILE* file = NULL;
  if (o->from != NULL) {
    file = fopen(o->from, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) return NULL;
    const long all = ftell(file) / (long)sizeof(int);
    if (o->n == 0 || o->n > all) o->n = all;
    rewind(file);
  }
  int* numbers = malloc(sizeof(int) * (size_t)(o->n + 1));
  if (numbers == NULL) return NULL;
  if (file != NULL) {
    const size_t got = fread(numbers, sizeof(int), (size_t)o->n, file);
    fclose(file);
    return got == (size_t)o->n ? numbers : NULL;
  }
  uint64_t random = 88172645463325252u;
  for (long i = 0; i < o->n; i++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    numbers[i] = (int)(random >> 33);
  }
  return numbers;
}

static void receive(uint64_t tag, orrery_message* message) {
  if (orrery_receive_tag(tag, message, ORRERY_FOREVER) != ORRERY_OK) orrery_exit();
}

static bool spawn_buckets(const struct options* o, int* numbers, orrery_task* buckets) {
  const int k = o->buckets;
  for (int b = 0; b < k; b++) {
    const orrery_place place = orrery_program_pe((uint32_t)b);
    if (Bucket_create_at(place, &buckets[b]) != ORRERY_OK) return false;
    const long first = o->n / k * b, end = b == k - 1 ? o->n : o->n / k * (b + 1);
    const struct Region region = {(uintptr_t)(numbers + first), end - first, k, (int)o->sorting, orrery_self()};
    if (Bucket_send_REGION(buckets[b], &region) != ORRERY_OK) return false;
  }
  return true;
}

// Gives the splitters of all samples to the buckets.
static void split(const orrery_task* buckets, int k) {
  int* samples = malloc(sizeof(int) * (size_t)k * SAMPLES);
  int* splitters = calloc((size_t)k, sizeof(int));
  int count = 0;
  for (int b = 0; b < k; b++) {
    orrery_message m;
    receive(SAMPLE, &m);
    const Sample sample = Sample_open(&m);
    if (sample->count != 0) memcpy(samples + count, sample->values, sizeof(int) * (size_t)sample->count);
    count += sample->count;
    orrery_release(&m);
  }
  choose_splitters(samples, count, k, splitters);
  for (int b = 0; b < k; b++)
    Bucket_send_SPLITTERS(buckets[b], &(struct Splitters){k, (orrery_task*)buckets, k - 1, splitters});
  free(samples), free(splitters);
}

static void collect(const orrery_task* buckets, int k, struct Sorted* sorted) {
  for (int left = k; left > 0; left--) {
    orrery_message m;
    receive(SORTED, &m);
    for (int b = 0; b < k; b++)
      if (orrery_task_same(m.sender, buckets[b])) sorted[b] = *Sorted_open(&m);
    orrery_release(&m);
  }
}

static bool write_sorted(const struct options* o, const struct Sorted* sorted, int k) {
  FILE* file = fopen(o->to, "wb");
  if (file == NULL) return false;
  bool good = true;
  for (int b = 0; b < k; b++)
    good =
        fwrite((const int*)sorted[b].numbers, sizeof(int), (size_t)sorted[b].count, file) == (size_t)sorted[b].count &&
        good;
  return fclose(file) == 0 && good;
}

static void say(const struct options* o, const struct Sorted* sorted, int k, const double* main_s) {
  static const char* const names[] = {"read", "spawn", "splitters", "wait"};
  if (!o->figures) printf("%ld numbers in %d buckets: sorted\n", o->n, k);
  for (int i = 0; i < 4; i++) printf(o->figures ? "%s_s %.6f\n" : "%-10s %9.4f s\n", names[i], main_s[i]);
  if (!o->figures)
    printf("%-8s%10s%10s%12s%10s%10s%12s\n", "bucket", "sample", "splitters", "propagation", "rebuild", "sort",
           "numbers");
  for (int b = 0; b < k; b++) {
    const struct phases* p = &sorted[b].phases;
    printf(o->figures ? "bucket %d %.6f %.6f %.6f %.6f %.6f %ld\n" : "%-8d%10.4f%10.4f%12.4f%10.4f%10.4f%12ld\n", b,
           p->sample, p->splitters, p->propagation, p->rebuild, p->sort, sorted[b].count);
  }
}

static int sort_in_buckets(const struct options* o, int* numbers, double read_s) {
  const int k = o->buckets;
  orrery_task* buckets = calloc((size_t)k, sizeof *buckets);
  struct Sorted* sorted = calloc((size_t)k, sizeof *sorted);
  long long sum = 0, sorted_sum = 0;
  for (long i = 0; i < o->n; i++) sum += numbers[i];
  double times[4] = {read_s};
  int64_t begin = orrery_now_ns();
  if (!spawn_buckets(o, numbers, buckets)) return fprintf(stderr, "%s\n", orrery_error());
  times[1] = seconds_since(begin);
  const int64_t spawned = orrery_now_ns();
  split(buckets, k);
  times[2] = seconds_since(spawned);
  collect(buckets, k, sorted);
  times[3] = seconds_since(begin);
  int last = INT_MIN;
  long count = 0;
  bool good = true;
  for (int b = 0; b < k; b++)
    good = check_order((const int*)sorted[b].numbers, sorted[b].count, &last, &count, &sorted_sum) && good;
  good = good && count == o->n && sorted_sum == sum;
  if (good) {
    say(o, sorted, k, times);
    if (o->to != NULL && !write_sorted(o, sorted, k)) good = failed(o->to) == 0;
  } else {
    fprintf(stderr, "the numbers are NOT sorted\n");
  }
  for (int b = 0; b < k; b++) free((void*)sorted[b].numbers);
  free(sorted), free(buckets);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int sort_at_once(const struct options* o, int* numbers, double read_s) {
  const int64_t begin = orrery_now_ns();
  sort_numbers(numbers, o->n, o->sorting);
  printf("read_s %.6f\nwait_s %.6f\n", read_s, seconds_since(begin));
  return EXIT_SUCCESS;
}

int main(int argc, char** argv) {
  struct options o;
  if (!read_options(argc, argv, &o))
    return fprintf(stderr, "usage: sample_sort [-s quick|radix] [-f FILE] [-o FILE] [-g] [-q] [N] [buckets]\n");
  const int64_t begin = orrery_now_ns();
  int* numbers = numbers_of(&o);
  if (numbers == NULL) return failed(o.from != NULL ? o.from : "the numbers");
  const double read_s = seconds_since(begin);
  const int code = o.reference ? sort_at_once(&o, numbers, read_s) : sort_in_buckets(&o, numbers, read_s);
  free(numbers);
  return code;
}
