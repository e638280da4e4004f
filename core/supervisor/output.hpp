// A captured stream: the last bytes that a command wrote, in at most `segments` files of at most
// `segment_bytes` each.
//
// A segment is called STREAM.OFFSET, where OFFSET is the position of its first byte in everything the command
// wrote. So the names alone say what is kept and what was dropped, also while the command runs and after a
// crash, and a reader that follows the stream never loses its place.
//
// A segment ends where a line ends. If a line is unfinished when the segment is full, its beginning moves to
// the next one; only a line longer than kLongestCarry or than a segment is split. Joined in order, segments
// are the stream, byte for byte.
//
// The command never waits for a disk that refuses to take more: what cannot be written is counted as lost, and
// the next attempt begins a segment of its own a moment later.
//
// O(1) memory apart from the starts of the segments kept; each byte is copied once, unless it is carried.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "system.hpp"

namespace argosy::supervisor {

class CapturedStream {
 public:
  CapturedStream(int directory, std::string name, std::int64_t segment_bytes, std::int64_t segments)
      : directory_(directory), name_(std::move(name)), segment_bytes_(segment_bytes), segments_(segments) {}

  const std::string& name() const { return name_; }
  // Bytes that the command wrote.
  std::int64_t total() const { return total_; }
  // Position of the first byte that is kept.
  std::int64_t first() const { return starts_.empty() ? total_ : starts_.front(); }
  // Bytes that could not be written.
  std::int64_t lost() const { return lost_; }

  void take(std::string_view data) {
    while (!data.empty()) {
      if (!segment_.is_open() && !open_segment()) return lose(data.size());
      const std::int64_t filled = total_ - starts_.back();
      const auto room = static_cast<std::size_t>(segment_bytes_ - filled);
      if (data.size() <= room) {
        append(data);
        return;
      }
      std::size_t part = end_of_last_line(data.substr(0, room));
      const std::int64_t unfinished = total_ - line_start_;
      if (part == 0 && line_start_ > starts_.back() && unfinished <= kLongestCarry) {
        if (!carry(static_cast<std::size_t>(unfinished))) return lose(data.size());
        continue;
      }
      if (part == 0) part = room;
      if (!append(data.substr(0, part))) return lose(data.size() - part);
      data.remove_prefix(part);
      segment_.reset();
    }
  }

 private:
  static constexpr std::int64_t kLongestCarry = 1 << 16;
  static constexpr Micros kPauseAfterError = kSecond / 10;

  std::string segment_name(std::int64_t start) const { return name_ + "." + std::to_string(start); }

  // 0 if there is no newline. Much faster than `rfind`, byte by byte.
  static std::size_t end_of_last_line(std::string_view data) {
    const void* const newline = ::memrchr(data.data(), '\n', data.size());
    return newline == nullptr
               ? 0
               : static_cast<std::size_t>(static_cast<const char*>(newline) - data.data()) + 1;
  }

  bool open_segment() {
    if (retry_at_ > 0 && steady_clock() < retry_at_) return false;
    const std::string name = segment_name(total_);
    segment_ = Descriptor(
        ::openat(directory_, name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!segment_.is_open()) {
      retry_at_ = steady_clock() + kPauseAfterError;
      return false;
    }
    retry_at_ = 0;
    starts_.push_back(total_);
    return true;
  }

  // Only once something newer is there: a full disk must not cost what was kept.
  void drop_oldest() {
    while (static_cast<std::int64_t>(starts_.size()) > segments_) {
      ::unlinkat(directory_, segment_name(starts_.front()).c_str(), 0);
      starts_.pop_front();
    }
  }

  // Writes to the open segment, which has room. What does not fit on the disk is lost, and ends the segment.
  bool append(std::string_view data) {
    while (!data.empty()) {
      const ssize_t written = ::write(segment_.get(), data.data(), data.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        lose(data.size());
        return false;
      }
      const auto size = static_cast<std::size_t>(written);
      const std::size_t whole_lines = end_of_last_line(data.substr(0, size));
      if (whole_lines > 0) line_start_ = total_ + static_cast<std::int64_t>(whole_lines);
      total_ += written;
      data.remove_prefix(size);
      drop_oldest();
    }
    return true;
  }

  // Moves the unfinished line at the end of the segment to a new one.
  bool carry(std::size_t size) {
    std::string line(size, '\0');
    const off_t offset = static_cast<off_t>(line_start_ - starts_.back());
    if (::pread(segment_.get(), line.data(), size, offset) != static_cast<ssize_t>(size) ||
        ::ftruncate(segment_.get(), offset) != 0) {
      // It stays where it is.
      line_start_ = starts_.back();
      return true;
    }
    segment_.reset();
    total_ = line_start_;
    if (open_segment()) return append(line);
    lose(size);
    return false;
  }

  void lose(std::size_t size) {
    lost_ += static_cast<std::int64_t>(size);
    if (segment_.is_open() && !starts_.empty() && starts_.back() == total_) {
      ::unlinkat(directory_, segment_name(total_).c_str(), 0);
      starts_.pop_back();
    }
    total_ += static_cast<std::int64_t>(size);
    line_start_ = total_;
    if (segment_.is_open()) retry_at_ = steady_clock() + kPauseAfterError;
    segment_.reset();
  }

  int directory_;
  std::string name_;
  std::int64_t segment_bytes_;
  std::int64_t segments_;
  Descriptor segment_;
  // Starts of all segments kept. The last one is being written while `segment_` is open.
  std::deque<std::int64_t> starts_;
  std::int64_t total_ = 0;
  // Position after the last newline.
  std::int64_t line_start_ = 0;
  std::int64_t lost_ = 0;
  Micros retry_at_ = 0;
};

// The pipe through which a stream comes.
class OutputPipe {
 public:
  OutputPipe(int directory, std::string name, std::int64_t segment_bytes, std::int64_t segments)
      : stream_(directory, std::move(name), segment_bytes, segments) {}

  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    reader_ = Descriptor(ends[0]);
    writer_ = Descriptor(ends[1]);
    // Only this end: the command's must block.
    return ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  }

  int reader() const { return reader_.get(); }
  int writer() const { return writer_.get(); }
  void close_writer() { writer_.reset(); }
  const CapturedStream& stream() const { return stream_; }

  // Takes what is there, up to a buffer full. Closes the pipe at its end.
  void read_some(std::span<char> buffer) {
    const ssize_t got = ::read(reader_.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return reader_.reset();
    stream_.take({buffer.data(), static_cast<std::size_t>(got)});
    if (!is_wide_ && got >= kUsualCapacity) {
      // Much is written: fewer and larger reads. Refused to users who have too many pipes; no harm.
      ::fcntl(reader_.get(), F_SETPIPE_SZ, static_cast<int>(buffer.size()));
      is_wide_ = true;
    }
  }

  // Takes what is left when all writers are dead. A stranger who was handed the pipe cannot keep it going:
  // what the dead wrote is no more than the pipe can hold.
  void drain(std::span<char> buffer) {
    if (!reader_.is_open()) return;
    const std::int64_t end = stream_.total() + std::max(::fcntl(reader_.get(), F_GETPIPE_SZ), 0);
    std::int64_t before = -1;
    while (reader_.is_open() && stream_.total() < end && stream_.total() != before) {
      before = stream_.total();
      read_some(buffer);
    }
    reader_.reset();
  }

 private:
  static constexpr ssize_t kUsualCapacity = 1 << 16;

  CapturedStream stream_;
  Descriptor reader_;
  Descriptor writer_;
  bool is_wide_ = false;
};

}  // namespace argosy::supervisor
