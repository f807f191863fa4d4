// SPDX-License-Identifier: Apache-2.0
// The geometry of the mesh canvas: chips and links of the target's topology, the piece of a tensor on each device and
// the links that an axis uses. Lengths are in units of the distance between two chips. Plain values; any thread.
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
  bool wrap = false;  // connects the last chip to the first
};
struct CanvasSwitch {  // connects the chips of a node, or all nodes
  Box at;
  std::vector<int> chips;
  std::string name;
};
struct CanvasGroup {  // a TPU slice or a GPU node: the network connects it to the others
  Box at;
  std::string name;  // "slice 0"
};
struct CanvasNetworkLine {  // joins groups that are drawn side by side
  int a = 0, b = 0;
};
// A grid dimension of more than one position, on which an axis can be placed.
struct CanvasSide {
  enum class Where { left, top, layers, network, chip };  // rows, columns, sheets, groups, within a chip
  int dimension = 0, size = 1;
  Where where = Where::top;
  std::string name;  // "rows", "columns", "layers", "slices", "nodes", "GPUs of a node", "devices of a chip"
  std::vector<std::string> axes;  // placed on it, outermost first
};
struct CanvasPicture {
  double width = 0, height = 0;
  std::vector<CanvasDevice> devices;  // by index in the grid
  std::vector<CanvasChip> chips;
  std::vector<CanvasLink> links;
  std::vector<CanvasSwitch> switches;
  std::vector<CanvasGroup> groups;  // empty: one slice or node
  std::vector<CanvasNetworkLine> network;
  std::vector<std::string> network_axes;  // communicate over the network
  std::vector<CanvasSide> sides;
};
// Draws a third dimension as sheets side by side, and slices and nodes as groups that the network connects.
CanvasPicture canvas_picture(const hardware::Target& target, const mesh::Layout& layout);

// The piece of a tensor on a device as a part of the unit square: the last split dimension runs to the right, the first
// of several downwards.
struct PieceArea {
  std::int64_t index = -1;  // among the distinct pieces; -1: the device holds none
  double left = 0, right = 1, top = 0, bottom = 1;
};
std::vector<PieceArea> piece_areas(const mesh::PlacedTensor& tensor, const mesh::Mesh& mesh,
                                   const mesh::Layout& layout);  // by grid index

// A connection between neighbours along an axis; b is -1 if they communicate through a switch.
struct CanvasEdge {
  enum class Way { direct, wrap, sheets };  // wrap: over a link that closes a dimension; sheets: between sheets
  int a = 0, b = -1;                        // devices
  Way way = Way::direct;
};
// Without what an axis sends over the network between TPU slices, see CanvasPicture::network_axes.
std::vector<CanvasEdge> axis_edges(const mesh::Mesh& mesh, const mesh::Layout& layout, std::string_view axis);

// "chip 3 at 1, 1; fsdp 0, tp 3; piece 3 of 4: 8 x 5376 x 512"; `tensor` may be null.
std::string device_text(const mesh::Mesh& mesh, const mesh::Layout& layout, const mesh::PlacedTensor* tensor,
                        int device);
// "ring of 4 through columns", "line of 4 on rows, links shared by 2", "over the switch"
std::string placement_text(const mesh::AxisPlacement& place, const CanvasPicture& picture);

}  // namespace mw::designer
