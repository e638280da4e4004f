// argosy-supervisor DIRECTORY
// argosy-supervisor --launcher
//
// Runs the command that DIRECTORY/spec describes, keeps its outputs, cleans up after it and records its end. It
// depends on nobody: not on the server that launched it, whose descriptors, terminal and session it gives up,
// nor on one that listens. docs/design/0023-task-supervisors.md describes the files and what they guarantee.
//
// The launcher blocks SIGTERM and SIGUSR1 before it starts this program, so none is lost before it listens.
//
// As a launcher it supervises nothing itself: for each message on its standard input (a socket that keeps
// messages apart) it forks a supervisor. A message is the path of a directory; or that, a NUL and the text of the
// specification, and then the supervisor makes the directory and the file. Forking a small program costs a
// server less than starting one, and the server does not wait for it. It ends with the socket; supervisors go on.
//
// Descriptor 4 of a launcher is a lock that it shares with the server and with each supervisor until that has
// claimed its directory. Whoever gets the lock knows that no launch is under way.
//
// Exit codes: 0 the end is recorded; 2 wrong use, with a message; 3 another supervisor, or an adopter that
// found none, was first; 4 the end could not be recorded.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "records.hpp"
#include "report.hpp"
#include "spec.hpp"
#include "supervision.hpp"
#include "system.hpp"

namespace {

using namespace argosy::supervisor;

enum Exit : int { kRecorded = 0, kWrongUse = 2, kNotFirst = 3, kNotRecorded = 4 };

constexpr int kDirectory = 3;
constexpr int kLock = 4;
// The largest message to a launcher; `launcher.py` knows it too.
constexpr std::size_t kLargestMessage = 1 << 16;

// Gives up everything that was inherited, except a launcher's lock, and keeps the directory as descriptor 3.
void detach(int directory, bool has_lock) {
  ::dup2(directory, kDirectory);
  ::fcntl(kDirectory, F_SETFD, FD_CLOEXEC);
  ::syscall(SYS_close_range, has_lock ? kLock + 1U : kDirectory + 1U, ~0U, 0U);
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

// The command never runs, for want of room or of rights. The server need not wait for a claim that does not come.
int refuse(const Spec& spec, int error) {
  Reporter reporter(spec.reports, spec.name);
  reporter.send("withdrawn", error);
  reporter.flush(kSecond);
  return kNotRecorded;
}

// Makes the directory with the specification, which must be new. It may be there without one if an adopter claims
// it just now.
bool make_directory(const char* path, std::string_view specification) {
  if (::mkdir(path, 0700) != 0 && errno != EEXIST) return false;
  const std::string name = std::string(path) + "/spec";
  const Descriptor file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  return file.is_open() && write_all(file.get(), specification);
}

struct Launch {
  const char* path;
  // Empty: directory and specification are there.
  std::string_view specification;
  bool has_lock;
};

int supervise(const Launch& launch) {
  const auto& [path, given, has_lock] = launch;
  Spec spec;
  Failure failure;
  if (!given.empty()) {
    if (!SpecReader::read(given, spec)) failure = {Step::spec, 0};
    if (!make_directory(path, given)) return errno == EEXIST ? kNotFirst : refuse(spec, errno);
  }
  const int opened = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) {
    const int error = errno;
    std::fprintf(stderr, "argosy-supervisor: %s: %s\n", path, std::strerror(error));
    refuse(spec, error);
    return kWrongUse;
  }
  detach(opened, has_lock);
  Descriptor signals = listen_to_signals();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Whoever unmounts the launcher's working directory is not kept from it.
  if (::chdir("/") != 0) return kWrongUse;
  std::string text;
  if (given.empty()) {
    if (!read_file(kDirectory, "spec", text)) {
      failure = {Step::spec, errno};
    } else if (!SpecReader::read(text, spec)) {
      failure = {Step::spec, 0};
    }
  }
  RecordDirectory records(kDirectory);
  if (!records.claim("supervisor", identity())) return errno == EEXIST ? kNotFirst : refuse(spec, errno);
  if (has_lock) ::close(kLock);
  // A command whose end could not be recorded does not run: it would be taken for lost, and run again.
  if (!records.reserve("end")) return refuse(spec, errno);
  Supervision supervision(kDirectory, records, spec, std::move(signals));
  return supervision.run(failure) ? kRecorded : kNotRecorded;
}

// A message that could not be served may not be answered: the server notices a try that nobody claims.
int launch_until_closed() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // Supervisors that exit are reaped by the kernel.
  ::signal(SIGCHLD, SIG_IGN);
  ::setsid();
  ::umask(077);
  const bool has_lock = ::fcntl(kLock, F_SETFD, FD_CLOEXEC) == 0;
  static char message[kLargestMessage + 1];
  for (;;) {
    const ssize_t got = ::recv(STDIN_FILENO, message, kLargestMessage, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return kRecorded;
    message[got] = '\0';
    const std::size_t path = std::strlen(message) + 1;
    const auto size = static_cast<std::size_t>(got);
    const std::string_view specification =
        path < size ? std::string_view(message + path, size - path) : std::string_view();
    const pid_t child = ::fork();
    if (child == 0) return supervise({message, specification, has_lock});
    if (child < 0) {
      const int error = errno;
      Spec spec;
      if (SpecReader::read(specification, spec)) refuse(spec, error);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: argosy-supervisor DIRECTORY | --launcher\n", stderr);
    return kWrongUse;
  }
  if (std::string_view(arguments[1]) == "--launcher") return launch_until_closed();
  return supervise({arguments[1], {}, false});
}
