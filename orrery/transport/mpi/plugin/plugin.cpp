// SPDX-License-Identifier: Apache-2.0
// The only source that sees mpi.h. It is compiled once for each kind of MPI library, and is no part
// of the runtime's library.
#include <orrery/transport/mpi/plugin/interface.hpp>

#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace {

MPI_Comm own_comm = MPI_COMM_NULL;
bool failure_reported = false;  // and not acknowledged
int tests_in_a_look = 1;

static_assert(sizeof(MPI_Request) <= sizeof(std::uint64_t));

std::uint64_t number_of(MPI_Request r) {
  std::uint64_t n = 0;
  std::memcpy(&n, &r, sizeof r);
  return n;
}

MPI_Request request_of(std::uint64_t n) {
  MPI_Request r;
  std::memcpy(&r, &n, sizeof r);
  return r;
}

// User-level failure mitigation of Open MPI 5, whose headers of version 4 do not name it. Such a
// library says of a receive from any rank that it may wait for a failed one; the receive stays, and
// goes on once the failure is acknowledged.
namespace ulfm {

constexpr int proc_failed = 75;
constexpr int proc_failed_pending = 76;
int (*failure_ack)(MPI_Comm) = nullptr;
int (*failure_get_acked)(MPI_Comm, MPI_Group*) = nullptr;

void find() {
#ifdef OMPI_MAJOR_VERSION
  failure_ack = reinterpret_cast<decltype(failure_ack)>(::dlsym(RTLD_DEFAULT, "MPIX_Comm_failure_ack"));
  failure_get_acked =
      reinterpret_cast<decltype(failure_get_acked)>(::dlsym(RTLD_DEFAULT, "MPIX_Comm_failure_get_acked"));
  if (failure_get_acked == nullptr) failure_ack = nullptr;
#endif
}

// The class of an error by which the library reports a failed rank; 0 for all others.
int class_of(int code) {
  if (code == MPI_SUCCESS || failure_ack == nullptr) return 0;
  int c = 0;
  if (MPI_Error_class(code, &c) != MPI_SUCCESS || (c != proc_failed && c != proc_failed_pending)) return 0;
  failure_reported = true;
  return c;
}

}  // namespace ulfm

// Open MPI 5 looks at its sockets in one of eight calls. A helper that asks seldom would wait for
// eight pauses.
int find_tests_in_a_look() {
  static char all[MPI_MAX_LIBRARY_VERSION_STRING];
  int n = 0;
  constexpr char name[] = "Open MPI v";
  constexpr std::size_t digit = sizeof name - 1;
  const bool knows = MPI_Get_library_version(all, &n) == MPI_SUCCESS && std::strncmp(all, name, digit) == 0;
  return knows && all[digit] >= '5' ? 8 : 1;
}

void copy(const char* from, int bytes, char* text, std::uint32_t room) {
  if (room == 0) return;
  std::uint32_t n = bytes > 0 ? static_cast<std::uint32_t>(bytes) : 0;
  if (n > room - 1) n = room - 1;
  for (std::uint32_t i = 0; i < n; ++i) text[i] = from[i] == '\n' ? ' ' : from[i];
  text[n] = 0;
}

// UCX, which MPICH may use, asks the receiver before it sends what is larger than a limit. By
// default frames are; a window of them then waits for answers, and half as many come through. The
// user's own setting stays. Programs that a process starts do not inherit this one.
class frames_at_once {
 public:
  frames_at_once() noexcept : is_set_(std::getenv(name) == nullptr && ::setenv(name, "72K", 0) == 0) {}
  frames_at_once(const frames_at_once&) = delete;
  frames_at_once& operator=(const frames_at_once&) = delete;
  ~frames_at_once() {
    if (is_set_) ::unsetenv(name);
  }

 private:
  static constexpr const char* name = "UCX_RNDV_THRESH";
  bool is_set_;
};

int begin(int* started, int* level) {
  int is_there = 0;
  if (const int e = MPI_Initialized(&is_there); e != MPI_SUCCESS) return e;
  *started = is_there == 0 ? 1 : 0;
  int given = MPI_THREAD_SINGLE;
  const frames_at_once set_while_it_starts;
  const int e =
      is_there != 0 ? MPI_Query_thread(&given) : MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
  if (e != MPI_SUCCESS) return e;
  *level = given >= MPI_THREAD_SERIALIZED ? 1 : 0;
  // MPI_COMM_WORLD is the program's where the program has started MPI: its errors stay as they are.
  if (is_there == 0) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const int dup = MPI_Comm_dup(MPI_COMM_WORLD, &own_comm); dup != MPI_SUCCESS) return dup;
  ulfm::find();
  tests_in_a_look = find_tests_in_a_look();
  return MPI_Comm_set_errhandler(own_comm, MPI_ERRORS_RETURN);
}

int end() { return MPI_Finalize(); }

// MPICH 4.0 over UCX, with the simple PMI. See launcher_barrier.hpp.
int ends_at_once() {
#ifdef OMPI_MAJOR_VERSION
  return 0;
#else
  static char all[MPI_MAX_LIBRARY_VERSION_STRING];
  int n = 0;
  if (MPI_Get_library_version(all, &n) != MPI_SUCCESS) return 0;
  return std::strstr(all, "ch4:ucx") != nullptr && std::strstr(all, "--with-pmi=") == nullptr ? 1 : 0;
#endif
}

int settle(int own_answer, int* all) {
  constexpr int tag = 32'000;  // of nothing else: receives of frames may be open in some ranks yet
  int own = 0;
  int ranks = 0;
  if (const int e = MPI_Comm_rank(own_comm, &own); e != MPI_SUCCESS) return e;
  if (const int e = MPI_Comm_size(own_comm, &ranks); e != MPI_SUCCESS) return e;
  for (int i = 1; i < ranks; ++i) {
    const int to = (own + i) % ranks;
    const int from = (own - i + ranks) % ranks;
    const int e =
        MPI_Sendrecv(nullptr, 0, MPI_BYTE, to, tag, nullptr, 0, MPI_BYTE, from, tag, own_comm, MPI_STATUS_IGNORE);
    if (e != MPI_SUCCESS) return e;
  }
  return MPI_Allreduce(&own_answer, all, 1, MPI_INT, MPI_MIN, own_comm);
}

int place(std::uint32_t* rank, std::uint32_t* ranks) {
  int r = 0;
  int n = 0;
  if (const int e = MPI_Comm_rank(own_comm, &r); e != MPI_SUCCESS) return e;
  if (const int e = MPI_Comm_size(own_comm, &n); e != MPI_SUCCESS) return e;
  *rank = static_cast<std::uint32_t>(r);
  *ranks = static_cast<std::uint32_t>(n);
  return 0;
}

int gather(const void* own, std::uint32_t bytes, void* all) {
  return MPI_Allgather(own, static_cast<int>(bytes), MPI_BYTE, all, static_cast<int>(bytes), MPI_BYTE, own_comm);
}

int broadcast(void* data, std::uint32_t bytes, std::uint32_t root) {
  return MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(root), own_comm);
}

int send(const void* data, std::uint64_t bytes, std::uint32_t to, int tag, std::uint64_t* request) {
  MPI_Request r = MPI_REQUEST_NULL;
  const int e = MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(to), tag, own_comm, &r);
  (void)ulfm::class_of(e);
  *request = number_of(r);
  return e;
}

int receive(void* data, std::uint64_t bytes, std::uint32_t from, int tag, std::uint64_t* request) {
  MPI_Request r = MPI_REQUEST_NULL;
  const int source = from == 0xffff'ffff ? MPI_ANY_SOURCE : static_cast<int>(from);
  const int e = MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, source, tag, own_comm, &r);
  *request = number_of(r);
  return e;
}

int test(std::uint64_t* request, int* done, std::uint32_t* from, std::uint64_t* bytes) {
  MPI_Request r = request_of(*request);
  MPI_Status s;
  s.MPI_SOURCE = 0;
  int flag = 0;
  int e = MPI_SUCCESS;
  for (int i = 0; i < tests_in_a_look && e == MPI_SUCCESS && flag == 0; ++i) e = MPI_Test(&r, &flag, &s);
  *request = number_of(r);
  *done = flag;
  *from = 0;
  *bytes = 0;
  if (e == MPI_SUCCESS && flag != 0) {
    int n = 0;
    MPI_Get_count(&s, MPI_BYTE, &n);
    *from = static_cast<std::uint32_t>(s.MPI_SOURCE);
    *bytes = n > 0 ? static_cast<std::uint64_t>(n) : 0;
  }
  if (ulfm::class_of(e) == ulfm::proc_failed_pending) {
    *done = 0;
    return MPI_SUCCESS;
  }
  return e;
}

// Acknowledged failures stay so.
std::uint32_t failures(std::uint32_t* ranks, std::uint32_t room) {
  if (!failure_reported) return 0;
  failure_reported = false;
  MPI_Group failed = MPI_GROUP_NULL;
  MPI_Group all = MPI_GROUP_NULL;
  if (ulfm::failure_ack(own_comm) != MPI_SUCCESS || ulfm::failure_get_acked(own_comm, &failed) != MPI_SUCCESS) return 0;
  int known = 0;
  std::uint32_t n = 0;
  if (MPI_Group_size(failed, &known) == MPI_SUCCESS && MPI_Comm_group(own_comm, &all) == MPI_SUCCESS) {
    for (int i = 0; i < known && n < room; ++i) {
      int rank = -1;
      if (MPI_Group_translate_ranks(failed, 1, &i, all, &rank) == MPI_SUCCESS && rank >= 0)
        ranks[n++] = static_cast<std::uint32_t>(rank);
    }
    MPI_Group_free(&all);
  }
  MPI_Group_free(&failed);
  return n;
}

void cancel(std::uint64_t* request) {
  MPI_Request r = request_of(*request);
  MPI_Cancel(&r);
  // Freed before it has ended, a request stays in UCX, which does not end well then.
  MPI_Wait(&r, MPI_STATUS_IGNORE);
}

void explain(int code, char* text, std::uint32_t room) {
  char all[MPI_MAX_ERROR_STRING] = {};
  int n = 0;
  MPI_Error_string(code, all, &n);
  copy(all, n, text, room);
}

void describe(char* text, std::uint32_t room) {
  static char all[MPI_MAX_LIBRARY_VERSION_STRING];
  int n = 0;
  MPI_Get_library_version(all, &n);
  for (int i = 0; i < n; ++i)
    if (all[i] == '\n') n = i;  // what follows is how it was built
  copy(all, n, text, room);
}

#ifdef OMPI_MAJOR_VERSION
constexpr const char* kind = "Open MPI";
#else
constexpr const char* kind = "MPICH";
#endif

const orrery_mpi_plugin plugin{orrery_mpi_plugin_version,
                               kind,
                               begin,
                               end,
                               ends_at_once,
                               settle,
                               place,
                               gather,
                               broadcast,
                               send,
                               receive,
                               test,
                               cancel,
                               failures,
                               explain,
                               describe};

}  // namespace

extern "C" const orrery_mpi_plugin* orrery_mpi_plugin_get() { return &plugin; }
