// The journal's lines: what a runtime took from its world, in order, one JSON object a line.
//
//   {"what":"due","at":N,"ticket":T,"planned":P}             a timer came up (timers.hpp says which have tickets); P
//                                                            is the time it was set for, if that is not N
//   {"what":"ended","at":N,"tasks":[...]}                    tasks ended, in this order
//   {"what":"started","at":N,"tasks":[...],"machines":[...],"after":D}  tasks left a queue and run from N + D on
//   {"what":"phase-ended","at":N,"job":J,"phase":K,"duration":D}
//   {"what":"report","at":N,"kind":K}                        a report was handed out: finished, lost, probes, phases, room
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
#include <vector>

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
  // Keeps the memory, because about as much will be needed again.
  void clear() { text_.clear(); }

 private:
  std::string text_;
};

// Writes the lines, if they are wanted.
class InputRecorder {
 public:
  void record_into(LineBuffer* buffer) { buffer_ = buffer; }
  // Whether so much is buffered that it should be written.
  bool is_full() const { return buffer_ != nullptr && buffer_->size() > full_size; }

  // A replay finds out here that a timer was set for another time than in the run.
  void due(std::int64_t at, std::uint32_t ticket, std::int64_t planned) {
    if (buffer_ == nullptr) return;
    begin(at, "due", ",\"ticket\":");
    buffer_->append(std::int64_t{ticket});
    if (planned != at) [[unlikely]] {
      buffer_->append(",\"planned\":");
      buffer_->append(planned);
    }
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
    if (!std::exchange(is_open_, false)) return;
    buffer_->append("]}\n");
    write_started();
  }

  // A queued task starts to run `after` from now. Starts made possible by an end follow that end's line.
  void started(std::int64_t at, std::int64_t task, std::int32_t machine, std::int64_t after) {
    if (buffer_ == nullptr) return;
    started_.push_back({at, task, after, machine});
    if (!is_open_) write_started();
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
  struct Start {
    std::int64_t at;
    std::int64_t task;
    std::int64_t after;
    std::int32_t machine;
  };

  // One line for each run of starts with equal times.
  void write_started() {
    std::size_t first = 0;
    while (first < started_.size()) {
      std::size_t end = first + 1;
      while (end < started_.size() && started_[end].at == started_[first].at &&
             started_[end].after == started_[first].after) {
        ++end;
      }
      begin(started_[first].at, "started", ",\"tasks\":[");
      for (std::size_t i = first; i < end; ++i) {
        if (i > first) buffer_->append(",");
        buffer_->append(started_[i].task);
      }
      buffer_->append("],\"machines\":[");
      for (std::size_t i = first; i < end; ++i) {
        if (i > first) buffer_->append(",");
        buffer_->append(std::int64_t{started_[i].machine});
      }
      buffer_->append("]");
      if (started_[first].after > 0) {
        buffer_->append(",\"after\":");
        buffer_->append(started_[first].after);
      }
      buffer_->append("}\n");
      first = end;
    }
    started_.clear();
  }

  void begin(std::int64_t at, std::string_view what, std::string_view first_field) {
    buffer_->append("{\"what\":\"");
    buffer_->append(what);
    buffer_->append("\",\"at\":");
    buffer_->append(at);
    buffer_->append(first_field);
  }

  static constexpr std::size_t full_size = std::size_t{1} << 16;

  LineBuffer* buffer_ = nullptr;
  bool is_open_ = false;
  // Not written yet.
  std::vector<Start> started_;
};

}  // namespace argosy
