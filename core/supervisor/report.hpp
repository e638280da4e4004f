// Tells whoever listens that the state of the try has changed: one datagram of lines `key=value` to a Unix
// socket. Best effort: nobody may be listening, and the files are the truth. Nothing here ever blocks, but
// `flush` at the end, which has a limit: the queue of such a socket is short (10 datagrams by default), and
// hundreds of tries may end at once.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "system.hpp"

namespace argosy::supervisor {

class Reporter {
 public:
  Reporter(std::string path, std::string name) : name_(std::move(name)), leaf_(std::move(path)) {
    if (leaf_.empty()) return;
    const std::size_t slash = leaf_.rfind('/');
    parent_ = slash == std::string::npos ? "." : leaf_.substr(0, slash + 1);
    if (slash != std::string::npos) leaf_.erase(0, slash + 1);
    socket_ = Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }

  void send(const char* state, int error = 0) {
    pending_ = "format=1\ntry=" + name_ + "\nstate=" + state + "\n";
    if (error != 0) pending_ += "errno=" + std::to_string(error) + "\n";
    resend();
  }

  // The socket to wait for until there is room for what is pending; otherwise -1.
  int waits_for() const { return pending_.empty() ? -1 : socket_.get(); }

  void resend() {
    if (pending_.empty()) return;
    if (connect() && ::send(socket_.get(), pending_.data(), pending_.size(), MSG_NOSIGNAL) < 0 &&
        errno == EAGAIN) {
      return;
    }
    pending_.clear();
  }

  void flush(Micros limit) {
    const Micros deadline = steady_clock() + limit;
    for (Micros left = limit; !pending_.empty() && left > 0; left = deadline - steady_clock()) {
      pollfd room{socket_.get(), POLLOUT, 0};
      ::poll(&room, 1, static_cast<int>(left / 1'000) + 1);
      resend();
    }
  }

 private:
  // Anew each time: another server may listen there by now. An address has room for 107 bytes, so the
  // directory is named by a descriptor.
  bool connect() const {
    const Descriptor directory(::open(parent_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory.is_open() || !socket_.is_open()) return false;
    const std::string path = "/proc/self/fd/" + std::to_string(directory.get()) + "/" + leaf_;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return false;
    path.copy(address.sun_path, path.size());
    return ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  std::string name_;
  std::string leaf_;
  std::string parent_;
  Descriptor socket_;
  std::string pending_;
};

}  // namespace argosy::supervisor
