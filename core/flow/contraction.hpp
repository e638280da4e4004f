// A smaller network that stands for a large one: sources that are alike are one, and sources with two arcs are none.
//
// A source is a vertex with a supply that no arc leads to, that has not sent more than it has, and whose arcs can each
// carry all of it; in a scheduling network, most tasks.
//
//   Alike.  Sources with arcs to the same heads at the same costs become one, with the sum of their supplies. Its
//   flow can be divided among them, because none of their own arcs could have been full.
//   Forks.  A source with two arcs, to x at cost c and to y at cost d, may as well send all it has to x, and some of
//   it on to y: its supply s becomes a supply of x, and the source an arc from x to y of capacity s and cost d - c.
//   A source with one arc is only a supply.
//
// Both are exact. The flow and prices that the large network has are the small one's, and no residual half gets a
// negative reduced cost: a source may have the highest price that its arcs allow, because no arc leads to it, so what
// it sends and what it has not sent yet can go wherever cost + price is least. The optimum of the small network is the
// large one's by the same argument.
//
// Complexity.  O(m) to look, to build and to write back, apart from sorting the arcs of sources that are alike.
// Networks with convex arcs are left as they are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "flow/large_array.hpp"
#include "flow/network.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

class Contraction {
 public:
  explicit Contraction(Network& whole) : whole_(whole) {}

  // Whether the network would be much smaller. Looks at a few sources first.
  bool is_worth_it(Control& control) {
    if (whole_.has_convex_arcs()) return false;
    const std::int64_t looked = list_sources(sample, control);
    if (sample_part * saved() <= looked) return false;
    list_sources(whole_.vertex_bound(), control);
    order_sources();
    return part * saved() > whole_.arcs() + whole_.vertices();
  }

  // With the flow and prices of the large network, and nothing to mend.
  Network build() {
    number_vertices();
    add_plain_arcs();
    for (Source& source : sources_) add_source(source);
    return Network(std::move(supplies_), rows_, std::move(prices_));
  }

  // Gives the large network the flow and prices of the small one.
  void write_back(const Network& small) {
    for (std::size_t i = 0; i < origins_.size(); ++i) {
      if (origins_[i] != none) set_flow(origins_[i], small.flow(static_cast<Arc>(i)));
    }
    for (Vertex v = 0; v < whole_.vertex_bound(); ++v) {
      if (numbers_[v] != none) whole_.set_price(v, small.price(numbers_[v]));
    }
    for (const Source& source : sources_) divide(source, small);
    whole_.list_unsettled();
  }

 private:
  // Building and writing back take about as long as two phases.
  static constexpr std::int64_t part = 4;
  // Sources that show whether many are alike, of which a sample contains fewer.
  static constexpr Vertex sample = 256;
  static constexpr std::int64_t sample_part = 16;

  // Alike members from `first` to `last` of the list, and what stands for them in the small network.
  struct Source {
    std::int32_t first, last;
    std::int32_t ways;  // arcs of one member
    Amount supply;
    Arc arc = none;  // the first of its arcs, or that of a fork

    std::int32_t count() const { return last - first; }
    bool is_fork() const { return ways <= 2; }
  };
  // What alike sources have in common, and one of them.
  struct Key {
    std::uint64_t hash;
    Vertex vertex;
  };

  static std::uint64_t hash(const Half& h) {
    std::uint64_t bits = (static_cast<std::uint64_t>(h.other) << 32) ^ static_cast<std::uint64_t>(h.cost);
    bits *= 0x9E3779B97F4A7C15u;
    bits ^= bits >> 29;
    bits *= 0xBF58476D1CE4E5B9u;
    return bits ^ (bits >> 32);
  }

  // Lists at most so many sources; returns how many arcs and vertices they are.
  std::int64_t list_sources(Vertex most, Control& control) {
    keys_.clear();
    sources_.clear();
    std::int64_t looked = 0;
    for (Vertex v = 0; v < whole_.vertex_bound() && static_cast<Vertex>(keys_.size()) < most; ++v) {
      const Amount supply = whole_.supply(v);
      if (supply <= 0 || supply > capacity_limit || whole_.excess(v) < 0 || whole_.degree(v) == 0) continue;
      std::uint64_t sum = 0;
      bool is_source = true;
      for (const Half* h = whole_.begin(v); h != whole_.end(v) && is_source; ++h) {
        sum += hash(*h);
        is_source = (h->id & 1) == 0 && h->other != v && whole_.capacity(h->id / 2) >= supply;
      }
      control.spend(whole_.degree(v));
      looked += whole_.degree(v) + 1;
      if (is_source) keys_.push_back({sum, v});
    }
    group_keys();
    for (std::size_t i = 0; i < keys_.size();) i = add_alike(i);
    return looked;
  }

  // Brings equal keys together, in an order that depends on nothing but the keys and their order.
  void group_keys() {
    std::vector<std::uint32_t> next(std::bit_ceil(keys_.size() + 1) + 1, 0);
    const std::uint64_t mask = next.size() - 2;
    for (const Key& key : keys_) ++next[(key.hash & mask) + 1];
    for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
    std::vector<Key> placed(keys_.size());
    for (const Key& key : keys_) placed[next[key.hash & mask]++] = key;
    const auto is_before = [](const Key& a, const Key& b) {
      return std::tie(a.hash, a.vertex) < std::tie(b.hash, b.vertex);
    };
    for (std::size_t i = 0, end; i < placed.size(); i = end) {
      end = next[placed[i].hash & mask];
      if (end - i > 1) std::sort(placed.data() + i, placed.data() + end, is_before);
    }
    keys_.swap(placed);
  }

  // A source of all that are like the one at `from`; returns where the next begins.
  std::size_t add_alike(std::size_t from) {
    const Vertex model = keys_[from].vertex;
    const auto begin = static_cast<std::int32_t>(from);
    Source source{begin, begin + 1, whole_.degree(model), whole_.supply(model)};
    std::size_t next = from + 1;
    for (; next < keys_.size() && keys_[next].hash == keys_[from].hash; ++next) {
      const Vertex v = keys_[next].vertex;
      if (whole_.degree(v) != source.ways || source.supply + whole_.supply(v) > capacity_limit) break;
      if (next == from + 1) {
        list_arcs(model, true);
        model_.swap(arcs_);
      }
      list_arcs(v, true);
      const auto is_same = [](const Half& a, const Half& b) { return a.other == b.other && a.cost == b.cost; };
      if (!std::equal(arcs_.begin(), arcs_.end(), model_.begin(), is_same)) break;
      source.supply += whole_.supply(v);
      ++source.last;
    }
    sources_.push_back(source);
    return next;
  }

  // In the order of their first members, which is that of memory.
  void order_sources() {
    std::vector<std::int32_t> places(whole_.vertex_bound(), none);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      places[keys_[sources_[i].first].vertex] = static_cast<std::int32_t>(i);
    }
    std::vector<Source> ordered;
    ordered.reserve(sources_.size());
    for (const std::int32_t place : places) {
      if (place != none) ordered.push_back(sources_[place]);
    }
    sources_.swap(ordered);
  }

  // The arcs of a source; in the same order for all that are alike, if sorted.
  void list_arcs(Vertex v, bool is_sorted) {
    arcs_.assign(whole_.begin(v), whole_.end(v));
    if (!is_sorted) return;
    std::sort(arcs_.begin(), arcs_.end(), [](const Half& a, const Half& b) {
      return std::tie(a.other, a.cost, a.id) < std::tie(b.other, b.cost, b.id);
    });
  }

  // Arcs and vertices that the small network would not have.
  std::int64_t saved() const {
    std::int64_t sum = 0;
    for (const Source& source : sources_) {
      const std::int64_t before = std::int64_t{source.count()} * (source.ways + 1);
      sum += before - (source.is_fork() ? source.ways - 1 : source.ways + 1);
    }
    return sum;
  }

  void number_vertices() {
    numbers_.assign(whole_.vertex_bound(), none);
    is_source_.assign(whole_.vertex_bound(), 0);
    for (const Key& key : keys_) is_source_[key.vertex] = 1;
    for (Vertex v = 0; v < whole_.vertex_bound(); ++v) {
      if (whole_.has_vertex(v) && !is_source_[v]) numbers_[v] = add_vertex(whole_.supply(v), whole_.price(v));
    }
  }
  Vertex add_vertex(Amount supply, Cost price) {
    supplies_.push_back(supply);
    prices_.push_back(price);
    return static_cast<Vertex>(supplies_.size() - 1);
  }
  void add_arc(Vertex tail, Vertex head, Amount capacity, Amount flow, Cost cost, Arc origin) {
    rows_.push_back({tail, head, static_cast<std::int32_t>(capacity), static_cast<std::int32_t>(flow), cost});
    origins_.push_back(origin);
  }

  void add_plain_arcs() {
    for (Vertex v = 0; v < whole_.vertex_bound(); ++v) {
      if (numbers_[v] == none) continue;
      for (const Half* h = whole_.begin(v); h != whole_.end(v); ++h) {
        if ((h->id & 1) != 0) continue;
        const Arc a = h->id / 2;
        add_arc(numbers_[v], numbers_[h->other], whole_.capacity(a), whole_.flow(a), h->cost, a);
      }
    }
  }

  void add_source(Source& source) {
    flows_.assign(source.ways, 0);
    for (std::int32_t member = source.first; member < source.last; ++member) {
      list_arcs(keys_[member].vertex, source.count() > 1);
      for (std::int32_t way = 0; way < source.ways; ++way) flows_[way] += whole_.flow(arcs_[way].id / 2);
    }
    source.arc = static_cast<Arc>(rows_.size());
    if (source.is_fork()) {
      add_fork(source);
      return;
    }
    Cost least = infinite;
    for (const Half& h : arcs_) least = std::min(least, h.cost + whole_.price(h.other));
    const Vertex made = add_vertex(source.supply, least);
    for (std::int32_t way = 0; way < source.ways; ++way) {
      add_arc(made, numbers_[arcs_[way].other], source.supply, flows_[way], arcs_[way].cost, none);
    }
  }

  void add_fork(const Source& source) {
    const Half &first = arcs_.front(), &last = arcs_.back();
    supplies_[numbers_[first.other]] += source.supply;
    if (source.ways == 1) return;
    // What was not sent yet takes the cheaper way.
    const bool takes_last = last.cost + whole_.price(last.other) < first.cost + whole_.price(first.other);
    const Amount flow = takes_last ? source.supply - flows_[0] : flows_[1];
    add_arc(numbers_[first.other], numbers_[last.other], source.supply, flow, last.cost - first.cost, none);
  }

  void set_flow(Arc a, Amount flow) {
    if (whole_.flow(a) != flow) whole_.set_flow(a, static_cast<std::int32_t>(flow));
  }

  // Divides what a source sends among its members, who stay where they are if they can.
  void divide(const Source& source, const Network& small) {
    flows_.assign(source.ways, source.supply);
    if (source.ways == 2) {
      flows_ = {source.supply - small.flow(source.arc), small.flow(source.arc)};
    } else if (!source.is_fork()) {
      for (std::int32_t way = 0; way < source.ways; ++way) flows_[way] = small.flow(source.arc + way);
    }
    for (const bool stays : {true, false}) {
      if (!stays && source.count() == 1) break;
      for (std::int32_t member = source.first; member < source.last; ++member) {
        give(keys_[member].vertex, source.count() > 1, stays);
      }
    }
  }

  // Gives a member what it has of the flow, or as much as it can take; and its price.
  void give(Vertex v, bool is_sorted, bool stays) {
    list_arcs(v, is_sorted);
    const bool is_alone = !is_sorted;
    Amount left = whole_.supply(v);
    if (!stays) {
      for (const Half& h : arcs_) left -= whole_.flow(h.id / 2);
    }
    Cost least = infinite;
    for (std::size_t way = 0; way < arcs_.size(); ++way) {
      const Half& h = arcs_[way];
      const Amount has = whole_.flow(h.id / 2);
      const Amount most = std::min(flows_[way], left);
      const Amount given = stays && !is_alone ? std::min(has, most) : most;
      set_flow(h.id / 2, stays ? given : has + given);
      flows_[way] -= given;
      left -= given;
      least = std::min(least, h.cost + whole_.price(h.other));
    }
    whole_.set_price(v, least);
  }

  Network& whole_;
  std::vector<Key> keys_;  // of all sources; those of alike ones are neighbours
  std::vector<Source> sources_;
  std::vector<std::uint8_t> is_source_;
  std::vector<Vertex> numbers_;  // of the large network's vertices in the small one; `none` for sources
  LargeArray<Amount> supplies_;
  LargeArray<Cost> prices_;
  std::vector<Network::Row> rows_;
  std::vector<Arc> origins_;  // of the small network's arcs; `none` for those of sources
  std::vector<Half> arcs_, model_;
  std::vector<Amount> flows_;
};

}  // namespace argosy::flow
