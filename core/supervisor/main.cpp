// argosy-supervisor DIRECTORY
// argosy-supervisor --launcher
//
// Runs the command that DIRECTORY/spec describes, keeps its outputs, cleans up after it and records its end. It
// depends on nobody: not on the server that launched it, whose descriptors, terminal and session it gives up,
// nor on one that listens. docs/design/0023-task-supervisors.md describes the files and what they guarantee.
//
// The launcher blocks SIGTERM and SIGUSR1 before it starts this program, so none is lost before it listens.
//
// As a launcher it supervises nothing itself: each message on its standard input (a socket that keeps
// messages apart) is the path of a directory, for which it forks a supervisor. Forking a small program costs a
// server less than starting one, and the server does not wait for it. It ends with the socket; supervisors go on.
//
// Exit codes: 0 the end is recorded; 2 wrong use, with a message; 3 another supervisor, or an adopter that
// found none, was first; 4 the end could not be recorded.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <cstdio>
#include <string>

#include "records.hpp"
#include "spec.hpp"
#include "supervision.hpp"
#include "system.hpp"

namespace {

using namespace argosy::supervisor;

enum Exit : int { kRecorded = 0, kWrongUse = 2, kNotFirst = 3, kNotRecorded = 4 };

constexpr int kDirectory = 3;
constexpr std::size_t kLongestPath = 4096;

// Gives up everything that was inherited, and keeps the directory as descriptor 3.
void detach(int directory) {
  ::dup2(directory, kDirectory);
  ::fcntl(kDirectory, F_SETFD, FD_CLOEXEC);
  ::syscall(SYS_close_range, kDirectory + 1U, ~0U, 0U);
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < kDirectory; ++fd) ::dup2(null, fd);
  if (null > kDirectory) ::close(null);
  ::setsid();
  ::umask(077);
}

Descriptor listen_to_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // Ignored ones would not be queued, and ignoring SIGCHLD would reap children unseen.
  for (const int signal : {SIGTERM, SIGUSR1, SIGCHLD}) ::signal(signal, SIG_DFL);
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int signal : {SIGTERM, SIGUSR1, SIGCHLD}) ::sigaddset(&taken, signal);
  return Descriptor(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
}

Record identity() {
  ProcessStat stat;
  read_stat(::getpid(), stat);
  std::string boot;
  read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot);
  Record record;
  record.number("pid", ::getpid())
      .number("start_ticks", stat.start_ticks)
      .text("boot", std::string_view(boot).substr(0, boot.find('\n')))
      .number("at", wall_clock());
  return record;
}

int supervise(const char* path) {
  const int opened = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) {
    std::fprintf(stderr, "argosy-supervisor: %s: %s\n", path, std::strerror(errno));
    return kWrongUse;
  }
  detach(opened);
  Descriptor signals = listen_to_signals();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Whoever unmounts the launcher's working directory is not kept from it.
  if (::chdir("/") != 0) return kWrongUse;
  RecordDirectory records(kDirectory);
  if (!records.claim("supervisor", identity())) return errno == EEXIST ? kNotFirst : kNotRecorded;
  // A command whose end could not be recorded does not run: it would be taken for lost, and run again.
  if (!records.reserve("end")) return kNotRecorded;
  std::string text;
  Spec spec;
  Failure failure;
  if (!read_file(kDirectory, "spec", text)) {
    failure = {Step::spec, errno};
  } else if (!SpecReader::read(text, spec)) {
    failure = {Step::spec, 0};
  }
  Supervision supervision(kDirectory, records, spec, std::move(signals));
  return supervision.run(failure) ? kRecorded : kNotRecorded;
}

// A message that could not be served is not answered: the server notices a try that nobody claims.
int launch_until_closed() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // Supervisors that exit are reaped by the kernel.
  ::signal(SIGCHLD, SIG_IGN);
  ::setsid();
  char path[kLongestPath + 1];
  for (;;) {
    const ssize_t got = ::recv(STDIN_FILENO, path, kLongestPath, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return kRecorded;
    path[got] = '\0';
    const pid_t child = ::fork();
    if (child == 0) return supervise(path);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: argosy-supervisor DIRECTORY | --launcher\n", stderr);
    return kWrongUse;
  }
  if (std::string_view(arguments[1]) == "--launcher") return launch_until_closed();
  return supervise(arguments[1]);
}
