// Records in the directory of a try: files of lines `key=value`, each written whole under another name and
// then put in place, so that a reader finds all of it or none.
//
//   supervisor  who supervises. Linked, not renamed: the first to put it there wins. Whoever finds no
//               supervisor may claim the directory under the same name, and then the command never runs.
//   started     the command runs.
//   end         how it ended. On disk before it is in place: it survives a crash of the computer as well.
//               Its room on the disk is reserved at the beginning, so that outputs that fill the disk do not
//               cost the end.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "system.hpp"

namespace argosy::supervisor {

class Record {
 public:
  Record() { text("format", "1"); }

  Record& text(std::string_view key, std::string_view value) {
    ((text_ += key) += '=') += value;
    text_ += '\n';
    return *this;
  }

  template <typename Number>
  Record& number(std::string_view key, Number value) {
    return text(key, std::to_string(value));
  }

  std::string_view lines() const { return text_; }

 private:
  std::string text_;
};

class RecordDirectory {
 public:
  explicit RecordDirectory(int directory) : directory_(directory) {}

  // Returns false if there is one already (EEXIST), or if it cannot be written.
  bool claim(const char* name, const Record& record) const {
    const std::string temporary = "." + std::string(name) + "." + std::to_string(::getpid());
    const Descriptor file(create(temporary.c_str()));
    if (!file.is_open()) return false;
    const bool is_placed = write_all(file.get(), record.lines()) &&
                           ::linkat(directory_, temporary.c_str(), directory_, name, 0) == 0;
    const int error = errno;
    ::unlinkat(directory_, temporary.c_str(), 0);
    errno = error;
    return is_placed;
  }

  bool write(const char* name, const Record& record) const {
    const std::string temporary = "." + std::string(name);
    const Descriptor file(create(temporary.c_str()));
    return file.is_open() && write_all(file.get(), record.lines()) &&
           ::renameat(directory_, temporary.c_str(), directory_, name) == 0;
  }

  // False if there is no room.
  bool reserve(const char* name) {
    reserved_ = Descriptor(create(("." + std::string(name)).c_str()));
    if (!reserved_.is_open()) return false;
    // Not every file system can. Then the end is written if there is room.
    return ::fallocate(reserved_.get(), 0, 0, kReserved) == 0 || (errno != ENOSPC && errno != EDQUOT);
  }

  // Writes what was reserved, durably. May be tried again.
  bool finish(const char* name, const Record& record) const {
    const int file = reserved_.get();
    return file >= 0 && ::lseek(file, 0, SEEK_SET) == 0 && write_all(file, record.lines()) &&
           ::ftruncate(file, static_cast<off_t>(record.lines().size())) == 0 && ::fsync(file) == 0 &&
           ::renameat(directory_, ("." + std::string(name)).c_str(), directory_, name) == 0 &&
           ::fsync(directory_) == 0;
  }

 private:
  static constexpr off_t kReserved = 4096;

  int create(const char* name) const {
    return ::openat(directory_, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  }

  int directory_;
  Descriptor reserved_;
};

}  // namespace argosy::supervisor
