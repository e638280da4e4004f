// The journal's lines: what a runtime took from its world, in order, one JSON object a line.
//
//   {"what":"due","at":N,"ticket":T}                         a timer came up (timers.hpp says which have tickets)
//   {"what":"ended","at":N,"tasks":[...]}                    tasks ended, in this order
//   {"what":"phase-ended","at":N,"job":J,"phase":K,"duration":D}
//   {"what":"report","at":N,"kind":K}                        a report was handed out: finished, lost, probes, phases
//
// Times are microseconds; task numbers are job x 2^32 + index. Integers are written by std::to_chars, so a
// line is the same on every machine and costs some tens of nanoseconds. Others may append lines of their own
// between these. The buffer grows until its text is taken.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace argosy {

class LineBuffer {
 public:
  void append(std::string_view text) { text_.append(text); }
  void append(std::int64_t number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    text_.append(digits, static_cast<std::size_t>(end - digits));
  }
  std::size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }
  // Keeps the memory: about as much will come again.
  void clear() { text_.clear(); }

 private:
  std::string text_;
};

// Writes the lines, if anybody wants them.
class InputRecorder {
 public:
  void record_into(LineBuffer* buffer) { buffer_ = buffer; }

  void due(std::int64_t at, std::uint32_t ticket) {
    if (buffer_ == nullptr) return;
    begin(at, "due", ",\"ticket\":");
    buffer_->append(std::int64_t{ticket});
    buffer_->append("}\n");
  }

  // One line for the ends between this and `close_ended`; none if there are none.
  void ended(std::int64_t at, std::int64_t task) {
    if (buffer_ == nullptr) return;
    if (std::exchange(is_open_, true)) {
      buffer_->append(",");
    } else {
      begin(at, "ended", ",\"tasks\":[");
    }
    buffer_->append(task);
  }
  void close_ended() {
    if (std::exchange(is_open_, false)) buffer_->append("]}\n");
  }

  void phase_ended(std::int64_t at, std::int64_t job, std::int64_t phase, std::int64_t duration) {
    if (buffer_ == nullptr) return;
    begin(at, "phase-ended", ",\"job\":");
    buffer_->append(job);
    buffer_->append(",\"phase\":");
    buffer_->append(phase);
    buffer_->append(",\"duration\":");
    buffer_->append(duration);
    buffer_->append("}\n");
  }

  void report(std::int64_t at, std::string_view kind) {
    if (buffer_ == nullptr) return;
    begin(at, "report", ",\"kind\":\"");
    buffer_->append(kind);
    buffer_->append("\"}\n");
  }

 private:
  void begin(std::int64_t at, std::string_view what, std::string_view first_field) {
    buffer_->append("{\"what\":\"");
    buffer_->append(what);
    buffer_->append("\",\"at\":");
    buffer_->append(at);
    buffer_->append(first_field);
  }

  LineBuffer* buffer_ = nullptr;
  bool is_open_ = false;
};

}  // namespace argosy
