// A compact copy of a network for solving from scratch: bidders, places, and ways between places.
//
// A bidder is a vertex with a supply of one that no arc leads to: in a scheduling network, a task. It either has a
// seat at the head of one of its arcs or none, so its flow is one number, and the residual arcs by which flow could
// enter and leave it need not be stored: who has a seat at j and an arc to k is a way from j to k, of the difference
// of both costs. All other vertices are places. Of a bidder's arcs to the same place only the cheapest is kept.
//
// Complexity.  O(n + m) to build and to write back; an arc of a bidder takes 20 bytes, a way between places 36.
// Numbers: costs are multiplied by `scale` and must then fit into 31 bits. Networks with convex arcs do not fit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "flow/large_array.hpp"
#include "flow/network.hpp"

namespace argosy::flow {

class Market {
 public:
  // An arc of a bidder, at the bidder and at its place.
  struct Offer {
    std::int32_t place, cost;
  };
  struct Bid {
    std::int32_t bidder, cost;
  };
  // Where a bidder is, and the cost of that; `nowhere` is one past the last place.
  struct Seat {
    std::int32_t place, cost;
  };
  // One direction of an arc between places.
  struct Way {
    std::int32_t to, cost, mate, residual;
  };
  template <typename T>
  struct Span {
    T *first, *last;
    T* begin() const { return first; }
    T* end() const { return last; }
  };

  static bool fits(const Network& net, Cost scale) {
    return !net.has_convex_arcs() && net.largest_cost() <= std::numeric_limits<std::int32_t>::max() / (2 * scale);
  }

  Market(Network& network, Cost scale) : net_(network), scale_(scale) {
    number_vertices();
    list_offers();
    list_bids();
    list_ways();
  }

  std::int32_t places() const { return static_cast<std::int32_t>(places_.size()); }
  std::int32_t bidders() const { return static_cast<std::int32_t>(bidders_.size()); }
  std::int32_t nowhere() const { return places(); }
  std::int64_t size() const {
    return static_cast<std::int64_t>(offers_.size() + ways_.size() / 2 + bidders_.size() + places_.size());
  }
  std::int32_t way_count() const { return static_cast<std::int32_t>(ways_.size()); }

  Span<const Offer> offers(std::int32_t bidder) const {
    return {offers_.data() + first_offer_[bidder], offers_.data() + first_offer_[bidder + 1]};
  }
  Span<const Bid> bids(std::int32_t place) const {
    return {bids_.data() + first_bid_[place], bids_.data() + first_bid_[place + 1]};
  }
  Span<Way> ways(std::int32_t place) {
    return {ways_.data() + first_way_[place], ways_.data() + first_way_[place + 1]};
  }
  std::int32_t first_way(std::int32_t place) const { return first_way_[place]; }
  Way& way(std::int32_t number) { return ways_[number]; }
  const Way& way(std::int32_t number) const { return ways_[number]; }
  const Seat& seat(std::int32_t bidder) const { return seats_[bidder]; }
  void sit(std::int32_t bidder, const Offer& at) { seats_[bidder] = {at.place, at.cost}; }

  // Prices times `scale`. A bidder has none: it is whatever its cheapest arc allows.
  Cost price(std::int32_t place) const { return prices_[place]; }
  void set_price(std::int32_t place, Cost price) { prices_[place] = price; }
  Amount excess(std::int32_t place) const { return excesses_[place]; }
  void add_excess(std::int32_t place, Amount change) { excesses_[place] += change; }

  // Gives the network the flow, and prices that are rounded down.
  void write_back() {
    for (const Arc a : dropped_) net_.set_flow(a, 0);
    for (std::int32_t i = 0; i < places(); ++i) net_.set_price(places_[i], floor(prices_[i]));
    for (std::int32_t i = 0; i < bidders(); ++i) write_back(i);
    for (const Origin& origin : origins_) {
      const std::int32_t flow = ways_[ways_[origin.way].mate].residual;
      if (net_.flow(origin.arc) != flow) net_.set_flow(origin.arc, flow);
    }
    net_.list_unsettled();
  }

 private:
  struct Origin {
    Arc arc;
    std::int32_t way;
  };

  bool is_bidder(Vertex v) const {
    if (net_.supply(v) != 1 || net_.excess(v) < 0 || net_.excess(v) > 1) return false;
    for (const Half* h = net_.begin(v); h != net_.in_end(v); ++h) {
      if ((h->id & 1) != 0 || h->other == v) return false;
    }
    return net_.begin(v) != net_.in_end(v);
  }

  void number_vertices() {
    const Vertex bound = net_.vertex_bound();
    numbers_.resize(bound);
    for (Vertex v = 0; v < bound; ++v) {
      if (!net_.has_vertex(v)) continue;
      std::vector<Vertex>& list = is_bidder(v) ? bidders_ : places_;
      numbers_[v] = static_cast<std::int32_t>(list.size());
      list.push_back(v);
    }
    prices_.resize(places_.size());
    excesses_.resize(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      prices_[i] = net_.price(places_[i]) * scale_;
      excesses_[i] = net_.excess(places_[i]);
    }
  }

  void list_offers() {
    std::size_t most = 0;
    for (const Vertex v : bidders_) most += net_.in_end(v) - net_.begin(v);
    offers_.reserve(most);
    arcs_.reserve(most);
    first_offer_.reserve(bidders_.size() + 1);
    seats_.assign(bidders_.size(), Seat{nowhere(), 0});
    // The last offer of this place, to find arcs that lead to the same one.
    std::vector<std::int32_t> last(places_.size(), none);
    for (const Vertex v : bidders_) {
      const auto first = static_cast<std::int32_t>(offers_.size());
      Seat& seat = seats_[first_offer_.size()];
      first_offer_.push_back(first);
      const Half* const flowing = net_.in_begin(v);
      for (const Half* h = net_.begin(v); h != net_.in_end(v); ++h) {
        const Offer offer{numbers_[h->other], static_cast<std::int32_t>(h->cost * scale_)};
        const bool is_seat = h >= flowing;
        std::int32_t& same = last[offer.place];
        if (same < first) {
          same = static_cast<std::int32_t>(offers_.size());
          offers_.push_back(offer);
          arcs_.push_back(h->id / 2);
        } else if (is_seat || offer.cost < offers_[same].cost) {
          if (seat.place == offer.place) dropped_.push_back(arcs_[same]);
          if (is_seat && offer.cost > offers_[same].cost) dropped_.push_back(h->id / 2);
          if (offer.cost <= offers_[same].cost) {
            offers_[same] = offer;
            arcs_[same] = h->id / 2;
          }
        }
        if (is_seat || seat.place == offer.place) seat = {offer.place, offers_[same].cost};
      }
    }
    first_offer_.push_back(static_cast<std::int32_t>(offers_.size()));
  }

  void list_bids() {
    first_bid_.assign(places_.size() + 2, 0);
    for (const Offer& offer : offers_) ++first_bid_[offer.place + 2];
    for (std::size_t i = 2; i < first_bid_.size(); ++i) first_bid_[i] += first_bid_[i - 1];
    bids_.resize(offers_.size());
    for (std::int32_t i = 0; i < bidders(); ++i) {
      for (const Offer& offer : offers(i)) bids_[first_bid_[offer.place + 1]++] = {i, offer.cost};
    }
  }

  // More than all supplies cannot flow over an arc, except in circles.
  void list_ways() {
    const Amount most = std::min<Amount>(capacity_limit, net_.gross_supply());
    std::vector<std::int32_t> next(places_.size() + 2, 0), tails;
    std::vector<const Half*> halves;
    for (std::int32_t i = 0; i < places(); ++i) {
      const Vertex v = places_[i];
      for (const Half* h = net_.begin(v); h != net_.in_end(v); ++h) {
        if ((h->id & 1) != 0 || h->other == v) continue;
        halves.push_back(h);
        tails.push_back(i);
        ++next[i + 2];
        ++next[numbers_[h->other] + 2];
      }
    }
    for (std::size_t i = 2; i < next.size(); ++i) next[i] += next[i - 1];
    ways_.resize(next.back());
    origins_.reserve(halves.size());
    for (std::size_t k = 0; k < halves.size(); ++k) {
      const Half& h = *halves[k];
      const std::int32_t i = tails[k], j = numbers_[h.other];
      const std::int32_t ahead = next[i + 1]++, back = next[j + 1]++;
      const auto cost = static_cast<std::int32_t>(h.cost * scale_);
      const auto residual = static_cast<std::int32_t>(std::min<Amount>(most, net_.residual(h.id)));
      ways_[ahead] = {j, cost, back, residual};
      ways_[back] = {i, -cost, ahead, net_.residual(h.id ^ 1)};
      origins_.push_back({h.id / 2, ahead});
    }
    first_way_.swap(next);
  }

  Cost floor(Cost price) const { return (price - ((price % scale_) + scale_) % scale_) / scale_; }

  void write_back(std::int32_t bidder) {
    const Vertex v = bidders_[bidder];
    Cost least = infinite;
    for (std::int32_t i = first_offer_[bidder]; i < first_offer_[bidder + 1]; ++i) {
      const Offer& offer = offers_[i];
      least = std::min(least, offer.cost / scale_ + net_.price(places_[offer.place]));
      const std::int32_t flow = offer.place == seats_[bidder].place;
      if (net_.residual(2 * arcs_[i] + 1) != flow) net_.set_flow(arcs_[i], flow);
    }
    net_.set_price(v, least);
  }

  Network& net_;
  Cost scale_;
  std::vector<std::int32_t> numbers_;  // of the network's vertices, among the bidders or among the places
  std::vector<Vertex> bidders_, places_;
  LargeArray<Cost> prices_;
  LargeArray<Amount> excesses_;
  LargeArray<Seat> seats_;
  std::vector<std::int32_t> first_offer_, first_bid_, first_way_;
  LargeArray<Offer> offers_;
  LargeArray<Bid> bids_;
  LargeArray<Way> ways_;
  std::vector<Arc> arcs_;        // of the offers
  std::vector<Origin> origins_;  // of the ways
  std::vector<Arc> dropped_;     // with flow that goes to a cheaper one
};

}  // namespace argosy::flow
