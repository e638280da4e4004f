// The command of a try: everything between fork and exec. If one step fails, it and errno come through a pipe
// that a successful exec closes.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <vector>

#include "cgroup.hpp"
#include "spec.hpp"
#include "system.hpp"

namespace argosy::supervisor {

enum class Step : int { none, spec, pipes, fork, cgroup, limits, directory, input, execute };

struct Failure {
  Step step = Step::none;
  int error = 0;
};

// The word for a failure in the record of the end.
inline const char* name_of(const Failure& failure) {
  switch (failure.step) {
    case Step::none: return "none";
    case Step::spec: return "bad-spec";
    case Step::pipes: return "no-pipes";
    case Step::fork: return "no-process";
    case Step::cgroup: return "bad-cgroup";
    case Step::limits: return "bad-limits";
    case Step::directory: return "bad-directory";
    case Step::input: return "bad-input";
    case Step::execute: break;
  }
  if (failure.error == ENOENT || failure.error == ENOTDIR) return "not-found";
  return "not-executable";
}

class Command {
 public:
  struct Pipes {
    int output;
    int errors;
    int failure;
  };

  Command(const Spec& spec, const Cgroup& cgroup, const rlimit& open_files)
      : spec_(spec), cgroup_(cgroup), open_files_(open_files), parent_(::getpid()) {
    // Made before the fork, so that nothing is allocated after it.
    for (const std::string& argument : spec.arguments) arguments_.push_back(text_of(argument));
    for (const std::string& variable : spec.environment) environment_.push_back(text_of(variable));
    arguments_.push_back(nullptr);
    environment_.push_back(nullptr);
  }

  pid_t start(const Pipes& pipes) {
    const pid_t pid = ::fork();
    if (pid == 0) become(pipes);
    return pid;
  }

 private:
  static char* text_of(const std::string& text) { return const_cast<char*>(text.c_str()); }

  [[noreturn]] void become(const Pipes& pipes) {
    // The command dies with its supervisor, even if that died before this call.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent_) ::_exit(127);
    ::setsid();
    const Failure failure{prepare(pipes), errno};
    static_cast<void>(!::write(pipes.failure, &failure, sizeof failure));
    ::_exit(127);
  }

  // Returns the step that failed.
  Step prepare(const Pipes& pipes) {
    if (!cgroup_.enter()) return Step::cgroup;
    ::umask(static_cast<mode_t>(spec_.umask));
    if (::chdir(spec_.directory.c_str()) != 0) return Step::directory;
    const int input = ::open(spec_.input.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (input < 0 || ::dup2(input, 0) < 0) return Step::input;
    if (::dup2(pipes.output, 1) < 0 || ::dup2(pipes.errors, 2) < 0) return Step::pipes;
    if (!limit()) return Step::limits;
    default_signals();
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    // The path is searched in the command's environment, not in the supervisor's.
    ::environ = environment_.data();
    ::execvp(arguments_[0], arguments_.data());
    return Step::execute;
  }

  // By the system call: the C library hides two signals of its own, which its posix_spawn has ignored.
  static void default_signals() {
    struct {
      void* handler;
      unsigned long flags;
      void* restorer;
      std::uint64_t mask;
    } const by_default{};
    for (int signal = 1; signal <= 64; ++signal) {
      ::syscall(SYS_rt_sigaction, signal, &by_default, nullptr, sizeof by_default.mask);
    }
  }

  // Where each session is scheduled as a group, niceness counts inside of it only; the group has its own.
  bool be_nice() const {
    if (::setpriority(PRIO_PROCESS, 0, static_cast<int>(spec_.nice)) != 0) return false;
    const Descriptor group(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
    if (group.is_open()) write_all(group.get(), std::to_string(spec_.nice));
    return true;
  }

  bool limit() const {
    const rlimit no_core{0, 0};
    rlimit files = open_files_;
    if (spec_.open_files > 0) files.rlim_cur = files.rlim_max = static_cast<rlim_t>(spec_.open_files);
    if (::setrlimit(RLIMIT_CORE, &no_core) != 0 || ::setrlimit(RLIMIT_NOFILE, &files) != 0) return false;
    if (spec_.memory_bytes > 0 && !cgroup_.limits_memory()) {
      // Data, not address space: runtimes reserve far more addresses than they ever use.
      const rlimit data{static_cast<rlim_t>(spec_.memory_bytes), static_cast<rlim_t>(spec_.memory_bytes)};
      if (::setrlimit(RLIMIT_DATA, &data) != 0) return false;
    }
    if (spec_.nice != 0 && !be_nice()) return false;
    if (spec_.cpus.empty()) return true;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (const int cpu : spec_.cpus) CPU_SET(cpu, &cpus);
    return ::sched_setaffinity(0, sizeof cpus, &cpus) == 0;
  }

  const Spec& spec_;
  const Cgroup& cgroup_;
  rlimit open_files_;
  pid_t parent_;
  std::vector<char*> arguments_;
  std::vector<char*> environment_;
};

}  // namespace argosy::supervisor
