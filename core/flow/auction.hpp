// Cost scaling as an auction (Bertsekas and Castanon 1989; Goldberg and Tarjan 1990), for networks from scratch.
//
// On the compact copy of market.hpp. A flow is e-optimal if every bidder's seat is at most e dearer than the best
// of its offers, an offer's value being its cost + the price of its place, and no way between places has a reduced
// cost below -e. Each phase divides e by a constant. A bidder without a seat takes the best place. A place with an
// excess passes it on by the cheapest of its ways out, which are halves to other places and bidders who have a seat
// here and could go elsewhere; if that is not cheap enough, its price rises until it is, by at least e.
//
// Ways out are kept in a heap of each place. Within a phase prices only rise, so that keys are lower bounds: only
// the key at the top is brought up to date, and then it is the exact least. So a relabelling costs a look at a few
// bidders instead of at everyone, and a place of large degree is no more expensive than a small one.
//
// Look-ahead: a place that could not pass an excess on is raised before it is given one. Price update: now and then a
// search backwards from all deficits raises every price as far as it can be raised (as approach.hpp does). It ends at
// a `scale`-th of a unit of cost, with a feasible flow and prices that leave little to repair.
//
// Complexity.  O(n^2 m log(n C)) in the worst case, in which it is push-relabel. Numbers: largest cost x places x
// scale must pass `Network::fits`, and the largest cost `Market::fits`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/market.hpp"
#include "flow/network.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

class Auction {
 public:
  static constexpr Cost scale = 16;

  static bool fits(const Network& net) { return net.fits(16 * scale) && Market::fits(net, scale); }

  explicit Auction(Network& network)
      : market_(network, scale), largest_epsilon_(scale * network.largest_cost()) {}

  // Whether it is faster than push-relabel by scanning: most arcs are those of bidders, and there are vertices with
  // arcs to hundreds of others, which would be scanned as a whole whenever their prices change.
  static bool suits(const Network& net) {
    std::int64_t bids = 0, total = 0, squares = 0;
    for (Vertex v = 0; v < net.vertex_bound(); ++v) {
      if (net.supply(v) == 1) {
        bids += net.degree(v);
        continue;
      }
      const std::int64_t size = net.out_end(v) - net.begin(v);
      total += size;
      if (size <= wide) continue;
      const std::int64_t arcs =
          std::count_if(net.begin(v), net.out_end(v), [](const Half& h) { return (h.id & 1) == 0; });
      squares += arcs * arcs;
    }
    return 2 * bids > net.arcs() && squares > wide * total;
  }

  // From a flow that is optimal but for its excesses. The first e is a small part of `spread`, the usual reduced cost
  // of halves out of excesses, and grows while it turns out to be too small: what is e-optimal is so for a larger e.
  Status run(Control& control, Cost spread) {
    const std::int32_t count = market_.places();
    heaps_.resize(count);
    is_built_.resize(count);
    is_kept_.resize(market_.way_count());
    is_queued_.assign(count, 0);
    epsilon_ = std::max<Cost>(1, scale * spread / first_part);
    grows_ = true;
    Status status = refine(control);
    grows_ = false;
    while (status == Status::optimal && epsilon_ > 1) {
      epsilon_ = std::max<Cost>(1, epsilon_ / alpha);
      fit_prices(control);
      repair(control);
      status = refine(control);
    }
    market_.write_back();
    return status;
  }

 private:
  static constexpr Cost alpha = 64;
  // What part of the usual reduced cost is tried first.
  static constexpr Cost first_part = 64;
  // Arcs out of a vertex, on average over these arcs, from which on heaps are faster than scans.
  static constexpr std::int64_t wide = 64;

  using Place = std::int32_t;
  using Bidder = std::int32_t;

  // A way out of a place: a bidder, or the complement of the number of a way.
  struct Exit {
    Cost key;
    std::int32_t who;
  };
  // The best offer of a bidder, and the value of the second best.
  struct Choice {
    Market::Offer offer{none, 0};
    Cost value = infinite, second = infinite;
  };

  Cost price(Place v) const { return market_.price(v); }

  // Among all offers but that of the place where it is.
  Choice choose(Bidder bidder, Place from) {
    Choice choice;
    const auto offers = market_.offers(bidder);
    scans_ += offers.last - offers.first;
    const Market::Offer* best = offers.first;
    for (const Market::Offer& offer : offers) {
      const Cost value = offer.place == from ? infinite : offer.cost + price(offer.place);
      const bool is_better = value < choice.value;
      choice.second = std::min(choice.second, is_better ? choice.value : value);
      best = is_better ? &offer : best;
      choice.value = is_better ? value : choice.value;
    }
    choice.offer = *best;
    return choice;
  }

  // One pass over all prices, after which few ways have a reduced cost below -e: each moves as little as the ways at
  // its place require. Where they contradict each other, those that lead to the place prevail.
  void fit_prices(Control& control) {
    for (Place v = 0; v < market_.places(); ++v) {
      Cost least = -infinite, most = infinite;
      for (const Market::Bid& bid : market_.bids(v)) {
        const Market::Seat& seat = market_.seat(bid.bidder);
        if (seat.place == v) {
          const Choice choice = choose(bid.bidder, v);
          if (choice.value != infinite) most = std::min(most, choice.value - seat.cost + epsilon_);
        } else if (seat.place != market_.nowhere()) {
          least = std::max(least, seat.cost + price(seat.place) - bid.cost - epsilon_);
        }
      }
      for (const Market::Way& way : market_.ways(v)) {
        if (way.residual > 0) most = std::min(most, price(way.to) + way.cost + epsilon_);
        if (market_.way(way.mate).residual > 0) least = std::max(least, price(way.to) + way.cost - epsilon_);
      }
      market_.set_price(v, std::max(least, std::min(most, price(v))));
    }
    control.spend(2 * market_.size());
  }

  // Sends flow over all ways with a reduced cost below -e.
  void repair(Control& control) {
    for (Bidder i = 0; i < market_.bidders(); ++i) {
      const Market::Seat seat = market_.seat(i);
      const Choice choice = choose(i, seat.place);
      if (choice.value >= seat.cost + price(seat.place) - epsilon_) continue;
      market_.sit(i, choice.offer);
      market_.add_excess(seat.place, -1);
      market_.add_excess(choice.offer.place, 1);
    }
    for (Place v = 0; v < market_.places(); ++v) {
      for (Market::Way& way : market_.ways(v)) {
        if (way.residual == 0 || way.cost + price(way.to) >= price(v) - epsilon_) continue;
        const std::int32_t amount = way.residual;
        way.residual = 0;
        market_.way(way.mate).residual += amount;
        market_.add_excess(v, -amount);
        market_.add_excess(way.to, amount);
      }
    }
    control.spend(market_.size());
  }

  Status refine(Control& control) {
    std::fill(is_built_.begin(), is_built_.end(), 0);
    queue_.clear();
    std::size_t head = 0;
    for (Place v = 0; v < market_.places(); ++v) {
      if (market_.excess(v) > 0) activate(v);
    }
    waiting_.clear();
    for (Bidder i = 0; i < market_.bidders(); ++i) {
      if (market_.seat(i).place == market_.nowhere()) waiting_.push_back(i);
    }
    if (waiting_.empty() && queue_.empty()) return Status::optimal;
    Status status = update_prices(control);
    if (status != Status::optimal) return status;
    std::int64_t work = 0;
    std::int64_t before = waiting_.size() + queue_.size();
    for (std::size_t next = 0;;) {
      scans_ = 0;
      if (next < waiting_.size()) {
        if (bid(waiting_[next])) ++next;
      } else if (head < queue_.size()) {
        const Place v = queue_[head++];
        is_queued_[v] = 0;
        if (!discharge(v)) return Status::infeasible;
      } else {
        return Status::optimal;
      }
      if (head > 1'000'000 && head > queue_.size() / 2) {
        queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head));
        head = 0;
      }
      work += scans_ + 1;
      if (!control.spend(scans_)) return Status::stopped;
      if (work <= pause() || (next == waiting_.size() && head == queue_.size())) continue;
      work = 0;
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head));
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(next));
      head = next = 0;
      const auto now = static_cast<std::int64_t>(waiting_.size() + queue_.size());
      status = update_prices(control);
      if (status != Status::optimal) return status;
      if (grows_ && 10 * now > 9 * before && epsilon_ < largest_epsilon_) epsilon_ *= 2;
      before = now;
    }
  }

  // Work after which prices are updated.
  std::int64_t pause() const { return 3 * market_.size(); }

  void activate(Place v) {
    if (is_queued_[v]) return;
    is_queued_[v] = 1;
    queue_.push_back(v);
  }

  // Finds a seat for a bidder. False if that takes so long that prices have to be updated first.
  bool bid(Bidder bidder) {
    while (scans_ <= pause()) {
      const Choice choice = choose(bidder, market_.nowhere());
      const Place to = choice.offer.place;
      if (market_.excess(to) >= 0 && !can_pass_on(to)) continue;
      take_seat(bidder, choice.offer, choice.second);
      return true;
    }
    return false;
  }

  void take_seat(Bidder bidder, const Market::Offer& offer, Cost second) {
    market_.sit(bidder, offer);
    market_.add_excess(offer.place, 1);
    if (market_.excess(offer.place) > 0) activate(offer.place);
    if (second != infinite && is_built_[offer.place]) insert(offer.place, {second - offer.cost, bidder});
  }

  // Sends the excess of v away; false if there is no way out.
  bool discharge(Place v) {
    while (market_.excess(v) > 0) {
      if (scans_ > pause()) {
        activate(v);
        return true;
      }
      if (!look(v)) return false;
      const Exit exit = heaps_[v].front();
      if (exit.key >= price(v)) market_.set_price(v, exit.key + epsilon_);
      if (exit.who >= 0) {
        const Choice choice = choice_;
        const Place to = choice.offer.place;
        if (market_.excess(to) >= 0 && !can_pass_on(to)) continue;
        drop_top(heaps_[v]);
        market_.add_excess(v, -1);
        take_seat(exit.who, choice.offer, std::min(choice.second, market_.seat(exit.who).cost + price(v)));
      } else {
        Market::Way& way = market_.way(~exit.who);
        const Place to = way.to;
        if (market_.excess(to) >= 0 && !can_pass_on(to)) continue;
        const auto amount = static_cast<std::int32_t>(std::min<Amount>(market_.excess(v), way.residual));
        way.residual -= amount;
        market_.way(way.mate).residual += amount;
        market_.add_excess(v, -amount);
        market_.add_excess(to, amount);
        if (market_.excess(to) > 0) activate(to);
        if (is_built_[to] && !is_kept_[way.mate]) {
          is_kept_[way.mate] = 1;
          insert(to, {price(v) - way.cost, ~way.mate});
        }
      }
    }
    return true;
  }

  // Whether a place has a way out at its price; if not, its price rises until it has, before it is given more.
  bool can_pass_on(Place v) {
    if (!look(v)) return true;
    const Cost key = heaps_[v].front().key;
    if (key < price(v)) return true;
    market_.set_price(v, key + epsilon_);
    return false;
  }

  // Brings the cheapest way out to the top of the heap; false if there is none. For a bidder, `choice_` is where to.
  bool look(Place v) {
    if (!is_built_[v]) build(v);
    std::vector<Exit>& heap = heaps_[v];
    while (!heap.empty()) {
      Exit& top = heap.front();
      ++scans_;
      Cost key;
      if (top.who >= 0) {
        const Market::Seat& seat = market_.seat(top.who);
        if (seat.place != v) {
          drop_top(heap);
          continue;
        }
        choice_ = choose(top.who, v);
        key = choice_.value - seat.cost;
      } else {
        const Market::Way& way = market_.way(~top.who);
        if (way.residual == 0) {
          is_kept_[~top.who] = 0;
          drop_top(heap);
          continue;
        }
        key = way.cost + price(way.to);
      }
      if (key <= top.key) return true;
      top.key = key;
      sink(heap, 0);
    }
    return false;
  }

  void build(Place v) {
    std::vector<Exit>& heap = heaps_[v];
    heap.clear();
    is_built_[v] = 1;
    const auto bids = market_.bids(v);
    scans_ += bids.last - bids.first;
    for (const Market::Bid& bid : bids) {
      if (market_.seat(bid.bidder).place != v) continue;
      const Choice choice = choose(bid.bidder, v);
      if (choice.value != infinite) heap.push_back({choice.value - bid.cost, bid.bidder});
    }
    std::int32_t number = market_.first_way(v);
    for (const Market::Way& way : market_.ways(v)) {
      is_kept_[number] = way.residual > 0;
      if (way.residual > 0) heap.push_back({way.cost + price(way.to), ~number});
      ++number;
      ++scans_;
    }
    for (std::size_t i = heap.size() / 2; i-- > 0;) sink(heap, i);
  }

  void insert(Place v, const Exit& exit) {
    std::vector<Exit>& heap = heaps_[v];
    std::size_t i = heap.size();
    heap.push_back(exit);
    while (i > 0 && heap[(i - 1) / 2].key > exit.key) {
      heap[i] = heap[(i - 1) / 2];
      i = (i - 1) / 2;
    }
    heap[i] = exit;
  }
  static void drop_top(std::vector<Exit>& heap) {
    heap.front() = heap.back();
    heap.pop_back();
    if (heap.size() > 1) sink(heap, 0);
  }
  static void sink(std::vector<Exit>& heap, std::size_t i) {
    const Exit exit = heap[i];
    for (std::size_t child; (child = 2 * i + 1) < heap.size(); i = child) {
      if (child + 1 < heap.size() && heap[child + 1].key < heap[child].key) ++child;
      if (heap[child].key >= exit.key) break;
      heap[i] = heap[child];
    }
    heap[i] = exit;
  }

  // Raises prices until every excess has a path of ways with a reduced cost of -e to a deficit, or says that one has
  // none. Levels are what prices will be: a way of cost c from i to j offers i the level of j + c + e.
  Status update_prices(Control& control) {
    const std::int32_t count = market_.places();
    levels_.assign(count + 1, infinite);
    is_reached_.assign(market_.bidders(), 0);
    front_.clear();
    distances_.clear();
    reached_ = 0;
    still_ = 0;
    for (const Bidder i : waiting_) still_ += market_.seat(i).place == market_.nowhere();
    for (Place v = 0; v < count; ++v) {
      still_ += market_.excess(v) > 0;
      if (market_.excess(v) >= 0) continue;
      levels_[v] = price(v);
      front_.push_back(v);
    }
    std::size_t next = 0;
    while (still_ > 0) {
      while (next == front_.size() && !distances_.empty()) {
        advance();
        next = 0;
      }
      if (next == front_.size()) return Status::infeasible;
      const Place v = front_[next++];
      if (market_.excess(v) > 0) --still_;
      const auto bids = market_.bids(v);
      const auto ways = market_.ways(v);
      if (!control.spend(bids.last - bids.first + (ways.last - ways.first))) return Status::stopped;
      const Cost here = levels_[v] + epsilon_;
      for (const Market::Bid& bid : bids) {
        const Market::Seat seat = market_.seat(bid.bidder);
        const Cost level = here + bid.cost - seat.cost;
        if (level < levels_[seat.place]) label(seat.place, level, bid.bidder);
      }
      for (const Market::Way& way : ways) {
        const Cost level = here - way.cost;
        if (level < levels_[way.to] && market_.way(way.mate).residual > 0) label(way.to, level, none);
      }
    }
    if (reached_ == 0) return Status::optimal;
    for (Place v = 0; v < count; ++v) market_.set_price(v, std::min(levels_[v], price(v) + reached_));
    return Status::optimal;
  }

  void advance() {
    reached_ = distances_.least();
    front_.clear();
    for (; distances_.has_level(); distances_.pop()) {
      const Place v = distances_.top().vertex;
      if (levels_[v] - price(v) == reached_) front_.push_back(v);
    }
  }

  void label(Place v, Cost level, Bidder by) {
    if (v == market_.nowhere()) {
      still_ -= !is_reached_[by];
      is_reached_[by] = 1;
      return;
    }
    levels_[v] = level;
    const Cost distance = level - price(v);
    if (distance == reached_) {
      front_.push_back(v);
    } else {
      distances_.push({distance, v, none});
    }
  }

  Market market_;
  Cost largest_epsilon_;
  Cost epsilon_ = 0;
  bool grows_ = false;
  std::int64_t scans_ = 0;
  std::vector<std::vector<Exit>> heaps_;
  std::vector<std::uint8_t> is_built_, is_queued_;
  std::vector<std::uint8_t> is_kept_;  // ways that are in the heap of their place
  std::vector<Place> queue_;
  std::vector<Bidder> waiting_;
  Choice choice_;
  std::vector<Cost> levels_;
  std::vector<std::uint8_t> is_reached_;
  std::vector<Place> front_;
  DistanceQueue distances_;
  Cost reached_ = 0;
  std::int64_t still_ = 0;  // excesses that the search has not reached
};

}  // namespace argosy::flow
