// Everything that descends from this process, found and signalled without ever hitting a stranger.
//
// This process is a child subreaper: whoever loses its parent below it becomes its child, whatever it did about
// sessions and groups. So it has descendants exactly as long as it has children, and "no children" (ECHILD) is
// the proof that nothing is left.
//
// A pid read from /proc may belong to someone else by the time it is used. So each process is pinned by a
// pidfd first, then asked for its parent, and then the parent, pinned as well, must still live: only then was
// it really this parent's child. Whoever is missed (it just lost its parent, or was just born) is found by the
// next walk; walks are repeated until nobody is left.
//
// O(threads and processes of the tree) where the kernel lists children, otherwise O(all processes).
#pragma once

#include <dirent.h>
#include <poll.h>
#include <signal.h>

#include <string>
#include <vector>

#include "system.hpp"

namespace argosy::supervisor {

class ProcessTree {
 public:
  explicit ProcessTree(pid_t root) : root_(root) {}

  std::vector<pid_t> children() const { return children_of(root_); }

  // Living descendants.
  int count() const { return signal(0); }

  // Signals all living descendants, but for the process group `except` (0: none), and counts them. SIGKILL
  // comes after a SIGSTOP on the way down, so that parents neither fork nor vanish meanwhile; SIGTERM is
  // followed by SIGCONT, because who is stopped cannot end.
  int signal(int number, pid_t except = 0) const { return walk(root_, -1, number, except, 0); }

 private:
  // Deeper ones come closer to the root when those above them have been killed. Bounds open pidfds.
  static constexpr int kDeepest = 200;

  int walk(pid_t parent, int parent_pidfd, int number, pid_t except, int depth) const {
    if (depth >= kDeepest) return 0;
    int signalled = 0;
    for (const pid_t child : children_of(parent)) {
      const Descriptor pidfd(open_pidfd(child));
      ProcessStat stat;
      if (!pidfd.is_open() || !read_stat(child, stat) || stat.parent != parent) continue;
      if (parent_pidfd >= 0 && is_dead(parent_pidfd)) return signalled;
      const bool is_alive = stat.state != 'Z' && stat.state != 'X';
      const bool is_meant = is_alive && (except == 0 || stat.group != except);
      if (is_meant && number == SIGKILL) signal_pidfd(pidfd.get(), SIGSTOP);
      signalled += walk(child, pidfd.get(), number, except, depth + 1);
      if (!is_meant) continue;
      signalled += signal_pidfd(pidfd.get(), number);
      if (number == SIGTERM) signal_pidfd(pidfd.get(), SIGCONT);
    }
    return signalled;
  }

  static bool is_dead(int pidfd) {
    pollfd asked{pidfd, POLLIN, 0};
    return ::poll(&asked, 1, 0) != 0;
  }

  static std::vector<pid_t> children_of(pid_t parent) {
    std::vector<pid_t> found;
    const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
    bool is_listed = false;
    // A child belongs to the thread that made it.
    each_number_in(tasks.c_str(), [&](pid_t thread) {
      std::string text;
      const std::string path = tasks + "/" + std::to_string(thread) + "/children";
      if (!read_file(AT_FDCWD, path.c_str(), text)) return;
      is_listed = true;
      char* at = text.data();
      for (char* end = at;; at = end) {
        const long child = std::strtol(at, &end, 10);
        if (end == at) break;
        found.push_back(static_cast<pid_t>(child));
      }
    });
    if (is_listed || ::access("/proc/thread-self/children", F_OK) == 0) return found;
    each_number_in("/proc", [&](pid_t pid) {
      ProcessStat stat;
      if (read_stat(pid, stat) && stat.parent == parent) found.push_back(pid);
    });
    return found;
  }

  template <typename Action>
  static void each_number_in(const char* path, Action action) {
    DIR* const directory = ::opendir(path);
    if (directory == nullptr) return;
    while (const dirent* const entry = ::readdir(directory)) {
      const long number = std::strtol(entry->d_name, nullptr, 10);
      if (number > 0) action(static_cast<pid_t>(number));
    }
    ::closedir(directory);
  }

  pid_t root_;
};

}  // namespace argosy::supervisor
