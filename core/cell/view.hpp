// Views: what can be read of a cell, live or as a snapshot.
//
// A `CellView` holds everything a scheduler may look at. The live `Cell` is one, and reads of it see
// every commit. Copying a `CellView` makes a frozen one: pages of machines and of tag counts are
// shared until written (see columns.hpp and tags.hpp), groups until a machine is relabelled, and shapes
// only ever grow. A frozen view keeps the dimensions it was made with; a shape that asks for one beyond
// them fits nowhere in it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "cell/columns.hpp"
#include "cell/groups.hpp"
#include "cell/shapes.hpp"
#include "cell/tags.hpp"

namespace argosy {

using Amounts = std::array<std::int64_t, most_dimensions>;

class CellView {
 public:
  CellView(int dimensions, std::int32_t sets)
      : columns_(dimensions),
        groups_(std::make_shared<Groups>(sets)),
        shapes_(std::make_shared<Shapes>(dimensions)) {}

  int dimensions() const { return columns_.dimensions(); }
  std::int32_t machines() const { return columns_.machines(); }
  bool knows(std::int64_t machine) const { return columns_.knows(machine); }
  const Columns& columns() const { return columns_; }
  const Groups& groups() const { return *groups_; }
  // Interning a shape changes nothing that anyone can observe, so views may do it.
  Shapes& shapes() const { return *shapes_; }

  // Draining machines are up; false for machines that do not exist.
  bool is_up(std::int32_t machine) const {
    return knows(machine) && (columns_.flags(machine) & flag_gone) == 0;
  }
  bool fits(std::int32_t machine, std::int32_t shape) const {
    return knows(machine) && shapes_->knows(shape) && is_within_reach(shape) &&
           columns_.fits(machine, shapes_->request(shape));
  }
  // Whether the shape asks only for dimensions known here; otherwise `beyond` is the first unknown resource.
  bool is_within_reach(std::int32_t shape) const { return shapes_->reach(shape) <= dimensions(); }
  Beyond beyond(std::int32_t shape) const { return shapes_->beyond(shape, dimensions()); }
  const std::int64_t* request(std::int32_t shape) const { return shapes_->request(shape); }

  // Over machines that are up.
  const Amounts& used_total() const { return used_; }
  const Amounts& capacity_total() const { return capacity_; }

  const TagCounts& machine_tags() const { return machine_tags_; }
  const TagCounts& set_tags() const { return set_tags_; }

  Bitmap everyone() const {
    Bitmap bitmap(bitmap_words(machines()), ~std::uint64_t{0});
    trim(bitmap, machines());
    return bitmap;
  }

  // Machines on which at least `least` and at most `most` containers carry `tag`.
  Bitmap with_tag(std::int32_t tag, std::int64_t least, std::int64_t most) const {
    Bitmap bitmap(bitmap_words(machines()));
    for (std::int32_t machine = 0; machine < machines(); ++machine) {
      const std::int64_t count = machine_tags_.get(machine, tag);
      if (least <= count && count <= most) set_bit(bitmap, machine);
    }
    return bitmap;
  }

  // Machines in at least one of the sets that has such a count.
  Bitmap in_sets_with_tag(std::int32_t tag, std::span<const std::int32_t> sets, std::int64_t least,
                          std::int64_t most) const {
    Bitmap bitmap(bitmap_words(machines()));
    for (const std::int32_t set : sets) {
      const std::int64_t count = set_tags_.get(set, tag);
      if (count < least || most < count) continue;
      const Bitmap& members = groups_->members(set);
      for (std::size_t word = 0; word < members.size() && word < bitmap.size(); ++word) {
        bitmap[word] |= members[word];
      }
    }
    trim(bitmap, machines());
    return bitmap;
  }

 protected:
  Columns columns_;
  std::shared_ptr<Groups> groups_;
  std::shared_ptr<Shapes> shapes_;
  TagCounts machine_tags_;
  TagCounts set_tags_;
  Amounts used_{};
  Amounts capacity_{};
};

}  // namespace argosy
