// Small wrappers over the kernel: descriptors that close themselves, whole writes, the two clocks, and what
// /proc says of a process. No exceptions: a call that can fail says so in its result, with errno set.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace argosy::supervisor {

using Micros = std::int64_t;
constexpr Micros kSecond = 1'000'000;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

inline Micros read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<Micros>(time.tv_sec) * kSecond + time.tv_nsec / 1'000;
}

// For people: it may jump.
inline Micros wall_clock() { return read_clock(CLOCK_REALTIME); }

// For durations and deadlines: it never jumps, and stands still while the computer sleeps.
inline Micros steady_clock() { return read_clock(CLOCK_MONOTONIC); }

// Writes everything, or returns false.
inline bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// The whole file, or false. Files of /proc have no size, so it is read until its end.
inline bool read_file(int directory, const char* path, std::string& text) {
  const Descriptor file(::openat(directory, path, O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return false;
  text.clear();
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) return true;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

struct ProcessStat {
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
  // Clock ticks since the computer started. With the pid and the boot id this names a process for good.
  std::uint64_t start_ticks = 0;
};

// /proc/PID/stat. The name of the program, in parentheses, may itself contain spaces and parentheses, so
// fields are counted from the last one.
inline bool read_stat(pid_t pid, ProcessStat& stat) {
  std::string text;
  if (!read_file(AT_FDCWD, ("/proc/" + std::to_string(pid) + "/stat").c_str(), text)) return false;
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 >= text.size()) return false;
  char* at = text.data() + end_of_name + 2;
  stat.state = *at++;
  stat.parent = static_cast<pid_t>(std::strtol(at, &at, 10));
  stat.group = static_cast<pid_t>(std::strtol(at, &at, 10));
  // The start is field 22; field 6 is next.
  for (int field = 6; field < 22; ++field) std::strtoll(at, &at, 10);
  stat.start_ticks = std::strtoull(at, &at, 10);
  return true;
}

inline int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

inline bool signal_pidfd(int pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0;
}

}  // namespace argosy::supervisor
