// A cgroup (v2) for one try: made, limited, killed as a whole and removed by its supervisor, which itself stays
// outside, so that a limit never hits it. See Documentation/admin-guide/cgroup-v2.rst of the kernel.
//
// A controller is there if the parent's cgroup.subtree_control has enabled it; then its files are. A limit whose
// controller is missing is left to others (rlimits), and `started` says who enforces what.
//
//   memory.max           bytes; above it the kernel reclaims, then kills
//   memory.swap.max      0, so that the limit is one on memory and not on how much stays out of swap
//   memory.oom.group     1: all processes of the try die together, not one of them
//   memory.events        oom_kill counts processes killed for want of memory
//   cpu.max              "QUOTA PERIOD" in microseconds of CPU time a period; the quota is at least 1 ms
//   cpu.weight           1 to 10000; the share when the processor is contended
//   pids.max             processes and threads
//   cgroup.procs         a process that writes 0 moves itself in
//   cgroup.kill          1 kills everybody in it, including who is being forked (since Linux 5.14)
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "spec.hpp"
#include "system.hpp"

namespace argosy::supervisor {

class Cgroup {
 public:
  // Returns false with errno if the cgroup cannot be made or limited.
  bool make(const Spec& spec) {
    if (spec.cgroup.empty()) return true;
    if (::mkdir(spec.cgroup.c_str(), 0755) != 0) return false;
    path_ = spec.cgroup;
    directory_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory_.is_open()) return false;
    limits_memory_ = spec.memory_bytes > 0 && has("memory.max");
    limits_cpu_ = spec.cpu_milli > 0 && has("cpu.max");
    limits_processes_ = spec.processes > 0 && has("pids.max");
    if (limits_memory_) {
      if (!put("memory.max", std::to_string(spec.memory_bytes))) return false;
      // Without swap accounting there is no such file.
      if (has("memory.swap.max") && !put("memory.swap.max", "0")) return false;
      if (has("memory.oom.group") && !put("memory.oom.group", "1")) return false;
    }
    if (limits_cpu_) {
      const std::int64_t quota = std::max<std::int64_t>(spec.cpu_milli * (kPeriod / 1'000), kLeastQuota);
      if (!put("cpu.max", std::to_string(quota) + " " + std::to_string(kPeriod))) return false;
    }
    if (spec.cpu_weight > 0 && has("cpu.weight")) {
      if (!put("cpu.weight", std::to_string(spec.cpu_weight))) return false;
    }
    return !limits_processes_ || put("pids.max", std::to_string(spec.processes));
  }

  bool is_used() const { return directory_.is_open(); }
  bool limits_memory() const { return limits_memory_; }
  bool limits_cpu() const { return limits_cpu_; }
  bool limits_processes() const { return limits_processes_; }

  // Moves the calling process in.
  bool enter() const { return !is_used() || put("cgroup.procs", "0"); }

  // On a kernel without cgroup.kill this does nothing; all members are descendants, and are killed as such.
  void kill() const {
    if (is_used()) put("cgroup.kill", "1");
  }

  // Whether the kernel killed for want of memory: yes, no or unknown.
  const char* out_of_memory() const {
    std::string events;
    if (!is_used() || !read_file(directory_.get(), "memory.events", events)) return "unknown";
    const std::size_t found = events.find("oom_kill ");
    if (found == std::string::npos) return "unknown";
    return std::strtoll(events.c_str() + found + 9, nullptr, 10) > 0 ? "yes" : "no";
  }

  // Returns false while somebody is in it.
  bool remove() const { return !is_used() || ::rmdir(path_.c_str()) == 0 || errno != EBUSY; }

 private:
  static constexpr std::int64_t kPeriod = 100'000;
  static constexpr std::int64_t kLeastQuota = 1'000;

  bool has(const char* file) const { return ::faccessat(directory_.get(), file, W_OK, 0) == 0; }

  // One write each: the kernel takes a value whole or not at all.
  bool put(const char* file, const std::string& value) const {
    const Descriptor open(::openat(directory_.get(), file, O_WRONLY | O_CLOEXEC));
    return open.is_open() &&
           ::write(open.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
  }

  std::string path_;
  Descriptor directory_;
  bool limits_memory_ = false;
  bool limits_cpu_ = false;
  bool limits_processes_ = false;
};

}  // namespace argosy::supervisor
