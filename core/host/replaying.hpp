// Drives a runtime from the lines of a journal, as far as the runtime alone can.
//
// Due timers and ended tasks are read and carried out here; other inputs, and events of a Python kind, are
// returned to the caller. Before each line, the bytes written since the last one must be the next bytes of the
// journal: a comparison of memory, so decisions are never parsed. O(bytes) in total. The journal of a run in
// progress may end between an input and its consequences. Lines are those of line_buffer.hpp; numbers have at
// most 19 digits.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "host/line_buffer.hpp"
#include "host/runtime.hpp"

namespace argosy {

class JournalReader {
 public:
  enum class Step : std::uint8_t { event, line, differs, end };

  JournalReader(TaskRuntime& runtime, LineBuffer& written, std::string_view journal, bool is_finished)
      : runtime_(runtime), written_(written), journal_(journal), is_finished_(is_finished) {}

  // Continues until there is an event or a line for the caller, a difference, or nothing left.
  Step step(Due& out) {
    for (;;) {
      if (!compare()) return Step::differs;
      if (position_ == journal_.size()) return Step::end;
      std::string_view rest = journal_.substr(position_);
      std::int64_t at = 0;
      if (take(rest, "{\"what\":\"due\",\"at\":") && take_number(rest, at)) {
        std::uint32_t ticket = 0;
        if (!take(rest, ",\"ticket\":") || !take_number(rest, ticket)) return Step::line;
        ++inputs_;
        if (runtime_.due(ticket, at, out)) return Step::event;
        continue;
      }
      rest = journal_.substr(position_);
      if (!take(rest, "{\"what\":\"ended\",\"at\":") || !take_number(rest, at) || !take(rest, ",\"tasks\":[")) {
        ++inputs_;
        return Step::line;
      }
      tasks_.clear();
      do {
        std::int64_t task = 0;
        if (!take_number(rest, task)) return Step::line;
        tasks_.push_back(task);
      } while (take(rest, ","));
      ++inputs_;
      runtime_.end_tasks(tasks_, at);
    }
  }

  // The line at the current position, without its end.
  std::string_view line() const {
    const std::size_t end = std::min(journal_.find('\n', position_), journal_.size());
    return journal_.substr(position_, end - position_);
  }
  std::size_t position() const { return position_; }
  std::int64_t inputs() const { return inputs_; }

 private:
  // Whether the bytes written are the next bytes of the journal; only then are they dropped.
  bool compare() {
    const std::string& text = written_.text();
    if (text.empty()) return !is_asked_;
    const std::size_t count = std::min(text.size(), journal_.size() - position_);
    if (std::memcmp(text.data(), journal_.data() + position_, count) != 0) return false;
    if (count < text.size() && is_finished_) return false;
    position_ += count;
    written_.clear();
    is_asked_ = position_ < journal_.size();
    return true;
  }

  static bool take(std::string_view& rest, std::string_view expected) {
    if (!rest.starts_with(expected)) return false;
    rest.remove_prefix(expected.size());
    return true;
  }
  template <class Number>
  static bool take_number(std::string_view& rest, Number& number) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc{}) return false;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return true;
  }

  TaskRuntime& runtime_;
  LineBuffer& written_;
  std::string_view journal_;
  bool is_finished_;
  // Whether an input was passed on, which leaves at least one line.
  bool is_asked_ = false;
  std::size_t position_ = 0;
  std::int64_t inputs_ = 0;
  std::vector<std::int64_t> tasks_;
};

}  // namespace argosy
