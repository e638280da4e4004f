// One try of a task, from its specification to its end.
//
//   starting     between fork and exec
//   running      until the command ends, a stop is asked for, or time is out
//   terminating  SIGTERM has been sent to all; whoever is left when the grace is over is killed
//   killing      SIGKILL to all, again and again, until there is nobody
//
// A command that ends by itself goes from running to terminating too if it leaves processes behind. The try has
// ended when no descendant is left; only then is the end written.
//
// The command stays a zombie until the others are gone: its pid, which is also the id of its process group and
// session, cannot be given to anybody else before, so the whole group can be signalled at once.
//
// Signals: SIGTERM stops with the grace of the specification, SIGUSR1 kills without. Both may come at any time
// after the file `supervisor` is there, also before the command starts; then it never does.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "cgroup.hpp"
#include "command.hpp"
#include "output.hpp"
#include "records.hpp"
#include "report.hpp"
#include "spec.hpp"
#include "system.hpp"
#include "tree.hpp"

namespace argosy::supervisor {

class Supervision {
 public:
  Supervision(int directory, RecordDirectory& records, const Spec& spec, Descriptor signals)
      : records_(records),
        spec_(spec),
        signals_(std::move(signals)),
        reporter_(spec.reports, spec.name),
        tree_(::getpid()) {
    for (const char* name : {"stdout", "stderr"}) {
      outputs_.emplace_back(directory, spec.is_merged ? "output" : name, spec.segment_bytes, spec.segments);
      if (spec.is_merged) break;
    }
  }

  // Runs the try. Returns whether its end is recorded.
  bool run(Failure failure) {
    if (failure.step == Step::none) failure = start();
    failure_ = failure;
    while (command_ > 0 && !is_over_) wait();
    return finish();
  }

 private:
  enum class Phase { starting, running, terminating, killing };
  enum class Cause { none, stop, kill, timeout };
  static constexpr const char* kCauses[] = {"none", "stop", "kill", "timeout"};
  static constexpr std::size_t kBufferBytes = 1 << 18;
  static constexpr Micros kFirstPause = 1'000;
  static constexpr Micros kLongestPause = kSecond / 4;
  static constexpr int kEndRetries = 60;
  static constexpr Micros kNever = INT64_MAX;
  // Untouched pages of it cost nothing.
  static inline char buffer_[kBufferBytes];

  Failure start() {
    rlimit open_files{};
    ::getrlimit(RLIMIT_NOFILE, &open_files);
    const rlimit more{open_files.rlim_max, open_files.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &more);
    take_signals();
    if (cause_ != Cause::none) return {};
    if (!cgroup_.make(spec_)) return {Step::cgroup, errno};
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {Step::pipes, errno};
    exec_result_ = Descriptor(ends[0]);
    Descriptor exec_writer(ends[1]);
    for (OutputPipe& output : outputs_) {
      if (!output.open()) return {Step::pipes, errno};
    }
    Command command(spec_, cgroup_, open_files);
    began_ = steady_clock();
    command_ = command.start({outputs_.front().writer(), outputs_.back().writer(), ends[1]});
    if (command_ < 0) return {Step::fork, errno};
    for (OutputPipe& output : outputs_) output.close_writer();
    if (spec_.timeout > 0) timeout_at_ = began_ + spec_.timeout;
    return {};
  }

  void wait() {
    std::vector<pollfd> watched{{signals_.get(), POLLIN, 0},
                                {exec_result_.get(), POLLIN, 0},
                                {reporter_.waits_for(), POLLOUT, 0}};
    // A negative descriptor is skipped.
    for (const OutputPipe& output : outputs_) watched.push_back({output.reader(), POLLIN, 0});
    const Micros due = std::min(phase_ <= Phase::running ? timeout_at_ : kNever, next_walk_);
    int timeout = -1;
    if (due != kNever) {
      const Micros left = std::max<Micros>(due - steady_clock(), 0);
      timeout = static_cast<int>(std::min<Micros>((left + 999) / 1'000, 1'000'000));
    }
    if (::poll(watched.data(), watched.size(), timeout) < 0 && errno != EINTR) return;
    // The result of exec comes before the command's death.
    if (watched[1].revents != 0) take_exec_result();
    if (watched[0].revents != 0) take_signals();
    if (watched[2].revents != 0) reporter_.resend();
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (watched[3 + i].revents != 0) outputs_[i].read_some(buffer_);
    }
    const Micros now = steady_clock();
    if (phase_ <= Phase::running && now >= timeout_at_) ask_for_end(Cause::timeout, Phase::terminating);
    if (phase_ >= Phase::terminating && now >= next_walk_ && !is_over_) kill_all();
  }

  void take_exec_result() {
    const bool has_failed = ::read(exec_result_.get(), &failure_, sizeof failure_) == sizeof failure_;
    exec_result_.reset();
    if (has_failed) return;
    if (phase_ == Phase::starting) phase_ = Phase::running;
    is_started_ = true;
    started_at_ = wall_clock();
    ProcessStat stat;
    read_stat(command_, stat);
    Record record;
    record.number("pid", command_)
        .number("start_ticks", stat.start_ticks)
        .number("at", started_at_)
        .text("memory_by", cgroup_.limits_memory() ? "cgroup" : spec_.memory_bytes > 0 ? "rlimit" : "none")
        .text("cpu_by", cgroup_.limits_cpu() ? "cgroup" : "none")
        .text("processes_by", cgroup_.limits_processes() ? "cgroup" : "none");
    records_.write("started", record);
    if (spec_.reports_start) reporter_.send("started");
  }

  void take_signals() {
    signalfd_siginfo signal{};
    bool has_child = false;
    while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
      if (signal.ssi_signo == SIGTERM) ask_for_end(Cause::stop, Phase::terminating);
      if (signal.ssi_signo == SIGUSR1) ask_for_end(Cause::kill, Phase::killing);
      has_child = has_child || signal.ssi_signo == SIGCHLD;
    }
    if (has_child && command_ > 0) reap();
  }

  void ask_for_end(Cause cause, Phase phase) {
    // Once the command has ended, it was nobody's doing.
    if (cause_ == Cause::none && !has_ended_) cause_ = cause;
    if (phase_ >= phase) return;
    if (command_ <= 0) {
      phase_ = phase;
      return;
    }
    if (phase == Phase::terminating) terminate_all();
    if (phase == Phase::killing) kill_all();
  }

  void terminate_all() {
    phase_ = Phase::terminating;
    next_walk_ = steady_clock() + spec_.grace;
    // The group at once, so that nobody is born in between; then those who left it. Nobody gets it twice.
    // Before exec there may be no group yet.
    const bool has_group = is_started_ && !is_reaped_;
    if (has_group) {
      ::kill(-command_, SIGTERM);
      ::kill(-command_, SIGCONT);
    }
    tree_.signal(SIGTERM, has_group ? command_ : 0);
  }

  void kill_all() {
    if (phase_ != Phase::killing) pause_ = kFirstPause;
    phase_ = Phase::killing;
    cgroup_.kill();
    if (!is_reaped_) ::kill(-command_, SIGKILL);
    tree_.signal(SIGKILL);
    next_walk_ = steady_clock() + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
  }

  void reap() {
    for (;;) {
      siginfo_t child{};
      const int flags = WEXITED | WNOHANG | WNOWAIT;
      if (has_ended_ && !is_reaped_) {
        reap_others();
        if (!is_reaped_) break;
        continue;
      }
      if (::waitid(P_ALL, 0, &child, flags) != 0) {
        is_over_ = errno == ECHILD;
        break;
      }
      if (child.si_pid == 0) break;
      if (child.si_pid != command_ || is_reaped_) {
        ::waitpid(child.si_pid, nullptr, WNOHANG);
        continue;
      }
      has_ended_ = true;
      if (exec_result_.is_open()) take_exec_result();
      ran_ = steady_clock() - began_;
      ended_by_signal_ = child.si_code != CLD_EXITED;
      status_ = child.si_status;
    }
    if (is_over_ || !has_ended_) return;
    if (phase_ <= Phase::running) {
      left_behind_ = tree_.count();
      terminate_all();
    } else if (phase_ == Phase::killing) {
      // Whoever was orphaned just now is a child now.
      pause_ = kFirstPause;
      next_walk_ = std::min(next_walk_, steady_clock() + pause_);
    }
  }

  // Reaps all children but the command, which has ended; and that too once it is the last.
  void reap_others() {
    for (const pid_t child : tree_.children()) {
      if (child != command_) ::waitpid(child, nullptr, WNOHANG);
    }
    if (count_others() == 0) {
      ::waitpid(command_, nullptr, 0);
      is_reaped_ = true;
    }
  }

  std::int64_t count_others() const {
    const std::vector<pid_t> children = tree_.children();
    return static_cast<std::int64_t>(children.size()) - std::ranges::count(children, command_);
  }

  bool finish() {
    for (OutputPipe& output : outputs_) output.drain(buffer_);
    out_of_memory_ = cgroup_.out_of_memory();
    const Micros patience = steady_clock() + 10 * kSecond;
    while (!cgroup_.remove() && steady_clock() < patience) {
      cgroup_.kill();
      ::poll(nullptr, 0, 1);
    }
    const bool is_written = write_end();
    if (is_written) {
      reporter_.send("ended");
      reporter_.flush(kSecond);
    }
    return is_written;
  }

  bool write_end() const {
    rusage used{};
    ::getrusage(RUSAGE_CHILDREN, &used);
    const auto micros = [](const timeval& time) { return time.tv_sec * kSecond + time.tv_usec; };
    const char* const outcome = !is_started_ ? "not-started" : ended_by_signal_ ? "signalled" : "exited";
    Record record;
    record.text("outcome", outcome)
        .number("code", is_started_ && !ended_by_signal_ ? status_ : 0)
        .number("signal", is_started_ && ended_by_signal_ ? status_ : 0)
        .text("cause", kCauses[static_cast<int>(cause_)])
        .text("failure", name_of(failure_))
        .number("errno", failure_.error)
        .text("out_of_memory", out_of_memory_)
        .number("started_at", started_at_)
        .number("ended_at", wall_clock())
        .number("ran", is_started_ ? ran_ : 0)
        .number("user_cpu", is_started_ ? micros(used.ru_utime) : 0)
        .number("system_cpu", is_started_ ? micros(used.ru_stime) : 0)
        .number("max_rss", is_started_ ? used.ru_maxrss * 1'024 : 0)
        .number("left_behind", left_behind_);
    for (const OutputPipe& output : outputs_) {
      const CapturedStream& stream = output.stream();
      record.number(stream.name() + "_bytes", stream.total())
          .number(stream.name() + "_first", stream.first())
          .number(stream.name() + "_lost", stream.lost());
    }
    for (int attempt = 0; attempt < kEndRetries; ++attempt) {
      if (records_.finish("end", record)) return true;
      // The directory was removed: nobody wants to know.
      if (errno == ENOENT) return false;
      ::poll(nullptr, 0, 1'000);
    }
    return false;
  }

  RecordDirectory& records_;
  const Spec& spec_;
  Descriptor signals_;
  Reporter reporter_;
  ProcessTree tree_;
  Cgroup cgroup_;
  std::vector<OutputPipe> outputs_;
  Descriptor exec_result_;
  Failure failure_;
  Phase phase_ = Phase::starting;
  pid_t command_ = 0;
  // What ended the command, if not itself.
  Cause cause_ = Cause::none;
  const char* out_of_memory_ = "unknown";
  bool is_started_ = false;
  // The command is dead; it is not a zombie any more; nobody is left.
  bool has_ended_ = false;
  bool is_reaped_ = false;
  bool is_over_ = false;
  bool ended_by_signal_ = false;
  int status_ = 0;
  std::int64_t left_behind_ = 0;
  Micros began_ = 0;
  Micros ran_ = 0;
  Micros started_at_ = 0;
  Micros timeout_at_ = kNever;
  Micros next_walk_ = kNever;
  Micros pause_ = kFirstPause;
};

}  // namespace argosy::supervisor
