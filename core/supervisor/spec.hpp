// What to run, as the launcher wrote it into the file `spec`: records `key=value`, each ended by a NUL, which
// neither arguments nor environment can contain. `arg`, `env` and `cpu` may be repeated and keep their order;
// every other key stands once. The first record is `format=1`. Anything unexpected is an error: launcher and
// supervisor are installed together, so a file that does not fit was not written for this program.
#pragma once

#include <charconv>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "system.hpp"

namespace argosy::supervisor {

struct Spec {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string directory = "/";
  std::string input = "/dev/null";
  // Where reports go: a Unix datagram socket. Empty: nowhere.
  std::string reports;
  // Whether the start is reported too, and not only the end.
  bool reports_start = true;
  // One file for both streams.
  bool is_merged = false;
  std::int64_t segment_bytes = 0;
  std::int64_t segments = 0;
  // 0: none.
  Micros timeout = 0;
  Micros grace = 0;
  // A cgroup v2 directory to make, use and remove. Empty: none.
  std::string cgroup;
  // Limits; 0: none.
  std::int64_t memory_bytes = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t cpu_weight = 0;
  std::int64_t processes = 0;
  std::int64_t open_files = 0;
  std::int64_t nice = 0;
  std::vector<int> cpus;
  std::int64_t umask = 022;
};

class SpecReader {
 public:
  // Returns whether `text` is a specification.
  static bool read(std::string_view text, Spec& spec) {
    SpecReader reader(spec);
    bool is_first = true;
    while (!text.empty()) {
      const std::size_t end = text.find('\0');
      if (end == std::string_view::npos) return false;
      const std::string_view record = text.substr(0, end);
      text.remove_prefix(end + 1);
      const std::size_t equals = record.find('=');
      if (equals == std::string_view::npos) return false;
      const std::string_view key = record.substr(0, equals);
      const std::string_view value = record.substr(equals + 1);
      if (is_first) {
        if (key != "format" || value != "1") return false;
        is_first = false;
      } else if (!reader.take(key, value)) {
        return false;
      }
    }
    return !is_first && !spec.arguments.empty() && !spec.name.empty() && spec.segment_bytes > 0 &&
           spec.segments > 0 && spec.timeout >= 0 && spec.grace >= 0;
  }

 private:
  explicit SpecReader(Spec& spec) : spec_(spec) {}

  bool take(std::string_view key, std::string_view value) {
    if (key == "arg") {
      spec_.arguments.emplace_back(value);
      return true;
    }
    if (key == "env") {
      spec_.environment.emplace_back(value);
      return true;
    }
    if (key == "cpu") {
      std::int64_t cpu = -1;
      if (!number(value, cpu) || cpu < 0) return false;
      spec_.cpus.push_back(static_cast<int>(cpu));
      return true;
    }
    if (!seen_.insert(key).second) return false;
    if (key == "name") return text(value, spec_.name);
    if (key == "directory") return text(value, spec_.directory);
    if (key == "input") return text(value, spec_.input);
    if (key == "reports") return text(value, spec_.reports);
    if (key == "cgroup") return text(value, spec_.cgroup);
    if (key == "segment_bytes") return number(value, spec_.segment_bytes);
    if (key == "segments") return number(value, spec_.segments);
    if (key == "timeout") return number(value, spec_.timeout);
    if (key == "grace") return number(value, spec_.grace);
    if (key == "memory_bytes") return number(value, spec_.memory_bytes);
    if (key == "cpu_milli") return number(value, spec_.cpu_milli);
    if (key == "cpu_weight") return number(value, spec_.cpu_weight);
    if (key == "processes") return number(value, spec_.processes);
    if (key == "open_files") return number(value, spec_.open_files);
    if (key == "nice") return number(value, spec_.nice);
    if (key == "umask") return number(value, spec_.umask);
    if (key == "merged") return truth(value, spec_.is_merged);
    if (key == "reports_start") return truth(value, spec_.reports_start);
    return false;
  }

  static bool truth(std::string_view value, bool& into) {
    into = value == "1";
    return value == "0" || value == "1";
  }

  static bool text(std::string_view value, std::string& into) {
    into = value;
    return true;
  }

  static bool number(std::string_view value, std::int64_t& into) {
    const char* const end = value.data() + value.size();
    const auto [stopped, error] = std::from_chars(value.data(), end, into);
    return error == std::errc() && stopped == end;
  }

  Spec& spec_;
  std::set<std::string_view> seen_;
};

}  // namespace argosy::supervisor
