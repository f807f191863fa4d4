// SPDX-License-Identifier: Apache-2.0
// What the mesh canvas draws, without pixels: chips and links of the target's topology, which device holds which piece
// of a tensor, the links that an axis uses. Lengths are in pitches of the grid. Plain values; any thread.
#pragma once
#include <string>
#include <vector>

#include "core/mesh/layout/layout.h"
#include "core/mesh/layout/placement.h"

namespace mw::designer {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
};

struct CanvasDevice {
  Box at;
  int chip = 0;
  int position = 0;  // in the mesh, row-major
};
struct CanvasChip {
  Box at;
  std::vector<int> devices;     // indices in the grid
  std::vector<int> coordinate;  // in the target's shape
};
struct CanvasLink {
  int a = 0, b = 0;  // chips
  int dimension = 0;
  bool wrap = false;  // from the last back to the first
};
struct CanvasSwitch {  // chips that meet in one: a node, or all nodes
  Box at;
  std::vector<int> chips;
  std::string name;
};
// A dimension of the grid of more than one: where an axis can be laid.
struct CanvasSide {
  enum class Where { left, top, layers, chip };  // rows, columns, sheets, within a chip
  int dimension = 0, size = 1;
  Where where = Where::top;
  std::string name;               // "rows", "columns", "layers", "nodes", "devices of a node", "devices of a chip"
  std::vector<std::string> axes;  // that lie on it now, outer first
};
struct CanvasPicture {
  double width = 0, height = 0;
  std::vector<CanvasDevice> devices;  // by index in the grid
  std::vector<CanvasChip> chips;
  std::vector<CanvasLink> links;
  std::vector<CanvasSwitch> switches;
  std::vector<CanvasSide> sides;
};
// A third dimension is drawn as sheets side by side, nodes likewise.
CanvasPicture canvas_picture(const hardware::Target& target, const mesh::Layout& layout);

// What a device holds of a tensor, as a part of a miniature: the first split dimension downwards where there are two,
// the last across.
struct PieceArea {
  std::int64_t index = -1;  // of the distinct pieces; -1: nothing
  double left = 0, right = 1, top = 0, bottom = 1;
};
std::vector<PieceArea> piece_areas(const mesh::PlacedTensor& tensor, const mesh::Mesh& mesh,
                                   const mesh::Layout& layout);  // by grid index

// Neighbours along an axis, in all groups; b = -1: over the switch.
struct CanvasEdge {
  enum class Way { direct, wrap, sheets };  // over a link that closes the grid; from sheet to sheet
  int a = 0, b = -1;                        // devices
  Way way = Way::direct;
};
std::vector<CanvasEdge> axis_edges(const mesh::Mesh& mesh, const mesh::Layout& layout, std::string_view axis);

// "chip 3 at 1, 1; fsdp 0, tp 3; piece 3 of 4: 8 x 5376 x 512"; `tensor` may be null.
std::string device_text(const mesh::Mesh& mesh, const mesh::Layout& layout, const mesh::PlacedTensor* tensor,
                        int device);
// "ring of 4 through columns", "line of 4 on rows, links shared by 2", "over the switch"
std::string placement_text(const mesh::AxisPlacement& place, const CanvasPicture& picture);

}  // namespace mw::designer
